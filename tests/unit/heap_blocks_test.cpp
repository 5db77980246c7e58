// Blocks of the heap by address (collector/trace/data_objects.h), compared with a plain list.
#include "framework/collector/trace/data_objects.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace {

using namespace assay::collector;

struct PlainBlock {
    std::uint64_t start, end, born;
};

// Blocks in the order of allocation. An inner block comes after the block that contains it.
class PlainBlocks {
  public:
    void allocate(const PlainBlock& block) {
        const auto before = blocks_;
        for (const PlainBlock& other : before) {
            const bool overlaps = other.start < block.end && block.start < other.end;
            const bool contains = other.start <= block.start && block.end <= other.end;
            const bool equal = other.start == block.start && other.end == block.end;
            if (overlaps && (!contains || equal)) remove(other);
        }
        blocks_.push_back(block);
    }
    void give_back(std::uint64_t start) {
        const auto last = std::find_if(blocks_.rbegin(), blocks_.rend(),
                                       [&](const auto& block) { return block.start == start; });
        if (last != blocks_.rend()) remove(PlainBlock(*last));
    }
    const PlainBlock* innermost(std::uint64_t address) const {
        const auto last = std::find_if(blocks_.rbegin(), blocks_.rend(), [&](const auto& block) {
            return block.start <= address && address < block.end;
        });
        return last == blocks_.rend() ? nullptr : &*last;
    }

  private:
    // Also removes the blocks inside it.
    void remove(const PlainBlock& gone) {
        std::erase_if(blocks_, [&](const PlainBlock& other) {
            return gone.start <= other.start && other.end <= gone.end;
        });
    }

    std::vector<PlainBlock> blocks_;
};

TEST_CASE("blocks: the innermost one, and the gap around an address") {
    HeapBlocks blocks([](std::uint32_t, std::uint64_t) {});
    blocks.allocate(1000, 1000, 0);
    blocks.allocate(1200, 100, 1);
    CHECK(blocks[blocks.innermost(1250)].born == 1);
    CHECK(blocks[blocks.innermost(1500)].born == 0);
    // The block that begins last is not the one that ends last.
    for (int times = 0; times < 2; ++times) {
        const HeapBlocks::Place gap = blocks.find(2500);
        CHECK(gap.block == HeapBlocks::kNone);
        CHECK(gap.start == 2000);
        CHECK(gap.end == UINT64_MAX);
    }
    blocks.allocate(3000, 10, 2);
    CHECK(blocks.find(2500).end == 3000);
    blocks.give_back(1000, 3);
    CHECK(blocks.find(2500).start == 0);
    CHECK(blocks.find(1250).block == HeapBlocks::kNone);
}

TEST_CASE("blocks: the same as a plain list, at random") {
    constexpr std::uint64_t kMost = 4096, kLowest = 0x10000;
    std::mt19937_64 random(1);
    HeapBlocks blocks([](std::uint32_t, std::uint64_t) {});
    PlainBlocks plain;
    std::vector<std::uint64_t> starts;
    for (std::uint64_t time = 0; time < 20'000; ++time) {
        const std::uint64_t start = kLowest + random() % kMost;
        if (random() % 2 == 0) {
            const std::uint64_t bytes = 1 + random() % (random() % 8 == 0 ? 1024 : 48);
            blocks.allocate(start, bytes, time);
            plain.allocate({start, start + bytes, time});
            starts.push_back(start);
        } else if (!starts.empty()) {
            const std::uint64_t gone = starts[random() % starts.size()];
            blocks.give_back(gone, time);
            plain.give_back(gone);
        }
        for (int look = 0; look < 8; ++look) {
            const std::uint64_t address = kLowest + random() % (kMost + 1024);
            const PlainBlock* const expected = plain.innermost(address);
            const HeapBlocks::Place found = blocks.find(address);
            REQUIRE((found.block != HeapBlocks::kNone) == (expected != nullptr));
            if (expected != nullptr) {
                REQUIRE(blocks[found.block].born == expected->born);
                continue;
            }
            REQUIRE(found.start <= address);
            REQUIRE(address < found.end);
            for (const std::uint64_t other : {found.start, found.end - 1})
                if (other < kLowest + 2 * kMost) REQUIRE(plain.innermost(other) == nullptr);
        }
    }
}

}  // namespace
