// What the driver knows of the target's executable memory.
#include "framework/driver/native/memory/memory_map.h"
#include "framework/driver/native/memory/free_addresses.h"

#include <doctest/doctest.h>
#include <random>
#include <vector>

namespace memory_map_test {

using namespace assay::native;

TEST_CASE("memory map: neighbours of one kind are one region, others are not") {
    MemoryMap map;
    map.add({.start = 0x1000, .end = 0x2000});
    map.add({.start = 0x3000, .end = 0x4000});
    map.add({.start = 0x2000, .end = 0x3000});
    REQUIRE(map.find(0x2fff) != nullptr);
    CHECK(map.find(0x2fff)->start == 0x1000);
    CHECK(map.find(0x2fff)->end == 0x4000);
    map.add({.start = 0x2000, .end = 0x3000, .writable = true});
    CHECK(map.find(0x1000)->end == 0x2000);
    CHECK(map.find(0x2000)->writable);
    CHECK(map.find(0x3000)->start == 0x3000);
    CHECK(map.find(0x4000) == nullptr);
    CHECK(map.find(0xfff) == nullptr);
}

TEST_CASE("memory map: it is right page by page, whatever is added and removed") {
    constexpr std::uint64_t kPages = 64, kPage = 4096;
    MemoryMap map;
    struct Expected {
        bool known = false, writable = false;
    };
    std::vector<Expected> expected(kPages);
    std::mt19937 generator(3);
    unsigned wrong = 0;
    for (unsigned step = 0; step < 2000; ++step) {
        const std::uint64_t first = generator() % kPages;
        const std::uint64_t end = first + 1 + generator() % (kPages - first);
        const bool adds = generator() % 3 != 0, writable = generator() % 2;
        bool any = false;
        for (std::uint64_t page = first; page < end; ++page) any |= expected[page].known;
        if (map.overlaps(first * kPage, end * kPage) != any) ++wrong;
        if (adds)
            map.add({.start = first * kPage, .end = end * kPage, .writable = writable});
        else if (map.remove(first * kPage, end * kPage) != any)
            ++wrong;
        for (std::uint64_t page = first; page < end; ++page) expected[page] = {adds, writable};
        for (std::uint64_t page = 0; page < kPages; ++page) {
            const Region* region = map.find(page * kPage + generator() % kPage);
            if ((region != nullptr) != expected[page].known) ++wrong;
            if (region != nullptr && region->writable != expected[page].writable) ++wrong;
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("code places: only the same file at the same address may come back") {
    CodePlaces places;
    const MappedFile first{1, 10, 0x10000}, second{1, 11, 0x10000}, moved{1, 10, 0x11000};
    places.add({0x11000, 0x13000}, first);
    CHECK(places.overlap({0x10000, 0x11001}));
    CHECK(places.overlap({0x12fff, 0x20000}));
    CHECK_FALSE(places.overlap({0x10000, 0x11000}));
    CHECK_FALSE(places.overlap({0x13000, 0x14000}));
    CHECK_FALSE(places.are_of_others({0x10000, 0x14000}, first));
    CHECK(places.are_of_others({0x10000, 0x14000}, second));
    CHECK(places.are_of_others({0x10000, 0x14000}, moved));
    CHECK(places.are_of_others({0x12000, 0x14000}, std::nullopt));
    CHECK_FALSE(places.are_of_others({0x13000, 0x14000}, second));
    CHECK(places.below({0x12000, 0x14000})->start == 0xf000);
    CHECK(places.below({0x13000, 0x14000})->start == 0x13000);
    CHECK_FALSE(places.below({0x11000, 0x31000}));
    // Where a program has put two by itself, neither may come back.
    places.add({0x12000, 0x14000}, second);
    CHECK(places.are_of_others({0x10000, 0x14000}, first));
    CHECK(places.are_of_others({0x10000, 0x14000}, second));
}

}  // namespace memory_map_test
