// Where the variables of a function are while its code runs, as far as that tells the types of what
// registers point to and of what lies in the stack frame; and what its calls return.
#pragma once

#include "framework/symbols/data_types.h"
#include "framework/x86/instruction.h"

#include <elfutils/libdw.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace assay::data_references {

// The address of an object of a type, and so many bytes more.
struct Pointee {
    symbols::DataTypeId type = 0;
    std::int64_t offset = 0;
};

// Instead of a register: what rsp was before the function was called (DWARF's canonical frame
// address).
inline constexpr std::uint8_t kFrameAddress = 32;

class VariableLocations {
  public:
    // A DW_TAG_subprogram.
    VariableLocations(const Dwarf_Die& function, symbols::DataTypes& types);

    // Of a variable that the register (native::Gpr) holds before the instruction at `pc`. Where
    // there are several, of the largest object: a derived class more likely than its base.
    std::optional<Pointee> in_register(unsigned reg, std::uint64_t pc) const;

    struct InMemory {
        std::uint64_t start, end;  // of the code for which it is true
        std::uint8_t base;         // native::Gpr or kFrameAddress
        std::int64_t offset;       // of its first byte from there
        symbols::DataTypeId type;
        bool indirect;  // what lies there is the variable's address
    };
    std::span<const InMemory> in_memory() const { return in_memory_; }
    // The type that the call returns which returns to `pc`; none if that is not known.
    std::optional<symbols::DataTypeId> returned_to(std::uint64_t pc) const;
    // Where calls would return to that never do.
    const std::unordered_set<std::uint64_t>& never_returned_to() const { return never_; }

  private:
    struct Range {
        std::uint64_t start, end;
        Pointee pointee;
    };
    using Operations = std::span<const Dwarf_Op>;

    void add_children(Dwarf_Die& parent, int depth);
    void add_variable(Dwarf_Die& variable);
    void add_call(Dwarf_Die& call);
    void add_expression(Operations operations, std::uint64_t start, std::uint64_t end,
                        symbols::DataTypeId type);
    void add_whole(Operations operations, std::uint64_t start, std::uint64_t end,
                   symbols::DataTypeId type);
    void add_pieces(Operations operations, std::uint64_t start, std::uint64_t end,
                    symbols::DataTypeId type);
    void add_in_memory(std::uint64_t start, std::uint64_t end, std::uint8_t base,
                       std::int64_t offset, symbols::DataTypeId type, bool indirect);
    void add_in_register(unsigned reg, std::uint64_t start, std::uint64_t end,
                         const Pointee& pointee);
    void read_frame_base(Dwarf_Die& function);
    void choose();
    bool is_better(const Pointee& a, const Pointee& b) const;

    symbols::DataTypes& types_;
    std::uint8_t frame_base_ = native::kNoGpr;
    std::int64_t frame_offset_ = 0;
    std::size_t entries_ = 0;
    std::array<std::vector<Range>, 16> in_registers_;  // in the end sorted, none in another
    std::vector<InMemory> in_memory_;
    std::unordered_map<std::uint64_t, symbols::DataTypeId> returned_;
    std::unordered_set<std::uint64_t> never_;
};

}  // namespace assay::data_references
