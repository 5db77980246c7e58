// The profiler's options, with Cachegrind's names where it has them, and the summary at the end of
// a run.
#pragma once

#include "assay/vprofiler.h"
#include "plugins/common/geometry.h"
#include "plugins/machine/machine_file.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cache {

struct Settings {
    std::optional<Geometry> i1, d1, ll;
    bool simulate = true;
    bool count_iterations = false;
    bool level1_in_program = true;
    bool of_host = false;      // --machine=host: shapes that are not given are the processor's
    std::string machine_name;  // or a file; empty: none
    std::vector<machine::Change> changes;     // of the machine
    std::optional<machine::Machine> machine;  // see read_machine()
    std::uint64_t interval = 0;               // of misses over time; 0: none
    std::string with_machine;  // an option that was given and that a machine replaces
};

inline constexpr std::array<vp_option_t, 10> kOptionTable{{
    {"I1", "SIZE,WAYS,LINE", nullptr,
     "Level-1 instruction cache: bytes, associativity, bytes of a line; default: 32K,8,64.",
     VP_OPTION_TEXT, 0},
    {"D1", "SIZE,WAYS,LINE", nullptr, "Level-1 data cache; default: 32K,8,64.", VP_OPTION_TEXT, 0},
    {"LL", "SIZE,WAYS,LINE", nullptr, "Last-level cache after both; default: 8M,16,64.",
     VP_OPTION_TEXT, 0},
    {"cache-sim", "yes|no", "yes", "Simulates the caches; otherwise only Ir is counted.",
     VP_OPTION_YES_NO, 0},
    {"branch-sim", "branch", "no",
     "Predicts branches too: Bc, Bcm, Bi and Bim of the profiler branch, with its options.",
     VP_OPTION_PROFILER, 0},
    {"rep", "once|iterations", "once",
     "Counts a repeated string instruction once, as hardware does, or once per iteration, as "
     "Cachegrind does.",
     VP_OPTION_TEXT, 0},
    {"level1", "program|profiler", "program",
     "Where I1 and D1 are simulated: by the program's threads takes less processor time, by the "
     "profiler beside it may be sooner done if most references miss. The counts are the same.",
     VP_OPTION_TEXT, 0},
    {"machine", "FILE|NAME|host", nullptr,
     "A whole machine in place of I1, D1 and LL: cores, levels, policies, prefetchers, coherence "
     "and translation buffers, from a YAML file or by the name of one that comes with assay. host: "
     "I1, D1 and LL have the shapes of this processor's caches.",
     VP_OPTION_TEXT, 0},
    {"set", "CACHE.KEY=VALUE", nullptr,
     "Changes a field of the machine, as D1.ways=8, L2.replacement=srrip or memory=200; may be "
     "repeated.",
     VP_OPTION_ASSIGNMENT, 0},
    {"misses-over-time", "N", nullptr,
     "Also gives the misses in each N instructions of a thread, as a series for the plots of "
     "reports. Not with --machine.",
     VP_OPTION_COUNT, 0},
}};

// Sets one option. Throws std::invalid_argument with the reason if its value is unusable.
void apply(Settings& settings, std::string_view name, std::string_view value);

// Reads the machine, after the last option. Throws std::runtime_error if it has mistakes.
void read_machine(Settings& settings);
// Throws std::invalid_argument if the machine cannot be simulated with the other options.
void check_with_machine(const Settings& settings, bool sampled);

// The simulated shapes. Shapes without an option have fixed defaults, so that files of two machines
// agree. With --machine=host they are those of the processor's caches, with a power of two of sets.
Geometries geometries(const Settings& settings);
// The desc: lines about the shapes, as names and texts, with the origin of each shape.
std::vector<std::pair<std::string, std::string>> describe(const Settings& settings);

// In the order of the events file.
enum EventIndex : std::uint32_t { kIr, kI1mr, kILmr, kDr, kD1mr, kDLmr, kDw, kD1mw, kDLmw };
inline constexpr std::uint32_t kEvents = 9;

// `totals` has kEvents elements. Without `simulated` only Ir is shown.
std::string summarise(const std::uint64_t* totals, bool simulated, bool with_ll);

}  // namespace cache
