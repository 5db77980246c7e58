// What the driver learns of an instruction, against the manual, row by row.
#include "framework/driver/native/decode/decoder.h"
#include "tests/unit/decoder_bytes.h"

#include <doctest/doctest.h>
#include <string>
#include <vector>

using namespace assay::native;

namespace {

constexpr GprMask kRax = bit(RAX), kRcx = bit(RCX), kRdx = bit(RDX), kRbx = bit(RBX),
                  kRsp = bit(RSP), kRbp = bit(RBP), kRsi = bit(RSI), kRdi = bit(RDI), kR8 = bit(R8),
                  kR11 = bit(R11), kR15 = bit(R15);

// EFLAGS (SDM volume 1, 3.4.3).
constexpr std::uint16_t kCf = 1, kPf = 4, kAf = 0x10, kZf = 0x40, kSf = 0x80, kOf = 0x800,
                        kAll = kArithmeticFlags;

Decoder& decoder() {
    static Decoder the_decoder;
    return the_decoder;
}

Instruction decode(const Bytes& bytes, std::uint64_t pc = kPc) {
    Instruction instruction;
    const bool valid = decoder().decode(padded(bytes), pc, instruction);
    REQUIRE(valid);
    CHECK(instruction.form->length == bytes.size());
    return instruction;
}

}  // namespace

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
        if (row.use == kSaveState) CHECK((form.reads & (kRax | kRdx)) == (kRax | kRdx));
        if (row.use == kIdentify) CHECK((form.writes & (kRax | kRdx)) == (kRax | kRdx));
    }
}

// --- Registers.

TEST_CASE("instructions that surely do not fault are known") {
    struct Row {
        const char* text;
        Bytes bytes;
        bool may_fault;
    };
    const std::vector<Row> rows = {
        {"add rax, rcx", {0x48, 0x01, 0xc8}, false},
        {"add rax, [rcx]", {0x48, 0x03, 0x01}, true},
        {"lea rax, [rcx+8]", {0x48, 0x8d, 0x41, 0x08}, false},
        {"mov eax, 1", {0xb8, 1, 0, 0, 0}, false},
        {"mov ds, eax", {0x8e, 0xd8}, true},
        {"mov cr0, rax", {0x0f, 0x22, 0xc0}, true},
        {"imul rax, rcx", {0x48, 0x0f, 0xaf, 0xc1}, false},
        {"mul rcx", {0x48, 0xf7, 0xe1}, false},
        {"div rcx", {0x48, 0xf7, 0xf1}, true},
        {"idiv ecx", {0xf7, 0xf9}, true},
        {"shl eax, cl", {0xd3, 0xe0}, false},
        {"cmovne rax, rcx", {0x48, 0x0f, 0x45, 0xc1}, false},
        {"sete al", {0x0f, 0x94, 0xc0}, false},
        {"xchg rax, rcx", {0x48, 0x91}, false},
        {"jne +2", {0x75, 0x02}, false},
        {"jmp +2", {0xeb, 0x02}, false},
        {"jmp [rax]", {0xff, 0x20}, true},
        {"call +2", {0xe8, 2, 0, 0, 0}, true},
        {"ret", {0xc3}, true},
        {"push rax", {0x50}, true},
        {"leave", {0xc9}, true},
        {"rep movsb", {0xf3, 0xa4}, true},
        {"addsd xmm0, xmm1", {0xf2, 0x0f, 0x58, 0xc1}, true},  // with unmasked exceptions
        {"fadd st, st(1)", {0xd8, 0xc1}, true},
        {"rdtsc", {0x0f, 0x31}, true},  // prctl(2), PR_SET_TSC
        {"cpuid", {0x0f, 0xa2}, true},  // arch_prctl(2), ARCH_SET_CPUID
        {"ud2", {0x0f, 0x0b}, true},
        {"int3", {0xcc}, true},
        {"hlt", {0xf4}, true},
    };
    for (const Row& row : rows) {
        CAPTURE(row.text);
        CHECK(decode(row.bytes).form->may_fault == row.may_fault);
    }
}

