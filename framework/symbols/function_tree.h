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

// The children of DWARF entries, even of broken ones without end. They are read once and kept: a
// walk through a unit reads them, and so does the search for what encloses a function, for each
// function again.
class Children {
  public:
    // In ascending order. Valid as long as this object.
    std::span<const Dwarf_Die> of(Dwarf_Die parent);

  private:
    void read(Dwarf_Die parent, std::vector<Dwarf_Die>& children);

    std::unordered_map<const void*, std::vector<Dwarf_Die>> known_;  // by address of the parent
    // How many more entries to read of a unit: broken ones could be linked so that the children
    // of many are the same.
    std::unordered_map<const Dwarf_CU*, std::uint64_t> left_;
};

class FunctionTree {
  public:
    static constexpr std::uint32_t kNone = IntervalMap::kNone;

    // Reads only functions that contain one of the sorted `addresses`, which all belong to the
    // unit. Code below `code_start` does not exist any more.
    FunctionTree(Dwarf_Die unit, std::span<const Address> addresses, Address code_start);

    // The innermost function, inlined or not, that contains `address`, or kNone.
    std::uint32_t innermost(Address address) const { return map_.find(address); }
    // The function that `function` is inlined into, or kNone if it is not inlined.
    std::uint32_t caller(std::uint32_t function) const { return nodes_[function].caller; }
    // Where the caller calls it.
    SourcePosition call_site(std::uint32_t function) const;
    // Where it is declared.
    SourcePosition declaration(std::uint32_t function) const;
    // Its mangled name if it or what it is an instance of has one, else the names of its
    // namespaces, classes and its own joined by "::" (gcc records no mangled names of functions
    // that cannot be seen outside of their file). Empty if it has no name.
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
    bool everywhere_ = false;  // walk through functions and types that seem not to matter, too
    std::uint64_t visits_left_ = 0;
    std::vector<Node> nodes_;
    IntervalMap map_;
    Dwarf_Files* files_ = nullptr;
    std::size_t file_count_ = 0;
};

}  // namespace assay::symbols
