// Reuse distances against a plain LRU stack, with each of the kernels that this processor has.
#include "plugins/reuse/settings.h"
#include "plugins/reuse/stack.h"

#include <doctest/doctest.h>
#include <algorithm>
#include <map>
#include <random>
#include <stdexcept>

namespace reuse_test {

using namespace reuse;

namespace {

// Lines in the order of their last references, the most recent one first.
class PlainStack {
  public:
    // Of the line, which then is the first.
    Found use(std::uint64_t line) {
        const auto at = std::find(lines_.begin(), lines_.end(), line);
        Found found{kNever, 0};
        if (at != lines_.end()) {
            found = {static_cast<std::uint32_t>(at - lines_.begin()),
                     static_cast<std::uint32_t>(time_ - times_[line])};
            lines_.erase(at);
        }
        lines_.insert(lines_.begin(), line);
        times_[line] = time_++;
        return found;
    }
    std::size_t lines() const { return lines_.size(); }

  private:
    std::vector<std::uint64_t> lines_;
    std::map<std::uint64_t, std::uint64_t> times_;
    std::uint64_t time_ = 0;
};

struct Counted {
    std::map<std::uint32_t, std::uint64_t> distances;
    std::map<std::uint32_t, std::uint64_t> ages;    // by the number of bits
    std::map<std::uint32_t, std::uint32_t> misses;  // bucket by reference
    std::uint64_t never = 0;
    std::uint64_t lines = 0;

