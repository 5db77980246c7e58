#include "plugins/machine/describe.h"

#include "plugins/common/geometry.h"

#include <algorithm>

namespace machine {
namespace {

bool flows(Holds upper, Holds lower) {
    return lower == Holds::kBoth || upper == lower;
}

}  // namespace

std::vector<std::uint32_t> next_caches(const Machine& machine) {
    const std::vector<Cache>& rows = machine.caches;  // in ascending order of levels
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

namespace {

const char* text(Of of) {
    return of == Of::kCore ? "of each core" : of == Of::kCluster ? "of each cluster" : "shared";
}

std::string text(const Cache& cache, std::uint32_t line) {
    std::string all = cache::describe({cache.size, cache.ways, line});
    all += ", " + cache.replacement.policy;
    if (cache.replacement.policy == "random")
        all += " (seed " + std::to_string(cache.replacement.seed) + ")";
    all += std::string(", ") + text(cache.of);
    if (cache.hash == Hash::kXor) all += ", hashed";
    if (cache.inclusion == Inclusion::kInclusive) all += ", inclusive";
    if (cache.inclusion == Inclusion::kExclusive) all += ", exclusive";
    if (!cache.write_back) all += ", write-through";
    if (!cache.write_allocate) all += ", no write-allocate";
    for (const Prefetch& prefetch : cache.prefetch)
        all += ", prefetches " + prefetch.kind + " " + std::to_string(prefetch.degree) + " at " +
               std::to_string(prefetch.distance);
    return all;
}

// The sizes of pages that the buffer holds.
std::string pages(const Tlb& tlb, const Machine& machine) {
    if (tlb.pages.empty())
        return machine.page == 0 ? "" : " of " + std::to_string(machine.page) + " B";
    std::string all;
    for (const std::uint64_t bytes : tlb.pages)
        all += (all.empty() ? " of " : " and ") + std::to_string(bytes) + " B";
    return all;
}

std::string text(const Machine& machine) {
    std::string all = machine.name.empty() ? "" : machine.name + ", ";
    all += machine.cores == 0   ? "a core for each thread"
           : machine.cores == 1 ? "1 core"
                                : std::to_string(machine.cores) + " cores";
    if (machine.clusters > 1) all += " in " + std::to_string(machine.clusters) + " clusters";
    if (machine.protocol != Protocol::kNone) {
        all += machine.protocol == Protocol::kMesi ? ", MESI" : ", MOESI";
        all += machine.directory ? " with a directory" : " with snooping";
    }
    if (machine.page == 0 && !machine.tlbs.empty())
        all += std::string(", pages as mapped, transparent huge pages ") +
               (machine.transparent == Transparent::kAlways    ? "always"
                : machine.transparent == Transparent::kMadvise ? "where advised"
                                                               : "never");
    return all;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> describe(const Machine& machine) {
    std::vector<std::pair<std::string, std::string>> all = {{"Machine", text(machine)}};
    for (const Cache& cache : machine.caches)
        all.emplace_back(cache.name + " cache", text(cache, machine.line));
    for (const Tlb& tlb : machine.tlbs)
        all.emplace_back(tlb.name, std::to_string(tlb.entries) + " pages" + pages(tlb, machine) +
                                       ", " + std::to_string(tlb.ways) + "-way associative, " +
                                       tlb.replacement.policy);
    return all;
}

}  // namespace machine
