// The functions of one compilation unit that were executed, and the calls inlined into them.
#pragma once

#include "framework/symbols/interval_map.h"
#include "framework/symbols/line_table.h"

#include <elfutils/libdw.h>

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace assay::symbols {

// The children of DWARF entries, with a limit for broken files. Keeps them, because the walk
// through a unit and the search for the scopes of each function read them again.
class Children {
  public:
    // In ascending order. Valid as long as this object lives.
    std::span<const Dwarf_Die> of(Dwarf_Die parent);

  private:
    void read(Dwarf_Die parent, std::vector<Dwarf_Die>& children);

    std::unordered_map<const void*, std::vector<Dwarf_Die>> known_;  // by address of the parent
    // The number of entries that may still be read from each unit. In broken files, many entries
    // can share the same children.
    std::unordered_map<const Dwarf_CU*, std::uint64_t> left_;
};

class FunctionTree {
  public:
    static constexpr std::uint32_t kNone = IntervalMap::kNone;

    // Reads only functions that contain one of the sorted `addresses`, which all belong to the
    // unit. The linker has dropped code below `code_start`.
    FunctionTree(Dwarf_Die unit, std::span<const Address> addresses, Address code_start);

    // The innermost function, inlined or not, that contains `address`, or kNone.
    std::uint32_t innermost(Address address) const { return map_.find(address); }
    // The function that `function` is inlined into, or kNone if it is not inlined.
    std::uint32_t caller(std::uint32_t function) const { return nodes_[function].caller; }
    // The place of the call in the caller.
    SourcePosition call_site(std::uint32_t function) const;
    SourcePosition declaration(std::uint32_t function) const;
    // The mangled name, if DWARF has one. Otherwise the name with its namespaces and classes,
    // joined by "::", because gcc records no mangled names for functions that are local to a file.
    // Empty if the function has no name.
    std::string name(std::uint32_t function);

  private:
    struct Node {
        Dwarf_Die die;
        std::uint32_t caller;
    };

    void walk();
    bool covers_all_addresses() const;
    void visit_children(Dwarf_Die parent, std::uint32_t function, int depth);
    void visit(Dwarf_Die die, std::uint32_t function, int depth);
    std::uint32_t add(Dwarf_Die* die, std::uint32_t caller);

    Dwarf_Die unit_;
    Children children_;
    std::span<const Address> addresses_;
    Address code_start_;
    bool everywhere_ = false;  // also walk through types and functions that were not executed
    std::uint64_t visits_left_ = 0;
    std::vector<Node> nodes_;
    IntervalMap map_;
    Dwarf_Files* files_ = nullptr;
    std::size_t file_count_ = 0;
};

}  // namespace assay::symbols
