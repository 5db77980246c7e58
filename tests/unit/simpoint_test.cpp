// assay simpoint: block vectors, clustering, the choice of k.
#include "tools/simpoint/simpoint.h"
#include "framework/events/block_vectors.h"
#include "framework/support/error.h"
#include "tests/unit/temporary_folder.h"
#include "tools/simpoint/clustering.h"

#include <doctest/doctest.h>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <utility>

namespace simpoint_test {

using namespace assay;
using namespace assay::simpoint;

namespace {

using Vector = std::map<std::uint32_t, std::uint64_t>;

std::vector<Vector> parse(std::string_view text, std::size_t block = 1 << 20) {
    std::vector<Vector> vectors;
    Vector next;
    events::BlockVectorParser parser(
        "bb", {[&](std::uint32_t number, std::uint64_t count) { next[number] += count; },
               [&] { vectors.push_back(std::exchange(next, {})); }});
    for (std::size_t at = 0; at < text.size(); at += block) parser.feed(text.substr(at, block));
    parser.finish();
    return vectors;
}

std::string refusal(std::string_view text) {
    try {
        parse(text);
        return "";
    } catch (const Error& e) {
        return e.what();
    }
}

// Points around `centers`, in turn, at distances of up to `spread` in each dimension.
Points planted(std::size_t centers, std::size_t count, double spread) {
    constexpr std::size_t kDimensions = 15;
    std::uint64_t state = 1;
    Points middle{kDimensions, {}}, points{kDimensions, {}};
    for (std::size_t i = 0; i < centers * kDimensions; ++i) middle.values.push_back(uniform(state));
    for (std::size_t i = 0; i < count; ++i)
        for (const double value : middle[i % centers])
            points.values.push_back(value + spread * (uniform(state) - 0.5));
    return points;
}

}  // namespace

TEST_CASE("block vectors are read as exp-bbv writes them") {
    const std::string text =
        "T:1:20   :2:13   \nT:3:7   \n\n\n# Thread 1\n#   Total intervals: 2 (Interval Size "
        "20)\n\n";
    const std::vector<Vector> wanted{{{1, 20}, {2, 13}}, {{3, 7}}};
    CHECK(parse(text) == wanted);
    for (std::size_t block = 1; block < 8; ++block) CHECK(parse(text, block) == wanted);
    // As other writers of the format do.
    CHECK(parse("T:1:20 :2:13\nT :3:7 \n") == wanted);
    CHECK(parse("T:1:20:2:13\r\nT:3:7\r\n") == wanted);
    CHECK(parse("I: 0\nC: sum:dummy Command:./a\nT:1:20 :2:13\nM: f 1\nS: 100 main\nT:3:7 \n"
                "\nSliceSize: 50\n") == wanted);
    CHECK(parse("T:1:2 :1:3 \n") == std::vector<Vector>{{{1, 5}}});
}

TEST_CASE("what is no file of block vectors is refused, with the line") {
    CHECK(refusal("S:1:2 \n").starts_with("bb:2: no line begins with T"));
    CHECK(refusal("T\n") == "bb:1: an interval without blocks");
    CHECK(refusal("T:0:2 \n") == "bb:1: a block's number is from 1 to 2^32-1");
    CHECK(refusal("T:4294967296:2 \n") == "bb:1: a block's number is from 1 to 2^32-1");
    CHECK(refusal("T:1:18446744073709551616 \n") == "bb:1: a number of 2^64 or more");
    CHECK(refusal("T:1:-2 \n") == "bb:1: expected a number");
    CHECK(refusal("T:1:2 3 \n") == "bb:1: expected :BLOCK:COUNT");
    CHECK(refusal("T:1: \n") == "bb:1: a block without a count");
}

TEST_CASE("a file of block vectors that is cut short is refused wherever it is cut") {
    const std::string text = "T:1:20   :2:13   \n";
    for (std::size_t length = 1; length < text.size(); ++length)
        CHECK(refusal(text.substr(0, length)) != "");
    CHECK(refusal(text) == "");
}

TEST_CASE("intervals are projected by what they consist of, not by their lengths") {
    const TemporaryFolder folder;
    const std::string path = folder.file("bb");
    std::ofstream(path) << "T:1:10   :2:30   \nT:1:1   :2:3   \nT:4000000000:7   \n";
    const Intervals intervals = read_intervals(path, 15, 1);
    CHECK(intervals.instructions == std::vector<std::uint64_t>{40, 4, 7});
    CHECK(intervals.blocks == 4'000'000'000);
    for (std::size_t d = 0; d < 15; ++d) {
        CHECK(intervals.points[0][d] == doctest::Approx(intervals.points[1][d]));
        CHECK(std::abs(intervals.points[2][d]) <= 1);
    }
    CHECK(read_intervals(path, 15, 1).points.values == intervals.points.values);
    CHECK(read_intervals(path, 15, 2).points.values != intervals.points.values);
    std::ofstream(path) << "\n\n# Thread 1\n";
    CHECK_THROWS_WITH_AS(read_intervals(path, 15, 1), doctest::Contains("no intervals"), Error);
}

TEST_CASE("k-means finds clusters that are far apart") {
    const Points points = planted(6, 600, 0.01);
    const Clustering found = find_phases(points, {.clusters = 6});
    for (std::size_t i = 0; i < points.count(); ++i)
        CHECK(found.cluster[i] == found.cluster[i % 6]);
    CHECK(std::set(found.cluster.begin(), found.cluster.end()).size() == 6);
    CHECK(found.distortion < 600 * 15 * 0.005 * 0.005);
}

TEST_CASE("k-means makes no more clusters than there are different points") {
    const Points points = planted(3, 30, 0);
    CHECK(k_means(points, 10, 100, 1).centers.count() == 3);
    CHECK(k_means(points, 10, 100, 1).distortion == doctest::Approx(0));
}

TEST_CASE("the smallest k with a good score is the number of planted clusters") {
    for (const std::size_t clusters : {1, 2, 5, 9}) {
        CAPTURE(clusters);
        const Points points = planted(clusters, 300, 0.05);
        const Clustering found = find_phases(points, {.most_clusters = 20});
        CHECK(found.centers.count() == clusters);
        // In the order of their first occurrences.
        for (std::size_t i = 0; i < points.count(); ++i) CHECK(found.cluster[i] == i % clusters);
    }
}

TEST_CASE("a threshold of 1 takes the best score, of 0 the first k") {
    const Points points = planted(7, 300, 0.4);
    CHECK(find_phases(points, {.threshold = 0}).centers.count() == 1);
    double best = -INFINITY;
    for (std::size_t k = 1; k < 20; ++k)
        best = std::max(best, find_phases(points, {.clusters = k}).score);
    CHECK(find_phases(points, {.most_clusters = 19, .threshold = 1}).score ==
          doctest::Approx(best));
}

// Calculated as a part of the range of all, the highest score can be rounded to more than it is.
TEST_CASE("a threshold of 1 is reached whatever the scores are") {
    const TemporaryFolder folder;
    std::string text;
    for (const int block : {1, 2, 3, 4})
        for (int i = 0; i < 5; ++i)
            text += "T:" + std::to_string(block) + ":" + std::to_string(90 + i) + "   :" +
                    std::to_string(block + 10) + ":" + std::to_string(10 - i) + "   \n";
    const std::string path = folder.write("bb", text);
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        const Points points = read_intervals(path, 15, seed).points;
        const Clustering found = find_phases(points, {.threshold = 1, .seed = seed});
        CHECK(found.cluster.size() == 20);
        CHECK(found.centers.count() <= 20);
    }
}

TEST_CASE("of several initialisations the best is taken") {
    const Points points = planted(12, 300, 0.2);
    double before = INFINITY, first = 0;
    for (std::size_t seeds = 1; seeds < 12; ++seeds) {
        const double distortion = find_phases(points, {.clusters = 9, .seeds = seeds}).distortion;
        CHECK(distortion <= before);
        if (seeds == 1) first = distortion;
        before = distortion;
    }
    CHECK(before < first);
}

TEST_CASE("the score falls with clusters that explain nothing") {
    const Points points = planted(4, 400, 0.1);
    const double four = find_phases(points, {.clusters = 4}).score;
    CHECK(four > find_phases(points, {.clusters = 3}).score);
    CHECK(four > find_phases(points, {.clusters = 8}).score);
}

TEST_CASE("phases are the same for the same seed, and with more intervals than are searched") {
    const Points points = planted(5, 2000, 0.1);
    const Search search{.most_clusters = 8, .seed = 7, .most_points = 512};
    const Clustering found = find_phases(points, search);
    CHECK(found.centers.count() == 5);
    CHECK(found.cluster == find_phases(points, search).cluster);
    CHECK(found.cluster.size() == 2000);
}

TEST_CASE("one interval is one phase") {
    const Clustering found = find_phases(planted(1, 1, 0), {});
    CHECK(found.centers.count() == 1);
    CHECK(found.cluster == std::vector<std::uint32_t>{0});
}

TEST_CASE("the nearest point stands for its cluster") {
    const Points points{1, {0, 1, 2.1, 10, 11, 12.1}};
    const Clustering found = find_phases(points, {.clusters = 2});
    CHECK(representatives(found, points) == std::vector<std::size_t>{1, 4});
    CHECK(explained_variance(found, points) > 0.95);
    CHECK(explained_variance(find_phases(points, {.clusters = 6}), points) == doctest::Approx(1));
    const Points equal{2, {0.1, 0.7, 0.1, 0.7, 0.1, 0.7, 0.1, 0.7, 0.1, 0.7}};
    CHECK(explained_variance(find_phases(equal, {.clusters = 1}), equal) == doctest::Approx(1));
}

TEST_CASE("a strip has a cell for as many intervals as fit") {
    const std::vector<std::uint32_t> phases{0, 0, 1, 1, 1, 2, 2, 0};
    CHECK(strip(phases, 80, false) == "AABBBCCA");
    CHECK(strip(phases, 4, false) == "ABBC");
    CHECK(strip(phases, 1, false) == "A");
    CHECK(strip(std::vector<std::uint32_t>{27, 60}, 80, false) == "b?");
    CHECK(strip(std::vector<std::uint32_t>{0}, 80, true) == "\033[38;5;33m\u2588\033[0m");
}

}  // namespace simpoint_test
