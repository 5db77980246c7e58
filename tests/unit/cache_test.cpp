// The cache simulator against a model that follows Cachegrind's rules word by word.
#include "plugins/cache/simulator.h"
#include "tests/unit/plain_cache.h"
#include "tests/unit/temporary_folder.h"

#include <doctest/doctest.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace cache_test {

namespace {

using cache::Geometries;
using cache::Geometry;
using cache::InstructionSet;
using cache::Simulator;
using Records = std::vector<trace_record_t>;
using Sites = std::vector<trace_site_t>;

PlainCache plain(const Geometry& geometry) {
    return {geometry.line, geometry.sets(), geometry.ways};
}

struct Misses {
    std::uint64_t l1 = 0, ll = 0;
    bool operator==(const Misses&) const = default;
};

std::vector<Misses> naive_misses(const Geometries& g, const Sites& sites, const Records& records) {
    PlainCache i1 = plain(g.i1), d1 = plain(g.d1), ll = plain(g.ll);
    const std::uint64_t largest = std::min({g.i1.line, g.d1.line, g.ll.line});
    std::vector<Misses> misses(sites.size());
    for (const trace_record_t& record : records) {
        const trace_site_t& site = sites[record.site];
        if (site.kind == TRACE_SITE_COUNT) continue;
        const std::uint64_t bytes = std::clamp<std::uint64_t>(site.bytes, 1, largest);
        PlainCache& first = site.kind == TRACE_SITE_FETCH ? i1 : d1;
        if (!first.misses(record.value, bytes)) continue;
        ++misses[record.site].l1;
        misses[record.site].ll += ll.misses(record.value, bytes);
    }
    return misses;
}

// Hands the records over in buffers of uneven lengths, as threads fill them.
std::vector<Misses> simulated_misses(const Geometries& g, InstructionSet set, const Sites& sites,
                                     const Records& records) {
    Simulator simulator(g, set);
    std::size_t at = 0;
    for (std::size_t length = 1; at < records.size(); length = length * 3 % 1009) {
        const std::size_t count = std::min(length, records.size() - at);
        simulator.learn(sites.data(), sites.size());
        simulator.process(0, records.data() + at, count);
        at += count;
    }
    std::vector<Misses> misses;
    for (std::size_t i = 0; i < sites.size(); ++i)
        misses.push_back({simulator.counts(i).l1_misses, simulator.counts(i).ll_misses});
    return misses;
}

// One site of every kind and size that matters: aligned, of a line, above a line, absurd.
Sites every_site() {
    Sites sites;
    for (const std::uint16_t bytes : {1, 15})
        sites.push_back({.instr = 0, .bytes = bytes, .kind = TRACE_SITE_FETCH});
    for (const std::uint8_t kind : {TRACE_SITE_READ, TRACE_SITE_WRITE, TRACE_SITE_MODIFY})
        for (const std::uint16_t bytes : {0, 1, 8, 16, 32, 64, 512, 65535})
            sites.push_back({.instr = 1, .bytes = bytes, .kind = kind});
    sites.push_back({.instr = 1, .bytes = 0, .kind = TRACE_SITE_COUNT});
    return sites;
}

// Some addresses near each other, some one set apart, few far away, and line 0.
Records random_records(const Sites& sites, std::size_t count, unsigned seed) {
    std::mt19937_64 random(seed);
    Records records;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t base[] = {0, 0x400000, 0x7ffffffe0000, random() & 0xffffffffff};
        const std::uint64_t near = random() % 8192;
        const std::uint64_t address = base[random() % 64 == 0 ? 3 : random() % 3] + near;
        const auto site = static_cast<std::uint32_t>(random() % sites.size());
        records.push_back({.value = address, .site = site, .aux = 0});
    }
    return records;
}

Geometry shape(std::uint64_t sets, std::uint32_t ways, std::uint32_t line) {
    return {sets * ways * line, ways, line};
}

