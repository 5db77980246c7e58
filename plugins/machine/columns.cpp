#include "plugins/machine/columns.h"

#include "plugins/machine/checks.h"

#include <algorithm>
#include <utility>

namespace machine {
namespace {

bool holds(const Cache& cache, Kind kind) {
    return cache.holds == Holds::kBoth ||
           (cache.holds == Holds::kInstructions) == (kind == Kind::kFetch);
}

// The caches through which references of that kind go, in order.
std::vector<std::size_t> path(const Machine& machine, Kind kind) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < machine.caches.size(); ++i)
        if (holds(machine.caches[i], kind)) found.push_back(i);
    return found;
}

// True if misses of the upper buffer may go to the lower one next.
bool is_behind(const Tlb& lower, const Tlb& upper) {
    const bool same_kind =
        lower.holds == upper.holds || lower.holds == Holds::kBoth || upper.holds == Holds::kBoth;
    return upper.level + 1 == lower.level && same_kind && shares_pages(lower, upper);
}

std::string joined(const std::vector<std::string>& terms, const char* between) {
    std::string all;
    for (const std::string& term : terms) all += (all.empty() ? "" : between) + term;
    return all;
}

// As a part of a formula; "" of nothing.
std::string sum(const std::vector<std::string>& terms) {
    return terms.size() > 1 ? "(" + joined(terms, " + ") + ")" : joined(terms, "");
}

}  // namespace

std::string level_name(const Machine& machine, std::uint32_t level) {
    const bool last =
        std::any_of(machine.caches.begin(), machine.caches.end(),
                    [&](const Cache& cache) { return cache.level == level && cache.name == "LL"; });
    return last ? "L" : std::to_string(level);
}

std::uint32_t Columns::add(std::string name, std::string description, const char* unit) {
    const std::string& kept_name = texts_.emplace_back(std::move(name));
    const std::string& kept = texts_.emplace_back(std::move(description));
    events_.push_back({kept_name.c_str(), kept.c_str(), unit});
    return size() - 1;
}

void Columns::derive(std::string name, std::string formula, const char* unit) {
    const std::string& kept_name = texts_.emplace_back(std::move(name));
    const std::string& kept = texts_.emplace_back(std::move(formula));
    derived_.push_back({kept_name.c_str(), kept.c_str(), unit});
}

// Named like Cachegrind's events: I or D, the level, m for misses, r for reads or w for writes.
void Columns::add_misses(const Machine& machine, Kind kind) {
    static constexpr const char* kWhat[] = {"instruction read", "data read", "data write"};
    for (const std::size_t i : path(machine, kind)) {
        const std::string level = level_name(machine, machine.caches[i].level);
        const std::string where = level == "L" ? "last-level cache " : "level-" + level + " ";
        const auto which = static_cast<std::size_t>(kind);
        caches[i].misses[which] =
            add((kind == Kind::kFetch ? "I" : "D") + level + (kind == Kind::kWrite ? "mw" : "mr"),
                where + kWhat[which] + " misses", "misses");
    }
}

void Columns::add_of_cache(const Machine& machine, std::size_t index) {
    const Cache& cache = machine.caches[index];
    OfCache& own = caches[index];
    const std::string& name = cache.name;
    if (cache.counts_writes && cache.write_back && cache.holds != Holds::kInstructions)
        own.write_backs = add(name + "wb", "lines written back by " + name, "lines");
    if (cache.inclusion == Inclusion::kInclusive && cache.level > 1)
        own.back_invalidations =
            add(name + "bi", "lines that other caches lost because " + name + " replaced them",
                "lines");
    if (!cache.prefetch.empty()) {
        own.prefetched = add(name + "pf", "lines prefetched into " + name, "lines");
        own.useful = add(name + "pfu", "of these, referenced afterwards", "lines");
        if (cache.late != 0)
            own.late = add(
                name + "pfl",
                "of these, by the same core within " + std::to_string(cache.late) + " instructions",
                "lines");
        own.useless = add(name + "pfx", "prefetched lines that left " + name + " unused", "lines");
        own.evicting = add(
            name + "pfe", "misses in " + name + " of lines that a prefetch had replaced", "misses");
    }
    if (!cache.classify) return;
    own.cold = add(name + "cold", "misses in " + name + " of lines never seen before", "misses");
    own.capacity = add(name + "cap",
                       "misses in " + name + " that a fully associative cache also has", "misses");
    own.conflict =
        add(name + "conf", "misses in " + name + " that a fully associative cache does not have",
            "misses");
    if (machine.protocol != Protocol::kNone && cache.of == Of::kCore &&
        cache.holds != Holds::kInstructions)
        own.coherence =
            add(name + "coh", "misses in " + name + " of lines that another core's write took",
                "misses");
}

