// LandingPads: a file whose tables are written by hand; and the same file, cut off and damaged.
#include "framework/driver/qemu/landing_pads.h"

#include "tests/unit/compiled_programs.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <vector>

namespace landing_pads_test {
namespace {

using assay::qemu::CodeRange;
using assay::qemu::LandingPads;

// A function with a call at 4, of 3 bytes, whose landing pad is at 12; a call without one; and a
// call whose landing pad is in another part, at 2. A second function has no table.
constexpr const char* kTables = R"(
    .text
    .globl _start
_start:
    .cfi_startproc
    .cfi_lsda 0x1b, table
    .skip 32
    .cfi_endproc
apart:
    .skip 32
    .cfi_startproc
    .skip 32
    .cfi_endproc
    .cfi_startproc
    .cfi_lsda 0x1b, other
    .skip 32
    .cfi_endproc
    .section .gcc_except_table, "a"
table:
    .byte 0xff, 0xff, 0x01
    .uleb128 end - first
first:
    .uleb128 4, 3, 12, 0
    .uleb128 8, 2, 0, 0
    .uleb128 16, 200, 12, 1
end:
other:
    .byte 0x1b
    .long apart - .
    .byte 0x9b
    .uleb128 20
    .byte 0x03
    .uleb128 13
    .long 6, 2, 2
    .uleb128 1
)";

constexpr std::uint64_t kStart = 0x410000, kApart = kStart + 32, kOther = kStart + 96;

std::vector<std::uint8_t> image_of(const CompiledPrograms& folder) {
    folder.write("tables.s", kTables);
    folder.run(
        "cc -nostdlib -static -no-pie -Wl,-Ttext=0x410000 -Wl,--eh-frame-hdr "
        "-Wl,--build-id=none -o tables tables.s");
    std::ifstream file(folder / "tables", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<CodeRange> calls(const LandingPads& pads, std::uint64_t address) {
    const std::span<const CodeRange> found = pads.calls(address);
    return {found.begin(), found.end()};
}

}  // namespace

TEST_CASE("landing pads tell the calls that an exception can leave for them") {
    const CompiledPrograms folder;
    const LandingPads pads(image_of(folder));
    CHECK(calls(pads, kStart + 12) ==
          std::vector<CodeRange>{{kStart + 4, kStart + 7}, {kStart + 16, kStart + 216}});
    CHECK(calls(pads, kApart + 2) == std::vector<CodeRange>{{kOther + 6, kOther + 8}});
    for (const std::uint64_t other : {kStart, kStart + 8, kApart, kOther, std::uint64_t{0}})
        CHECK(pads.calls(other).empty());
}

TEST_CASE("offsets in a file lead to its code") {
    const CompiledPrograms folder;
    const LandingPads pads(image_of(folder));
    // Offsets and addresses agree in their pages.
    std::uint64_t found = 0;
    for (std::uint64_t offset = 0; offset < 0x4000; offset += 0x1000)
        if (pads.code_at(offset) == kStart) ++found;
    CHECK(found == 1);
    CHECK(pads.code_at(1 << 30) == 0);
}

TEST_CASE("a file that is cut off or damaged has fewer landing pads") {
    const CompiledPrograms folder;
    const std::vector<std::uint8_t> image = image_of(folder);
    for (std::size_t bytes = 0; bytes < image.size(); bytes += bytes < 1024 ? 1 : 37) {
        // A copy, so that tools see a reading behind its end.
        const std::vector<std::uint8_t> cut(image.begin(),
                                            image.begin() + static_cast<std::ptrdiff_t>(bytes));
        CHECK(LandingPads(cut).calls(kStart).empty());
    }
    std::mt19937 random(7);
    for (int i = 0; i < 2000; ++i) {
        std::vector<std::uint8_t> damaged = image;
        for (int k = 0; k < 4; ++k)
            damaged[random() % damaged.size()] = static_cast<std::uint8_t>(random());
        CHECK(LandingPads(damaged).code_at(1 << 30) == 0);
    }
}

}  // namespace landing_pads_test
