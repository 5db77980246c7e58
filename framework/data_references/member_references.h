// For each instruction that refers to memory: the type, and the member of it, that it refers to. As
// far as debug information and the machine code tell (register_types.h).
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

// Of one instruction.
struct MemberReference {
    enum class Kind : std::uint8_t {
        kNone,      // there is no debug information
        kNoMemory,  // it refers to none
        kUnknown,   // its type is not known
        kStack,     // the frame, but for structs and arrays there
        kTyped,
    };
    Kind kind = Kind::kNone;
    std::uint32_t node = 0;  // of the tree
    // kTyped: how far from the beginning of the outermost type it begins. kVaries in arrays, whose
    // elements are not told apart.
    static constexpr std::uint64_t kVaries = UINT64_MAX;
    std::uint64_t offset = kVaries;

    bool same(const MemberReference& other) const {
        return kind == other.kind && node == other.node;
    }
};

// For one object.
class MemberReferences {
  public:
    // `tree` gets the types.
    MemberReferences(const std::string& object_path, TypeTree& tree,
                     const std::string& debug_root = symbols::kDebugRoot,
                     const symbols::ImageCache& cache = symbols::ImageCache(""));
    ~MemberReferences();

    // One for each of the addresses, which are sorted and the object's own. An instruction with two
    // references of which one is implicit has the kind of the other one; if both are explicit and
    // differ, it is unknown.
    std::vector<MemberReference> find(std::span<const std::uint64_t> addresses);
    // The same of each reference of an instruction, in the order of its form.
    using Operands = std::array<MemberReference, 2>;
    std::vector<Operands> find_operands(std::span<const std::uint64_t> addresses);
    // All members of those types that are structs become nodes, referred to or not.
    void add_all_members() { all_members_ = true; }

  private:
    struct At {
        std::uint64_t pc;
        MemberReference reference;
        Operands operands;
    };
    // Calls `take(index, what is known of the instruction)` for those of functions; null if it
    // refers to no memory.
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
    std::unique_ptr<DebugEntries> entries_;  // null if there is no debug information
    native::Decoder decoder_;
    bool all_members_ = false;
};

}  // namespace assay::data_references
