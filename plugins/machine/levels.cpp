#include "plugins/machine/levels.h"

#include <algorithm>

namespace machine {
namespace {

bool flows(Holds upper, Holds lower) {
    return lower == Holds::kBoth || upper == lower;
}

}  // namespace

std::vector<std::uint32_t> next_caches(const Machine& machine) {
    const std::vector<Cache>& rows = machine.caches;  // by level
    std::vector<std::uint32_t> next(rows.size(), kMemory);
    for (std::uint32_t i = 0; i < rows.size(); ++i)
        for (std::uint32_t j = i + 1; j < rows.size() && next[i] == kMemory; ++j)
            if (rows[j].level > rows[i].level && flows(rows[i].holds, rows[j].holds)) next[i] = j;
    return next;
}

std::uint32_t first_cache(const Machine& machine, Holds holds) {
    const std::vector<Cache>& rows = machine.caches;
    for (std::uint32_t i = 0; i < rows.size(); ++i)
        if (rows[i].holds == holds || rows[i].holds == Holds::kBoth) return i;
    return kMemory;
}

bool is_first(const Machine& machine, std::uint32_t cache) {
    const std::vector<std::uint32_t> next = next_caches(machine);
    return std::find(next.begin(), next.end(), cache) == next.end();
}

bool is_of_front_end(const Machine& machine, std::uint32_t cache, const Prefetch& prefetch) {
    return prefetch.kind == "stride" && is_first(machine, cache);
}

}  // namespace machine
