// Finds the type and the member that each instruction refers to, from debug information and machine
// code (register_types.h).
#pragma once

#include "framework/data_references/register_types.h"
#include "framework/data_references/type_tree.h"
#include "framework/symbols/debug_info.h"
#include "framework/symbols/elf_file.h"
#include "framework/symbols/symbolizer.h"
#include "framework/x86/decoder.h"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace assay::data_references {

// The reference of one instruction.
struct MemberReference {
    enum class Kind : std::uint8_t {
        kNone,      // no debug information
        kNoMemory,  // no reference to memory
        kUnknown,   // type not known
        kStack,     // the frame, except structs and arrays in it
        kTyped,
    };
    Kind kind = Kind::kNone;
    std::uint32_t node = 0;  // in the TypeTree
    // kTyped: the offset in the outermost type. kVaries in arrays, because the element is not
    // known.
    static constexpr std::uint64_t kVaries = UINT64_MAX;
    std::uint64_t offset = kVaries;

    bool same(const MemberReference& other) const {
        return kind == other.kind && node == other.node;
    }
};

// For one object.
class MemberReferences {
  public:
    // Adds the types to `tree`.
    MemberReferences(const std::string& object_path, TypeTree& tree,
                     const std::string& debug_root = symbols::kDebugRoot,
                     const symbols::ImageCache& cache = symbols::ImageCache(""));
    ~MemberReferences();

    // Returns one reference for each of the sorted link-time addresses. If an instruction has two
    // references, an implicit one does not count. If both are explicit and differ, the kind is
    // kUnknown.
    std::vector<MemberReference> find(std::span<const std::uint64_t> addresses);
    // Returns both references of each instruction, in the order of its form.
    using Operands = std::array<MemberReference, 2>;
    std::vector<Operands> find_operands(std::span<const std::uint64_t> addresses);
    // Makes all members of structs nodes, even those without references.
    void add_all_members() { all_members_ = true; }

  private:
    struct At {
        std::uint64_t pc;
        MemberReference reference;
        Operands operands;
    };
    // Calls `take(index, const At*)` for addresses within functions. The pointer is null if the
    // instruction refers to no memory.
    template <typename Take>
    void find_each(std::span<const std::uint64_t> addresses, const Take& take);
    std::vector<At> find_in(const Dwarf_Die& function);
    static MemberReference reference_of(const native::Instruction& instruction,
                                        const Operands& operands);
    MemberReference reference_of(const DataTarget& target);

    TypeTree& tree_;
    symbols::DebugInfo debug_;
    std::unique_ptr<symbols::ElfFile> file_;
    symbols::DataTypes types_;
    std::unique_ptr<DebugEntries> entries_;  // null without debug information
    native::Decoder decoder_;
    bool all_members_ = false;
};

}  // namespace assay::data_references
