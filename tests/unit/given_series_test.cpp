// Series as profilers give them, and how they cross from a profiler's process.
#include "framework/collector/hosted/channel.h"
#include "framework/collector/profilers/columns.h"

#include <doctest/doctest.h>
#include <array>
#include <assay/series.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace given_series_test {

using namespace assay::events;

TEST_CASE("series: what a profiler gives is copied, and thinned by its largest numbers") {
    assay::Series given("s", {"x", "bytes"}, {{"a", ""}, {"b", "units"}}, "described");
    given.on_log_scale().adds_up().of_thread(3).of_phase("p");
    for (std::uint64_t i = 0; i < 1500; ++i) given.point({i, i % 2 == 0 ? i : 0, 1500 - i});
    CHECK_THROWS_AS(given.point({1, 2}), std::invalid_argument);
    const auto copied = given.give(assay::collector::copy_series);
    CHECK(copied.problem == "");
    const Series& series = copied.series;
    CHECK(series.name == "s");
    CHECK(series.description == "described");
    CHECK(series.thread == 4);
    CHECK(series.phase == "p");
    CHECK(series.log_x);
    CHECK(series.adds);
    CHECK(series.each == 2);
    CHECK(series.x == Axis{"x", "bytes"});
    CHECK(series.columns == std::vector<Axis>{{"a", ""}, {"b", "units"}});
    REQUIRE(series.points() == 750);
    CHECK(defect(series) == nullptr);
    for (std::size_t i = 0; i < 750; ++i) {
        CHECK(series.x_of(i) == 2 * i);
        CHECK(series.y_of(i, 0) == 2 * i);
        CHECK(series.y_of(i, 1) == 1500 - 2 * i);
    }
}

TEST_CASE("series: what a profiler gives wrongly is told") {
    using assay::collector::copy_series;
    const std::array<vp_axis_t, 9> columns{{{"a", "b"}, {"c", nullptr}}};
    const std::array<std::uint64_t, 4> numbers{1, 5, 2, 6};
    const vp_series_t good{
        sizeof good, 0, "s", nullptr, nullptr, 0, 1, {"x", ""}, columns.data(), numbers.data(), 2};
    CHECK(copy_series(&good).problem == "");
    CHECK(copy_series(&good).series.numbers == std::vector<std::uint64_t>{1, 5, 2, 6});
    const auto problem = [&](auto&& change) {
        vp_series_t wrong = good;
        change(wrong);
        return copy_series(&wrong).problem;
    };
    CHECK(copy_series(nullptr).problem == "a NULL pointer instead of a series");
    CHECK(problem([](auto& s) { s.size = 8; }) ==
          "a series of size 8, but one of version 1 has 80 bytes: set it to sizeof(vp_series_t)");
    CHECK(problem([](auto& s) { s.size = 800; }) == "");  // of a later release
    CHECK(problem([](auto& s) { s.name = nullptr; }) == "a series without a name");
    CHECK(problem([](auto& s) { s.x.name = ""; }) == "the series s with an axis without a name");
    CHECK(problem([](auto& s) { s.column_count = 0; }) ==
          "the series s with 0 columns, not 1 to 8");
    CHECK(problem([](auto& s) { s.column_count = 9; }) ==
          "the series s with 9 columns, not 1 to 8");
    CHECK(problem([](auto& s) { s.columns = nullptr; }) ==
          "the series s with 0 columns, not 1 to 8");
    CHECK(problem([](auto& s) { s.numbers = nullptr; }) ==
          "the series s with 2 points, but no numbers");
    CHECK(problem([](auto& s) { s.point_count = (std::uint64_t{1} << 32) + 1; }) ==
          "the series s with 4294967297 points, more than 2^32");
    CHECK(problem([](auto& s) {
              static constexpr std::array<std::uint64_t, 4> kBack{2, 5, 2, 6};
              s.numbers = kBack.data();
          }) == "the series s, whose x is 2 at point 1 and 2 before: it has to grow");
    const std::string long_text(257, 'x');
    CHECK(problem([&](auto& s) { s.name = long_text.c_str(); }) ==
          "a series whose name has 257 bytes, more than 256");
    CHECK(problem([&](auto& s) { s.x.unit = long_text.c_str(); }) ==
          "a series whose unit has 257 bytes, more than 256");
}

TEST_CASE("series: they cross from a profiler's process, and garbage does not") {
    using namespace assay::collector;
    const auto passed = [](const ProfilerFacts& facts) {
        Message message(MessageKind::kFacts);
        add(message, facts);
        Fields fields(message.body());
        ProfilerFacts arrived = take_facts(fields);
        CHECK_FALSE(fields.any_left());
        return arrived.series;
    };
    ProfilerFacts facts;
    facts.name = "p";
    Series curve;
    curve.name = "curve";
    curve.x = {"size", "bytes"};
    curve.columns = {{"misses", "misses"}};
    curve.numbers = {64, 3, 128, 1};
    curve.log_x = curve.adds = true;
    Series of_thread = curve;
    of_thread.log_x = of_thread.adds = false;
    of_thread.columns.push_back({"others", ""});
    of_thread.numbers = {0, 1, 2, 5, 2, 3};
    of_thread.thread = 9;
    of_thread.phase = "phase";
    of_thread.each = 8;
    of_thread.description = "described";
    facts.series = {curve, of_thread};
    CHECK(passed(facts) == facts.series);
    ProfilerFacts unordered = facts, many = facts, nameless = facts;
    unordered.series[0].numbers = {2, 1, 1, 1};
    many.series.resize(kMostSeries + 1, curve);
    nameless.series[1].x.name = "";
    for (const ProfilerFacts& wrong : {unordered, many, nameless})
        CHECK_THROWS_AS(passed(wrong), GarbledMessage);
    Message message(MessageKind::kFacts);
    add(message, facts);
    for (std::size_t size = 0; size < message.body().size(); ++size) {
        Fields fields(std::string_view(message.body()).substr(0, size));
        CHECK_THROWS_AS(take_facts(fields), GarbledMessage);
    }
}

}  // namespace given_series_test
