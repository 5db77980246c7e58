// Which memory is the driver's, and what /proc/self/maps then says.
#include "framework/driver/native/memory/own_memory.h"

#include "framework/driver/native/memory/proc_maps.h"

#include <doctest/doctest.h>

namespace own_memory_test {

using namespace assay::native;

namespace {

bool are_equal(const std::vector<Range>& found, const std::vector<Range>& expected) {
    return std::equal(
        found.begin(), found.end(), expected.begin(), expected.end(),
        [](const Range& a, const Range& b) { return a.start == b.start && a.end == b.end; });
}

}  // namespace

TEST_CASE("own memory: ranges that touch are one, and what is between is the program's") {
    constexpr std::uint64_t kBase = 0x100000000000;
    add_own_memory({kBase + 0x1000, kBase + 0x2000});
    add_own_memory({kBase + 0x5000, kBase + 0x6000});
    CHECK(is_own_memory({kBase + 0x1fff, kBase + 0x3000}));
    CHECK(is_own_memory({kBase, kBase + 0x1001}));
    CHECK(is_own_memory({kBase, kBase + 0x9000}));
    CHECK_FALSE(is_own_memory({kBase, kBase + 0x1000}));
    CHECK_FALSE(is_own_memory({kBase + 0x2000, kBase + 0x5000}));
    CHECK_FALSE(is_own_memory({kBase + 0x1800, kBase + 0x1800}));
    CHECK(
        are_equal(without_own_memory({kBase, kBase + 0x9000}), {{kBase, kBase + 0x1000},
                                                                {kBase + 0x2000, kBase + 0x5000},
                                                                {kBase + 0x6000, kBase + 0x9000}}));
    CHECK(are_equal(without_own_memory({kBase + 0x5800, kBase + 0x5900}), {}));
    CHECK(are_equal(without_own_memory({kBase + 0x2000, kBase + 0x3000}),
                    {{kBase + 0x2000, kBase + 0x3000}}));
    add_own_memory({kBase + 0x2000, kBase + 0x5000});
    CHECK(are_equal(without_own_memory({kBase, kBase + 0x9000}),
                    {{kBase, kBase + 0x1000}, {kBase + 0x6000, kBase + 0x9000}}));
    add_own_memory({kBase + 0x1800, kBase + 0x8000});
    CHECK(are_equal(without_own_memory({kBase, kBase + 0x9000}),
                    {{kBase, kBase + 0x1000}, {kBase + 0x8000, kBase + 0x9000}}));
}

TEST_CASE("maps: lines are read, and written as the kernel writes them") {
    const std::string lines[] = {
        "7ffff7fc8000-7ffff7fca000 r-xp 00000000 00:00 0                          [vdso]\n",
        "00400000-00401000 r--p 00001000 fe:00 247134                             /a file/b\n",
        "7fbfdffaf000-7fbfdffbc000 rw-s 00000000 00:00 0 \n",
        "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n",
    };
    for (const std::string& line : lines) {
        const std::optional<Mapping> mapping =
            parse_mapping(std::string_view(line).substr(0, line.size() - 1));
        REQUIRE(mapping);
        CHECK(to_line(*mapping) == line);
    }
    for (const char* other : {"", "Size:                  4 kB", "VmFlags: rd ex mr mw me",
                              "AnonHugePages:         0 kB", "ProtectionKey:         0"})
        CHECK_FALSE(parse_mapping(other));
}

TEST_CASE("maps: the driver's memory is left out, the program's is named") {
    constexpr std::uint64_t kBase = 0x200000000000;
    add_own_memory({kBase + 0x2000, kBase + 0x3000});
    MemoryMap memory;
    memory.add({.start = kBase + 0x8000, .end = kBase + 0x9000, .writable = true});
    const ProgramRanges ranges{
        .heap_start = kBase + 0x4800, .heap_end = kBase + 0x5100, .stack_end = kBase + 0x7000};
    const std::string kernel =
        "200000000000-200000004000 r--p 00010000 fe:00 7                          /file\n"
        "Size:                 16 kB\n"
        "200000002000-200000003000 rw-p 00000000 00:00 0                          [heap]\n"
        "Size:                  4 kB\n"
        "200000004000-200000006000 rw-p 00000000 00:00 0 \n"
        "200000006000-200000007000 rw-p 00000000 00:00 0 \n"
        "200000008000-200000009000 r--p 00000000 00:00 0 \n"
        "20000000a000-20000000b000 rw-p 00000000 00:00 0                          [stack]\n";
    CHECK(maps_of_program(kernel, memory, ranges) ==
          "200000000000-200000002000 r--p 00010000 fe:00 7                          /file\n"
          "Size:                 16 kB\n"
          "200000003000-200000004000 r--p 00013000 fe:00 7                          /file\n"
          "Size:                 16 kB\n"
          "200000004000-200000006000 rw-p 00000000 00:00 0                          [heap]\n"
          "200000006000-200000007000 rw-p 00000000 00:00 0                          [stack]\n"
          "200000008000-200000009000 rwxp 00000000 00:00 0 \n"
          "20000000a000-20000000b000 rw-p 00000000 00:00 0 \n");
}

TEST_CASE("maps: what the driver has protected is what the program knows") {
    MemoryMap memory;
    // The kernel has joined the second page, in which code is watched, with the third.
    memory.add({.start = 0x210000001000, .end = 0x210000003000, .writable = true});
    memory.add({.start = 0x210000003000, .end = 0x210000004000, .executable = false});
    const std::string kernel =
        "210000001000-210000002000 rw-p 00000000 00:00 0 \n"
        "210000002000-210000004000 r--p 00000000 00:00 0 \n"
        "210000005000-210000006000 rw-p 00000000 00:00 0 \n"
        "210000006000-210000007000 rw-p 00000000 00:00 0 \n";
    CHECK(maps_of_program(kernel, memory, {}) ==
          "210000001000-210000003000 rwxp 00000000 00:00 0 \n"
          "210000003000-210000004000 r--p 00000000 00:00 0 \n"
          "210000005000-210000006000 rw-p 00000000 00:00 0 \n"
          "210000006000-210000007000 rw-p 00000000 00:00 0 \n");
}

}  // namespace own_memory_test
