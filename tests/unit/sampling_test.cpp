#include "framework/collector/results/sampling.h"
#include "framework/collector/profilers/trace_parser.h"
#include "framework/collector/run/settings.h"
#include "framework/collector/trace/interval_reader.h"
#include "framework/support/error.h"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

namespace sampling_test {

using namespace assay;
using namespace assay::collector;

namespace {

using Counts = std::vector<std::uint64_t>;

constexpr std::uint32_t kCountSite = 0, kBurstSite = 1, kIntervalSite = 2, kMispredictedSite = 3;
// Two blocks, of one and of four instructions.
struct Code {
    std::array<trace_block_t, 2> blocks{{{0x1000, 0, 1}, {0x2000, 1, 4}}};
    std::array<trace_instr_t, 5> instrs{};
    std::array<trace_site_t, 4> sites{{{0, 0, TRACE_SITE_BLOCK_COUNT, 0},
                                       {0, 0, TRACE_SITE_BURST, 0},
                                       {0, 0, TRACE_SITE_INTERVAL, 0},
                                       {0, 0, TRACE_SITE_BLOCK_MISPREDICTIONS, 0}}};
    CodeTables tables() const { return {blocks, instrs, sites}; }
};

trace_record_t counted(std::uint32_t block, std::uint64_t times) {
    return {times, kCountSite, block};
}
trace_record_t mispredicted(std::uint32_t block, std::uint64_t times) {
    return {times, kMispredictedSite, block};
}
trace_record_t end_of(trace::EndOf what, std::uint64_t executed) {
    return {executed, kBurstSite, what};
}

trace::Regions bursts(std::uint64_t burst, std::uint64_t period) {
    trace::Regions regions{};
    regions.sample_burst = burst;
    regions.sample_period = period;
    return regions;
}

trace::Regions regions_of(const std::string& value) {
    return take_core_settings({{"sample", value, ""}}).regions;
}

// The last event is one that is not scaled.
Counts scaled(const Sampling& sampling, Counts row) {
    std::uint64_t left = 0;
    sampling.scale_row(row, {false, false, true}, left);
    return row;
}

}  // namespace

TEST_CASE("sampling: a count stands for as many as there were") {
    const Code code;
    Sampling sampling(bursts(10, 100));
    sampling.take(0, 0, std::vector{counted(0, 6), counted(1, 1), end_of(trace::kBurstEnds, 100)},
                  code.tables());
    sampling.executed(0, 250);
    Counts executions{6, 1, 1, 1, 1};
    sampling.take_off_warm_up(executions);
    CHECK(sampling.executed() == 250);
    CHECK(sampling.factor() == 25);
    CHECK(scaled(sampling, {6, 0, 7}) == Counts{150, 0, 7});
    CHECK(scaled(sampling, {UINT64_MAX, 1, 0}) == Counts{UINT64_MAX, 25, 0});
    CHECK(executions == Counts{6, 1, 1, 1, 1});
    sampling.executed(0, 254);
    CHECK(sampling.scaled_part(2) == 50);
    CHECK(sampling.scaled_part(UINT64_MAX) == UINT64_MAX);
}

TEST_CASE("sampling: rounding changes no total, and no order within a row") {
    Sampling sampling(bursts(10, 100));
    sampling.executed(0, 254);
    Counts executions(100, 1);
    sampling.take_off_warm_up(executions);
    std::uint64_t left = 0, total = 0;
    for (const std::uint64_t executed : executions) {
        Counts row{executed, executed};
        sampling.scale_row(row, {false, false}, left);
        total += row[0];
        CHECK((row[0] == 2 || row[0] == 3));
        CHECK(row[0] == row[1]);
    }
    CHECK(total == 254);
}

TEST_CASE("sampling: what is executed in a warm-up does not count") {
    const Code code;
    Sampling sampling(bursts(10, 100));
    sampling.warm_up(5);
    CHECK(sampling.is_warm_up(0));
    sampling.take(0, 0,
                  std::vector{counted(0, 5), mispredicted(0, 4), end_of(trace::kWarmUpEnds, 50)},
                  code.tables());
    CHECK_FALSE(sampling.is_warm_up(0));
    CHECK(sampling.take(
        0, 0, std::vector{counted(0, 15), mispredicted(0, 6), end_of(trace::kBurstEnds, 60)},
        code.tables()));
    CHECK(sampling.is_warm_up(0));
    // The program ends in the next warm-up.
    sampling.take_rest(0, Counts{18, 0}, Counts{9, 0}, code.tables());
    sampling.executed(0, 70);
    Counts executions{18, 0, 0, 0, 0}, mispredictions{9, 0};
    sampling.take_off_warm_up(executions, mispredictions);
    CHECK(executions[0] == 10);
    CHECK(mispredictions[0] == 2);
    CHECK(sampling.factor() == 7);
}

TEST_CASE("sampling: threads one after the other in a slot") {
    const Code code;
    Sampling sampling(bursts(10, 100));
    sampling.take(0, 0, std::vector{counted(0, 10), end_of(trace::kThreadEnds, 300)},
                  code.tables());
    sampling.take(1, 0, std::vector{counted(0, 20), end_of(trace::kBurstEnds, 40)}, code.tables());
    sampling.executed(1, 100);
    CHECK(sampling.executed_by(0) == 300);
    CHECK(sampling.executed_by(1) == 100);
    CHECK(sampling.executed() == 400);
    CHECK(sampling.executions()[0] == 20);
}

TEST_CASE("sampling: the error") {
    const Code code;
    // Bursts of ten instructions, with that many events each.
    const auto error = [&](const std::vector<std::uint64_t>& events) {
        Sampling sampling(bursts(10, 100));
        std::uint64_t times = 0, sum = 0;
        for (const std::uint64_t each : events) {
            times += 10;
            sum += each;
            if (sampling.take(0, 0,
                              std::vector{counted(0, times), end_of(trace::kBurstEnds, 10 * times)},
                              code.tables()))
                sampling.totals({sum});
        }
        std::vector<std::uint64_t> executions{times, 0, 0, 0, 0};
        sampling.take_off_warm_up(executions);
        return sampling.error(0);
    };
    // Without a scale, it would be an absolute difference.
    const auto is = [](double value) { return doctest::Approx(value).epsilon(0.001).scale(0); };
    CHECK_FALSE(error({1, 1, 1}).has_value());
    CHECK_FALSE(error(std::vector<std::uint64_t>(20, 0)).has_value());
    CHECK(error(std::vector<std::uint64_t>(20, 7)) == doctest::Approx(0));
    // By turns 4 and 6: each differs by 2 from the one before, the variance of a burst is 2, that
    // of the sum of 100 is 200 * 0.9 without what has been seen. t(99) is 1.9842.
    std::vector<std::uint64_t> turns;
    for (int i = 0; i < 50; ++i) turns.insert(turns.end(), {4, 6});
    CHECK(*error(turns) == is(1.9842 * 13.4164 / 500));
    // A slow change is no error: each burst stands for its own period.
    std::vector<std::uint64_t> rising;
    for (std::uint64_t i = 0; i < 100; ++i) rising.push_back(100 + i);
    CHECK(*error(rising) < 0.002);
    // Groups of bursts: a thousand make 125 of eight. By turns 32 and 48: the variance of a group
    // is 128, that of the sum 125 * 128 * 0.9. t(124) is 1.9793.
    CHECK(error(std::vector<std::uint64_t>(1000, 3)) == doctest::Approx(0));
    turns.clear();
    for (int i = 0; i < 1000; ++i) turns.push_back(i / 8 % 2 == 0 ? 4 : 6);
    CHECK(*error(turns) == is(1.9793 * 120 / 4992));
}

TEST_CASE("sampling: the error is of bursts, however long they were warmed up") {
    const Code code;
    Sampling sampling(bursts(10, 100));
    sampling.warm_up(5);
    std::uint64_t times = 0, sum = 0;
    for (int i = 0; i < 20; ++i) {
        const std::uint64_t warmed_up = times + i % 5 * 10;
        times = warmed_up + 10;
        sum += 7;
        if (sampling.take(0, 0,
                          std::vector{counted(0, warmed_up), end_of(trace::kWarmUpEnds, warmed_up),
                                      counted(0, times), end_of(trace::kBurstEnds, times)},
                          code.tables()))
            sampling.totals({sum});
    }
    sampling.executed(0, 10 * times);
    std::vector<std::uint64_t> executions{times, 0, 0, 0, 0};
    sampling.take_off_warm_up(executions);
    CHECK(executions[0] == 200);
    CHECK(sampling.error(0) == doctest::Approx(0));
}

TEST_CASE("sampling: an interval's bursts stand for all of it") {
    const Code code;
    IntervalReader reader;
    reader.estimate();
    const std::vector records{counted(0, 6), counted(1, 1), trace_record_t{100, kIntervalSite, 0},
                              counted(1, 2)};
    const auto complete = reader.take(3, 0, records, code.tables());
    REQUIRE(complete.size() == 1);
    CHECK(complete[0].row.instructions == 100);
    REQUIRE(complete[0].blocks.size() == 2);
    CHECK(complete[0].blocks[0].instructions == 60);
    CHECK(complete[0].blocks[1].instructions == 40);
    const auto rests = reader.rests([](std::uint32_t) { return 130; });
    REQUIRE(rests.size() == 1);
    CHECK(rests[0].row.instructions == 30);
    CHECK(rests[0].blocks[0].instructions == 30);
}

TEST_CASE("sampling: the option") {
    const auto is = [](const std::string& value, std::uint64_t burst, std::uint64_t period) {
        const trace::Regions regions = regions_of(value);
        return regions.sample_burst == burst && regions.sample_period == period;
    };
    CHECK(is("5000/70000", 5000, 70'000));
    CHECK(is("10k/1M", 10'000, 1'000'000));
    CHECK(is("2M/1G", 2'000'000, 1'000'000'000));
    CHECK(is("1/100", 40'000, 4'000'000));
    CHECK(is("2/3", 40'000, 60'000));
    for (const char* wrong : {"", "1", "/", "1/", "/2", "0/2", "2/2", "3/2", "1k", "1x/2", "-1/2",
                              "1/2/3", "10/10M", "1/99999999999999999999", "1/2T"})
        CHECK_THROWS_AS(regions_of(wrong), Error);
}

}  // namespace sampling_test
