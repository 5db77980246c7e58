// The local variables and parameters that lie in the stack frames of a file's functions, as its
// DWARF tells: where they are from the canonical frame address (CFA), which is what rsp was before
// the call that began the function.
//
// A location in a register, or one that must be computed from what registers and memory hold, as
// that of an array of variable length, is not told. Nothing is thrown for broken debug information.
// Not thread-safe.
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
    std::string_view function;        // whose variable it is; perhaps one that was inlined
};

class FrameVariables {
  public:
    // Null if there is no debug information. Debug files are looked for as Symbolizer does.
    static std::unique_ptr<FrameVariables> open(const std::string& path,
                                                const std::string& debug_root = kDebugRoot,
                                                const std::string& cache_folder = {});

    // What is in memory when the instruction at `pc`, a link-time address, is executed; that of
    // inner blocks and inlined calls behind that of outer ones. A variable of which parts lie apart
    // is there several times. Valid until the next call.
    std::span<const FrameVariable> at(Address pc);
    // Which of them has that byte; the innermost if several have.
    std::optional<FrameVariable> find(Address pc, std::int64_t offset_from_cfa);

  private:
    // What an offset counts from.
    enum class Base : std::uint8_t { kCfa, kFrameBase, kRbp, kRsp };
    struct Place {
        Base base = Base::kCfa;
        std::int64_t offset = 0;
        std::uint64_t first = 0, size = 0;  // the part of the variable that is there; 0: the rest
    };
    // While [low, high) is executed.
    struct Entry {
        Address low, high;
        Place place;  // of which the size is known
        std::string_view name, function;
    };
    struct FrameBase {
        Address low, high;
        Place place;
    };
    // With all that is inlined into it.
    struct Function {
        std::vector<FrameBase> bases;
        std::vector<Entry> entries;
    };
    struct Unit {
        Dwarf_Die die;
        IntervalMap map;  // to the index of a function
        std::vector<Dwarf_Die> functions;
        bool everywhere = false;  // also those within types and functions
    };
    using Ranges = std::vector<std::pair<Address, Address>>;
    // How a function is read.
    struct Reading {
        Function& function;
        Children children;
        std::uint64_t left;  // what damaged information may still add
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
    std::size_t answered_ = 0;  // variables of all of them
};

}  // namespace assay::symbols
