// The level-1 caches of a replay against plain ones.
#include "framework/driver/replay/miss_filter.h"

#include "tests/unit/plain_cache.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

namespace miss_filter_test {

namespace {

using namespace assay;

constexpr std::uint32_t kLine = 64;

// Sites of a fetch, a read of 8 bytes, a write of 128, and something that is no reference.
const std::vector<trace_site_t> kSites{{0, 7, TRACE_SITE_FETCH, 0},
                                       {0, 8, TRACE_SITE_READ, 0},
                                       {0, 128, TRACE_SITE_WRITE, 0},
                                       {0, 0, TRACE_SITE_CALL, 0}};

std::vector<trace_record_t> random_records(std::uint64_t span) {
    std::mt19937_64 random(7);
    std::vector<trace_record_t> records;
    for (int i = 0; i < 20'000; ++i)
        records.push_back({random() % span, static_cast<std::uint32_t>(random() % 4), 0});
    return records;
}

trace::Spec spec(std::uint32_t data_ways, std::uint32_t fetch_ways) {
    return {.data = {kLine, 16, {}, data_ways}, .fetch = {kLine, 4, {}, fetch_ways}};
}

}  // namespace

TEST_CASE("what misses the caches of a replay is what misses plain ones") {
    for (const std::uint32_t data_ways : {0, 1, 4, 12})
        for (const std::uint32_t fetch_ways : {0, 2, 8}) {
            PlainCache data(kLine, 16, data_ways), fetch(kLine, 4, fetch_ways);
            const auto kinds = replay::reference_kinds(kSites);
            replay::MissFilter filter(spec(data_ways, fetch_ways), kinds);
            const auto records = random_records(64 * kLine);
            std::vector<trace_record_t> expected;
            for (const trace_record_t& record : records) {
                const std::uint64_t bytes = kSites[record.site].bytes;
                const bool is_fetch = record.site == 0,
                           is_data = record.site == 1 || record.site == 2;
                if ((is_fetch && fetch_ways != 0 && !fetch.misses(record.value + kLine, bytes)) ||
                    (is_data && data_ways != 0 &&
                     !data.misses(record.value + kLine, std::min<std::uint64_t>(bytes, kLine))))
                    continue;
                expected.push_back(record);
            }
            std::vector<trace_record_t> moved = records;
            for (trace_record_t& record : moved) record.value += kLine;  // 0 is PlainCache's "none"
            const trace_record_t* const end = filter.copy(moved, moved.data());
            moved.resize(static_cast<std::size_t>(end - moved.data()));
            REQUIRE(moved.size() == expected.size());
            CHECK(std::equal(moved.begin(), moved.end(), expected.begin(),
                             [](const trace_record_t& a, const trace_record_t& b) {
                                 return a.value == b.value + kLine && a.site == b.site;
                             }));
        }
}

TEST_CASE("the line 0 is present in the beginning, as in a run and in Cachegrind") {
    const auto kinds = replay::reference_kinds(kSites);
    replay::MissFilter filter(spec(4, 2), kinds);
    const std::vector<trace_record_t> records{{8, 1, 0}, {kLine, 1, 0}};
    std::vector<trace_record_t> passed(2);
    CHECK(filter.copy(records, passed.data()) == passed.data() + 1);
    CHECK(passed[0].value == kLine);
}

TEST_CASE("a thread begins with empty caches") {
    const auto kinds = replay::reference_kinds(kSites);
    replay::MissFilter filter(spec(4, 2), kinds);
    const std::vector<trace_record_t> records{{640, 1, 0}, {640, 1, 0}};
    std::vector<trace_record_t> passed(2);
    CHECK(filter.copy(records, passed.data()) == passed.data() + 1);
    CHECK(filter.copy(records, passed.data()) == passed.data());
    filter.clear();
    CHECK(filter.copy(records, passed.data()) == passed.data() + 1);
}

}  // namespace miss_filter_test
