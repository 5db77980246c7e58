// What the driver learns of an instruction, against the manual, row by row.
#include "framework/x86/decoder.h"
#include "tests/unit/decoder_bytes.h"

#include <doctest/doctest.h>
#include <algorithm>
#include <string>
#include <vector>

namespace decoder_test {

using namespace assay::native;

TEST_CASE("instructions that depend on the processor are known") {
    using enum ProcessorUse;
    struct Row {
        const char* text;
        Bytes bytes;
        ProcessorUse use;
    };
    const std::vector<Row> rows = {
        {"cpuid", {0x0f, 0xa2}, kIdentify},
        {"xgetbv", {0x0f, 0x01, 0xd0}, kIdentify},
        {"xsave [rdi]", {0x0f, 0xae, 0x27}, kSaveState},
        {"xsave64 [rdi]", {0x48, 0x0f, 0xae, 0x27}, kSaveState},
        {"xsaveopt [rdi]", {0x0f, 0xae, 0x37}, kSaveState},
        {"xsavec [rdi]", {0x0f, 0xc7, 0x27}, kSaveState},
        {"xsavec64 [rdi]", {0x48, 0x0f, 0xc7, 0x27}, kSaveState},
        {"xrstor [rdi]", {0x0f, 0xae, 0x2f}, kSaveState},
        {"xrstor64 [rdi]", {0x48, 0x0f, 0xae, 0x2f}, kSaveState},
        {"fxsave [rdi]", {0x0f, 0xae, 0x07}, kNone},
        {"rdtsc", {0x0f, 0x31}, kNone},
    };
    for (const Row& row : rows) {
        CAPTURE(row.text);
        const Form form = *decode(row.bytes).form;
        CHECK(form.processor_use == row.use);
        // What the emitter borrows, and what the driver answers in.
        if (row.use == kSaveState)
            CHECK((form.reads & (bit(RAX) | bit(RDX))) == (bit(RAX) | bit(RDX)));
        if (row.use == kIdentify)
            CHECK((form.writes & (bit(RAX) | bit(RDX))) == (bit(RAX) | bit(RDX)));
    }
}

// --- Control flow.

TEST_CASE("what an instruction does to the flow of control") {
    struct Row {
        const char* text;
        Bytes bytes;
        Flow flow;
    };
    const std::vector<Row> rows = {
        {"mov rax, rcx", {0x48, 0x89, 0xc8}, Flow::kNone},
        {"jmp rax", {0xff, 0xe0}, Flow::kJumpIndirect},
        {"jmp [rip + 8]", {0xff, 0x25, 0x08, 0x00, 0x00, 0x00}, Flow::kJumpIndirect},
        {"notrack jmp rax", {0x3e, 0xff, 0xe0}, Flow::kJumpIndirect},
        {"call [rax + rcx * 8]", {0xff, 0x14, 0xc8}, Flow::kCallIndirect},
        {"ret", {0xc3}, Flow::kReturn},
        {"repz ret", {0xf3, 0xc3}, Flow::kReturn},
        {"bnd ret", {0xf2, 0xc3}, Flow::kReturn},
        {"ret 8", {0xc2, 0x08, 0x00}, Flow::kReturn},
        {"syscall", {0x0f, 0x05}, Flow::kSyscall},
        {"int3", {0xcc}, Flow::kTrap},
        {"ud2", {0x0f, 0x0b}, Flow::kTrap},
        {"hlt", {0xf4}, Flow::kTrap},
        {"int 0x29", {0xcd, 0x29}, Flow::kTrap},
        {"jkzd k0, . + 7", {0xc5, 0xf8, 0x84, 0, 0, 0, 0}, Flow::kTrap},
        {"jknzd k0, . + 7", {0xc5, 0xf8, 0x85, 0, 0, 0, 0}, Flow::kTrap},
        {"wrfsbase rax", {0xf3, 0x48, 0x0f, 0xae, 0xd0}, Flow::kNone},
        {"wrgsbase rax", {0xf3, 0x48, 0x0f, 0xae, 0xd8}, Flow::kNone},
        {"rdgsbase rax", {0xf3, 0x48, 0x0f, 0xae, 0xc8}, Flow::kNone},
        {"mov rax, gs:[8]", {0x65, 0x48, 0x8b, 0x04, 0x25, 0x08, 0x00, 0x00, 0x00}, Flow::kNone},
        {"cmpxchg16b gs:[r8]", {0x65, 0x49, 0x0f, 0xc7, 0x08}, Flow::kNone},
        {"nop gs:[rax]", {0x65, 0x0f, 0x1f, 0x00}, Flow::kNone},
        {"wrgsbase eax", {0xf3, 0x0f, 0xae, 0xd8}, Flow::kNone},
        {"rdgsbase eax", {0xf3, 0x0f, 0xae, 0xc8}, Flow::kNone},
        {"wrfsbase eax", {0xf3, 0x0f, 0xae, 0xd0}, Flow::kNone},
        {"lods al, gs:[rsi]", {0x65, 0xac}, Flow::kNone},
        {"jmp gs:[8]", {0x65, 0xff, 0x24, 0x25, 0x08, 0x00, 0x00, 0x00}, Flow::kJumpIndirect},
        {"mov al, gs:[8]", {0x65, 0xa0, 8, 0, 0, 0, 0, 0, 0, 0}, Flow::kNone},
        {"prefetcht0 gs:[rax]", {0x65, 0x0f, 0x18, 0x08}, Flow::kNone},
        {"cmpxchg16b gs:[rdi]", {0x65, 0x48, 0x0f, 0xc7, 0x0f}, Flow::kNone},
        {"jmp fs:[8]", {0x64, 0xff, 0x24, 0x25, 0x08, 0x00, 0x00, 0x00}, Flow::kJumpIndirect},
        {"rep movsb es:[rdi], fs:[rsi]", {0xf3, 0x64, 0xa4}, Flow::kNone},
        {"xlat fs:[ebx + al]", {0x64, 0x67, 0xd7}, Flow::kNone},
        // What the driver does not run.
        {"lods al, fs:[esi]", {0x64, 0x67, 0xac}, Flow::kUnsupported},
        {"vpgatherdd xmm0, fs:[eax + xmm1], xmm2",
         {0x64, 0x67, 0xc4, 0xe2, 0x69, 0x90, 0x04, 0x08},
         Flow::kUnsupported},
        {"cmpxchg16b fs:[esi]", {0x64, 0x67, 0x48, 0x0f, 0xc7, 0x0e}, Flow::kUnsupported},
        {"int 0x80", {0xcd, 0x80}, Flow::kUnsupported},
        {"sysenter", {0x0f, 0x34}, Flow::kUnsupported},
        {"iretq", {0x48, 0xcf}, Flow::kInterruptReturn},
        {"retfq", {0x48, 0xcb}, Flow::kUnsupported},
        {"jmp fword ptr [rax]", {0xff, 0x28}, Flow::kUnsupported},
        {"mov fs, eax", {0x8e, 0xe0}, Flow::kUnsupported},
        {"cmpxchg8b gs:[rsi + rdi]", {0x65, 0x0f, 0xc7, 0x0c, 0x3e}, Flow::kUnsupported},
        {"incsspq rax", {0xf3, 0x48, 0x0f, 0xae, 0xe8}, Flow::kUnsupported},
    };
    for (const Row& row : rows) {
        CAPTURE(std::string(row.text));
        CHECK(decode(row.bytes).form->flow == row.flow);
    }
    CHECK(decode({0xf3, 0x48, 0x0f, 0xae, 0xd0}).form->sets_base);  // wrfsbase rax
}

TEST_CASE("instructions of extensions that the driver does not run") {
    struct Row {
        const char* text;
        std::vector<std::uint8_t> bytes;
        ProcessorExtension extension;
    };
    const Row rows[] = {
        {"xbegin .", {0xc7, 0xf8, 0xfa, 0xff, 0xff, 0xff}, ProcessorExtension::kTransactions},
        {"xend", {0x0f, 0x01, 0xd5}, ProcessorExtension::kTransactions},
        {"ldtilecfg [rdi]", {0xc4, 0xe2, 0x78, 0x49, 0x07}, ProcessorExtension::kTiles},
        {"sttilecfg [rdi]", {0xc4, 0xe2, 0x79, 0x49, 0x07}, ProcessorExtension::kTiles},
        {"ldtilecfg fs:[rdi]", {0x64, 0xc4, 0xe2, 0x78, 0x49, 0x07}, ProcessorExtension::kTiles},
        {"tilerelease", {0xc4, 0xe2, 0x78, 0x49, 0xc0}, ProcessorExtension::kTiles},
        {"tilezero tmm0", {0xc4, 0xe2, 0x7b, 0x49, 0xc0}, ProcessorExtension::kTiles},
        {"tileloadd tmm0, [rdi + rsi]",
         {0xc4, 0xe2, 0x7b, 0x4b, 0x04, 0x37},
         ProcessorExtension::kTiles},
        {"tileloaddt1 tmm0, [rdi + rsi]",
         {0xc4, 0xe2, 0x79, 0x4b, 0x04, 0x37},
         ProcessorExtension::kTiles},
        {"tilestored [rdi + rsi], tmm0",
         {0xc4, 0xe2, 0x7a, 0x4b, 0x04, 0x37},
         ProcessorExtension::kTiles},
        {"tdpbssd tmm0, tmm2, tmm1", {0xc4, 0xe2, 0x73, 0x5e, 0xc2}, ProcessorExtension::kTiles},
        {"tdpbf16ps tmm0, tmm1, tmm2", {0xc4, 0xe2, 0x6a, 0x5c, 0xc1}, ProcessorExtension::kTiles},
        {"vpdpbusd ymm0, ymm0, ymm1", {0xc4, 0xe2, 0x7d, 0x50, 0xc1}, ProcessorExtension::kNone},
        {"xtest", {0x0f, 0x01, 0xd6}, ProcessorExtension::kNone},
    };
    for (const Row& row : rows) {
        CAPTURE(std::string(row.text));
        const Form form = *decode(row.bytes).form;
        CHECK(form.extension == row.extension);
        CHECK((form.flow == Flow::kUnsupported) == (row.extension != ProcessorExtension::kNone));
    }
}

TEST_CASE("targets of direct branches") {
    struct Row {
        const char* text;
        Bytes bytes;
        Flow flow;
        std::int64_t target;  // from the end of the instruction
    };
    const std::vector<Row> rows = {
        {"jmp short", {0xeb, 0x10}, Flow::kJump, 0x10},
        {"jmp near", {0xe9, 0xfe, 0xff, 0xff, 0xff}, Flow::kJump, -2},
        {"jz short", {0x74, 0x80}, Flow::kConditional, -128},
        {"jnz near", {0x0f, 0x85, 0, 1, 0, 0}, Flow::kConditional, 256},
        {"bnd jz short", {0xf2, 0x74, 5}, Flow::kConditional, 5},
        {"call", {0xe8, 0, 0, 0, 0x80}, Flow::kCall, -0x80000000LL},
        {"data16 data16 rex.w call", {0x66, 0x66, 0x48, 0xe8, 1, 2, 3, 4}, Flow::kCall, 0x04030201},
        {"loop", {0xe2, 0xfc}, Flow::kCounted, -4},
        {"loope", {0xe1, 4}, Flow::kCounted, 4},
        {"loopne", {0xe0, 4}, Flow::kCounted, 4},
        {"jrcxz", {0xe3, 4}, Flow::kCounted, 4},
        {"jecxz", {0x67, 0xe3, 4}, Flow::kCounted, 4},
    };
    for (const Row& row : rows) {
        CAPTURE(std::string(row.text));
        const Instruction instruction = decode(row.bytes);
        CHECK(instruction.form->flow == row.flow);
        CHECK(static_cast<std::int64_t>(instruction.target() - instruction.next_pc()) ==
              row.target);
    }
}

TEST_CASE("what profilers are told of an instruction") {
    struct Row {
        const char* text;
        Bytes bytes;
        std::uint16_t opcode;
        unsigned flags;
    };
    const std::vector<Row> rows = {
        {"mov rax, rcx", {0x48, 0x89, 0xc8}, TRACE_OPCODE(0, 0x89), 0},
        {"add [rdi], eax",
         {0x01, 0x07},
         TRACE_OPCODE(0, 0x01),
         TRACE_INSTR_LOAD | TRACE_INSTR_STORE},
        {"movzx eax, byte ptr [rdi]", {0x0f, 0xb6, 0x07}, TRACE_OPCODE(1, 0xb6), TRACE_INSTR_LOAD},
        {"pshufb xmm0, xmm1", {0x66, 0x0f, 0x38, 0x00, 0xc1}, TRACE_OPCODE(2, 0x00), 0},
        {"palignr xmm0, xmm1, 3", {0x66, 0x0f, 0x3a, 0x0f, 0xc1, 0x03}, TRACE_OPCODE(3, 0x0f), 0},
        {"vaddps ymm0, ymm1, ymm2",
         {0xc5, 0xf4, 0x58, 0xc2},
         TRACE_OPCODE(TRACE_MAP_VECTOR | 1, 0x58),
         0},
        {"vpermd zmm0, zmm1, [rdi]",
         {0x62, 0xf2, 0x75, 0x48, 0x36, 0x07},
         TRACE_OPCODE(TRACE_MAP_VECTOR | 2, 0x36),
         TRACE_INSTR_LOAD},
        {"jz .", {0x74, 0xfe}, TRACE_OPCODE(0, 0x74), TRACE_INSTR_CONDITIONAL},
        {"call rax",
         {0xff, 0xd0},
         TRACE_OPCODE(0, 0xff),
         TRACE_INSTR_CALL | TRACE_INSTR_INDIRECT | TRACE_INSTR_STORE},
        {"ret", {0xc3}, TRACE_OPCODE(0, 0xc3), TRACE_INSTR_RETURN | TRACE_INSTR_LOAD},
        {"rep stosb",
         {0xf3, 0xaa},
         TRACE_OPCODE(0, 0xaa),
         TRACE_INSTR_REPEATED | TRACE_INSTR_VARIABLE | TRACE_INSTR_STORE},
    };
    for (const Row& row : rows) {
        CAPTURE(std::string(row.text));
        const Form& form = *decode(row.bytes).form;
        CHECK(form.opcode == row.opcode);
        CHECK(form.trace_flags == row.flags);
    }
}

TEST_CASE("what is added to the stack pointer") {
    struct Row {
        const char* text;
        Bytes bytes;
        std::optional<std::int64_t> change;
    };
    const std::vector<Row> rows = {
        {"mov rax, rcx", {0x48, 0x89, 0xc8}, 0},
        {"push r12", {0x41, 0x54}, -8},
        {"push rsp", {0x54}, -8},
        {"push ax", {0x66, 0x50}, -2},
        {"push 5", {0x6a, 0x05}, -8},
        {"push 0x12345", {0x68, 0x45, 0x23, 0x01, 0x00}, -8},
        {"pop rax", {0x58}, 8},
        {"pop r12", {0x41, 0x5c}, 8},
        {"pop ax", {0x66, 0x58}, 2},
        {"pop rsp", {0x5c}, std::nullopt},
        {"sub rsp, 0x28", {0x48, 0x83, 0xec, 0x28}, -0x28},
        {"add rsp, 0x12345", {0x48, 0x81, 0xc4, 0x45, 0x23, 0x01, 0x00}, 0x12345},
        {"lea rsp, [rsp - 0x80]", {0x48, 0x8d, 0x64, 0x24, 0x80}, -0x80},
        {"lea rsp, [rsp + 0x100]", {0x48, 0x8d, 0xa4, 0x24, 0x00, 0x01, 0x00, 0x00}, 0x100},
        {"lea rsp, [rsp + rax]", {0x48, 0x8d, 0x24, 0x04}, std::nullopt},
        {"lea rsp, [rbp - 0x10]", {0x48, 0x8d, 0x65, 0xf0}, std::nullopt},
        {"lea rsp, [r12 + 0x10]", {0x49, 0x8d, 0x64, 0x24, 0x10}, std::nullopt},
        {"lea esp, [rsp + 0x10]", {0x8d, 0x64, 0x24, 0x10}, std::nullopt},
        {"and rsp, -16", {0x48, 0x83, 0xe4, 0xf0}, std::nullopt},
        {"add esp, 8", {0x83, 0xc4, 0x08}, std::nullopt},
        {"sub r12, 8", {0x49, 0x83, 0xec, 0x08}, 0},
        {"mov rsp, rbp", {0x48, 0x89, 0xec}, std::nullopt},
        {"leave", {0xc9}, std::nullopt},
    };
    for (const Row& row : rows) {
        CAPTURE(std::string(row.text));
        const std::optional<std::int64_t> found = decode(row.bytes).stack_change();
        // Not knowing it is always right.
        if (row.change || found) CHECK(found.value_or(INT64_MIN) == row.change.value_or(INT64_MIN));
    }
}

TEST_CASE("what may leave the stack") {
    struct Row {
        const char* text;
        Bytes bytes;
        bool sets;
    };
    const std::vector<Row> rows = {
        {"mov rsp, rdi", {0x48, 0x89, 0xfc}, true},
        {"mov rsp, rdi (load form)", {0x48, 0x8b, 0xe7}, true},
        {"mov rsp, [rdi + 0xa0]", {0x48, 0x8b, 0xa7, 0xa0, 0, 0, 0}, true},
        {"mov rsp, [rbp - 8]", {0x48, 0x8b, 0x65, 0xf8}, true},
        {"lea rsp, [r10 - 8]", {0x49, 0x8d, 0x62, 0xf8}, true},
        {"xchg rsp, rax", {0x48, 0x94}, true},
        {"xchg rsp, [rdi]", {0x48, 0x87, 0x27}, true},
        {"pop rsp", {0x5c}, true},
        {"pop r12", {0x41, 0x5c}, false},
        {"xchg r12, rax", {0x49, 0x94}, false},
        {"mov rsp, rbp", {0x48, 0x89, 0xec}, false},
        {"mov [rdi], rsp", {0x48, 0x89, 0x27}, false},
        {"mov rax, rsp", {0x48, 0x89, 0xe0}, false},
        {"lea rsp, [rbp - 0x28]", {0x48, 0x8d, 0x65, 0xd8}, false},
        {"lea rsp, [rsp + 8]", {0x48, 0x8d, 0x64, 0x24, 0x08}, false},
        {"add rsp, 8", {0x48, 0x83, 0xc4, 0x08}, false},
        {"and rsp, -16", {0x48, 0x83, 0xe4, 0xf0}, false},
        {"push rax", {0x50}, false},
        {"leave", {0xc9}, false},
        {"setz spl", {0x40, 0x0f, 0x94, 0xc4}, false},
        {"ret", {0xc3}, false},
    };
    for (const Row& row : rows) {
        CAPTURE(std::string(row.text));
        CHECK(decode(row.bytes).sets_stack() == row.sets);
    }
}

// --- Bytes that are no instruction.

TEST_CASE("invalid and cut instructions") {
    Instruction instruction;
    for (const Bytes& bytes : std::vector<Bytes>{{0x06}, {0x0f, 0x04}, {0xc4, 0xff}, {0x62, 0xff}})
        CHECK_FALSE(decoder().decode(padded(bytes), kPc, instruction));
    const Bytes whole = {0x48, 0x81, 0x84, 0x24, 1, 2, 3, 4, 5, 6, 7, 8};  // add [rsp + ..], ..
    // Known or not: behind the end of the program's memory there is no instruction.
    for (const bool known : {false, true}) {
        CAPTURE(known);
        Decoder fresh;
        if (known) REQUIRE(fresh.decode(padded(whole), kPc, instruction));
        for (std::size_t bytes = 1; bytes < whole.size(); ++bytes)
            CHECK_FALSE(fresh.decode(std::span(whole).first(bytes), kPc, instruction));
        REQUIRE(fresh.decode(whole, kPc, instruction));
        CHECK(instruction.form->length == whole.size());
    }
}

TEST_CASE("code that changes at an address is decoded again") {
    Decoder fresh;
    Instruction instruction;
    const Bytes move = {0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8};   // mov rax, constant
    const Bytes other = {0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 9};  // only the constant differs
    for (const Bytes& bytes : {move, other, Bytes{0xc3}, move, move}) {
        REQUIRE(fresh.decode(padded(bytes), kPc, instruction));
        CHECK(instruction.form->length == bytes.size());
        CHECK(std::equal(bytes.begin(), bytes.end(), instruction.bytes));
    }
    REQUIRE(fresh.decode(padded(other), kPc + 4096, instruction));
    CHECK(instruction.pc == kPc + 4096);
    CHECK(instruction.immediate() == 0x0907060504030201);
}

}  // namespace decoder_test
