// The fast simulation of a machine, held against a model that is written for plainness.
#include "machine_streams.h"

#include "plugins/machine/describe.h"
#include "plugins/machine/prefetcher.h"
#include "plugins/machine/replacement.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

namespace machine_test {

namespace {

using machine::Holds;
using machine::Machine;
using machine::Of;

std::string in_words(const Machine& machine) {
    std::string all;
    for (const auto& [name, what] : machine::describe(machine)) all += name + ": " + what + "\n";
    return all;
}

Machine of_two_levels(std::uint32_t ways = 4) {
    Machine machine;
    machine.cores = 1;
    machine.caches = {streams::cache("I1", 1, Holds::kInstructions, Of::kCore, 4, 4),
                      streams::cache("D1", 1, Holds::kData, Of::kCore, 4, 4),
                      streams::cache("L2", 2, Holds::kBoth, Of::kMachine, 256 / ways, ways)};
    return machine;
}

TEST_CASE("every replacement policy counts as the model says") {
    for (const std::uint32_t ways : {4u, 16u, 32u, 64u})  // some are made otherwise above 16
        for (const std::string& policy : machine::policy_names())
            for (const machine::Hash hash : {machine::Hash::kModulus, machine::Hash::kXor}) {
                CAPTURE(ways);
                CAPTURE(policy);
                Machine machine = of_two_levels(ways);
                for (machine::Cache& cache : machine.caches) {
                    cache.replacement.policy = policy;
                    if (!machine::complaint(cache.replacement, cache.ways).empty())
                        cache.replacement.policy = "lru";
                    cache.hash = hash;
                    cache.prefetch = {{"next-line", 1, 1}};
                }
                CHECK(streams::difference(machine, 1, 3000) == "");
            }
}

TEST_CASE("every prefetcher counts as the model says") {
    for (const std::string& kind : machine::prefetcher_names())
        for (const std::size_t at : {1u, 2u})
            for (const std::uint32_t distance : {1u, 3u}) {
                CAPTURE(kind);
                CAPTURE(at);
                Machine machine = of_two_levels();
                machine.caches[at].prefetch = {{kind, distance + 1, distance}};
                machine.caches[at].late = 8;
                machine.caches[at].classify = true;
                CHECK(streams::difference(machine, 2, 3000) == "");
                machine.caches[at].prefetch.push_back({"next-line", 1, 1});
                CHECK(streams::difference(machine, 3, 3000) == "");
            }
}

// By default the first 80. ASSAY_SEEDS=1000-2000 tries those and longer streams.
void check_many(Machine (*any)(streams::Random&)) {
    std::uint64_t first = 0, end = 80;
    const char* const wanted = std::getenv("ASSAY_SEEDS");
    if (wanted) REQUIRE(std::sscanf(wanted, "%lu-%lu", &first, &end) == 2);
    for (std::uint64_t seed = first; seed < end; ++seed) {
        CAPTURE(seed);
        streams::Random random(seed);
        const Machine machine = any(random);
        const std::string found = streams::difference(
            machine, streams::references(random, machine, wanted ? 5000 : 1200));
        INFO(in_words(machine));
        CHECK(found == "");
    }
}

TEST_CASE("any machine counts as the model says") {
    check_many(streams::any_machine);
}

TEST_CASE("first caches in advance count as the model says") {
    check_many(streams::any_machine_of_independent_first_caches);
}

TEST_CASE("pages of several sizes count as the model says") {
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
        CAPTURE(seed);
        streams::Random random(seed);
        const Machine machine = streams::any_machine_of_pages(random);
        const std::vector<streams::OfCore> references = streams::references(random, machine, 800);
        const std::string found =
            streams::difference(machine, references, streams::changes(random, 800));
        INFO(in_words(machine));
        CHECK(found == "");
    }
}

}  // namespace

}  // namespace machine_test
