// Working sets against plain sets.
#include "plugins/working_set/touched.h"

#include <doctest/doctest.h>
#include <map>
#include <random>
#include <set>

namespace working_set_test {

using namespace working_set;

namespace {

const std::vector<trace_site_t> kSites{{0, 8, TRACE_SITE_READ, 0},
                                       {1, 64, TRACE_SITE_WRITE, 0},
                                       {2, 0, TRACE_SITE_INTERVAL, 0},
                                       {3, 0, TRACE_SITE_COUNT, 0}};
constexpr std::uint32_t kIntervalSite = 2;

}  // namespace

TEST_CASE("working_set: random references are as in plain sets") {
    std::mt19937_64 random(1);
    for (const std::uint64_t line : {64, 256, 4096}) {
        Touched touched(static_cast<std::uint32_t>(line));
        touched.learn(kSites);
        std::map<std::uint32_t, std::vector<Size>> expected;
        std::map<std::uint32_t, std::set<std::uint64_t>> lines, pages;
        std::set<std::uint64_t> all_lines, all_pages;
        Counts counts{};
        for (int round = 0; round < 400; ++round) {
            const std::uint32_t thread = random() % 3;
            std::vector<trace_record_t> records;
            for (int i = 0; i < 50; ++i) {
                const auto site = static_cast<std::uint32_t>(random() % 40 == 0 ? 2 : random() % 2);
                const std::uint64_t address = random() % 7 * 1'000'000 + random() % 20'000;
                records.push_back({address, site, 0});
                if (site == kIntervalSite) {
                    expected[thread].push_back({lines[thread].size(), pages[thread].size()});
                    lines[thread].clear();
                    pages[thread].clear();
                    continue;
                }
                for (const std::uint64_t at : {address, address + kSites[site].bytes - 1}) {
                    counts[kLines] += lines[thread].insert(at / line).second;
                    counts[kPages] += pages[thread].insert(at / 4096).second;
                    counts[kNewLines] += all_lines.insert(at / line).second;
                    counts[kNewPages] += all_pages.insert(at / 4096).second;
                }
            }
            touched.process(thread, records, {});
        }
        CHECK(touched.totals() == counts);
        for (const auto& [number, thread] : touched.threads()) {
            REQUIRE(thread.sizes.size() == expected[number].size());
            for (std::size_t i = 0; i < thread.sizes.size(); ++i) {
                CHECK(thread.sizes[i].lines == expected[number][i].lines);
                CHECK(thread.sizes[i].pages == expected[number][i].pages);
            }
            CHECK(thread.now.lines == lines[number].size());
        }
        Counts sum{};
        for (std::uint32_t site = 0; site < kSites.size(); ++site)
            touched.each_context(site, [&](std::uint64_t, const Counts& of_site) {
                for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += of_site[i];
            });
        CHECK(sum == counts);
    }
}

TEST_CASE("working_set: what is written") {
    Touched touched(64);
    touched.learn(kSites);
    const std::vector<trace_record_t> records{{0, 0, 0},  {4096, 0, 0}, {8, 0, 0}, {0, 2, 0},
                                              {60, 0, 0}, {0, 2, 0},    {64, 0, 0}};
    touched.process(0, records, {});
    CHECK(csv(touched, 1000) == "thread,instructions,lines,pages\n1,0,2,2\n1,1000,2,1\n");
    CHECK(summarise(touched, 64, 1000) ==
          "intervals of 1,000 instructions: 2\n\n"
          "                               lines             bytes       pages\n"
          "average working set                2               128           1\n"
          "largest                            2               128           2\n"
          "the whole run                      3               192           2\n");
}

}  // namespace working_set_test
