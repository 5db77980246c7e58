// What the driver finds the sizes of pages by.
#include "framework/driver/native/memory/page_kinds.h"

#include "assay/trace_types.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <algorithm>
#include <random>
#include <vector>

namespace page_kinds_test {

using namespace assay::native;

namespace {

constexpr std::uint64_t kUnit = PageKinds::kUnit, kStart = std::uint64_t{1} << 40;

}  // namespace

TEST_CASE("what mmap is asked for says how large pages are") {
    const auto anonymous = [](long flags) { return kind_of_mapping(MAP_ANONYMOUS | flags, -1); };
    CHECK(anonymous(MAP_PRIVATE) == PageKind::kPrivate);
    CHECK(anonymous(MAP_SHARED) == PageKind::kSmall);
    CHECK(anonymous(MAP_PRIVATE | MAP_STACK) == PageKind::kAgainst);
    CHECK(anonymous(MAP_PRIVATE | MAP_HUGETLB) == PageKind::k2M);
    CHECK(anonymous(MAP_SHARED | MAP_HUGETLB | 21 << 26) == PageKind::k2M);
    CHECK(anonymous(MAP_PRIVATE | MAP_HUGETLB | 30 << 26) == PageKind::k1G);
    CHECK(kind_of_mapping(MAP_PRIVATE, -1) == PageKind::kSmall);
    CHECK(kind_of_mapping(MAP_PRIVATE, 0) == PageKind::kSmall);
}

TEST_CASE("hugetlb mappings end with a whole page") {
    PageKinds kinds;
    kinds.set({kStart, kStart + 4096}, PageKind::k1G);
    const auto changes = kinds.take_changes();
    REQUIRE(changes.size() == 1);
    CHECK(changes[0].range.end == kStart + (1 << 30));
    CHECK(changes[0].operation == TRACE_MARKER_PAGES_1G);
}

// Of 24 units with eight parts each, whose kinds are kept one by one.
TEST_CASE("units of pages are what they would be part by part") {
    constexpr std::uint64_t kParts = 8, kPart = kUnit / kParts, kAll = 24 * kParts;
    std::mt19937 random(11);
    for (int round = 0; round < 40; ++round) {
        PageKinds kinds;
        std::vector<PageKind> plain(kAll, PageKind::kSmall);
        std::vector<std::uint64_t> told(kAll / kParts, TRACE_MARKER_PAGES_4K);
        std::uint64_t changes = 0;
        const auto range = [](std::uint64_t first, std::uint64_t count) {
            return Range{kStart + first * kPart, kStart + (first + count) * kPart};
        };
        const auto hear = [&] {
            for (const PageKinds::Change& change : kinds.take_changes()) {
                ++changes;
                for (std::uint64_t at = change.range.start; at < change.range.end; at += kUnit) {
                    CHECK(told.at((at - kStart) / kUnit) != change.operation);
                    told.at((at - kStart) / kUnit) = change.operation;
                }
            }
        };
        for (int step = 0; step < 60; ++step) {
            const std::uint64_t first = random() % kAll, count = 1 + random() % (kAll - first);
            const std::uint64_t what = random() % 8;
            if (what < 3) {
                const auto kind = static_cast<PageKind>(random() % 4);
                kinds.set(range(first, count), kind);
                std::fill_n(plain.begin() + static_cast<long>(first), count, kind);
            } else if (what == 3) {
                const std::uint64_t unit = first / kParts * kParts;
                kinds.set(range(unit, kParts), PageKind::k2M);
                std::fill_n(plain.begin() + static_cast<long>(unit), kParts, PageKind::k2M);
            } else if (what < 6) {
                const bool huge = random() % 2 == 0;
                kinds.advise(range(first, count), huge);
                for (std::uint64_t i = first; i < first + count; ++i)
                    if (plain[i] != PageKind::kSmall && plain[i] != PageKind::k2M)
                        plain[i] = huge ? PageKind::kAdvised : PageKind::kAgainst;
            } else {  // to where it does not overlap
                const std::uint64_t half = kAll / 2, from = random() % half;
                const std::uint64_t bytes = 1 + random() % (half - from),
                                    to = half + random() % half;
                const std::uint64_t room = std::min(1 + random() % half, kAll - to);
                const bool keeps = random() % 3 == 0;
                // Parts of hugetlb pages are not moved.
                bool divides = false;
                for (const PageKind kind : plain) divides |= kind == PageKind::k2M;
                if (divides) continue;
                kinds.move(range(from, bytes), range(to, room), keeps);
                const std::vector<PageKind> before = plain;
                if (!keeps)
                    std::fill_n(plain.begin() + static_cast<long>(from), bytes, PageKind::kSmall);
                for (std::uint64_t i = 0; i < room; ++i)
                    plain[to + i] = before[from + std::min(i, bytes - 1)];
            }
            // Parts of hugetlb pages are not replaced either.
            for (std::uint64_t unit = 0; unit < kAll; unit += kParts) {
                bool any = false, all = true;
                for (std::uint64_t i = unit; i < unit + kParts; ++i) {
                    any |= plain[i] == PageKind::k2M;
                    all &= plain[i] == PageKind::k2M;
                }
                if (!any || all) continue;
                kinds.set(range(unit, kParts), PageKind::kSmall);
                std::fill_n(plain.begin() + static_cast<long>(unit), kParts, PageKind::kSmall);
            }
            hear();
            if (step == 30) {
                std::fill(told.begin(), told.end(), TRACE_MARKER_PAGES_4K);
                kinds.tell_anew();
                changes = 0;
                hear();
            }
            CHECK(kinds.changes() == changes);
            for (std::uint64_t unit = 0; unit < kAll; unit += kParts) {
                bool one_kind = true;
                for (std::uint64_t i = unit; i < unit + kParts; ++i)
                    one_kind &= plain[i] == plain[unit];
                std::uint64_t expected = TRACE_MARKER_PAGES_4K;
                if (one_kind && plain[unit] == PageKind::kPrivate)
                    expected = TRACE_MARKER_PAGES_PRIVATE;
                if (one_kind && plain[unit] == PageKind::kAdvised)
                    expected = TRACE_MARKER_PAGES_ADVISED;
                if (one_kind && plain[unit] == PageKind::k2M) expected = TRACE_MARKER_PAGES_2M;
                CHECK(told[unit / kParts] == expected);
            }
        }
    }
}

}  // namespace page_kinds_test
