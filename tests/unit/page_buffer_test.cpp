// The pages of a translation buffer, held against a list in the order of their last use.
#include "plugins/machine/page_sizes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace page_buffer_test {

namespace {

using machine::PageBuffer;
using machine::Tlb;

Tlb buffer(std::uint32_t entries, std::uint32_t ways) {
    Tlb tlb;
    tlb.entries = entries;
    tlb.ways = ways;
    return tlb;
}

TEST_CASE("a buffer forgets the page of a set that was used least recently") {
    for (const Tlb& tlb : {buffer(72, 72), buffer(64, 4), buffer(12, 3), buffer(1, 1)}) {
        const std::uint32_t entries = tlb.entries, ways = tlb.ways;
        CAPTURE(entries);
        PageBuffer fast(tlb);
        std::vector<std::vector<std::uint64_t>> sets(entries / ways);  // the last one used first
        std::mt19937_64 random(entries);
        for (int i = 0; i < 20000; ++i) {
            // Some far apart, which are found at one place.
            const std::uint64_t page = random() % (2 * entries) + (random() % 3) * (1 << 20);
            std::vector<std::uint64_t>& set = sets[page % sets.size()];
            const auto found = std::find(set.begin(), set.end(), page);
            const bool is_there = found != set.end();
            REQUIRE(fast.touch(page) == is_there);
            if (is_there)
                set.erase(found);
            else
                fast.insert(page);
            set.insert(set.begin(), page);
            if (set.size() > ways) set.pop_back();
        }
    }
}

TEST_CASE("a buffer of another policy keeps what it holds") {
    Tlb tlb = buffer(4, 4);
    tlb.replacement.policy = "fifo";
    PageBuffer pages(tlb);
    for (std::uint64_t page = 0; page < 5; ++page) {
        CHECK_FALSE(pages.touch(page));
        pages.insert(page);
        CHECK(pages.touch(1) == (page >= 1));
    }
    CHECK_FALSE(pages.touch(0));
}

}  // namespace

}  // namespace page_buffer_test
