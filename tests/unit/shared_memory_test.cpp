// Which memory of the program others may have.
#include "framework/driver/native/memory/memory_map.h"

#include <doctest/doctest.h>
#include <random>
#include <vector>

namespace shared_memory_test {

using namespace assay::native;

TEST_CASE("what is mapped takes the place of what was there") {
    SharedMemory memory;
    CHECK_FALSE(memory.has(0x1000));
    memory.note({0x1000, 0x5000}, true);
    memory.note({0x2000, 0x3000}, false);
    CHECK(memory.has(0x1000));
    CHECK(memory.has(0x1fff));
    CHECK_FALSE(memory.has(0x2000));
    CHECK_FALSE(memory.has(0x2fff));
    CHECK(memory.has(0x3000));
    CHECK(memory.has(0x4fff));
    CHECK_FALSE(memory.has(0x5000));
    memory.note({0, 0x10000}, false);
    CHECK_FALSE(memory.has(0x1000));
    CHECK_FALSE(memory.has(0x3000));
}

TEST_CASE("shared memory is what it would be page by page") {
    constexpr std::uint64_t kPage = 4096, kPages = 40;
    std::mt19937 random(7);
    SharedMemory memory;
    std::vector<bool> shared(kPages);
    for (int step = 0; step < 2000; ++step) {
        const std::uint64_t start = random() % kPages;
        const std::uint64_t end = start + 1 + random() % (kPages - start);
        const bool is_shared = random() % 2 == 0;
        memory.note({start * kPage, end * kPage}, is_shared);
        for (std::uint64_t page = start; page < end; ++page) shared[page] = is_shared;
        for (std::uint64_t page = 0; page < kPages; ++page) {
            REQUIRE(memory.has(page * kPage) == shared[page]);
            REQUIRE(memory.has(page * kPage + kPage - 1) == shared[page]);
        }
    }
}

}  // namespace shared_memory_test