std::vector<InstructionSet> instruction_sets() {
    std::vector<InstructionSet> sets{InstructionSet::kBaseline};
    for (const InstructionSet set : {InstructionSet::kAvx2, InstructionSet::kAvx512})
        if (cache::supported(set)) sets.push_back(set);
    return sets;
}

// What trace_capture_references lets a driver leave out, for references of at most a line.
Records filtered(const Records& records, const Sites& sites, bool fetches, const Geometry& g) {
    std::vector<std::uint64_t> recent(g.sets(), UINT64_MAX);
    Records kept;
    for (const trace_record_t& record : records) {
        const trace_site_t& site = sites[record.site];
        if (site.kind == TRACE_SITE_COUNT || (site.kind == TRACE_SITE_FETCH) != fetches) {
            kept.push_back(record);
            continue;
        }
        const std::uint64_t first = record.value / g.line;
        const std::uint64_t last = (record.value + site.bytes - 1) / g.line;
        if (first != last || recent[first % g.sets()] != first) kept.push_back(record);
        recent[first % g.sets()] = first;
        recent[last % g.sets()] = last;
    }
    return kept;
}

// Two references, one after the other.
Records pair(std::uint64_t first, std::uint64_t second) {
    return {{.value = first, .site = 0, .aux = 0}, {.value = second, .site = 0, .aux = 0}};
}

}  // namespace

TEST_CASE("every kernel agrees with the naive model in every shape") {
    const Sites sites = every_site();
    unsigned seed = 1;
    for (const std::uint32_t ways : {1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 20, 33}) {
        for (const std::uint64_t sets : {1, 2, 16}) {
            const Geometries shapes[] = {
                {shape(sets, ways, 64), shape(sets, ways, 64), shape(sets * 4, ways, 64)},
                {shape(2, 2, 16), shape(sets, ways, 32), shape(sets, ways + 1, 128)},
                {shape(sets, ways, 128), shape(4, 1, 64), shape(1, ways, 16)},
            };
            for (const Geometries& g : shapes) {
                const Records records = random_records(sites, 6000, seed++);
                const auto expected = naive_misses(g, sites, records);
                for (const InstructionSet set : instruction_sets()) {
                    CAPTURE(ways);
                    CAPTURE(sets);
                    CAPTURE(static_cast<int>(set));
                    CHECK(simulated_misses(g, set, sites, records) == expected);
                }
            }
        }
    }
}

