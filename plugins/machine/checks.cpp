#include "plugins/machine/checks.h"

#include "plugins/common/geometry.h"
#include "plugins/machine/replacement.h"

#include <algorithm>
#include <bit>
#include <cctype>

namespace machine {
namespace {

constexpr std::uint64_t kMostEntries = std::uint64_t{1} << 30;  // lines of a cache

bool shares(Holds a, Holds b) {
    return a == b || a == Holds::kBoth || b == Holds::kBoth;
}

std::string complaint_of_shape(const Machine& machine, const Cache& cache) {
    if (cache.size == 0) return cache.name + " needs a size";
    if (cache.ways == 0) return cache.name + " needs ways";
    const std::string wrong = cache::complaint({cache.size, cache.ways, machine.line});
    if (!wrong.empty()) return cache.name + ": " + wrong;
    if (cache.size / machine.line > kMostEntries) return cache.name + " is too large";
    if (cache.hash == Hash::kXor && !std::has_single_bit(cache.sets(machine.line)))
        return cache.name + ": hash: xor needs a power of two of sets; there are " +
               std::to_string(cache.sets(machine.line));
    const std::string policy = complaint(cache.replacement, cache.ways);
    if (!policy.empty()) return cache.name + ": replacement: " + policy;
    if (cache.level == 1 && cache.inclusion == Inclusion::kExclusive)
        return cache.name +
               ": inclusion: a cache of level 1 cannot be exclusive: no cache is above it";
    if (cache.inclusion == Inclusion::kExclusive && !cache.write_back)
        return cache.name +
               ": an exclusive cache cannot write through: it holds lines that others lost";
    return "";
}

// For two caches between which lines can move.
std::string complaint_of_pair(const Cache& upper, const Cache& lower) {
    if (!shares(upper.holds, lower.holds)) return "";
    if (upper.level == lower.level)
        return upper.name + " and " + lower.name +
               " have the same level and both hold instructions, or data";
    if (upper.holds == Holds::kBoth && lower.holds != Holds::kBoth)
        return lower.name + " must hold instructions and data, because " + upper.name +
               " above it holds both";
    if (upper.of > lower.of)
        return lower.name + " is shared by fewer cores than " + upper.name + " above it";
    return "";
}

std::string complaint_of_tlb(const Tlb& tlb) {
    if (tlb.entries == 0) return tlb.name + " needs entries";
    if (tlb.entries % tlb.ways != 0)
        return tlb.name + ": the number of entries must be a multiple of its ways";
    if (!forgets_repetition(tlb.replacement))
        return tlb.name + ": replacement: use lru, fifo, plru, bit-plru or random";
    const std::string policy = complaint(tlb.replacement, tlb.ways);
    return policy.empty() ? "" : tlb.name + ": replacement: " + policy;
}

std::string complaint_of_cores(const Machine& machine) {
    if (machine.cores == 0 && machine.clusters > 1)
        return "clusters need a number of cores: cores: 4";
    if (machine.cores != 0 && machine.cores % machine.clusters != 0)
        return std::to_string(machine.cores) + " cores cannot be divided into " +
               std::to_string(machine.clusters) + " clusters";
    if (machine.cores == 0 && machine.protocol != Protocol::kNone)
        return "coherence needs a number of cores: cores: 4";
    if (machine.placement == Placement::kList && machine.cores == 0)
        return "a list of threads needs a number of cores: cores: 4";
    for (const std::uint32_t core : machine.core_of_thread)
        if (core >= machine.cores)
            return "threads: the machine has no core " + std::to_string(core) +
                   "; cores are numbered from 0 to " + std::to_string(machine.cores - 1);
    if (machine.caches.empty() && machine.tlbs.empty())
        return "a machine needs caches or translation buffers";
    if (machine.caches.size() > 32) return "a machine has at most 32 caches";
    return "";
}

}  // namespace

bool shares_pages(const Tlb& a, const Tlb& b) {
    if (a.pages.empty()) return true;
    return std::any_of(a.pages.begin(), a.pages.end(),
                       [&b](std::uint64_t bytes) { return b.holds_pages_of(bytes); });
}

std::string complaint_of_line(std::uint64_t bytes) {
    if (std::has_single_bit(bytes) && bytes >= cache::kSmallestLine && bytes <= cache::kLargestLine)
        return "";
    return "line: use a power of two from 16 to 4096";
}

std::string complaint_of_page(const std::string& key, std::uint64_t bytes) {
    if (std::has_single_bit(bytes) && bytes >= 4096 && bytes <= std::uint64_t{1} << 30) return "";
    return key + ": use a power of two from 4K to 1G" + (key == "page" ? ", or mapped" : "");
}

// Names become parts of event names.
std::string complaint_of_name(const Machine& machine, const std::string& name) {
    const auto is_part = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; };
    if (name.empty() || name.size() > 32 || !std::isalpha(static_cast<unsigned char>(name[0])) ||
        !std::all_of(name.begin(), name.end(), is_part))
        return "\"" + name + "\" is not a name; use letters, digits, _ and -, a letter first";
    const auto has = [&name](const auto& row) { return row.name == name; };
    if (std::count_if(machine.caches.begin(), machine.caches.end(), has) +
            std::count_if(machine.tlbs.begin(), machine.tlbs.end(), has) >
        1)
        return "two caches or buffers have the name " + name;
    return "";
}

std::vector<Complaint> complaints(const Machine& machine) {
    const std::string cores = complaint_of_cores(machine);
    if (!cores.empty()) return {{"", false, cores}};
    for (const Cache& cache : machine.caches) {
        std::string why = complaint_of_shape(machine, cache);
        for (const Cache& lower : machine.caches)
            if (why.empty() && &lower != &cache && lower.level >= cache.level)
                why = complaint_of_pair(cache, lower);
        if (!why.empty()) return {{cache.name, false, why}};
    }
    for (const Tlb& tlb : machine.tlbs) {
        std::string why = complaint_of_tlb(tlb);
        for (const Tlb& lower : machine.tlbs)
            if (why.empty() && &lower != &tlb && lower.level == tlb.level &&
                shares(tlb.holds, lower.holds) && shares_pages(tlb, lower))
                why = tlb.name + " and " + lower.name +
                      " have the same level and hold the same pages";
        if (!why.empty()) return {{tlb.name, true, why}};
    }
    return {};
}

}  // namespace machine