    bool operator==(const Counted&) const = default;
};

const std::vector<std::uint32_t> kLimits{3, 20, 150, 1000};

Counted plainly(const std::vector<Touch>& touches) {
    PlainStack stack;
    Counted counted;
    Found lower{};
    for (const Touch& touch : touches) {
        Found found = stack.use(touch.line);
        if (touch.role == kLower) {
            lower = found;
            continue;
        }
        if (touch.role == kUpper)
            found = found.distance == kNever || lower.distance == kNever
                        ? Found{kNever, 0}
                        : Found{std::max(found.distance, lower.distance),
                                std::max(found.age, lower.age)};
        if (found.distance == kNever) {
            ++counted.never;
        } else {
            ++counted.distances[found.distance];
            ++counted.ages[static_cast<std::uint32_t>(32 - __builtin_clz(found.age))];
        }
        const auto bucket = static_cast<std::uint32_t>(
            found.distance == kNever
                ? kLimits.size()
                : std::upper_bound(kLimits.begin(), kLimits.end(), found.distance) -
                      kLimits.begin() - 1);
        if (found.distance >= kLimits[0]) counted.misses[touch.reference] = bucket;
    }
    counted.lines = stack.lines();
    return counted;
}

Counted measured(const std::vector<Touch>& touches, const Kernel& kernel, std::size_t batch) {
    Stack stack(kernel);
    Histograms histograms;
    Counted counted;
    bool twice = false;
    for (std::size_t at = 0; at < touches.size();) {
        std::size_t count = std::min(batch, touches.size() - at);
        if (touches[at + count - 1].role == kLower) --count;  // both of a reference are in one
        for (const Miss& miss : stack.measure(std::span(&touches[at], count), kLimits, histograms))
            twice |= !counted.misses.emplace(miss.reference, miss.bucket).second;
        at += count;
    }
    CHECK(!twice);
    for (const CurvePoint& point : miss_curve(histograms, 1 << 20))
        counted.distances[static_cast<std::uint32_t>(point.lines)] = point.misses;
    // Of the curve, which begins with one line, the differences are the distances.
    for (auto at = counted.distances.begin(); at != counted.distances.end();) {
        const auto next = std::next(at);
        if (next == counted.distances.end() || at->second == next->second)
            at = counted.distances.erase(at);
        else
            at->second -= next->second, ++at;
    }
    for (const AgePoint& point : reuse_times(histograms))
        if (point.references != 0)
            counted.ages[static_cast<std::uint32_t>(__builtin_ctzll(point.least) + 1)] =
                point.references;
    counted.never = histograms.never;
    counted.lines = stack.lines();
    return counted;
}

void check_all(const std::vector<Touch>& touches) {
    Counted expected = plainly(touches);
    expected.distances.erase(0);  // hits in all caches: no part of the curve
    for (const Kernel* const kernel : usable_kernels()) {
        const Counted found = measured(touches, *kernel, 2 + touches.size() % (Stack::kBatch - 1));
        CHECK(found.distances == expected.distances);
        CHECK(found.ages == expected.ages);
        CHECK(found.misses == expected.misses);
        CHECK(found.never == expected.never);
        CHECK(found.lines == expected.lines);
    }
}

std::vector<Touch> touches_of(const std::vector<std::uint64_t>& lines) {
    std::vector<Touch> touches;
    for (const std::uint64_t line : lines)
        if (touches.empty() || touches.back().line != line)
            touches.push_back({line, static_cast<std::uint32_t>(touches.size()), kAlone});
    return touches;
}

}  // namespace

TEST_CASE("reuse: a cyclic walk has one distance") {
    for (const std::uint64_t lines : {2, 15, 16, 17, 18, 63, 64, 65, 127, 129, 300, 5000}) {
        std::vector<std::uint64_t> walk;
        for (int round = 0; round < 5; ++round)
            for (std::uint64_t line = 0; line < lines; ++line) walk.push_back(1000 + line);
        for (const Kernel* const kernel : usable_kernels()) {
            const Counted found = measured(touches_of(walk), *kernel, Stack::kBatch);
            CHECK(found.never == lines);
            CHECK(found.distances == std::map<std::uint32_t, std::uint64_t>{
                                         {static_cast<std::uint32_t>(lines - 1), 4 * lines}});
        }
    }
}

TEST_CASE("reuse: random streams are as on a plain stack") {
    std::mt19937_64 random(1);
    for (int round = 0; round < 40; ++round) {
        const std::uint64_t lines = 2 + random() % 3000;
        const int skew = static_cast<int>(random() % 3);
        std::vector<std::uint64_t> stream;
        for (int i = 0; i < 6000; ++i) {
            std::uint64_t line = random() % lines;
            for (int again = 0; again < skew; ++again) line = random() % (line + 1);
            // Some close together, some anywhere, up to the last of all.
            stream.push_back(round % 2 == 0 ? line : UINT64_MAX / 64 - line * 977);
        }
        check_all(touches_of(stream));
    }
}

TEST_CASE("reuse: a reference of two lines counts once, as the farther one") {
    std::mt19937_64 random(2);
    for (int round = 0; round < 30; ++round) {
        const std::uint64_t lines = 2 + random() % (round % 2 == 0 ? 40 : 1000);
        std::vector<Touch> touches;
        for (std::uint32_t i = 0; i < 3000; ++i) {
            const std::uint64_t line = random() % lines * random() % lines;
            if (random() % 3 != 0) {
                touches.push_back({line, i, kAlone});
                continue;
            }
            touches.push_back({line, i, kLower});
            touches.push_back({line + 1, i, kUpper});
        }
        check_all(touches);
    }
}

TEST_CASE("reuse: positions in time are used again") {
    std::mt19937_64 random(3);
    std::vector<std::uint64_t> stream;
    // One line after another gets old; more references than there are positions.
    for (std::uint64_t i = 0; i < Stack::kFewestPositions + 200'000; ++i)
        stream.push_back(random() % 64 == 0 ? random() % 200 : i % 40 * 3 + i / 400'000);
    check_all(touches_of(stream));
}

TEST_CASE("reuse: many lines") {
    // Two walks over so many that positions are used again, and that all levels have parts.
    constexpr std::uint64_t kLines = 300'000;
    std::vector<std::uint64_t> walk;
    for (int round = 0; round < 8; ++round)
        for (std::uint64_t line = 0; line < kLines; ++line) walk.push_back(line * 3);
    for (const Kernel* const kernel : usable_kernels()) {
        const Counted found = measured(touches_of(walk), *kernel, Stack::kBatch);
        CHECK(found.never == kLines);
        CHECK(found.distances == std::map<std::uint32_t, std::uint64_t>{{kLines - 1, 7 * kLines}});
    }
}

TEST_CASE("reuse: threads have stacks of their own, and sites their counts by context") {
    ThreadStacks stacks(64, {1, 2});
    const std::vector<trace_site_t> sites{
        {0, 8, TRACE_SITE_READ, 0}, {0, 0, TRACE_SITE_COUNT, 0}, {1, 0, TRACE_SITE_CALL, 0}};
    stacks.learn(sites);
    // Lines 0 1 2 0; a count, and what is no reference.
    const std::vector<trace_record_t> records{{0, 0, 0}, {64, 0, 0},  {128, 0, 0}, {8, 0, 0},
                                              {7, 1, 0}, {999, 2, 0}, {60, 0, 0}};  // lines 0 and 1
    const std::vector<std::uint32_t> contexts{5, 5, 6, 6, 5, 5, 6};
    stacks.process(0, records, contexts);
    stacks.process(1, std::span(records).first(1), std::span(contexts).first(1));
    stacks.end(1);
    stacks.process(1, std::span(records).first(1), std::span(contexts).first(1));
    CHECK(stacks.lines() == 5);
    CHECK(stacks.histograms().never == 5);
    std::map<std::uint64_t, std::vector<std::uint64_t>> cells;
    stacks.each_context(0, [&](std::uint64_t context, std::span<const std::uint64_t> found) {
        cells[context].assign(found.begin(), found.end());
    });
    CHECK(cells ==
          std::map<std::uint64_t, std::vector<std::uint64_t>>{{5, {0, 0, 4}}, {6, {0, 2, 1}}});
    stacks.each_context(1, [&](std::uint64_t context, std::span<const std::uint64_t> found) {
        CHECK(context == 5);
        CHECK(found[0] == 7);
    });
}

TEST_CASE("reuse: options") {
    Settings settings;
    apply(settings, "sizes", "1M,32K,4096");
    CHECK(settings.shifts == std::vector<unsigned>{12, 15, 20});
    apply(settings, "line-size", "4096");
    CHECK_NOTHROW(check(settings));
    apply(settings, "sizes", "2KiB");
    CHECK_THROWS_WITH(check(settings), "--sizes=2K: less than a line, --line-size=4096");
    for (const char* const bad : {"", "32K,", "3K", "512", "2G", "32K;1M"})
        CHECK_THROWS_AS(apply(settings, "sizes", bad), std::invalid_argument);
    for (const char* const bad : {"8", "96", "8192"})
        CHECK_THROWS_AS(apply(settings, "line-size", bad), std::invalid_argument);
    CHECK(size_name(65536) == "64K");
    CHECK(size_name(96) == "96");
}

}  // namespace reuse_test
