// The machines that come with assay: their files are read, and what they describe can be simulated.
#include "plugins/machine/columns.h"
#include "plugins/machine/hierarchy.h"
#include "plugins/machine/machine_file.h"

#include <doctest/doctest.h>
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

namespace shipped_machines_test {

using namespace machine;

namespace {

const char* const kOfProcessors[] = {"ice-lake-sp", "neoverse-n1", "neoverse-v1",
                                     "skylake-sp",  "zen2",        "zen4"};

}  // namespace

TEST_CASE("machines come with assay") {
    const std::vector<std::string> names = machine_names();
    CHECK(std::is_sorted(names.begin(), names.end()));
    std::vector<std::string> expected(std::begin(kOfProcessors), std::end(kOfProcessors));
    for (const char* const other : {"cortex-m4", "cortex-m7", "generic"})
        expected.emplace_back(other);
    std::sort(expected.begin(), expected.end());
    CHECK(names == expected);
}

TEST_CASE("machines that come with assay are simulated") {
    for (const std::string& name : machine_names()) {
        CAPTURE(name);
        const Machine machine = read_machine(name);
        CHECK(machine.name == name);
        const Columns columns(machine);
        Hierarchy hierarchy(machine, columns);
        const std::uint32_t cores = std::max(machine.cores, 1U);
        for (std::uint32_t core = 0; core < cores; ++core) {
            std::vector<std::uint64_t> counts(columns.size());
            const Reference read{Kind::kRead, false, 8, 0x10000 + core * 0x10000, 0x400000};
            hierarchy.refer(core, read, {}, counts.data());
            const auto data = static_cast<std::size_t>(Kind::kRead);
            for (std::size_t i = 0; i < machine.caches.size(); ++i)
                if (machine.caches[i].holds != Holds::kInstructions)
                    CHECK(counts[columns.caches[i].misses[data]] == 1);
            const std::vector<std::uint64_t> before = counts;
            hierarchy.refer(core, read, {}, counts.data());
            CHECK(counts == before);
        }
    }
}

TEST_CASE("machines of processors have several coherent cores and a last level") {
    for (const std::string name : kOfProcessors) {
        CAPTURE(name);
        const Machine machine = read_machine(name);
        CHECK(machine.cores >= 4);
        CHECK(machine.protocol != Protocol::kNone);
        CHECK(machine.memory_latency > 100);
        REQUIRE(machine.caches.size() == 4);
        CHECK(machine.caches.back().name == "LL");
        // A last level that takes what the second evicts has a meaning only where it is larger
        // than one of these.
        CHECK(machine.caches[3].size > machine.caches[2].size);
        CHECK(machine.tlbs.size() >= 3);
    }
}

}  // namespace shipped_machines_test
