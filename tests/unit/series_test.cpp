// Series in events files, and how they add up.
#include "tests/unit/events_files.h"
#include "tests/unit/temporary_folder.h"
#include "tools/profile/heads.h"

#include <doctest/doctest.h>
#include <fmt/core.h>
#include <map>
#include <string>
#include <vector>

namespace series_test {

using namespace assay::events;
using assay::Error;
using assay::MergedSeries;

namespace {

Series curve(std::vector<std::uint64_t> numbers, bool adds = true) {
    Series series;
    series.name = "miss curve";
    series.profiler = "reuse";
    series.log_x = true;
    series.adds = adds;
    series.x = {"cache size", "bytes"};
    series.columns = {{"misses", "misses"}};
    series.numbers = std::move(numbers);
    return series;
}

Header header_with(std::vector<Series> series) {
    Header header = example_header();
    header.series = std::move(series);
    return header;
}

std::vector<Series> written_and_read(std::vector<Series> series, const std::string& name) {
    const TemporaryFolder folder;
    Writer writer(folder.file(name), header_with(std::move(series)));
    const std::uint64_t counts[] = {1, 2};
    writer.line(1, counts);
    writer.finish();
    Recorder recorder;
    return read_events(folder.file(name), recorder).header.series;
}

const std::string kSeries = kVersion + "fl=#! series s\n";
const std::string kAxes = kSeries + "fl=#! x a\nfl=#! y b\nfl=#! y c\n";

}  // namespace

TEST_CASE("series: what is written is read") {
    Series odd = curve({0, ~std::uint64_t{0}, 5, 0});
    odd.name = "a \"name\"\\ with\n\t\x01 thread=3";
    odd.description = "\"described\" = \xC3\xA9";
    odd.profiler = "";
    odd.thread = 7;
    odd.phase = "merge=add";
    odd.from = "a file";
    odd.log_x = false;
    odd.adds = false;
    odd.each = 4;
    odd.x = {"=", "\""};
    Series wide = curve({});
    wide.columns.resize(kMostSeriesColumns, {"column", ""});
    for (std::uint64_t point = 0; point < kMostSeriesPoints; ++point)
        for (std::uint64_t i = 0; i < wide.width(); ++i)
            wide.numbers.push_back(~std::uint64_t{0} - kMostSeriesPoints + point);
    const std::vector<Series> all{curve({64, 9, 128, 4}), odd, wide, curve({})};
    for (const char* const name : {"plain", "packed.gz", "packed.zst"})
        CHECK(written_and_read(all, name) == all);
    CHECK(written_and_read(std::vector<Series>(kMostSeries, curve({1, 1})), "many").size() ==
          kMostSeries);
}

TEST_CASE("series: a file that has them stays readable, however it is cut into blocks") {
    const std::string text = text_of_data("series.events");
    std::vector<Series> first;
    for (const std::size_t block : {text.size(), std::size_t{1}, std::size_t{7}}) {
        Recorder recorder;
        const FileSummary summary = parse(text, recorder, block);
        CHECK(summary.totals == std::vector<std::uint64_t>{1000, 20});
        if (first.empty()) first = summary.header.series;
        CHECK(summary.header.series == first);
    }
    REQUIRE(first.size() == 3);
    CHECK(first[0].numbers == std::vector<std::uint64_t>{64, 900, 128, 500, 192, 500, 256, 20});
    CHECK(first[0].log_x);
    CHECK(first[0].adds);
    CHECK(first[0].description == "misses of fully associative LRU caches, by their size");
    CHECK(first[1].thread == 2);
    CHECK(first[1].phase == "a phase");
    CHECK(first[1].from == "prog.out");
    CHECK(first[1].each == 2);
    CHECK(first[1].columns == std::vector<Axis>{{"lines", "lines"}, {"pages", "pages"}});
    CHECK(first[1].y_of(0, 0) == ~std::uint64_t{0});
    CHECK(first[1].x_of(1) == 2000);
    CHECK(first[2].points() == 0);
    for (std::size_t size = 0; size + 1 < text.size(); ++size)
        CHECK(error_of(text.substr(0, size)).starts_with("FILE:"));
}

TEST_CASE("series: malformed lines are refused") {
    const std::string body = kPlace + "1 1\n";
    const std::map<std::string, std::string> cases = {
        {kStart + "fl=#! series s\n", "FILE:4: expected '#! version' first (series)"},
        {kVersion + "fl=#! series\n", "FILE:5: a series without a name ()"},
        {kVersion + "fl=#! series \"s\n", "FILE:5: a series without a name ()"},
        {kVersion + "fl=#! series s thread=x\n", "FILE:5: malformed number (x)"},
        {kVersion + "fl=#! series s thread=4294967296\n",
         "FILE:5: number beyond 4294967295 (4294967296)"},
        {kVersion + "fl=#! series s each=0\n",
         "FILE:5: a series that combines 0 points into one (s)"},
        {kVersion + "fl=#! series s thread\n",
         "FILE:5: expected KEY=VALUE or a description (thread)"},
        {kVersion + "fl=#! series s =1\n", "FILE:5: expected KEY=VALUE or a description (=1)"},
        {kVersion + "fl=#! series s \"open\n",
         "FILE:5: malformed description of series s (\"open)"},
        {kVersion + "fl=#! series s \"a\" b=c\n",
         "FILE:5: malformed description of series s (\"a\" b=c)"},
        {kVersion + "fl=#! x a\n", "FILE:5: expected the line of a series first (a)"},
        {kVersion + "fl=#! points 1:1\n", "FILE:5: expected the line of a series first (1:1)"},
        {kSeries + "fl=#! y a\n", "FILE:6: expected one x axis of the series, then its y axes (a)"},
        {kSeries + "fl=#! x a\nfl=#! x b\n",
         "FILE:7: expected one x axis of the series, then its y axes (b)"},
        {kSeries + "fl=#! x\n", "FILE:6: expected the name of an axis ()"},
        {kSeries + "fl=#! x a\nfl=#! points 1:1\n",
         "FILE:7: points of a series without axes before them (1:1)"},
        {kSeries + "fl=#! x a\nfl=#! series t\n", "FILE:7: a series has 1 to 8 columns (s)"},
        {kSeries + body, "FILE:6: a series has 1 to 8 columns (s)"},
        {kSeries + "summary: 0 0\n", "FILE:6: a series has 1 to 8 columns (s)"},
        {kAxes + "fl=#! points 1:1:1\nfl=#! y d\n",
         "FILE:10: an axis of a series after its points (d)"},
        {kAxes + "fl=#! points 1:1\n",
         "FILE:9: expected x and 2 numbers of a point, with : between them (1:1)"},
        {kAxes + "fl=#! points 1:1:1:1\n",
         "FILE:9: expected x and 2 numbers of a point, with : between them (1:1:1:1)"},
        {kAxes + "fl=#! points 1:1:\n", "FILE:9: malformed number ()"},
        {kAxes + "fl=#! points 1:-1:1\n", "FILE:9: malformed number (-1)"},
        {kAxes + "fl=#! points 1:1.5:1\n", "FILE:9: malformed number (1.5)"},
        {kAxes + "fl=#! points 18446744073709551616:1:1\n",
         "FILE:9: number beyond 18446744073709551615 (18446744073709551616)"},
        {kAxes + "fl=#! points 1:1:1 1:2:2\n",
         "FILE:9: the points of a series must be in ascending order of x (1:2:2)"},
        {kAxes + "fl=#! points 2:1:1\nfl=#! points 1:2:2\n",
         "FILE:10: the points of a series must be in ascending order of x (1:2:2)"},
        {kAxes + body + "fl=#! series t\n", "FILE:12: a series after the first counts (t)"},
        {kAxes + body + "fl=#! points 1:1:1\n",
         "FILE:12: expected the line of a series first (1:1:1)"},
    };
    for (const auto& [text, error] : cases) CHECK(error_of(text) == error);
    CHECK(error_of(kAxes + "fl=#! points\t1:1:1  2:2:2\t\nfl=#! points\n" + kPlace +
                   "1 2\nsummary: 2 0\n") == "");
    CHECK(error_of(kVersion + "fl=#! series s later=1\nfl=#! x a\nfl=#! y b\n" + kPlace +
                   "1 2\nsummary: 2 0\n") == "");
}

TEST_CASE("series: hostile lengths are refused") {
    std::string many = kVersion, columns = kSeries + "fl=#! x a\n", points = kAxes + "fl=#! points";
    for (std::size_t i = 0; i <= kMostSeries; ++i) many += "fl=#! series s\nfl=#! x a\nfl=#! y b\n";
    for (std::size_t i = 0; i <= kMostSeriesColumns; ++i) columns += "fl=#! y b\n";
    for (std::size_t i = 0; i <= kMostSeriesPoints; ++i) points += fmt::format(" {}:1:1", i);
    CHECK(error_of(many) == "FILE:773: more than 256 series (s)");
    CHECK(error_of(columns) == "FILE:15: more than 8 columns of a series (b)");
    CHECK(error_of(points + "\n") == "FILE:9: more than 1024 points of a series (1024:1:1)");
    const std::string text(kMostSeriesText + 1, 'x');
    for (const char* const key : {"profiler", "phase", "from"})
        CHECK(error_of(kVersion + "fl=#! series s " + std::string(key) + "=" + text + "\n") ==
              "FILE:5: a text of a series has more than 4096 bytes (s)");
    for (const std::string& axis : {text, "a unit=" + text})
        CHECK(error_of(kSeries + "fl=#! x " + axis + "\n")
                  .starts_with("FILE:6: the name of an axis has more than 4096 bytes"));
}

TEST_CASE("series: what no reader would take is not written") {
    const TemporaryFolder folder;
    Series unordered = curve({2, 1, 1, 1}), nameless = curve({}), columnless = curve({}),
           half = curve({1});
    nameless.name = "";
    columnless.columns.clear();
    for (const Series& series : {unordered, nameless, columnless, half})
        CHECK_THROWS_AS(Writer(folder.file("out"), header_with({series})), Error);
    CHECK_THROWS_AS(
        Writer(folder.file("out"), header_with(std::vector<Series>(kMostSeries + 1, curve({})))),
        Error);
}

TEST_CASE("series: of how many neighbours a point is made") {
    for (const auto& [points, each] : std::map<std::uint64_t, std::uint64_t>{
             {0, 1}, {1, 1}, {1024, 1}, {1025, 2}, {2048, 2}, {2049, 4}, {65536, 64}})
        CHECK(neighbours_of_one(points) == each);
    CHECK(neighbours_of_one(~std::uint64_t{0}) == std::uint64_t{1} << 54);
}

TEST_CASE("series: curves of counts add up, the shorter one going on as it ends") {
    Series sum = curve({64, 9, 128, 4});
    CHECK(add(sum, curve({64, 7, 128, 5, 192, 1})));
    CHECK(sum == curve({64, 16, 128, 9, 192, 5}));
    CHECK(add(sum, curve({64, 1})));
    CHECK(sum == curve({64, 17, 128, 10, 192, 6}));
    const Series before = sum;
    Series other_line = curve({128, 1, 256, 1}), other_thread = curve({64, 1}),
           thinned = curve({64, 1}), other_unit = curve({64, 1});
    other_thread.thread = 1;
    thinned.each = 2;
    other_unit.columns[0].unit = "references";
    for (const Series& other :
         {other_line, other_thread, thinned, other_unit, curve({}), curve({64, 1}, false)})
        CHECK_FALSE(add(sum, other));
    CHECK_THROWS_WITH_AS(add(sum, curve({64, ~std::uint64_t{0}})),
                         "the sum of the series miss curve exceeds 64 bits", Error);
    CHECK(sum == before);
}

TEST_CASE("series: of several files, those that do not add up say where they are from") {
    MergedSeries merged;
    Series over_time = curve({0, 5}, false);
    over_time.name = "working set";
    merged.add("a", std::vector<Series>{curve({64, 9}), over_time});
    merged.add("b", std::vector<Series>{curve({64, 1, 128, 1}), over_time, curve({1, 1})});
    merged.add("c", std::vector<Series>{curve({1, 2})});
    merged.finish();
    REQUIRE(merged.series().size() == 4);
    CHECK(merged.series()[0].numbers == std::vector<std::uint64_t>{64, 10, 128, 10});
    CHECK(merged.series()[0].from == "a, b");
    CHECK(merged.series()[1].from == "a");
    CHECK(merged.series()[2].from == "b");
    CHECK(merged.series()[3].numbers == std::vector<std::uint64_t>{1, 3});
    CHECK(merged.series()[3].from == "b, c");
    CHECK(merged.left_out() == 0);

    MergedSeries twice;  // of one file, what looks alike is not added up
    for (int i = 0; i < 2; ++i) twice.add("a", std::vector<Series>{curve({1, 1}), curve({1, 5})});
    twice.finish();
    CHECK(twice.series() == std::vector<Series>{curve({1, 2}), curve({1, 10})});

    MergedSeries many;
    for (int i = 0; i < 3; ++i)
        many.add(std::string(4000, 'f'), std::vector<Series>(100, curve({1, 1}, false)));
    many.finish();
    CHECK(many.series().size() == kMostSeries);
    CHECK(many.left_out() == 44);
    MergedSeries long_names;
    long_names.add(std::string(4000, 'f'), std::vector<Series>{curve({1, 1})});
    long_names.add(std::string(4000, 'g'), std::vector<Series>{curve({1, 1})});
    long_names.add("h", {});
    long_names.finish();
    CHECK(defect(long_names.series().at(0)) == nullptr);
    CHECK(long_names.series().at(0).from.ends_with("g ... (2 files)"));
    MergedSeries large;
    large.add("a", std::vector<Series>{curve({1, ~std::uint64_t{0}})});
    CHECK_THROWS_WITH_AS(large.add("b", std::vector<Series>{curve({1, 1})}),
                         "b: with it, the sum of the series miss curve exceeds 64 bits", Error);
}

}  // namespace series_test
