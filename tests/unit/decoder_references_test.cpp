// The memory that the driver takes an instruction to read and to write, against the manual, row by
// row.
#include "framework/x86/decoder.h"
#include "tests/unit/decoder_bytes.h"

#include <doctest/doctest.h>
#include <string>
#include <vector>

namespace decoder_references_test {

using namespace assay::native;

namespace {

// A reference as the manual has it. `displacement`: with the bias, and for a RIP-relative operand
// with the next instruction's address.
struct Expected {
    std::uint8_t kind;
    std::uint8_t base, index;
    std::uint8_t scale;
    std::int64_t displacement;
    std::uint16_t bytes;
};

constexpr std::uint8_t kRead = TRACE_SITE_READ, kWrite = TRACE_SITE_WRITE,
                       kModify = TRACE_SITE_MODIFY;

}  // namespace

TEST_CASE("data references of an instruction, in their order") {
    struct Row {
        const char* text;
        Bytes bytes;
        std::vector<Expected> references;
    };
    constexpr std::uint8_t kNone = kNoGpr;
    const std::vector<Row> rows = {
        {"mov rax, [rcx + rdx * 4 + 0x10]",
         {0x48, 0x8b, 0x44, 0x91, 0x10},
         {{kRead, RCX, RDX, 4, 0x10, 8}}},
        {"mov [rsp - 8], ecx", {0x89, 0x4c, 0x24, 0xf8}, {{kWrite, RSP, kNone, 1, -8, 4}}},
        {"mov ax, [r13 + r12 * 8 - 0x12345]",
         {0x66, 0x43, 0x8b, 0x84, 0xe5, 0xbb, 0xdc, 0xfe, 0xff},
         {{kRead, R13, R12, 8, -0x12345, 2}}},
        {"mov al, [rbp + 0]", {0x8a, 0x45, 0x00}, {{kRead, RBP, kNone, 1, 0, 1}}},
        {"mov eax, [rdx * 8 + 0x1234]",
         {0x8b, 0x04, 0xd5, 0x34, 0x12, 0x00, 0x00},
         {{kRead, kNone, RDX, 8, 0x1234, 4}}},
        {"mov eax, [0x12345678]",
         {0x8b, 0x04, 0x25, 0x78, 0x56, 0x34, 0x12},
         {{kRead, kNone, kNone, 1, 0x12345678, 4}}},
        {"movabs al, [0x1122334455667788]",
         {0xa0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11},
         {{kRead, kNone, kNone, 1, 0x1122334455667788, 1}}},
        {"mov [rip + 0x100], rax",
         {0x48, 0x89, 0x05, 0x00, 0x01, 0x00, 0x00},
         {{kWrite, kRip, kNone, 1, kPc + 7 + 0x100, 8}}},
        {"cmp dword ptr [rip - 0x100], 0x12345678",
         {0x81, 0x3d, 0x00, 0xff, 0xff, 0xff, 0x78, 0x56, 0x34, 0x12},
         {{kRead, kRip, kNone, 1, kPc + 10 - 0x100, 4}}},
        {"cmp [rdi], rax", {0x48, 0x39, 0x07}, {{kRead, RDI, kNone, 1, 0, 8}}},
        {"add [rdi], al", {0x00, 0x07}, {{kModify, RDI, kNone, 1, 0, 1}}},
        {"lock xadd [rdi], ecx", {0xf0, 0x0f, 0xc1, 0x0f}, {{kModify, RDI, kNone, 1, 0, 4}}},
        {"lock cmpxchg [rdi], ecx", {0xf0, 0x0f, 0xb1, 0x0f}, {{kModify, RDI, kNone, 1, 0, 4}}},
        {"lock cmpxchg16b [rdi]",
         {0xf0, 0x48, 0x0f, 0xc7, 0x0f},
         {{kModify, RDI, kNone, 1, 0, 16}}},
        {"xchg [rdi], cx", {0x66, 0x87, 0x0f}, {{kModify, RDI, kNone, 1, 0, 2}}},
        {"setz [rdi]", {0x0f, 0x94, 0x07}, {{kWrite, RDI, kNone, 1, 0, 1}}},
        {"movnti [rdi], rax", {0x48, 0x0f, 0xc3, 0x07}, {{kWrite, RDI, kNone, 1, 0, 8}}},
        {"cmovz eax, [rdi]", {0x0f, 0x44, 0x07}, {{kRead, RDI, kNone, 1, 0, 4}}},
        {"bts qword ptr [rdi], 3",
         {0x48, 0x0f, 0xba, 0x2f, 0x03},
         {{kModify, RDI, kNone, 1, 0, 8}}},
        // The stack.
        {"push rax", {0x50}, {{kWrite, RSP, kNone, 1, -8, 8}}},
        {"pushw 5", {0x66, 0x6a, 0x05}, {{kWrite, RSP, kNone, 1, -2, 2}}},
        {"push [rdi + 8]",
         {0xff, 0x77, 0x08},
         {{kRead, RDI, kNone, 1, 8, 8}, {kWrite, RSP, kNone, 1, -8, 8}}},
        {"push [rsp + 8]",
         {0xff, 0x74, 0x24, 0x08},
         {{kRead, RSP, kNone, 1, 8, 8}, {kWrite, RSP, kNone, 1, -8, 8}}},
        {"pop rax", {0x58}, {{kRead, RSP, kNone, 1, 0, 8}}},
        {"pop [rdi]", {0x8f, 0x07}, {{kRead, RSP, kNone, 1, 0, 8}, {kWrite, RDI, kNone, 1, 0, 8}}},
        {"pop [rsp + 8]",
         {0x8f, 0x44, 0x24, 0x08},
         {{kRead, RSP, kNone, 1, 0, 8}, {kWrite, RSP, kNone, 1, 16, 8}}},
        {"call rax", {0xff, 0xd0}, {{kWrite, RSP, kNone, 1, -8, 8}}},
        {"call [rax]",
         {0xff, 0x10},
         {{kRead, RAX, kNone, 1, 0, 8}, {kWrite, RSP, kNone, 1, -8, 8}}},
        {"jmp [rip + 0x10]",
         {0xff, 0x25, 0x10, 0x00, 0x00, 0x00},
         {{kRead, kRip, kNone, 1, kPc + 6 + 0x10, 8}}},
        {"ret", {0xc3}, {{kRead, RSP, kNone, 1, 0, 8}}},
        {"ret 16", {0xc2, 0x10, 0x00}, {{kRead, RSP, kNone, 1, 0, 8}}},
        {"leave", {0xc9}, {{kRead, RBP, kNone, 1, 0, 8}}},
        {"enter 48, 0", {0xc8, 0x30, 0x00, 0x00}, {{kWrite, RSP, kNone, 1, -8, 8}}},
        {"pushfq", {0x9c}, {{kWrite, RSP, kNone, 1, -8, 8}}},
        // Strings: what Valgrind has first is first.
        {"movsb", {0xa4}, {{kRead, RSI, kNone, 1, 0, 1}, {kWrite, RDI, kNone, 1, 0, 1}}},
        {"movsq", {0x48, 0xa5}, {{kRead, RSI, kNone, 1, 0, 8}, {kWrite, RDI, kNone, 1, 0, 8}}},
        {"rep movsd", {0xf3, 0xa5}, {{kRead, RSI, kNone, 1, 0, 4}, {kWrite, RDI, kNone, 1, 0, 4}}},
        {"cmpsw", {0x66, 0xa7}, {{kRead, RDI, kNone, 1, 0, 2}, {kRead, RSI, kNone, 1, 0, 2}}},
        {"lodsd", {0xad}, {{kRead, RSI, kNone, 1, 0, 4}}},
        {"stosw", {0x66, 0xab}, {{kWrite, RDI, kNone, 1, 0, 2}}},
        {"scasq", {0x48, 0xaf}, {{kRead, RDI, kNone, 1, 0, 8}}},
        // Named, but not touched.
        {"lea rax, [rcx + 8]", {0x48, 0x8d, 0x41, 0x08}, {}},
        {"nop dword ptr [rax + rax]", {0x0f, 0x1f, 0x04, 0x00}, {}},
        {"prefetcht0 [rdi]", {0x0f, 0x18, 0x0f}, {}},
        {"prefetchw [rdi]", {0x0f, 0x0d, 0x0f}, {}},
        {"prefetchwt1 [rdi]", {0x0f, 0x0d, 0x17}, {}},
        {"clflush [rdi]", {0x0f, 0xae, 0x3f}, {}},
        {"clflushopt [rdi]", {0x66, 0x0f, 0xae, 0x3f}, {}},
        {"clwb [rdi]", {0x66, 0x0f, 0xae, 0x37}, {}},
        {"cldemote [rdi]", {0x0f, 0x1c, 0x07}, {}},
        {"bndmov bnd0, [rdi]", {0x66, 0x0f, 0x1a, 0x07}, {}},
        {"bndmov [rdi], bnd0", {0x66, 0x0f, 0x1b, 0x07}, {}},
        {"bndldx bnd0, [rdi + rax]", {0x0f, 0x1a, 0x04, 0x07}, {}},
        {"bndstx [rdi + rax], bnd0", {0x0f, 0x1b, 0x04, 0x07}, {}},
        // Vectors and x87.
        {"movss xmm0, [rdi]", {0xf3, 0x0f, 0x10, 0x07}, {{kRead, RDI, kNone, 1, 0, 4}}},
        {"movsd [rdi], xmm0", {0xf2, 0x0f, 0x11, 0x07}, {{kWrite, RDI, kNone, 1, 0, 8}}},
        {"cmpsd xmm0, [rdi], 1", {0xf2, 0x0f, 0xc2, 0x07, 0x01}, {{kRead, RDI, kNone, 1, 0, 8}}},
        {"movups xmm0, [rdi + 1]", {0x0f, 0x10, 0x47, 0x01}, {{kRead, RDI, kNone, 1, 1, 16}}},
        {"pinsrb xmm0, [rdi], 3",
         {0x66, 0x0f, 0x3a, 0x20, 0x07, 0x03},
         {{kRead, RDI, kNone, 1, 0, 1}}},
        {"maskmovdqu xmm0, xmm1", {0x66, 0x0f, 0xf7, 0xc1}, {{kWrite, RDI, kNone, 1, 0, 16}}},
        {"vmovups [rdi + 0x20], ymm0",
         {0xc5, 0xfc, 0x11, 0x47, 0x20},
         {{kWrite, RDI, kNone, 1, 0x20, 32}}},
        {"vbroadcastss ymm0, [rdi]",
         {0xc4, 0xe2, 0x7d, 0x18, 0x07},
         {{kRead, RDI, kNone, 1, 0, 4}}},
        {"vmovups zmm0, [rdi + 0x40]",
         {0x62, 0xf1, 0x7c, 0x48, 0x10, 0x47, 0x01},
         {{kRead, RDI, kNone, 1, 0x40, 64}}},
        {"vmovups zmm0, [rdi - 0x80]",
         {0x62, 0xf1, 0x7c, 0x48, 0x10, 0x47, 0xfe},
         {{kRead, RDI, kNone, 1, -0x80, 64}}},
        {"vaddpd zmm0, zmm1, qword ptr [rdi + 8]{1to8}",
         {0x62, 0xf1, 0xf5, 0x58, 0x58, 0x47, 0x01},
         {{kRead, RDI, kNone, 1, 8, 8}}},
        {"vmovups xmm16, [rdi + 0x7f0]",
         {0x62, 0xe1, 0x7c, 0x08, 0x10, 0x47, 0x7f},
         {{kRead, RDI, kNone, 1, 0x7f0, 16}}},
        {"fld tbyte ptr [rdi]", {0xdb, 0x2f}, {{kRead, RDI, kNone, 1, 0, 10}}},
        {"fstp dword ptr [rdi]", {0xd9, 0x1f}, {{kWrite, RDI, kNone, 1, 0, 4}}},
        {"fnstcw [rdi]", {0xd9, 0x3f}, {{kWrite, RDI, kNone, 1, 0, 2}}},
        {"fnstenv [rdi]", {0xd9, 0x37}, {{kWrite, RDI, kNone, 1, 0, 28}}},
        {"clzero", {0x0f, 0x01, 0xfc}, {{kWrite, RAX, kNone, 1, 0, 64}}},
        {"fxsave [rdi]", {0x0f, 0xae, 0x07}, {{kWrite, RDI, kNone, 1, 0, 512}}},
        {"ldmxcsr [rdi]", {0x0f, 0xae, 0x17}, {{kRead, RDI, kNone, 1, 0, 4}}},
    };
    for (const Row& row : rows) {
        CAPTURE(std::string(row.text));
        const Instruction instruction = decode(row.bytes);
        const Form& form = *instruction.form;
        REQUIRE(form.reference_count == row.references.size());
        for (unsigned i = 0; i < form.reference_count; ++i) {
            const MemoryReference& found = form.references[i];
            const Expected& expected = row.references[i];
            CHECK(found.kind == expected.kind);
            CHECK(found.base == expected.base);
            CHECK(found.index == expected.index);
            CHECK(found.scale == expected.scale);
            CHECK(found.bytes == expected.bytes);
            CHECK(displacement_of(instruction, found) == expected.displacement);
            CHECK(found.segment == Segment::kFlat);
            CHECK_FALSE(found.address32);
        }
    }
}

TEST_CASE("thread-local and 32-bit addresses") {
    const Instruction fs = decode({0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0});  // mov rax, fs:40
    CHECK(fs.form->references[0].segment == Segment::kFs);
    CHECK(fs.form->references[0].base == kNoGpr);
    CHECK(fs.displacement() == 0x28);
    CHECK_FALSE(is_constant(fs.form->references[0]));
    const Instruction narrow = decode({0x67, 0x8b, 0x04, 0x11});  // mov eax, [ecx + edx]
    CHECK(narrow.form->references[0].address32);
    CHECK((narrow.form->reads & (bit(RCX) | bit(RDX))) == (bit(RCX) | bit(RDX)));
    // The pop's own operand is narrow, its stack is not.
    const Instruction pop = decode({0x67, 0x8f, 0x01});  // pop qword ptr [ecx]
    REQUIRE(pop.form->reference_count == 2);
    CHECK_FALSE(pop.form->references[0].address32);
    CHECK(pop.form->references[1].address32);
}

TEST_CASE("references that are computed at run time") {
    struct Row {
        const char* text;
        Bytes bytes;
        Special special;
        bool variable;
    };
    const std::vector<Row> rows = {
        {"rep movsb", {0xf3, 0xa4}, Special::kString, true},
        {"repne scasb", {0xf2, 0xae}, Special::kString, true},
        {"repe cmpsq", {0xf3, 0x48, 0xa7}, Special::kString, true},
        {"movsb", {0xa4}, Special::kNone, false},
        {"movsd xmm0, [rdi]", {0xf2, 0x0f, 0x10, 0x07}, Special::kNone, false},
        {"pause", {0xf3, 0x90}, Special::kNone, false},
        {"repz ret", {0xf3, 0xc3}, Special::kNone, false},
        {"xlat", {0xd7}, Special::kTranslate, false},
        {"clzero", {0x0f, 0x01, 0xfc}, Special::kClearLine, false},
        {"bt [rdi], rax", {0x48, 0x0f, 0xa3, 0x07}, Special::kBitString, false},
        {"lock btc [rdi], eax", {0xf0, 0x0f, 0xbb, 0x07}, Special::kBitString, false},
        {"bt qword ptr [rdi], 3", {0x48, 0x0f, 0xba, 0x27, 0x03}, Special::kNone, false},
        {"bt rdi, rax", {0x48, 0x0f, 0xa3, 0xc7}, Special::kNone, false},
        {"vgatherdps ymm0, [rdi + ymm1 * 4], ymm2",
         {0xc4, 0xe2, 0x6d, 0x92, 0x04, 0x8f},
         Special::kGather,
         true},
        {"vpgatherqq zmm0{k1}, [rdi + zmm1 * 8]",
         {0x62, 0xf2, 0xfd, 0x49, 0x91, 0x04, 0xcf},
         Special::kGather,
         true},
        {"vpscatterdd [rdi + zmm1 * 4]{k1}, zmm0",
         {0x62, 0xf2, 0x7d, 0x49, 0xa0, 0x04, 0x8f},
         Special::kGather,
         true},
    };
    for (const Row& row : rows) {
        CAPTURE(std::string(row.text));
        const Instruction instruction = decode(row.bytes);
        CHECK(instruction.form->special == row.special);
        CHECK(((instruction.form->trace_flags & TRACE_INSTR_VARIABLE) != 0) == row.variable);
    }
}

}  // namespace decoder_references_test
