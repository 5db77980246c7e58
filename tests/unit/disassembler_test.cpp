// Instructions as text: Capstone's, and Zydis's where Capstone 4.0 knows none.
#include "tools/code/object_code.h"

#include <doctest/doctest.h>
#include <elf.h>
#include <span>
#include <vector>

namespace disassembler_test {

using namespace assay;

namespace {

std::string print(Syntax syntax, const std::vector<std::uint8_t>& code, std::size_t length) {
    const Disassembler::Text text = Disassembler(syntax).print(code, 0x401000);
    CHECK(text.length == length);
    return text.text;
}

}  // namespace

TEST_CASE("disassembler: both syntaxes, one instruction of several") {
    const std::vector<std::uint8_t> code{0x48, 0x8b, 0x04, 0xcf, 0x90};
    CHECK(print(Syntax::kAtt, code, 4) == "movq    (%rdi, %rcx, 8), %rax");
    CHECK(print(Syntax::kIntel, code, 4) == "mov     rax, qword ptr [rdi + rcx*8]");
    CHECK(print(Syntax::kAtt, {0xc3}, 1) == "retq");
}

TEST_CASE("disassembler: branches have the addresses that they lead to") {
    CHECK(print(Syntax::kAtt, {0x74, 0x10}, 2) == "je      0x401012");
    CHECK(print(Syntax::kIntel, {0xe8, 0, 0, 0, 0}, 5) == "call    0x401005");
}

TEST_CASE("disassembler: what Capstone does not know") {
    // Of glibc's strlen for AVX-512: masks to registers, tests into masks.
    CHECK(print(Syntax::kAtt, {0xc5, 0xfb, 0x93, 0xc0}, 4) == "kmovd   %k0, %eax");
    CHECK(print(Syntax::kIntel, {0xc5, 0xfb, 0x93, 0xc0}, 4) == "kmovd   eax, k0");
    CHECK(print(Syntax::kIntel, {0x62, 0xf2, 0x7d, 0x08, 0x26, 0xd0}, 6) ==
          "vptestmb k2, xmm0, xmm0");
}

TEST_CASE("disassembler: Thumb code of microcontrollers") {
    const std::vector<std::uint8_t> code{0x52, 0xf8, 0x23, 0x10, 0x70, 0x47};
    const isa::ElfKind cortex_m{EM_ARM, ELFCLASS32, ELFDATA2LSB, true};
    const Disassembler disassembler(Syntax::kAtt);
    CHECK(disassembler.print(code, 0x100, cortex_m).text == "ldr.w   r1, [r2, r3, lsl #2]");
    CHECK(disassembler.print(std::span(code).subspan(4), 0x104, cortex_m).text == "bx      lr");
}

TEST_CASE("disassembler: no instruction") {
    CHECK(print(Syntax::kAtt, {0x06}, 0) == "(bad)");
    CHECK(print(Syntax::kAtt, {0x48}, 0) == "(bad)");
    CHECK(print(Syntax::kAtt, {}, 0) == "(bad)");
}

}  // namespace disassembler_test
