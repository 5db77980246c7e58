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

struct Ways {
    std::uint32_t data, fetch;
    std::uint32_t data_sets = 16, data_line = kLine;
};

trace::Spec spec(const Ways& ways) {
    return {.data = {ways.data_line, ways.data_sets, {}, ways.data},
            .fetch = {kLine, 4, {}, ways.fetch}};
}

// The records that go to an output.
std::vector<trace_record_t> passed(const std::vector<trace_record_t>& records,
                                   const replay::MissFilters::Shapes* missed,
                                   replay::MissFilters::Shapes wanted) {
    std::vector<trace_record_t> passed;
    for (std::size_t i = 0; i < records.size(); ++i)
        if (missed[i] & wanted) passed.push_back(records[i]);
    return passed;
}

std::vector<trace_record_t> expected(const std::vector<trace_record_t>& records, Ways ways) {
    PlainCache data(ways.data_line, ways.data_sets, ways.data), fetch(kLine, 4, ways.fetch);
    std::vector<trace_record_t> expected;
    for (const trace_record_t& record : records) {
        const std::uint64_t bytes = kSites[record.site].bytes;
        const bool is_fetch = record.site == 0, is_data = record.site == 1 || record.site == 2;
        if ((is_fetch && ways.fetch != 0 && !fetch.misses(record.value, bytes)) ||
            (is_data && ways.data != 0 &&
             !data.misses(record.value, std::min<std::uint64_t>(bytes, ways.data_line))))
            continue;
        expected.push_back(record);
    }
    return expected;
}

bool same(const trace_record_t& a, const trace_record_t& b) {
    return a.value == b.value && a.site == b.site;
}

}  // namespace

TEST_CASE("the most recent line of a set is the one that was used last") {
    constexpr std::uint32_t kSets = 4;
    for (const std::uint32_t ways : {0U, 1U, 2U}) {
        CAPTURE(ways);
        replay::LruCache cache({kLine, kSets, {}, ways}, ways, replay::kNoLine);
        std::vector<std::uint64_t> last(kSets, replay::kNoLine);
        std::mt19937_64 random(3);
        for (int i = 0; i < 1000; ++i) {
            const std::uint64_t address = random() % (kLine * kSets * 3);
            const auto ahead = static_cast<unsigned>(random() % 2);
            const std::uint64_t line = address / kLine + ahead;
            CHECK(cache.is_most_recent(address, ahead) ==
                  (ways != 0 && last[line % kSets] == line));
            if (ways == 0) continue;
            cache.misses(address, ahead, ahead);
            last[line % kSets] = line;
        }
    }
}

TEST_CASE("what misses the caches of a replay is what misses plain ones") {
    std::vector<Ways> outputs;
    SUBCASE("of the same sets") {
        for (const std::uint32_t data : {1, 4, 12})
            for (const std::uint32_t fetch : {2, 8}) outputs.push_back({data, fetch});
    }
    SUBCASE("of other sets") {
        for (const std::uint32_t sets : {16, 2, 64, 4})
            for (const std::uint32_t data : {1, 3}) outputs.push_back({data, 2, sets});
    }
    SUBCASE("of other lines") {
        for (const std::uint32_t line : {64, 16, 256}) outputs.push_back({2, 2, 8, line});
    }
    SUBCASE("some of which are not there") {
        for (const std::uint32_t data : {0, 1, 4, 12})
            for (const std::uint32_t fetch : {0, 2, 8}) outputs.push_back({data, fetch});
    }
    const auto kinds = replay::reference_kinds(kSites);
    std::vector<trace_record_t> records = random_records(64 * kLine);
    for (trace_record_t& record : records) record.value += 256;  // 0 is PlainCache's "none"
    replay::MissFilters together(kinds);
    std::vector<replay::MissFilters::Shapes> wanted;
    for (const Ways& ways : outputs) wanted.push_back(together.add(spec(ways)));
    const replay::MissFilters::Shapes* const missed = together.simulate(records);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        replay::MissFilters alone(kinds);
        const auto own = alone.add(spec(outputs[i]));
        CHECK(alone.any() == (outputs[i].data != 0 || outputs[i].fetch != 0));
        const std::vector<trace_record_t> right = expected(records, outputs[i]);
        for (const auto& got :
             {passed(records, missed, wanted[i]), passed(records, alone.simulate(records), own)}) {
            REQUIRE(got.size() == right.size());
            CHECK(std::equal(got.begin(), got.end(), right.begin(), same));
        }
    }
}

TEST_CASE("the line 0 is present in the beginning, as in a run and in Cachegrind") {
    const auto kinds = replay::reference_kinds(kSites);
    replay::MissFilters filters(kinds);
    const auto wanted = filters.add(spec({4, 2}));
    const std::vector<trace_record_t> records{{8, 1, 0}, {kLine, 1, 0}};
    const auto got = passed(records, filters.simulate(records), wanted);
    REQUIRE(got.size() == 1);
    CHECK(got[0].value == kLine);
}

TEST_CASE("a thread begins with empty caches") {
    const auto kinds = replay::reference_kinds(kSites);
    replay::MissFilters filters(kinds);
    const auto wanted = filters.add(spec({4, 2}));
    const std::vector<trace_record_t> records{{640, 1, 0}, {640, 1, 0}};
    CHECK(passed(records, filters.simulate(records), wanted).size() == 1);
    CHECK(passed(records, filters.simulate(records), wanted).empty());
    filters.clear();
    CHECK(passed(records, filters.simulate(records), wanted).size() == 1);
}

}  // namespace miss_filter_test