TEST_CASE("each context has what happened in it, and all together what happened") {
    constexpr std::uint32_t kContexts = 7;
    const Sites sites = every_site();
    Sites with_calls = sites;  // of another profiler
    with_calls.push_back({.instr = 1, .bytes = 0, .kind = TRACE_SITE_CALL});
    const Geometries g{shape(4, 2, 64), shape(8, 2, 64), shape(16, 4, 64)};
    const Records records = random_records(sites, 20'000, 5);
    // To the naive model, a site in each context is a site of its own.
    Sites naive_sites;
    for (std::uint32_t context = 0; context < kContexts; ++context)
        naive_sites.insert(naive_sites.end(), sites.begin(), sites.end());
    Records naive_records = records, mixed;
    std::vector<std::uint32_t> contexts;
    for (std::size_t i = 0; i < records.size(); ++i) {
        const auto context = static_cast<std::uint32_t>(i / 3 % (kContexts * 5) % kContexts);
        naive_records[i].site += context * static_cast<std::uint32_t>(sites.size());
        mixed.push_back(records[i]);
        contexts.push_back(context);
        if (i % 3 != 2) continue;
        mixed.push_back({.value = 0, .site = static_cast<std::uint32_t>(sites.size()), .aux = 0});
        contexts.push_back(context);
    }
    const auto expected = naive_misses(g, naive_sites, naive_records);
    for (const InstructionSet set : instruction_sets()) {
        Simulator simulator(g, set);
        for (std::size_t at = 0; at < mixed.size(); at += 777) {
            const std::size_t count = std::min<std::size_t>(777, mixed.size() - at);
            simulator.learn(with_calls.data(), with_calls.size());
            simulator.process(0, std::span(mixed).subspan(at, count),
                              std::span(contexts).subspan(at, count));
        }
        std::vector<Misses> found(naive_sites.size());
        for (std::size_t site = 0; site < sites.size(); ++site)
            simulator.each_context(site, [&](std::uint64_t context, const cache::SiteCounts& own) {
                const std::uint64_t number = context == VP_NO_CONTEXT ? 0 : context;
                found[number * sites.size() + site] = {own.l1_misses, own.ll_misses};
            });
        CHECK(found == expected);
        const auto all = naive_misses(g, sites, records);
        for (std::size_t site = 0; site < sites.size(); ++site)
            CHECK(simulator.counts(site).l1_misses == all[site].l1);
        std::uint64_t references = 0;
        for (const trace_record_t& record : records)
            if (sites[record.site].kind == TRACE_SITE_COUNT) references += record.value;
        CHECK(simulator.counts(sites.size() - 1).references == references);
    }
}

TEST_CASE("a reference across two lines counts one miss and leaves both lines present") {
    const Sites sites{{.instr = 0, .bytes = 8, .kind = TRACE_SITE_READ}};
    const Geometry g = shape(4, 2, 64);
    for (const InstructionSet set : instruction_sets()) {
        const auto misses = [&](std::uint64_t first, std::uint64_t second) {
            return simulated_misses({g, g, shape(16, 4, 64)}, set, sites, pair(first, second))[0];
        };
        CHECK(misses(0x1000 - 4, 0x1000) == Misses{1, 1});
        CHECK(misses(0x1000 - 4, 0x1000 - 8) == Misses{1, 1});
        CHECK(misses(0x1000 - 8, 0x1000) == Misses{2, 2});
    }
}

TEST_CASE("line 0 is present in the beginning, as in Cachegrind") {
    const Sites sites{{.instr = 0, .bytes = 8, .kind = TRACE_SITE_WRITE}};
    const Geometry g = shape(4, 2, 64);
    for (const InstructionSet set : instruction_sets())
        CHECK(simulated_misses({g, g, g}, set, sites, pair(0, 32))[0] == Misses{0, 0});
}

TEST_CASE("what the filter leaves out changes no count") {
    Sites sites = every_site();
    std::erase_if(sites, [](const trace_site_t& site) {
        return site.kind != TRACE_SITE_COUNT && (site.bytes == 0 || site.bytes > 64);
    });
    const Geometries g{shape(4, 2, 64), shape(8, 3, 64), shape(16, 5, 64)};
    const Records all = random_records(sites, 200000, 4711);
    const Records kept = filtered(filtered(all, sites, true, g.i1), sites, false, g.d1);
    CHECK(kept.size() < all.size());
    const auto expected = naive_misses(g, sites, all);
    for (const InstructionSet set : instruction_sets())
        CHECK(simulated_misses(g, set, sites, kept) == expected);
}

TEST_CASE("counts of repeated instructions are summed and disturb no cache") {
    const Sites sites{{.instr = 0, .bytes = 0, .kind = TRACE_SITE_COUNT}};
    const Records records{{.value = 1000, .site = 0, .aux = 1}, {.value = 5, .site = 0, .aux = 0}};
    const Geometry g = shape(1, 1, 64);
    Simulator simulator({g, g, g});
    simulator.learn(sites.data(), sites.size());
    simulator.process(0, records.data(), records.size());
    CHECK(simulator.counts(0).references == 1005);
    CHECK(simulator.counts(0).ended_early == 1);
    CHECK(simulator.counts(0).l1_misses == 0);
}

TEST_CASE("a site can miss more than four thousand million times") {
    const Sites sites{{.instr = 0, .bytes = 8, .kind = TRACE_SITE_READ},
                      {.instr = 0, .bytes = 8, .kind = TRACE_SITE_READ}};
    const Geometry g = shape(1, 1, 64);
    for (const InstructionSet set :
         {InstructionSet::kBaseline, InstructionSet::kAvx2, InstructionSet::kAvx512}) {
        if (!supported(set)) continue;
        Simulator simulator({g, g, g}, set);
        simulator.learn(sites.data(), sites.size());
        simulator.set_misses(1, UINT32_MAX - 1);
        const Records records{{.value = 0x1000, .site = 1, .aux = 0},
                              {.value = 0x2000, .site = 1, .aux = 0},
                              {.value = 0x3000, .site = 0, .aux = 0},
                              {.value = 0x4000, .site = 1, .aux = 0}};
        simulator.process(0, records.data(), records.size());
        CHECK(simulator.counts(0).l1_misses == 1);
        CHECK(simulator.counts(1).l1_misses == 0x100000001);
        CHECK(simulator.counts(1).ll_misses == 0x100000001);
    }
}

TEST_CASE("each thread has an I1 and a D1, and LL is everyone's") {
    const Sites sites{{.instr = 0, .bytes = 8, .kind = TRACE_SITE_READ},
                      {.instr = 0, .bytes = 4, .kind = TRACE_SITE_FETCH}};
    const Records records{{.value = 0x1000, .site = 0, .aux = 0},
                          {.value = 0x2000, .site = 1, .aux = 0}};
    const Geometry g = shape(4, 2, 64);
    for (const InstructionSet set : instruction_sets()) {
        Simulator simulator({g, g, shape(16, 4, 64)}, set);
        simulator.learn(sites.data(), sites.size());
        for (std::uint64_t threads = 1; const std::uint32_t thread : {0U, 7U, 0xFFFF'FFFFU}) {
            // Twice: the second time there is nothing to miss.
            for (int times = 0; times < 2; ++times)
                simulator.process(thread, records.data(), records.size());
            for (std::size_t site = 0; site < sites.size(); ++site) {
                CHECK(simulator.counts(site).l1_misses == threads);
                CHECK(simulator.counts(site).ll_misses == 1);
            }
            ++threads;
        }
    }
}

TEST_CASE("the caches of a thread go when it ends, and its counts stay") {
    const Sites sites{{.instr = 0, .bytes = 8, .kind = TRACE_SITE_READ}};
    const Records records{{.value = 0x1000, .site = 0, .aux = 0}};
    Simulator simulator({shape(4, 2, 64), shape(4, 2, 64), shape(16, 4, 64)});
    simulator.learn(sites.data(), sites.size());
    for (std::uint32_t thread = 0; thread < 100; ++thread) {
        simulator.process(thread, records.data(), records.size());
        if (thread % 2 == 1) simulator.end(thread);
    }
    CHECK(simulator.thread_count() == 50);
    simulator.end(1000);
    CHECK(simulator.counts(0).l1_misses == 100);
    CHECK(simulator.counts(0).ll_misses == 1);
}

TEST_CASE("what one thread does leaves the first level of another alone") {
    const Sites sites = every_site();
    const Geometries g{shape(4, 2, 64), shape(8, 3, 64), shape(16, 5, 64)};
    const Records first = random_records(sites, 4000, 1), second = random_records(sites, 4000, 2);
    const auto expected = naive_misses(g, sites, first), others = naive_misses(g, sites, second);
    for (const InstructionSet set : instruction_sets()) {
        Simulator simulator(g, set);
        simulator.learn(sites.data(), sites.size());
        for (std::size_t at = 0; at < first.size(); at += 100) {
            simulator.process(3, first.data() + at, 100);
            simulator.process(0, second.data() + at, 100);
        }
        for (std::size_t site = 0; site < sites.size(); ++site)
            CHECK(simulator.counts(site).l1_misses == expected[site].l1 + others[site].l1);
    }
}

TEST_CASE("caches are found in the kernel's description") {
    const TemporaryFolder folder;
    const auto add = [&](const std::string& index, const char* level, const char* type,
                         const char* size, const char* ways) {
        std::filesystem::create_directory(folder.file(index));
        folder.write(index + "/level", std::string(level) + "\n");
        folder.write(index + "/type", std::string(type) + "\n");
        folder.write(index + "/size", std::string(size) + "\n");
        folder.write(index + "/ways_of_associativity", std::string(ways) + "\n");
        folder.write(index + "/coherency_line_size", "64\n");
    };
    const Geometries otherwise{{32768, 8, 64}, {16384, 8, 64}, {8 << 20, 16, 64}};
    CHECK(cache::caches_in(folder.file("none"), otherwise).ll == otherwise.ll);
    add("index0", "1", "Data", "64K", "4");
    add("index1", "2", "Unified", "1024K", "8");
    Geometries found = cache::caches_in(folder.file(""), otherwise);
    CHECK(found.d1 == Geometry{64 << 10, 4, 64});
    CHECK(found.i1 == otherwise.i1);
    CHECK(found.ll == Geometry{1 << 20, 8, 64});
    add("index2", "3", "Unified", "32768K", "0");  // the kernel does not know its ways
    found = cache::caches_in(folder.file(""), otherwise);
    CHECK(found.ll == Geometry{1 << 20, 8, 64});
}

TEST_CASE("geometries are read, refused and described") {
    std::string why;
    CHECK(cache::parse_geometry("32768,8,64", why) == Geometry{32768, 8, 64});
    CHECK(cache::parse_geometry("64,1,64", why) == Geometry{64, 1, 64});
    CHECK(cache::parse_geometry("8192,1,4096", why) == Geometry{8192, 1, 4096});
    CHECK(cache::parse_geometry("32,1,16", why) == Geometry{32, 1, 16});
    CHECK(cache::parse_geometry("32K,8,64", why) == Geometry{32768, 8, 64});
    CHECK(cache::parse_geometry("32k,8,64", why) == Geometry{32768, 8, 64});
    CHECK(cache::parse_geometry("8MiB,16,64", why) == Geometry{8 << 20, 16, 64});
    CHECK(cache::parse_geometry("1GB,16,64", why) == Geometry{1 << 30, 16, 64});
    const std::pair<const char*, const char*> refused[] = {
        {"K,8,64", "give three numbers"},
        {"32T,8,64", "give three numbers"},
        {"32KK,8,64", "give three numbers"},
        {"32K,8K,64", "give three numbers"},
        {"17179869184G,8,64", "give three numbers"},
        {"", "give three numbers"},
        {"32768", "give three numbers"},
        {"32768,8", "give three numbers"},
        {"32768,8,64,1", "give three numbers"},
        {"-32768,8,64", "give three numbers"},
        {"32768, 8,64", "give three numbers"},
        {"99999999999999999999,8,64", "give three numbers"},
        {"0,8,64", "must be above 0"},
        {"32768,0,64", "must be above 0"},
        {"32768,8,48", "a power of two from 16 to 4096"},
        {"32768,8,8", "a power of two from 16 to 4096"},
        {"65536,8,8192", "a power of two from 16 to 4096"},
        {"274877906880,4294967295,64", "the associativity must be at most"},
        {"32769,8,64", "a multiple of associativity times line size, which is 512"},
        {"256,8,64", "a multiple of associativity times line size, which is 512"},
        {"3072,1,64", "the number of sets, 48, and must be a power of two"}};
    for (const auto& each : refused) {
        CAPTURE(std::string(each.first));
        why.clear();
        CHECK_FALSE(cache::parse_geometry(each.first, why));
        CHECK(why.find(each.second) != std::string::npos);
    }
    CHECK(cache::describe({32768, 8, 64}) == "32768 B, 64 B, 8-way associative");
    CHECK(cache::describe({4096, 1, 32}) == "4096 B, 32 B, direct-mapped");
}

TEST_CASE("associativity is raised until the number of sets is a power of two") {
    const Geometry kept = shape(64, 12, 64);
    CHECK(cache::with_power_of_two_sets(kept) == kept);
    CHECK(cache::with_power_of_two_sets(shape(49152, 12, 64)) == shape(32768, 18, 64));
    CHECK(cache::with_power_of_two_sets(shape(36864, 11, 64)) == shape(32768, 12, 64));
    CHECK(cache::with_power_of_two_sets(shape(36864, 7, 64)) == shape(32768, 8, 64));
}

}  // namespace cache_test
