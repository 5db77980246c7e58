// The machine code of a function, in basic blocks.
#pragma once

#include "framework/symbols/elf_file.h"
#include "framework/x86/decoder.h"

#include <elfutils/libdw.h>

#include <cstdint>
#include <unordered_set>
#include <vector>

namespace assay::data_references {

struct FunctionCode {
    struct Block {
        std::uint32_t first, end;  // indices of instructions
        // Indices of blocks. Jumps through tables and exceptions are not included.
        std::vector<std::uint32_t> successors;
        bool has_predecessor = false;
    };
    std::vector<native::Instruction> instructions;  // by address
    std::vector<Block> blocks;                      // in the same order
    std::uint32_t entry = 0;                        // index of the block that calls jump to
};

// Reads all ranges of a DW_TAG_subprogram. Leaves out code that cannot be read or decoded. A call
// that would return to one of `never` ends a block.
FunctionCode read_code(const Dwarf_Die& function, const symbols::ElfFile& file,
                       native::Decoder& decoder, const std::unordered_set<std::uint64_t>& never);

}  // namespace assay::data_references