TEST_CASE("registers that an instruction reads, writes and surely overwrites") {
    struct Row {
        const char* text;
        Bytes bytes;
        GprMask reads, writes, kills;
    };
    const std::vector<Row> rows = {
        // The upper half of a register goes with a 32-bit write, not with smaller ones.
        {"mov rax, rcx", {0x48, 0x89, 0xc8}, kRcx, kRax, kRax},
        {"mov eax, ecx", {0x89, 0xc8}, kRcx, kRax, kRax},
        {"mov ax, cx", {0x66, 0x89, 0xc8}, kRax | kRcx, kRax, 0},
        {"mov al, cl", {0x88, 0xc8}, kRax | kRcx, kRax, 0},
        {"mov ah, ch", {0x88, 0xec}, kRax | kRcx, kRax, 0},
        {"mov spl, sil", {0x40, 0x88, 0xf4}, kRsp | kRsi, kRsp, 0},
        {"mov r15d, r8d", {0x45, 0x89, 0xc7}, kR8, kR15, kR15},
        {"mov r15b, r8b", {0x45, 0x88, 0xc7}, kR8 | kR15, kR15, 0},
        {"mov rax, [rax]", {0x48, 0x8b, 0x00}, kRax, kRax, kRax},
        {"mov [rcx], ax", {0x66, 0x89, 0x01}, kRax | kRcx, 0, 0},
        {"movzx eax, cl", {0x0f, 0xb6, 0xc1}, kRcx, kRax, kRax},
        {"movzx ax, cl", {0x66, 0x0f, 0xb6, 0xc1}, kRax | kRcx, kRax, 0},
        {"movsxd rax, ecx", {0x48, 0x63, 0xc1}, kRcx, kRax, kRax},
        {"add rax, rcx", {0x48, 0x01, 0xc8}, kRax | kRcx, kRax, kRax},
        {"add al, cl", {0x00, 0xc8}, kRax | kRcx, kRax, 0},
        {"cmp rax, rcx", {0x48, 0x39, 0xc8}, kRax | kRcx, 0, 0},
        {"xchg rax, rcx", {0x48, 0x91}, kRax | kRcx, kRax | kRcx, kRax | kRcx},
        {"xchg ax, cx", {0x66, 0x91}, kRax | kRcx, kRax | kRcx, 0},
        {"xadd rax, rcx", {0x48, 0x0f, 0xc1, 0xc8}, kRax | kRcx, kRax | kRcx, kRax | kRcx},
        {"bswap eax", {0x0f, 0xc8}, kRax, kRax, kRax},
        {"lea rax, [rcx + rdx * 4 + 8]", {0x48, 0x8d, 0x44, 0x91, 0x08}, kRcx | kRdx, kRax, kRax},
        {"lea ax, [rcx]", {0x66, 0x8d, 0x01}, kRax | kRcx, kRax, 0},
        {"imul eax, ecx, 7", {0x6b, 0xc1, 0x07}, kRcx, kRax, kRax},
        // Sizes of implicit operands.
        {"mul rcx", {0x48, 0xf7, 0xe1}, kRax | kRcx, kRax | kRdx, kRax | kRdx},
        {"mul ecx", {0xf7, 0xe1}, kRax | kRcx, kRax | kRdx, kRax | kRdx},
        {"mul cx", {0x66, 0xf7, 0xe1}, kRax | kRcx | kRdx, kRax | kRdx, 0},
        {"mul cl", {0xf6, 0xe1}, kRax | kRcx, kRax, 0},
        {"div rcx", {0x48, 0xf7, 0xf1}, kRax | kRcx | kRdx, kRax | kRdx, kRax | kRdx},
        {"cqo", {0x48, 0x99}, kRax, kRdx, kRdx},
        {"cdq", {0x99}, kRax, kRdx, kRdx},
        {"cwd", {0x66, 0x99}, kRax | kRdx, kRdx, 0},
        {"cdqe", {0x48, 0x98}, kRax, kRax, kRax},
        {"cbw", {0x66, 0x98}, kRax, kRax, 0},
        // Written under a condition, or not at all on some processors.
        {"cmovz rax, rcx", {0x48, 0x0f, 0x44, 0xc1}, kRax | kRcx, kRax, 0},
        {"cmovz eax, [rcx]", {0x0f, 0x44, 0x01}, kRax | kRcx, kRax, 0},
        {"bsf rax, rcx", {0x48, 0x0f, 0xbc, 0xc1}, kRax | kRcx, kRax, 0},
        {"bsr eax, ecx", {0x0f, 0xbd, 0xc1}, kRax | kRcx, kRax, 0},
        {"tzcnt rax, rcx", {0xf3, 0x48, 0x0f, 0xbc, 0xc1}, kRax | kRcx, kRax, 0},
        {"lzcnt eax, ecx", {0xf3, 0x0f, 0xbd, 0xc1}, kRax | kRcx, kRax, 0},
        {"rdsspq rax", {0xf3, 0x48, 0x0f, 0x1e, 0xc8}, kRax, kRax, 0},
        {"rdsspd eax", {0xf3, 0x0f, 0x1e, 0xc8}, kRax, kRax, 0},
        {"lar eax, ecx", {0x0f, 0x02, 0xc1}, kRax | kRcx, kRax, 0},
        {"lsl eax, ecx", {0x0f, 0x03, 0xc1}, kRax | kRcx, kRax, kRax},
        {"cmpxchg [rdi], rcx", {0x48, 0x0f, 0xb1, 0x0f}, kRax | kRcx | kRdi, kRax, 0},
        {"cmpxchg8b [rdi]", {0x0f, 0xc7, 0x0f}, kRax | kRcx | kRdx | kRbx | kRdi, kRax | kRdx, 0},
        {"setz al", {0x0f, 0x94, 0xc0}, kRax, kRax, 0},
        {"setz [rcx]", {0x0f, 0x94, 0x01}, kRcx, 0, 0},
        {"shl rax, cl", {0x48, 0xd3, 0xe0}, kRax | kRcx, kRax, kRax},
        {"popcnt rax, rcx", {0xf3, 0x48, 0x0f, 0xb8, 0xc1}, kRcx, kRax, kRax},
        {"rdrand rax", {0x48, 0x0f, 0xc7, 0xf0}, 0, kRax, kRax},
        {"rdrand ax", {0x66, 0x0f, 0xc7, 0xf0}, kRax, kRax, 0},
        // Three operands.
        {"andn rax, rcx, rdx", {0xc4, 0xe2, 0xf0, 0xf2, 0xc2}, kRcx | kRdx, kRax, kRax},
        {"mulx rax, rcx, rsi",
         {0xc4, 0xe2, 0xf3, 0xf6, 0xc6},
         kRdx | kRsi,
         kRax | kRcx,
         kRax | kRcx},
        {"rorx eax, ecx, 3", {0xc4, 0xe3, 0x7b, 0xf0, 0xc1, 0x03}, kRcx, kRax, kRax},
        {"shlx rax, rcx, rdx", {0xc4, 0xe2, 0xe9, 0xf7, 0xc1}, kRcx | kRdx, kRax, kRax},
        // From and to other register files.
        {"movd eax, xmm0", {0x66, 0x0f, 0x7e, 0xc0}, 0, kRax, kRax},
        {"movq xmm0, rax", {0x66, 0x48, 0x0f, 0x6e, 0xc0}, kRax, 0, 0},
        {"movmskpd eax, xmm0", {0x66, 0x0f, 0x50, 0xc0}, 0, kRax, kRax},
        {"vpmovmskb eax, ymm0", {0xc5, 0xfd, 0xd7, 0xc0}, 0, kRax, kRax},
        {"cvttsd2si rax, xmm0", {0xf2, 0x48, 0x0f, 0x2c, 0xc0}, 0, kRax, kRax},
        {"kmovq rax, k1", {0xc4, 0xe1, 0xfb, 0x93, 0xc1}, 0, kRax, kRax},
        {"fnstsw ax", {0xdf, 0xe0}, kRax, kRax, 0},
        {"lahf", {0x9f}, kRax, kRax, 0},
        {"sahf", {0x9e}, kRax, 0, 0},
        {"cpuid", {0x0f, 0xa2}, kRax | kRcx, kRax | kRbx | kRcx | kRdx, kRax | kRbx | kRcx | kRdx},
        {"xgetbv", {0x0f, 0x01, 0xd0}, kRcx, kRax | kRdx, kRax | kRdx},
        {"rdtsc", {0x0f, 0x31}, 0, kRax | kRdx, kRax | kRdx},
        {"rdtscp", {0x0f, 0x01, 0xf9}, 0, kRax | kRcx | kRdx, kRax | kRcx | kRdx},
        {"rdfsbase rax", {0xf3, 0x48, 0x0f, 0xae, 0xc0}, 0, kRax, kRax},
        // The stack.
        {"push rbx", {0x53}, kRbx | kRsp, kRsp, kRsp},
        {"pop rbx", {0x5b}, kRsp, kRbx | kRsp, kRbx | kRsp},
        {"pop bx", {0x66, 0x5b}, kRbx | kRsp, kRbx | kRsp, kRsp},
        {"push [rdi]", {0xff, 0x37}, kRdi | kRsp, kRsp, kRsp},
        {"pushfq", {0x9c}, kRsp, kRsp, kRsp},
        {"leave", {0xc9}, kRsp | kRbp, kRsp | kRbp, kRsp | kRbp},
        {"ret", {0xc3}, kRsp, kRsp, kRsp},
        {"call rax", {0xff, 0xd0}, kRax | kRsp, kRsp, kRsp},
        {"jmp [rax + rcx * 8]", {0xff, 0x24, 0xc8}, kRax | kRcx, 0, 0},
        // Strings.
        {"movsb", {0xa4}, kRsi | kRdi, kRsi | kRdi, kRsi | kRdi},
        {"stosq", {0x48, 0xab}, kRax | kRdi, kRdi, kRdi},
        {"lodsb", {0xac}, kRax | kRsi, kRax | kRsi, 0},
        {"lodsd", {0xad}, kRsi, kRax | kRsi, kRax},
        {"xlat", {0xd7}, kRax | kRbx, kRax, 0},
        {"loop .", {0xe2, 0xfe}, kRcx, kRcx, kRcx},
        {"jrcxz .", {0xe3, 0xfe}, kRcx, 0, 0},
    };
    for (const Row& row : rows) {
        CAPTURE(std::string(row.text));
        const Instruction instruction = decode(row.bytes);
        const Form& form = *instruction.form;
        CHECK(form.reads == row.reads);
        CHECK(form.writes == row.writes);
        CHECK(form.kills == row.kills);
    }
}

