// Which addresses the driver chooses for the program's mappings.
#include "framework/driver/native/memory/free_addresses.h"

#include "framework/driver/native/memory/address_space.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <vector>

namespace free_addresses_test {

using namespace assay::native;

namespace {

constexpr std::uint64_t kPage = 4096;

// The same, page by page.
class Pages {
  public:
    explicit Pages(std::size_t pages) : free_(pages) {}
    void set(std::size_t from, std::size_t to, bool free) {
        for (std::size_t i = from; i < to; ++i) free_[i] = free;
    }
    std::optional<std::uint64_t> highest(std::size_t pages, std::size_t alignment) const {
        for (std::size_t i = (free_.size() + alignment - 1) / alignment * alignment; i > 0;) {
            i -= alignment;
            if (is_free(i, pages)) return i * kPage;
        }
        return {};
    }
    std::optional<std::uint64_t> lowest(std::size_t pages, std::size_t from, std::size_t to) const {
        for (std::size_t i = from; i + pages <= to; ++i)
            if (is_free(i, pages)) return i * kPage;
        return {};
    }

  private:
    bool is_free(std::size_t start, std::size_t pages) const {
        for (std::size_t i = start; i < start + pages; ++i)
            if (i >= free_.size() || !free_[i]) return false;
        return true;
    }
    std::vector<bool> free_;
};

}  // namespace

TEST_CASE("free addresses: the highest place that is large enough") {
    FreeAddresses free;
    CHECK_FALSE(free.highest(kPage, kPage));
    free.add({0x10000, 0x20000});
    free.add({0x30000, 0x32000});
    CHECK(free.highest(0x1000, kPage) == 0x31000);
    CHECK(free.highest(0x2000, kPage) == 0x30000);
    CHECK(free.highest(0x3000, kPage) == 0x1d000);
    CHECK_FALSE(free.highest(0x10001, kPage));
    CHECK(free.highest(0x1000, 0x8000) == 0x30000);
    CHECK(free.highest(0x2000, 0x8000) == 0x30000);
    CHECK(free.highest(0x3000, 0x8000) == 0x18000);
    CHECK(free.lowest(0x1000, {0, 0x40000}) == 0x10000);
    CHECK(free.lowest(0x1000, {0x11000, 0x40000}) == 0x11000);
    CHECK(free.lowest(0x2000, {0x1f000, 0x40000}) == 0x30000);
    CHECK_FALSE(free.lowest(0x2000, {0x1f000, 0x31000}));
    free.add({0x20000, 0x30000});
    CHECK(free.highest(0x22000, kPage) == 0x10000);
    free.remove({0x12000, 0x13000});
    free.remove({0x12000, 0x13000});
    CHECK(free.highest(0x1f000, kPage) == 0x13000);
    CHECK_FALSE(free.highest(0x1f001, kPage));
}

TEST_CASE("free addresses: the same as page by page") {
    constexpr std::size_t kPages = 300;
    std::mt19937 random(1);
    FreeAddresses free;
    Pages pages(kPages);
    for (int step = 0; step < 4000; ++step) {
        const std::size_t from = random() % kPages;
        const std::size_t to = std::min<std::size_t>(kPages, from + random() % 20);
        const bool adds = random() % 2 == 0;
        pages.set(from, to, adds);
        if (adds)
            free.add({from * kPage, to * kPage});
        else
            free.remove({from * kPage, to * kPage});
        const std::size_t wanted = 1 + random() % 12, alignment = std::size_t{1} << random() % 4;
        REQUIRE(free.highest(wanted * kPage, alignment * kPage) ==
                pages.highest(wanted, alignment));
        REQUIRE(free.lowest(wanted * kPage, {from * kPage, kPages * kPage}) ==
                pages.lowest(wanted, from, kPages));
    }
}

TEST_CASE("a mapping goes to the next place where something unknown is at the first") {
    std::vector<std::uint64_t> tried;
    const auto find = [&](std::uint64_t) -> std::optional<std::uint64_t> {
        return 0x9000 - 0x1000 * tried.size();
    };
    const auto map_above = [&](std::uint64_t lowest) {
        return [&tried, lowest](std::uint64_t address) -> long {
            tried.push_back(address);
            return address > lowest ? -EEXIST : static_cast<long>(address);
        };
    };
    CHECK(map_in_place(kPage, find, map_above(0x7000)) == 0x7000);
    CHECK(tried == std::vector<std::uint64_t>{0x9000, 0x8000, 0x7000});
    const auto nowhere = [](std::uint64_t) -> std::optional<std::uint64_t> { return {}; };
    CHECK(map_in_place(kPage, nowhere, map_above(0)) == -EEXIST);
    const auto refused = [](std::uint64_t) -> long { return -ENODEV; };
    tried.clear();
    CHECK(map_in_place(kPage, find, refused) == -ENODEV);
}

}  // namespace free_addresses_test