Columns::Columns(const Machine& machine)
    : caches(machine.caches.size()), tlbs(machine.tlbs.size(), kNone) {
    ir = add("Ir", "instructions executed", "instructions");
    add_misses(machine, Kind::kFetch);
    dr = add("Dr", "data reads", "reads");
    add_misses(machine, Kind::kRead);
    dw = add("Dw", "data writes", "writes");
    add_misses(machine, Kind::kWrite);
    for (std::size_t i = 0; i < caches.size(); ++i) add_of_cache(machine, i);
    if (machine.protocol != Protocol::kNone) {
        invalidations_sent = add("InvSent", "invalidations sent to other cores", "messages");
        invalidations_received = add("InvRecv", "lines that other cores lost to writes", "lines");
        upgrades = add("Upgrades", "writes to lines that other cores may also have", "writes");
        transfers = add("Transfers", "misses that another core's modified line answers", "misses");
    }
    if (machine.protocol != Protocol::kNone && machine.sharing) {
        true_sharing =
            add("TrueSharing", "misses of a word that another core has written since", "misses");
        false_sharing =
            add("FalseSharing", "misses of a line in which others wrote other words", "misses");
    }
    for (std::size_t i = 0; i < tlbs.size(); ++i)
        tlbs[i] = add(machine.tlbs[i].name + "m",
                      "pages that " + machine.tlbs[i].name + " did not contain", "misses");
    if (!tlbs.empty()) walks = add("Walks", "page table walks", "walks");
    derive_all(machine);
}

void Columns::derive_all(const Machine& machine) {
    std::vector<std::string> cycles = {"Ir"};
    const auto cost = [&](const std::vector<std::string>& events, std::uint32_t latency) {
        if (latency == 0 || events.empty()) return;
        cycles.push_back(sum(events) + " * " + std::to_string(latency));
    };
    std::vector<std::string> to_memory;
    for (const auto& [kinds, name, references] :
         {std::tuple{std::vector{Kind::kFetch}, "I", "Ir"},
          std::tuple{std::vector{Kind::kRead, Kind::kWrite}, "D", "(Dr + Dw)"}}) {
        std::vector<std::string> before;  // the events whose references come to the cache
        for (const std::size_t i : path(machine, kinds[0])) {
            cost(before, machine.caches[i].latency);
            const std::string arriving = sum(before);
            before.clear();
            for (const Kind kind : kinds)
                before.emplace_back(events_[caches[i].misses[static_cast<std::size_t>(kind)]].name);
            const std::string cache = name + level_name(machine, machine.caches[i].level);
            const std::string misses = sum(before);
            derive(cache + " miss rate", misses + " / " + references, "%");
            if (!arriving.empty())
                derive(cache + " local miss rate", misses + " / " + arriving, "%");
            derive(cache + " misses per 1000 instructions", misses + " * 1000 / Ir", "");
        }
        to_memory.insert(to_memory.end(), before.begin(), before.end());
    }
    cost(to_memory, machine.memory_latency);
    for (std::size_t i = 0; i < tlbs.size(); ++i) {
        std::vector<std::string> before;
        for (std::size_t above = 0; above < i; ++above)
            if (is_behind(machine.tlbs[i], machine.tlbs[above]))
                before.emplace_back(events_[tlbs[above]].name);
        cost(before, machine.tlbs[i].latency);
    }
    if (walks != kNone) cost({"Walks"}, machine.walk_latency);
    for (std::size_t i = 0; i < caches.size(); ++i)
        if (caches[i].prefetched != kNone) {
            std::string used = events_[caches[i].useful].name;
            used.append(" / ").append(events_[caches[i].prefetched].name);
            derive(machine.caches[i].name + " prefetch accuracy", std::move(used), "%");
        }
    if (cycles.size() > 1) derive("Cy", joined(cycles, " + "), "cycles");
}

}  // namespace machine