TEST_CASE("what a repeated string instruction may leave alone is not taken for overwritten") {
    // With rcx = 0 it does nothing.
    const Instruction stos = decode({0xf3, 0xaa});
    CHECK((stos.form->reads & (kRax | kRcx | kRdi)) == (kRax | kRcx | kRdi));
    CHECK((stos.form->writes & (kRcx | kRdi)) == (kRcx | kRdi));
    const Instruction lods = decode({0xf3, 0x48, 0xad});
    CHECK((lods.form->reads & kRax) == kRax);
}

TEST_CASE("a system call changes rcx and r11") {
    const Instruction instruction = decode({0x0f, 0x05});
    CHECK((instruction.form->writes & (kRcx | kR11)) == (kRcx | kR11));
}

// --- Flags.

TEST_CASE("arithmetic flags that an instruction reads and surely overwrites") {
    struct Row {
        const char* text;
        Bytes bytes;
        std::uint16_t reads, kills;
    };
    const std::vector<Row> rows = {
        {"mov rax, rcx", {0x48, 0x89, 0xc8}, 0, 0},
        {"lea rax, [rcx]", {0x48, 0x8d, 0x01}, 0, 0},
        {"not rax", {0x48, 0xf7, 0xd0}, 0, 0},
        {"xchg rax, rcx", {0x48, 0x91}, 0, 0},
        {"bswap eax", {0x0f, 0xc8}, 0, 0},
        {"push rax", {0x50}, 0, 0},
        {"movsb", {0xa4}, 0, 0},
        {"std", {0xfd}, 0, 0},
        {"add rax, rcx", {0x48, 0x01, 0xc8}, 0, kAll},
        {"adc rax, rcx", {0x48, 0x11, 0xc8}, kCf, kAll},
        {"sbb byte ptr [rdi], 3", {0x80, 0x1f, 0x03}, kCf, kAll},
        {"cmp al, cl", {0x38, 0xc8}, 0, kAll},
        {"neg rax", {0x48, 0xf7, 0xd8}, 0, kAll},
        {"inc rax", {0x48, 0xff, 0xc0}, 0, kAll & ~kCf},
        {"dec byte ptr [rdi]", {0xfe, 0x0f}, 0, kAll & ~kCf},
        {"xadd rax, rcx", {0x48, 0x0f, 0xc1, 0xc8}, 0, kAll},
        {"cmpxchg [rdi], rcx", {0x48, 0x0f, 0xb1, 0x0f}, 0, kAll},
        {"cmpxchg8b [rdi]", {0x0f, 0xc7, 0x0f}, 0, kZf},
        // Flags that are undefined behind an instruction are of no use to a program.
        {"test rax, rax", {0x48, 0x85, 0xc0}, 0, kAll},
        {"xor eax, eax", {0x31, 0xc0}, 0, kAll},
        {"mul rcx", {0x48, 0xf7, 0xe1}, 0, kAll},
        {"div rcx", {0x48, 0xf7, 0xf1}, 0, kAll},
        {"bsf rax, rcx", {0x48, 0x0f, 0xbc, 0xc1}, 0, kAll},
        {"tzcnt rax, rcx", {0xf3, 0x48, 0x0f, 0xbc, 0xc1}, 0, kAll},
        {"popcnt rax, rcx", {0xf3, 0x48, 0x0f, 0xb8, 0xc1}, 0, kAll},
        {"andn rax, rcx, rdx", {0xc4, 0xe2, 0xf0, 0xf2, 0xc2}, 0, kAll},
        {"bt rax, rcx", {0x48, 0x0f, 0xa3, 0xc8}, 0, kAll & ~kZf},
        {"bts qword ptr [rdi], 3", {0x48, 0x0f, 0xba, 0x2f, 0x03}, 0, kAll & ~kZf},
        {"pdep rax, rcx, rdx", {0xc4, 0xe2, 0xf3, 0xf5, 0xc2}, 0, 0},
        {"shlx rax, rcx, rdx", {0xc4, 0xe2, 0xe9, 0xf7, 0xc1}, 0, 0},
        {"mulx rax, rcx, rsi", {0xc4, 0xe2, 0xf3, 0xf6, 0xc6}, 0, 0},
        {"adcx rax, rcx", {0x66, 0x48, 0x0f, 0x38, 0xf6, 0xc1}, kCf, kCf},
        {"adox rax, rcx", {0xf3, 0x48, 0x0f, 0x38, 0xf6, 0xc1}, kOf, kOf},
        // A count of 0 leaves the flags alone.
        {"shl rax, 1", {0x48, 0xd1, 0xe0}, 0, kAll},
        {"shl rax, 5", {0x48, 0xc1, 0xe0, 0x05}, 0, kAll},
        {"shl rax, 0", {0x48, 0xc1, 0xe0, 0x00}, 0, 0},
        {"shl eax, 32", {0xc1, 0xe0, 0x20}, 0, 0},
        {"shl eax, 33", {0xc1, 0xe0, 0x21}, 0, kAll},
        {"sar rax, cl", {0x48, 0xd3, 0xf8}, 0, 0},
        {"rol rax, 3", {0x48, 0xc1, 0xc0, 0x03}, 0, kCf | kOf},
        {"rol rax, cl", {0x48, 0xd3, 0xc0}, 0, 0},
        {"rcr rax, 1", {0x48, 0xd1, 0xd8}, kCf, kCf | kOf},
        {"rcl rax, cl", {0x48, 0xd3, 0xd0}, kCf, 0},
        {"shld rax, rcx, 4", {0x48, 0x0f, 0xa4, 0xc8, 0x04}, 0, kAll},
        {"shld rax, rcx, 0", {0x48, 0x0f, 0xa4, 0xc8, 0x00}, 0, 0},
        {"shrd rax, rcx, cl", {0x48, 0x0f, 0xad, 0xc8}, 0, 0},
        // A repeated comparison may compare nothing.
        {"cmpsb", {0xa6}, 0, kAll},
        {"repe cmpsb", {0xf3, 0xa6}, kZf, 0},
        {"repne scasb", {0xf2, 0xae}, kZf, 0},
        // Conditions.
        {"jz .", {0x74, 0xfe}, kZf, 0},
        {"jbe .", {0x76, 0xfe}, kCf | kZf, 0},
        {"jl .", {0x7c, 0xfe}, kSf | kOf, 0},
        {"jg .", {0x7f, 0xfe}, kZf | kSf | kOf, 0},
        {"jp .", {0x7a, 0xfe}, kPf, 0},
        {"setb al", {0x0f, 0x92, 0xc0}, kCf, 0},
        {"cmovle rax, rcx", {0x48, 0x0f, 0x4e, 0xc1}, kZf | kSf | kOf, 0},
        {"fcmovb st, st(1)", {0xda, 0xc1}, kCf, 0},
        {"loop .", {0xe2, 0xfe}, 0, 0},
        {"loopne .", {0xe0, 0xfe}, kZf, 0},
        {"jrcxz .", {0xe3, 0xfe}, 0, 0},
        // The flags themselves.
        {"cmc", {0xf5}, kCf, kCf},
        {"stc", {0xf9}, 0, kCf},
        {"lahf", {0x9f}, kCf | kPf | kAf | kZf | kSf, 0},
        {"sahf", {0x9e}, 0, kCf | kPf | kAf | kZf | kSf},
        {"pushfq", {0x9c}, kAll, 0},
        {"popfq", {0x9d}, 0, kAll},
        // Comparisons of other kinds of numbers.
        {"ucomisd xmm0, xmm1", {0x66, 0x0f, 0x2e, 0xc1}, 0, kAll},
        {"vucomiss xmm0, [rdi]", {0xc5, 0xf8, 0x2e, 0x07}, 0, kAll},
        {"kortestw k1, k2", {0xc5, 0xf8, 0x98, 0xca}, 0, kAll},
        {"addsd xmm0, xmm1", {0xf2, 0x0f, 0x58, 0xc1}, 0, 0},
    };
    for (const Row& row : rows) {
        CAPTURE(std::string(row.text));
        const Instruction instruction = decode(row.bytes);
        CHECK(instruction.form->flags_read == row.reads);
        CHECK(instruction.flags_killed() == row.kills);
    }
}

