#include "framework/isa/architecture.h"

#include "assay/trace_types.h"

#include <doctest/doctest.h>
#include <cstring>
#include <initializer_list>

namespace architecture_test {
namespace {

using assay::isa::Instruction;

Instruction aarch64(std::uint32_t word) {
    std::uint8_t code[4];
    std::memcpy(code, &word, sizeof word);
    Instruction described;
    REQUIRE(assay::isa::describe_aarch64(code, described));
    return described;
}

Instruction riscv(std::uint32_t word, std::size_t bytes) {
    std::uint8_t code[4];
    std::memcpy(code, &word, sizeof word);
    Instruction described;
    REQUIRE(assay::isa::describe_riscv({code, bytes}, described));
    CHECK(described.length == bytes);
    return described;
}

Instruction thumb(std::uint32_t halves) {
    const auto first = static_cast<std::uint16_t>(halves >> 16);
    const auto last = static_cast<std::uint16_t>(halves);
    std::uint8_t code[4];
    std::memcpy(code, first == 0 ? &last : &first, sizeof first);
    std::memcpy(code + 2, &last, sizeof last);
    Instruction described;
    REQUIRE(assay::isa::describe_thumb(code, described));
    CHECK(described.length == (first == 0 ? 2 : 4));
    return described;
}

struct Reference {
    std::uint32_t word;
    std::uint8_t kind;
    unsigned bytes;
};

void check_reference(const Instruction& described, const Reference& expected) {
    CAPTURE(expected.word);
    REQUIRE(described.operand_count == 1);
    CHECK(described.operands[0].kind == expected.kind);
    CHECK(described.operands[0].bytes == expected.bytes);
}

}  // namespace

TEST_CASE("Architecture: references of AArch64") {
    for (const Reference& each : {
             Reference{0xf9400022, TRACE_SITE_READ, 8},     // ldr x2, [x1]
             Reference{0xa9411023, TRACE_SITE_READ, 16},    // ldp x3, x4, [x1, #16]
             Reference{0xa9021023, TRACE_SITE_WRITE, 16},   // stp x3, x4, [x1, #32]
             Reference{0xad400400, TRACE_SITE_READ, 32},    // ldp q0, q1, [x0]
             Reference{0x69400c02, TRACE_SITE_READ, 8},     // ldpsw x2, x3, [x0]
             Reference{0x3dc00020, TRACE_SITE_READ, 16},    // ldr q0, [x1]
             Reference{0x39000020, TRACE_SITE_WRITE, 1},    // strb w0, [x1]
             Reference{0xb8bf4820, TRACE_SITE_READ, 4},     // ldrsw x0, [x1, wzr, uxtw]
             Reference{0x58000080, TRACE_SITE_READ, 8},     // ldr x0, .+16
             Reference{0xf8220025, TRACE_SITE_MODIFY, 8},   // ldadd x2, x5, [x1]
             Reference{0xc8a17c02, TRACE_SITE_MODIFY, 8},   // cas x1, x2, [x0]
             Reference{0x48207c02, TRACE_SITE_MODIFY, 16},  // casp x0, x1, x2, x3, [x0]
             Reference{0x4c402000, TRACE_SITE_READ, 64},    // ld1 {v0.16b-v3.16b}, [x0]
             Reference{0x0d400400, TRACE_SITE_READ, 1},     // ld1 {v0.b}[1], [x0]
             Reference{0x4d40c800, TRACE_SITE_READ, 4},     // ld1r {v0.4s}, [x0]
         })
        check_reference(aarch64(each.word), each);
    const Instruction conditional = aarch64(0xc8037c02);  // stxr w3, x2, [x0]
    check_reference(conditional, {0xc8037c02, TRACE_SITE_WRITE, 8});
    CHECK((conditional.flags & TRACE_INSTR_VARIABLE) != 0);
    CHECK(aarch64(0xf9800020).operand_count == 0);  // prfm pldl1keep, [x1]
    CHECK(aarch64(0xd50b7420).clears_line);         // dc zva, x0
    CHECK(aarch64(0x8b020020).operand_count == 0);  // add x0, x1, x2
}

TEST_CASE("Architecture: branches of AArch64") {
    const Instruction loop = aarch64(0x54ffff41);  // b.ne .-24
    CHECK(loop.flags == TRACE_INSTR_CONDITIONAL);
    CHECK(loop.distance == -24);
    CHECK(aarch64(0x94000002).flags == TRACE_INSTR_CALL);  // bl .+8
    CHECK(aarch64(0x94000002).distance == 8);
    CHECK(aarch64(0x17ffffff).distance == -4);                    // b .-4
    CHECK(aarch64(0xb5000040).flags == TRACE_INSTR_CONDITIONAL);  // cbnz x0, .+8
    CHECK(aarch64(0x37080040).distance == 8);                     // tbnz w0, #1, .+8
    CHECK(aarch64(0xd63f0020).flags == (TRACE_INSTR_CALL | TRACE_INSTR_INDIRECT));  // blr x1
    CHECK(aarch64(0xd61f0220).flags == TRACE_INSTR_INDIRECT);                       // br x17
    CHECK(aarch64(0xd69f03e0).flags == TRACE_INSTR_RETURN);                         // eret
    CHECK(aarch64(0xd65f03c0).flags == TRACE_INSTR_RETURN);                         // ret
}

TEST_CASE("Architecture: RISC-V") {
    check_reference(riscv(0x0005b683, 4), {0x0005b683, TRACE_SITE_READ, 8});    // ld a3, 0(a1)
    check_reference(riscv(0x00d59123, 4), {0x00d59123, TRACE_SITE_WRITE, 2});   // sh a3, 2(a1)
    check_reference(riscv(0x02a5b027, 4), {0x02a5b027, TRACE_SITE_WRITE, 8});   // fsd fa0, 32(a1)
    check_reference(riscv(0x00e6b72f, 4), {0x00e6b72f, TRACE_SITE_MODIFY, 8});  // amoadd.d
    check_reference(riscv(0xc1d4, 2), {0xc1d4, TRACE_SITE_WRITE, 4});           // c.sw a3, 4(a1)
    check_reference(riscv(0x60e2, 2), {0x60e2, TRACE_SITE_READ, 8});            // c.ldsp ra, 24(sp)
    CHECK(riscv(0x8082, 2).flags == TRACE_INSTR_RETURN);                        // ret
    CHECK(riscv(0x30200073, 4).flags == TRACE_INSTR_RETURN);                    // mret
    CHECK(riscv(0x8782, 2).flags == TRACE_INSTR_INDIRECT);                      // jr a5
    CHECK(riscv(0x9782, 2).flags == (TRACE_INSTR_CALL | TRACE_INSTR_INDIRECT));  // jalr a5
    CHECK(riscv(0xc791, 2).distance == 12);                                      // beqz a5, .+12
    CHECK(riscv(0xbfd5, 2).distance == -12);                                     // j .-12
    CHECK(riscv(0x6bf100ef, 4).distance == 0x10ebe);                             // jal ra
    CHECK(riscv(0x6bf100ef, 4).flags == TRACE_INSTR_CALL);
    CHECK(riscv(0xfe0718e3, 4).distance == -16);  // bnez a4, .-16
}

TEST_CASE("Architecture: references of Thumb code") {
    for (const Reference& each : {
             Reference{0x4a03, TRACE_SITE_READ, 4},        // ldr r2, [pc, #12]
             Reference{0x6048, TRACE_SITE_WRITE, 4},       // str r0, [r1, #4]
             Reference{0x7888, TRACE_SITE_READ, 1},        // ldrb r0, [r1, #2]
             Reference{0x8048, TRACE_SITE_WRITE, 2},       // strh r0, [r1, #2]
             Reference{0x9801, TRACE_SITE_READ, 4},        // ldr r0, [sp, #4]
             Reference{0x5e88, TRACE_SITE_READ, 2},        // ldrsh r0, [r1, r2]
             Reference{0x5488, TRACE_SITE_WRITE, 1},       // strb r0, [r1, r2]
             Reference{0xb5f0, TRACE_SITE_WRITE, 20},      // push {r4-r7, lr}
             Reference{0xbdf0, TRACE_SITE_READ, 20},       // pop {r4-r7, pc}
             Reference{0xc20f, TRACE_SITE_WRITE, 16},      // stm r2!, {r0-r3}
             Reference{0xca0f, TRACE_SITE_READ, 16},       // ldm r2!, {r0-r3}
             Reference{0xe92d47f0, TRACE_SITE_WRITE, 32},  // push.w {r4-r10, lr}
             Reference{0xe9d10102, TRACE_SITE_READ, 8},    // ldrd r0, r1, [r1, #8]
             Reference{0xe9c12302, TRACE_SITE_WRITE, 8},   // strd r2, r3, [r1, #8]
             Reference{0xf8512b04, TRACE_SITE_READ, 4},    // ldr r2, [r1], #4
             Reference{0xf8213022, TRACE_SITE_WRITE, 2},   // strh r3, [r1, r2, lsl #2]
             Reference{0xf9b10064, TRACE_SITE_READ, 2},    // ldrsh.w r0, [r1, #100]
             Reference{0xe8511f01, TRACE_SITE_READ, 4},    // ldrex r1, [r1, #4]
             Reference{0xe8d10f4f, TRACE_SITE_READ, 1},    // ldrexb r0, [r1]
             Reference{0xe8c10faf, TRACE_SITE_WRITE, 4},   // stl r0, [r1]
             Reference{0xed910b02, TRACE_SITE_READ, 8},    // vldr d0, [r1, #8]
             Reference{0xedc10a01, TRACE_SITE_WRITE, 4},   // vstr s1, [r1, #4]
             Reference{0xed2d8b08, TRACE_SITE_WRITE, 32},  // vpush {d8-d11}
         })
        check_reference(thumb(each.word), each);
    const Instruction conditional = thumb(0xe8412300);  // strex r3, r2, [r1]
    check_reference(conditional, {0xe8412300, TRACE_SITE_WRITE, 4});
    CHECK((conditional.flags & TRACE_INSTR_VARIABLE) != 0);
    for (const std::uint32_t none : {0x4610U,       // mov r0, r2
                                     0xf891f000U,   // pld [r1]
                                     0xe841f080U,   // ttt r0, r1
                                     0xec432b10U,   // vmov d0, r2, r3
                                     0xe97fe97fU,   // sg
                                     0xf3bf8f4fU,   // dsb
                                     0xfbb0f0f1U})  // udiv r0, r0, r1
        CHECK(thumb(none).operand_count == 0);
}

TEST_CASE("Architecture: branches of Thumb code") {
    CHECK(thumb(0xd1f8).flags == TRACE_INSTR_CONDITIONAL);  // bne .-12
    CHECK(thumb(0xd1f8).distance == -12);
    CHECK(thumb(0xe7fe).flags == 0);  // b .
    CHECK(thumb(0xe7fe).distance == 0);
    CHECK(thumb(0xb910).flags == TRACE_INSTR_CONDITIONAL);  // cbnz r0, .+8
    CHECK(thumb(0xb910).distance == 8);
    CHECK(thumb(0xf47faf7f).distance == -254);  // bne.w .-254
    CHECK(thumb(0xf47faf7f).flags == TRACE_INSTR_CONDITIONAL);
    CHECK(thumb(0xf7ffbffe).distance == 0);              // b.w .
    CHECK(thumb(0xf7fffffe).flags == TRACE_INSTR_CALL);  // bl .
    CHECK(thumb(0xf7fffffe).distance == 0);
    CHECK(thumb(0xf000f802).distance == 8);                                   // bl .+8
    CHECK(thumb(0x4770).flags == TRACE_INSTR_RETURN);                         // bx lr
    CHECK(thumb(0x4718).flags == TRACE_INSTR_INDIRECT);                       // bx r3
    CHECK(thumb(0x4798).flags == (TRACE_INSTR_CALL | TRACE_INSTR_INDIRECT));  // blx r3
    CHECK(thumb(0x46f7).flags == TRACE_INSTR_RETURN);                         // mov pc, lr
    CHECK((thumb(0xbd10).flags & TRACE_INSTR_RETURN) != 0);                   // pop {r4, pc}
    CHECK((thumb(0xe8bd8010).flags & TRACE_INSTR_RETURN) != 0);               // pop.w {r4, pc}
    CHECK((thumb(0xf85dfb04).flags & TRACE_INSTR_RETURN) != 0);               // pop.w {pc}
    CHECK((thumb(0xf852f023).flags & TRACE_INSTR_INDIRECT) != 0);  // ldr.w pc, [r2, r3, lsl #2]
    CHECK((thumb(0xe8dff000).flags & TRACE_INSTR_INDIRECT) != 0);  // tbb [pc, r0]
    CHECK(thumb(0xbf08).conditional_followers == 1);               // it eq
    CHECK(thumb(0xbf1e).conditional_followers == 3);               // ittt ne
    CHECK(thumb(0xbf00).conditional_followers == 0);               // nop
    CHECK(thumb(0xf00fc009).distance == -12);                      // le lr, .-12
}

TEST_CASE("Architecture: i386") {
    const auto described = [](std::initializer_list<std::uint8_t> code) {
        Instruction found;
        REQUIRE(assay::isa::describe_i386({code.begin(), code.size()}, found));
        CHECK(found.length == code.size());
        return found;
    };
    // push ebp; inc eax, which is a prefix in x86-64
    check_reference(described({0x55}), {0x55, TRACE_SITE_WRITE, 4});
    CHECK(described({0x40}).operand_count == 0);
    // add dword ptr [ebp - 4], 1; ret
    check_reference(described({0x83, 0x45, 0xfc, 0x01}), {0x83, TRACE_SITE_MODIFY, 4});
    CHECK(described({0xc3}).flags == (TRACE_INSTR_RETURN | TRACE_INSTR_LOAD));
    const Instruction call = described({0xe8, 0x10, 0x00, 0x00, 0x00});
    CHECK((call.flags & TRACE_INSTR_CALL) != 0);
    CHECK((call.is_direct && call.distance == 0x15));
    const Instruction back = described({0x7e, 0xde});  // jle
    CHECK((back.flags & TRACE_INSTR_CONDITIONAL) != 0);
    CHECK(back.distance == -0x20);
    CHECK_FALSE(described({0xff, 0xe0}).is_direct);  // jmp eax
    Instruction part;
    constexpr std::uint8_t kBegin[] = {0x83, 0x45};
    CHECK_FALSE(assay::isa::describe_i386(kBegin, part));
}

TEST_CASE("Architecture: the native driver's is in the table") {
    REQUIRE(assay::isa::architecture_of(assay::isa::kX86) != nullptr);
    CHECK(assay::isa::architecture_of({}) == nullptr);
    std::uint8_t loop[] = {0xe2, 0xfe};  // loop .
    Instruction described;
    REQUIRE(assay::isa::describe_x86(loop, described));
    CHECK(described.is_direct);
    CHECK(described.distance == 0);
}

}  // namespace architecture_test
