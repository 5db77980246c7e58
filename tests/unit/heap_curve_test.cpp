#include "framework/collector/trace/heap_curve.h"

#include <doctest/doctest.h>
#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

namespace assay::collector {
namespace {

std::uint64_t highest(const std::vector<HeapCurve::Point>& points) {
    std::uint64_t most = 0;
    for (const HeapCurve::Point& point : points) most = std::max(most, point.bytes);
    return most;
}

}  // namespace

TEST_CASE("a heap without blocks has no curve") {
    HeapCurve heap;
    heap.finish();
    CHECK(heap.points().empty());
    CHECK(heap.at_peak(0) == 0);
}

TEST_CASE("a curve has the peak and the end of each slot") {
    HeapCurve heap;
    heap.allocate(1, 100, 10);
    heap.allocate(2, 50, 20);
    heap.release(1, 100, 30);
    heap.allocate(2, 7, 2000);
    heap.finish();
    const std::vector<HeapCurve::Point> points = heap.points();
    REQUIRE(points.size() == 3);
    CHECK(points[0].time == 20);
    CHECK(points[0].bytes == 150);
    CHECK(points[1].time == 30);
    CHECK(points[1].bytes == 50);
    CHECK(points[2].time == 2000);
    CHECK(points[2].bytes == 57);
    CHECK(heap.of_site(1, points) == std::vector<std::uint64_t>{100, 0, 0});
    CHECK(heap.of_site(2, points) == std::vector<std::uint64_t>{50, 50, 57});
    CHECK(heap.of_site(3, points) == std::vector<std::uint64_t>{0, 0, 0});
    CHECK(heap.at_peak(1) == 100);
    CHECK(heap.at_peak(2) == 50);
}

TEST_CASE("times of a curve never go back") {
    HeapCurve heap;
    heap.allocate(1, 10, 5000);
    heap.allocate(1, 10, 100);
    heap.release(1, 20, 5000);
    heap.finish();
    const std::vector<HeapCurve::Point> points = heap.points();
    REQUIRE(points.size() == 2);
    CHECK(points[0].bytes == 20);
    CHECK(points[0].time == 5000);
    CHECK(points[1].bytes == 0);
    CHECK(points[1].time == 5001);
}

// Compares a long run, whose slots are joined many times, with a plain record of all changes.
TEST_CASE("a long run keeps its exact peak, and its sites add up") {
    constexpr std::uint32_t kSites = 5;
    std::mt19937_64 random(7);
    HeapCurve heap;
    std::vector<std::uint64_t> live(kSites), at_peak(kSites);
    std::map<std::uint64_t, std::uint64_t> totals;
    std::uint64_t all = 0, peak = 0, time = 0;
    for (int i = 0; i < 50'000; ++i) {
        time += 1 + random() % 4096;
        const auto site = static_cast<std::uint32_t>(random() % kSites);
        const std::uint64_t bytes = random() % 1000;
        if (random() % 2 == 0) {
            heap.allocate(site, bytes, time);
            live[site] += bytes;
            all += bytes;
        } else {
            heap.release(site, bytes, time);
            all -= std::min(live[site], bytes);
            live[site] -= std::min(live[site], bytes);
        }
        totals[time] = all;
        if (all > peak) {
            peak = all;
            at_peak = live;
        }
    }
    heap.finish();
    const std::vector<HeapCurve::Point> points = heap.points();
    CHECK(points.size() <= 2 * HeapCurve::kMostSlots);
    CHECK(points.size() > HeapCurve::kMostSlots / 2);
    CHECK(highest(points) == peak);
    CHECK(points.back().bytes == all);
    std::vector<std::uint64_t> sums(points.size());
    for (std::uint32_t site = 0; site < kSites; ++site) {
        CHECK(heap.at_peak(site) == at_peak[site]);
        const std::vector<std::uint64_t> bytes = heap.of_site(site, points);
        CHECK(bytes.back() == live[site]);
        for (std::size_t i = 0; i < points.size(); ++i) sums[i] += bytes[i];
    }
    for (std::size_t i = 0; i < points.size(); ++i) {
        CHECK(sums[i] == points[i].bytes);
        CHECK(totals.at(points[i].time) == points[i].bytes);
        CHECK((i == 0 || points[i].time > points[i - 1].time));
    }
}

}  // namespace assay::collector
