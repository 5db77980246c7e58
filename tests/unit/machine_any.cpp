#include "machine_streams.h"

#include "plugins/machine/checks.h"
#include "plugins/machine/prefetcher.h"
#include "plugins/machine/replacement.h"

#include <algorithm>

namespace streams {

using machine::Holds;
using machine::Inclusion;
using machine::Machine;
using machine::Of;

namespace {

class Maker {
  public:
    explicit Maker(Random& random) : random_(random) {}

    Machine machine() {
        Machine made;
        made.cores = pick<std::uint32_t>({0, 1, 2, 2, 4, 4});
        made.clusters = made.cores >= 2 && one_in(3) ? 2 : 1;
        made.line = pick<std::uint32_t>({64, 64, 64, 16, 128});
        if (made.cores > 1 && !one_in(4))
            made.protocol =
                pick<machine::Protocol>({machine::Protocol::kMesi, machine::Protocol::kMoesi});
        made.directory = one_in(2);
        made.sharing = !one_in(4);
        Of of = made.protocol != machine::Protocol::kNone && !one_in(8) ? Of::kCore : any_of(made);
        bool split = !one_in(4);
        const std::uint32_t levels = pick<std::uint32_t>({1, 2, 2, 3, 3, 4});
        for (std::uint32_t level = 1; level <= levels; ++level) {
            const std::string name = std::to_string(level);
            if (split) {
                made.caches.push_back(cache(made, "I" + name, level, Holds::kInstructions, of));
                made.caches.push_back(cache(made, "D" + name, level, Holds::kData, of));
            } else {
                made.caches.push_back(cache(made, "C" + name, level, Holds::kBoth, of));
            }
            split = split && one_in(4);
            of = std::max(of, one_in(3) ? of : any_of(made));
        }
        if (one_in(3)) add_tlbs(made);
        return made;
    }
    // With first caches that nothing below them changes.
    Machine machine_of_independent_first_caches() {
        for (;;) {
            Machine made = machine();
            for (machine::Cache& cache : made.caches) {
                if (cache.level == 1) cache.write_back = cache.write_allocate = true;
                if (cache.inclusion == Inclusion::kInclusive) cache.inclusion = Inclusion::kNone;
            }
            made.tlbs.clear();
            if (machine::FirstCaches::are_independent(made)) return made;
        }
    }
    // With buffers for pages of several sizes, which come from mappings.
    Machine machine_of_pages() {
        Machine made = machine();
        made.tlbs.clear();
        made.page = one_in(6) ? std::uint64_t{1} << (12 + random_() % 19) : 0;
        made.transparent = pick<machine::Transparent>({machine::Transparent::kAlways,
                                                       machine::Transparent::kMadvise,
                                                       machine::Transparent::kNever});
        add_split_tlbs(made);
        return made;
    }

  private:
    bool one_in(std::uint64_t many) { return random_() % many == 0; }
    template <typename T>
    T pick(const std::vector<T>& of) {
        return of[random_() % of.size()];
    }
    Of any_of(const Machine& made) {
        return made.clusters > 1 ? pick<Of>({Of::kCore, Of::kCluster, Of::kMachine})
                                 : pick<Of>({Of::kCore, Of::kMachine});
    }

    machine::Cache cache(const Machine& made, const std::string& name, std::uint32_t level,
                         Holds holds, Of of) {
        const std::uint64_t sets = pick<std::uint64_t>({1, 2, 3, 4, 6, 8, 16});
        machine::Cache found = streams::cache(
            name, level, holds, of, sets, pick<std::uint32_t>({1, 2, 2, 3, 4, 4, 8}), made.line);
        if ((sets & (sets - 1)) == 0 && one_in(3)) found.hash = machine::Hash::kXor;
        if (level > 1)
            found.inclusion =
                pick<Inclusion>({Inclusion::kNone, Inclusion::kInclusive, Inclusion::kExclusive});
        if (one_in(4) && found.inclusion != Inclusion::kExclusive) found.write_back = false;
        found.write_allocate = !one_in(4);
        found.counts_writes = !one_in(4);
        found.replacement = replacement(found.ways);
        for (int left = one_in(2) ? 1 + one_in(4) : 0; left > 0; --left)
            found.prefetch.push_back({pick(machine::prefetcher_names()),
                                      pick<std::uint32_t>({1, 1, 2, 4}),
                                      pick<std::uint32_t>({1, 1, 2, 5})});
        if (one_in(2)) found.late = pick<std::uint32_t>({1, 4, 20});
        found.classify = one_in(2);
        return found;
    }
    machine::Replacement replacement(std::uint32_t ways) {
        machine::Replacement found;
        do {
            found.policy = one_in(3) ? "lru" : pick(machine::policy_names());
        } while (!complaint(found, ways).empty());
        found.seed = 1 + random_() % 1000;
        return found;
    }
    machine::Tlb tlb(const std::string& name, std::uint32_t level, Holds holds) {
        machine::Tlb made;
        made.name = name;
        made.level = level;
        made.holds = holds;
        made.ways = pick<std::uint32_t>({1, 2, 4});
        made.entries = made.ways * pick<std::uint32_t>({1, 2, 3, 8});
        do {
            made.replacement = replacement(made.ways);
        } while (!machine::forgets_repetition(made.replacement));
        return made;
    }
    // In each level the sizes are divided among some buffers; some sizes have none.
    void add_split_tlbs(Machine& made) {
        for (std::uint32_t level = 1; level <= 2; ++level)
            for (const Holds holds : one_in(3) ? std::vector{Holds::kBoth}
                                               : std::vector{Holds::kInstructions, Holds::kData}) {
                const std::string name =
                    "T" + std::to_string(level) + std::to_string(static_cast<int>(holds));
                std::vector<machine::Tlb> parts = {tlb(name + "a", level, holds),
                                                   tlb(name + "b", level, holds),
                                                   tlb(name + "c", level, holds)};
                for (const std::uint64_t bytes : {4 << 10, 64 << 10, 2 << 20, 1 << 30})
                    if (!one_in(5)) parts[random_() % 3].pages.push_back(bytes);
                if (one_in(5)) {
                    parts.resize(1);
                    parts[0].pages.clear();
                    made.tlbs.push_back(parts[0]);
                    continue;
                }
                for (const machine::Tlb& part : parts)
                    if (!part.pages.empty()) made.tlbs.push_back(part);
            }
    }
    void add_tlbs(Machine& made) {
        const auto add = [&](const std::string& name, std::uint32_t level, Holds holds) {
            made.tlbs.push_back(tlb(name, level, holds));
        };
        const std::uint64_t first = random_() % 6;
        if (first <= 2) add("TI", 1, Holds::kInstructions);
        if (first <= 1 || first == 3) add("TD", 1, Holds::kData);
        if (first >= 4) add("T", 1, Holds::kBoth);
        if (one_in(2)) add("T2", 2, Holds::kBoth);
    }

    Random& random_;
};

}  // namespace

Machine any_machine(Random& random) {
    for (;;) {
        Machine made = Maker(random).machine();
        if (complaints(made).empty()) return made;
    }
}

Machine any_machine_of_pages(Random& random) {
    for (;;) {
        Machine made = Maker(random).machine_of_pages();
        if (complaints(made).empty()) return made;
    }
}

Machine any_machine_of_independent_first_caches(Random& random) {
    for (;;) {
        Machine made = Maker(random).machine_of_independent_first_caches();
        if (complaints(made).empty()) return made;
    }
}

}  // namespace streams
