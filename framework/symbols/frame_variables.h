// Finds local variables and parameters in the stack frames of functions with DWARF. Places are
// offsets from the canonical frame address (CFA), which is the value of rsp before the call of the
// function.
//
// Leaves out variables in registers, and variables whose place must be computed from registers or
// memory, such as arrays of variable length. Broken debug information throws nothing. Not
// thread-safe.
#pragma once

#include "framework/symbols/debug_info.h"
#include "framework/symbols/frame_store.h"
#include "framework/symbols/function_tree.h"
#include "framework/symbols/interval_map.h"
#include "framework/symbols/line_table.h"
#include "framework/symbols/symbolizer.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace assay::symbols {

struct FrameVariable {
    std::int64_t start = 0, end = 0;  // from the CFA
    std::string_view name;            // valid as long as the FrameVariables
    std::string_view function;        // the variable's own, possibly inlined
};

class FrameVariables {
  public:
    // Null without debug information. Searches for debug files like Symbolizer.
    static std::unique_ptr<FrameVariables> open(const std::string& path,
                                                const std::string& debug_root = kDebugRoot,
                                                const std::string& cache_folder = {});

    // The variables in memory at the instruction `pc`, a link-time address. Variables of inner
    // blocks and inlined calls follow those of outer ones. A variable that lies in several pieces
    // has several entries. Valid until the next call.
    std::span<const FrameVariable> at(Address pc);
    // The innermost variable that contains this byte.
    std::optional<FrameVariable> find(Address pc, std::int64_t offset_from_cfa);

  private:
    // The origin of an offset.
    enum class Base : std::uint8_t { kCfa, kFrameBase, kRbp, kRsp };
    struct Place {
        Base base = Base::kCfa;
        std::int64_t offset = 0;
        std::uint64_t first = 0, size = 0;  // the part of the variable at this place; 0: the rest
    };
    // Holds for instructions in [low, high).
    struct Entry {
        Address low, high;
        Place place;  // with a known size
        std::string_view name, function;
    };
    struct FrameBase {
        Address low, high;
        Place place;
    };
    // With the variables of inlined calls.
    struct Function {
        std::vector<FrameBase> bases;
        std::vector<Entry> entries;
    };
    struct Unit {
        Dwarf_Die die;
        IntervalMap map;  // to the index of a function
        std::vector<Dwarf_Die> functions;
        bool everywhere = false;  // `functions` also has those within types and functions
    };
    using Ranges = std::vector<std::pair<Address, Address>>;
    // The state of reading a function.
    struct Reading {
        Function& function;
        Children children;
        std::uint64_t left;  // entries that may still be read, in case the file is damaged
    };
    struct EndCfi {
        void operator()(Dwarf_CFI* cfi) const { dwarf_cfi_end(cfi); }
    };

    explicit FrameVariables(std::unique_ptr<DebugInfo> debug);
    const Function* function_of(Address pc);
    Unit& unit_at(Dwarf_Off offset);
    void list_functions(Unit& unit);
    void list_functions_of(Unit& unit, Children& children, Dwarf_Die parent, int depth,
                           std::uint64_t& left);
    Function read(Dwarf_Die function);
    void read_children(Reading& reading, Dwarf_Die parent, const Ranges& scope,
                       std::string_view owner, int depth);
    void read_variable(Reading& reading, Dwarf_Die variable, const Ranges& scope,
                       std::string_view owner);
    Ranges ranges_of(Dwarf_Die die, std::uint64_t& left) const;
    static std::vector<Place> places(std::span<const Dwarf_Op> operations);
    std::vector<FrameVariable> resolve(const Function& function, Address pc) const;
    std::optional<std::int64_t> from_cfa(const Function& function, const Place& place,
                                         Address pc) const;
    std::optional<std::int64_t> register_from_cfa(Base base, Address pc) const;

    std::unique_ptr<DebugInfo> debug_;
    Address code_start_;
    std::unique_ptr<Dwarf_CFI, EndCfi> cfi_;
    UnitMap unit_map_;
    Names names_;
    std::unordered_map<Dwarf_Off, Unit> units_;
    std::unordered_map<const void*, Function> functions_;  // by address of their entry
    std::size_t entries_ = 0;                              // of all functions
    std::unordered_map<Address, std::vector<FrameVariable>> answers_;
    std::size_t answered_ = 0;  // variables in answers_
};

}  // namespace assay::symbols
