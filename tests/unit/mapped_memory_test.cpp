// The sizes of pages as threads know them.
#include "plugins/machine/page_sizes.h"

#include <doctest/doctest.h>

namespace mapped_memory_test {

using machine::MappedMemory;
using machine::Memory;
using machine::Transparent;

namespace {

constexpr std::uint64_t kUnit = 2 << 20, kStart = std::uint64_t{1} << 40;

}  // namespace

TEST_CASE("a thread knows at once what it does, and what others map") {
    MappedMemory memory(Transparent::kMadvise);
    memory.create(0, 1);
    memory.change(0, kStart, 2 * kUnit, Memory::kAdvised);
    for (const std::uint32_t thread : {0U, 1U, 2U}) {
        CHECK(memory.of(thread).at(kStart) == 1);
        CHECK(memory.of(thread).at(kStart + 2 * kUnit) == 0);
    }
    memory.change(0, kStart, kUnit, Memory::kOther);
    CHECK(memory.of(0).at(kStart) == 0);
    CHECK(memory.of(1).at(kStart) == 1);
    memory.see(1, 1);
    CHECK(memory.of(1).at(kStart) == 1);
    memory.see(1, 2);
    CHECK(memory.of(1).at(kStart) == 0);
    CHECK(memory.of(1).at(kStart + kUnit) == 1);
    CHECK(memory.of(2).at(kStart) == 1);
    memory.change(2, kStart + 8 * kUnit, kUnit, Memory::k2M);
    CHECK(memory.of(2).at(kStart) == 0);
}

TEST_CASE("what is mapped where others have given memory back is not taken away later") {
    MappedMemory memory(Transparent::kAlways);
    memory.change(0, kStart, 4 * kUnit, Memory::kPrivate);
    CHECK(memory.of(1).at(kStart) == 1);
    memory.change(0, kStart, 4 * kUnit, Memory::kOther);
    memory.change(0, kStart + kUnit, kUnit, Memory::k2M);
    CHECK(memory.of(1).at(kStart + kUnit) == 1);
    memory.see(1, 3);
    CHECK(memory.of(1).at(kStart) == 0);
    CHECK(memory.of(1).at(kStart + kUnit) == 1);
    CHECK(memory.of(1).at(kStart + 2 * kUnit) == 0);
}

TEST_CASE("a thread begins with what its creator knows") {
    MappedMemory memory(Transparent::kMadvise);
    memory.create(0, 1);
    memory.change(0, kStart, kUnit, Memory::kAdvised);
    memory.change(0, kStart, kUnit, Memory::kOther);
    memory.create(1, 2);
    CHECK(memory.of(2).at(kStart) == 1);
    memory.end(1);
    memory.create(0, 1);
    CHECK(memory.of(1).at(kStart) == 0);
}

}  // namespace mapped_memory_test
