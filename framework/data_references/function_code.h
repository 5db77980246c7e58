// The machine code of a function, in blocks that only their first instruction is jumped to.
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
        std::uint32_t first, end;  // instructions
        // Blocks, as far as jumps tell: nothing of a table, or of an exception.
        std::vector<std::uint32_t> successors;
        bool has_predecessor = false;
    };
    std::vector<native::Instruction> instructions;  // by address
    std::vector<Block> blocks;                      // in the same order
    std::uint32_t entry = 0;                        // the block that calls lead to
};

// Of all ranges of a DW_TAG_subprogram. What cannot be read or decoded is left out. A call that
// would return to one of `never` ends a block.
FunctionCode read_code(const Dwarf_Die& function, const symbols::ElfFile& file,
                       native::Decoder& decoder, const std::unordered_set<std::uint64_t>& never);

}  // namespace assay::data_references
