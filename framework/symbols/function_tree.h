// The functions of one compilation unit that were executed, and the calls inlined into them.
#pragma once

#include "framework/symbols/dwarf_walk.h"
#include "framework/symbols/interval_map.h"
#include "framework/symbols/line_table.h"

#include <elfutils/libdw.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace assay::symbols {

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
    // See dwarf_names.h.
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
