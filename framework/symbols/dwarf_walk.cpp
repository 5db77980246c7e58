#include "framework/symbols/dwarf_walk.h"

namespace assay::symbols {

std::uint64_t unit_bytes(Dwarf_Die die) {
    Dwarf_Off start = dwarf_dieoffset(&die) - dwarf_cuoffset(&die), next = 0;
    std::size_t header_bytes = 0;
    int status = dwarf_nextcu(dwarf_cu_getdwarf(die.cu), start, &next, &header_bytes, nullptr,
                              nullptr, nullptr);
    return status == 0 && next > start ? next - start : 0;
}

std::span<const Dwarf_Die> Children::of(Dwarf_Die parent) {
    auto [entry, is_new] = known_.try_emplace(parent.addr);
    if (is_new) read(parent, entry->second);
    return entry->second;
}

void Children::read(Dwarf_Die parent, std::vector<Dwarf_Die>& children) {
    auto [entry, is_new] = left_.try_emplace(parent.cu);
    std::uint64_t& left = entry->second;
    if (is_new) left = unit_bytes(parent);
    Dwarf_Die die;
    int status = dwarf_child(&parent, &die);
    for (; status == 0 && left > 0; --left) {
        // A broken DW_AT_sibling might point backwards.
        if (!children.empty() && die.addr <= children.back().addr) return;
        dwarf_tag(&die);  // Finds the abbreviation, for the next call and for the readers of `die`.
        children.push_back(die);
        status = dwarf_siblingof(&die, &die);
    }
}

}  // namespace assay::symbols
