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
    CHECK(riscv(0x8782, 2).flags == TRACE_INSTR_INDIRECT);                      // jr a5
    CHECK(riscv(0x9782, 2).flags == (TRACE_INSTR_CALL | TRACE_INSTR_INDIRECT));  // jalr a5
    CHECK(riscv(0xc791, 2).distance == 12);                                      // beqz a5, .+12
    CHECK(riscv(0xbfd5, 2).distance == -12);                                     // j .-12
    CHECK(riscv(0x6bf100ef, 4).distance == 0x10ebe);                             // jal ra
    CHECK(riscv(0x6bf100ef, 4).flags == TRACE_INSTR_CALL);
    CHECK(riscv(0xfe0718e3, 4).distance == -16);  // bnez a4, .-16
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
