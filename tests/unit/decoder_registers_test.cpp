// The registers and flags that the driver takes an instruction to read and to write, against the
// manual, row by row.
#include "framework/x86/decoder.h"
#include "tests/unit/decoder_bytes.h"

#include <doctest/doctest.h>
#include <string>
#include <vector>

namespace decoder_registers_test {

using namespace assay::native;

namespace {

constexpr GprMask kRax = bit(RAX), kRcx = bit(RCX), kRdx = bit(RDX), kRbx = bit(RBX),
                  kRsp = bit(RSP), kRbp = bit(RBP), kRsi = bit(RSI), kRdi = bit(RDI), kR8 = bit(R8),
                  kR11 = bit(R11), kR15 = bit(R15);

// EFLAGS (SDM volume 1, 3.4.3).
constexpr std::uint16_t kCf = 1, kPf = 4, kAf = 0x10, kZf = 0x40, kSf = 0x80, kOf = 0x800,
                        kAll = kArithmeticFlags;

}  // namespace

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
        {"xtest", {0x0f, 0x01, 0xd6}, true},
        {"xabort 1", {0xc6, 0xf8, 0x01}, true},
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
        {"cmpsb", {0xa6}, kRsi | kRdi, kRsi | kRdi, 0},
        {"scasd", {0xaf}, kRax | kRdi, kRdi, 0},
        {"repe cmpsw", {0xf3, 0x66, 0xa7}, kRcx | kRsi | kRdi, kRcx | kRsi | kRdi, 0},
        {"repne scasb", {0xf2, 0xae}, kRax | kRcx | kRdi, kRcx | kRdi, 0},
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

TEST_CASE("a register that the immediate names is each instruction's own") {
    // vblendvps xmm0, xmm1, [rax], xmm4 and xmm5
    for (const std::uint8_t number : {4, 5}) {
        const Instruction instruction =
            decode({0xc4, 0xe3, 0x71, 0x4a, 0x00, static_cast<std::uint8_t>(number << 4)},
                   kPc + 16 * number);
        CHECK(instruction.form->sources[1].kind == RegisterOperand::kVector);
        CHECK(instruction.form->sources[1].number == number);
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
        // Flags that are undefined behind an instruction, and overwritten.
        {"test rax, rax", {0x48, 0x85, 0xc0}, 0, kAll},
        {"xor eax, eax", {0x31, 0xc0}, 0, kAll},
        {"popcnt rax, rcx", {0xf3, 0x48, 0x0f, 0xb8, 0xc1}, 0, kAll},
        {"andn rax, rcx, rdx", {0xc4, 0xe2, 0xf0, 0xf2, 0xc2}, 0, kAll},
        // Undefined, and left as they were.
        {"mul rcx", {0x48, 0xf7, 0xe1}, 0, kCf | kOf},
        {"div rcx", {0x48, 0xf7, 0xf1}, 0, 0},
        {"bsf rax, rcx", {0x48, 0x0f, 0xbc, 0xc1}, 0, kZf},
        {"tzcnt rax, rcx", {0xf3, 0x48, 0x0f, 0xbc, 0xc1}, 0, kCf | kZf},
        {"bt rax, rcx", {0x48, 0x0f, 0xa3, 0xc8}, 0, kCf},
        {"bts qword ptr [rdi], 3", {0x48, 0x0f, 0xba, 0x2f, 0x03}, 0, kCf},
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

}  // namespace decoder_registers_test