// --- Memory.

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
        {"clflush [rdi]", {0x0f, 0xae, 0x3f}, {}},
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
    CHECK((narrow.form->reads & (kRcx | kRdx)) == (kRcx | kRdx));
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
        {"wrfsbase rax", {0xf3, 0x48, 0x0f, 0xae, 0xd0}, Flow::kNone},
        {"wrgsbase rax", {0xf3, 0x48, 0x0f, 0xae, 0xd8}, Flow::kNone},
        {"rdgsbase rax", {0xf3, 0x48, 0x0f, 0xae, 0xc8}, Flow::kNone},
        {"mov rax, gs:[8]", {0x65, 0x48, 0x8b, 0x04, 0x25, 0x08, 0x00, 0x00, 0x00}, Flow::kNone},
        {"nop gs:[rax]", {0x65, 0x0f, 0x1f, 0x00}, Flow::kNone},
        // What the driver does not run.
        {"int 0x80", {0xcd, 0x80}, Flow::kUnsupported},
        {"sysenter", {0x0f, 0x34}, Flow::kUnsupported},
        {"iretq", {0x48, 0xcf}, Flow::kUnsupported},
        {"retfq", {0x48, 0xcb}, Flow::kUnsupported},
        {"jmp fword ptr [rax]", {0xff, 0x28}, Flow::kUnsupported},
        {"xbegin .", {0xc7, 0xf8, 0xfa, 0xff, 0xff, 0xff}, Flow::kUnsupported},
        {"wrgsbase eax", {0xf3, 0x0f, 0xae, 0xd8}, Flow::kUnsupported},
        {"rdgsbase eax", {0xf3, 0x0f, 0xae, 0xc8}, Flow::kUnsupported},
        {"wrfsbase eax", {0xf3, 0x0f, 0xae, 0xd0}, Flow::kUnsupported},
        {"mov fs, eax", {0x8e, 0xe0}, Flow::kUnsupported},
        {"lods al, gs:[rsi]", {0x65, 0xac}, Flow::kUnsupported},
        {"jmp gs:[8]", {0x65, 0xff, 0x24, 0x25, 0x08, 0x00, 0x00, 0x00}, Flow::kUnsupported},
        {"mov al, gs:[8]", {0x65, 0xa0, 8, 0, 0, 0, 0, 0, 0, 0}, Flow::kUnsupported},
        {"prefetcht0 gs:[rax]", {0x65, 0x0f, 0x18, 0x08}, Flow::kUnsupported},
        {"incsspq rax", {0xf3, 0x48, 0x0f, 0xae, 0xe8}, Flow::kUnsupported},
    };
    for (const Row& row : rows) {
        CAPTURE(std::string(row.text));
        CHECK(decode(row.bytes).form->flow == row.flow);
    }
    CHECK(decode({0xf3, 0x48, 0x0f, 0xae, 0xd0}).form->sets_fs_base);  // wrfsbase rax
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
