// The locations of the variables of a function, from debug information. They give the types of
// objects that registers point to, and of data in the stack frame. Also the types that calls
// return.
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

// The address of an object of a type, plus an offset in bytes.
struct Pointee {
    symbols::DataTypeId type = 0;
    std::int64_t offset = 0;
};

// Stands for a register: the value of rsp before the call of the function (DWARF's canonical frame
// address).
inline constexpr std::uint8_t kFrameAddress = 32;

class VariableLocations {
  public:
    // `function` is a DW_TAG_subprogram.
    VariableLocations(const Dwarf_Die& function, symbols::DataTypes& types);

    // The object that the register (native::Gpr) points to before the instruction at `pc`, from a
    // variable in the register. Among several variables, the largest object counts: a derived class
    // is likelier than its base.
    std::optional<Pointee> in_register(unsigned reg, std::uint64_t pc) const;

    struct InMemory {
        std::uint64_t start, end;  // of the code where this holds
        std::uint8_t base;         // native::Gpr or kFrameAddress
        std::int64_t offset;       // of the variable from `base`, in bytes
        symbols::DataTypeId type;
        bool indirect;  // the address of the variable lies there
    };
    std::span<const InMemory> in_memory() const { return in_memory_; }
    // The result type of the call that returns to `pc`; empty if not known.
    std::optional<symbols::DataTypeId> returned_to(std::uint64_t pc) const;
    // The return addresses of calls to functions that never return.
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
    std::array<std::vector<Range>, 16> in_registers_;  // sorted and disjoint after choose()
    std::vector<InMemory> in_memory_;
    std::unordered_map<std::uint64_t, symbols::DataTypeId> returned_;
    std::unordered_set<std::uint64_t> never_;
};

}  // namespace assay::data_references
