// The first level of caches in the program's threads against plain ones.
#include "framework/driver/shared/first_level.h"

#include "assay/trace_types.h"
#include "tests/unit/plain_cache.h"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <random>
#include <vector>

namespace first_level_test {

namespace {

using assay::driver::FirstLevel;

PlainCache plain(const FirstLevel::Shape& shape) {
    return {shape.line_bytes, shape.sets, shape.ways};
}

// References larger than a line are taken for their first line's bytes.
bool misses(PlainCache& cache, const FirstLevel::Shape& shape, std::uint64_t address,
            std::uint64_t bytes) {
    return cache.misses(address, std::min<std::uint64_t>(bytes, shape.line_bytes));
}

// One with pages that are not there before they are touched, as the driver maps it.
struct Simulated {
    Simulated(const FirstLevel::Shape& data, const FirstLevel::Shape& code) {
        void* const memory = mmap(nullptr, sizeof(FirstLevel), PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        REQUIRE(memory != MAP_FAILED);
        level = static_cast<FirstLevel*>(memory);
        const std::uint64_t span =
            std::min<std::uint64_t>(sizeof filter, std::uint64_t{data.line_bytes} * data.sets);
        level->initialise(data, code, filter,
                          span - std::min<std::uint64_t>(span, data.line_bytes));
    }
    ~Simulated() { munmap(level, sizeof(FirstLevel)); }
    Simulated(const Simulated&) = delete;
    Simulated& operator=(const Simulated&) = delete;

    std::uint64_t filtered(std::uint64_t line) const {
        std::uint64_t found = 0;
        std::memcpy(&found, filter + (line & level->data_filter_mask), sizeof found);
        return found;
    }

    FirstLevel* level = nullptr;
    alignas(64) unsigned char filter[4096]{};
};

constexpr FirstLevel::Shape kNone{0, 0, 0};
constexpr std::array<FirstLevel::Shape, 10> kShapes{{{64, 64, 8},
                                                     {64, 64, 12},
                                                     {64, 1, 1},
                                                     {64, 1, 64},
                                                     {16, 256, 2},
                                                     {16, 1, 5},
                                                     {32, 16, 3},
                                                     {4096, 2, 7},
                                                     {128, 512, 8},
                                                     {64, 4096, 1}}};

// Some near one another, some of the same set, some of the same set and element of data_places.
std::uint64_t some_address(std::mt19937_64& random, const FirstLevel::Shape& shape) {
    constexpr std::uint64_t kBase = 0x7f0000000000;
    const std::uint64_t line = shape.line_bytes, sets = shape.sets;
    const std::uint64_t within = random() % line;
    switch (random() % 4) {
        case 0:
            return kBase + random() % (line * sets * shape.ways * 2);
        case 1:
            return kBase + random() % 70 * line * sets + within;
        case 2:
            return kBase + random() % 5 * line * FirstLevel::kPlaces + within;
        default:
            return kBase + random() % (4 * line);
    }
}

TEST_CASE("first level: data misses where lists of lines miss") {
    std::mt19937_64 random(1);
    for (const FirstLevel::Shape& shape : kShapes) {
        CAPTURE(shape.line_bytes);
        CAPTURE(shape.sets);
        CAPTURE(shape.ways);
        Simulated simulated(shape, kNone);
        for (int thread = 0; thread < 2; ++thread) {
            PlainCache lists = plain(shape);
            for (int i = 0; i < 40000; ++i) {
                const std::uint64_t address = some_address(random, shape);
                const std::uint64_t bytes = std::array{1, 2, 4, 8, 16, 32, 64, 512}[random() % 8];
                const bool missed = misses(lists, shape, address, bytes);
                REQUIRE(simulated.level->refers(address, bytes) == missed);
                const std::uint64_t line = address & -std::uint64_t{shape.line_bytes};
                const std::uint64_t known = simulated.filtered(line);
                if (known != 0) REQUIRE(lists.is_most_recent(known / shape.line_bytes));
            }
            simulated.level->clear();
            std::memset(simulated.filter, 0, sizeof simulated.filter);
        }
    }
}

TEST_CASE("first level: a reference that misses is recorded") {
    std::mt19937_64 random(4);
    std::array<trace_record_t, 4> records{};
    const auto cursor = reinterpret_cast<std::uint64_t>(records.data());
    const FirstLevel::Shape shape{64, 16, 3};
    Simulated simulated(shape, kNone);
    PlainCache lists = plain(shape);
    for (int i = 0; i < 40000; ++i) {
        const std::uint64_t address = some_address(random, shape);
        const bool missed = misses(lists, shape, address, 16);
        const std::uint64_t behind =
            assay_first_level_reference(simulated.level, address, cursor, 88, 16);
        REQUIRE(behind == cursor + (missed ? sizeof records[0] : 0));
        if (!missed) continue;
        REQUIRE(records[0].value == address);
        REQUIRE(records[0].site == 88);
        REQUIRE(records[0].aux == 0);
    }
}

TEST_CASE("first level: fetches miss where lists of lines miss") {
    std::mt19937_64 random(2);
    std::array<trace_record_t, 4> records{};
    const auto cursor = reinterpret_cast<std::uint64_t>(records.data());
    for (const FirstLevel::Shape& shape : kShapes) {
        Simulated simulated(kNone, shape);
        for (int thread = 0; thread < 2; ++thread) {
            PlainCache lists = plain(shape);
            for (int i = 0; i < 40000; ++i) {
                // Numbers of lines are not 0, and end in their set's.
                const std::uint64_t first =
                    shape.sets * (1 + random() % 70) + random() % 3 % shape.sets;
                const std::uint64_t last = random() % 4 == 0 ? first + 1 : first;
                bool missed = !lists.touch(first);
                if (last != first) missed |= !lists.touch(last);
                const std::uint64_t behind = assay_first_level_fetch(
                    simulated.level, 0x1234, cursor, 77, first | last << 32);
                REQUIRE(behind == cursor + (missed ? sizeof records[0] : 0));
                if (!missed) continue;
                REQUIRE(records[0].value == 0x1234);
                REQUIRE(records[0].site == 77);
                REQUIRE(records[0].aux == 0);
            }
            simulated.level->clear();
        }
    }
}

TEST_CASE("first level: of a series the first references to lines that miss are recorded") {
    std::mt19937_64 random(3);
    constexpr std::int64_t kStep = 8;
    std::array<trace_record_t, 4> records{};
    const auto cursor = reinterpret_cast<std::uint64_t>(records.data());
    const FirstLevel::Shape shape{64, 4, 2};
    Simulated simulated(shape, kNone);
    PlainCache lists = plain(shape);
    for (int i = 0; i < 40000; ++i) {
        const std::uint64_t address = some_address(random, shape);
        const auto count = static_cast<std::int64_t>(1 + random() % 8);
        const std::int64_t step = random() % 2 == 0 ? kStep : -kStep;
        std::vector<trace_record_t> expected;
        for (std::int64_t at = 0; at < count; ++at) {
            const std::uint64_t reference = address + static_cast<std::uint64_t>(at * step);
            if (misses(lists, shape, reference, kStep))
                expected.push_back({reference, static_cast<std::uint32_t>(500 + at), 0});
        }
        const std::uint64_t behind =
            assay_first_level_series(simulated.level, address, cursor, 500, (count - 1) * step);
        REQUIRE(behind == cursor + expected.size() * sizeof records[0]);
        for (std::size_t at = 0; at < expected.size(); ++at) {
            REQUIRE(records[at].value == expected[at].value);
            REQUIRE(records[at].site == expected[at].site);
            REQUIRE(records[at].aux == 0);
        }
    }
}

}  // namespace

}  // namespace first_level_test
