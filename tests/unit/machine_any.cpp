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
    void add_tlbs(Machine& made) {
        const auto add = [&](const std::string& name, std::uint32_t level, Holds holds) {
            machine::Tlb tlb;
            tlb.name = name;
            tlb.level = level;
            tlb.holds = holds;
            tlb.ways = pick<std::uint32_t>({1, 2, 4});
            tlb.entries = tlb.ways * pick<std::uint32_t>({1, 2, 3, 8});
            do {
                tlb.replacement = replacement(tlb.ways);
            } while (!machine::forgets_repetition(tlb.replacement));
            made.tlbs.push_back(tlb);
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

}  // namespace streams
