// Whether all that tells of the processor's state components fits what instructions and the kernel
// do with them: prints nothing but "fits", or a line for each contradiction.
#include <asm/prctl.h>
#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "cases.h"

enum { kLegacy = 512, kHeaderEnd = 576, kSoftware = 464, kRoom = 16384 };

static int contradictions;
static void expect(int holds, const char* what) {
    if (holds) return;
    puts(what);
    ++contradictions;
}
static int finish(void) {
    if (!contradictions) puts("fits");
    return contradictions != 0;
}

struct answer {
    unsigned a, b, c, d;
};
static struct answer cpuid(unsigned leaf, unsigned subleaf) {
    struct answer found = {0, 0, 0, 0};
    if ((unsigned)__get_cpuid_max(0, NULL) >= leaf)
        __cpuid_count(leaf, subleaf, found.a, found.b, found.c, found.d);
    return found;
}
static int has_xsave(void) {
    return cpuid(1, 0).c >> 27 & 1;
}
static uint64_t xgetbv(uint32_t index) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(index));
    return (uint64_t)high << 32 | low;
}
static uint64_t xcr0(void) {
    return has_xsave() ? xgetbv(0) : 3;
}

// Intel SDM volume 1, 13.4.
static uint32_t area_bytes(uint64_t components, int compacted) {
    uint32_t end = kHeaderEnd;
    for (unsigned number = 2; number < 63; ++number) {
        if (!(components >> number & 1)) continue;
        const struct answer found = cpuid(0xd, number);
        expect(found.a != 0, "a component has no size");
        if (compacted && found.c & 2) end = (end + 63) & ~63U;
        if (compacted)
            end += found.a;
        else if (found.b + found.a > end)
            end = found.b + found.a;
    }
    return end;
}

// --- What CPUID and XGETBV say.

// An entry of the auxiliary vector. getauxval(3) would answer AT_HWCAP with glibc's own value.
static uint64_t hwcap(void) {
    FILE* file = fopen("/proc/self/auxv", "r");
    Elf64_auxv_t entry = {0};
    while (file && fread(&entry, sizeof entry, 1, file) == 1 && entry.a_type != AT_HWCAP) continue;
    if (file) fclose(file);
    return entry.a_type == AT_HWCAP ? entry.a_un.a_val : 0;
}

static void check_features(uint64_t components) {
    const struct answer basic = cpuid(1, 0), more = cpuid(7, 0);
    const int avx = basic.c >> 28 & 1, fma = basic.c >> 12 & 1, f16c = basic.c >> 29 & 1,
              avx2 = more.b >> 5 & 1, avx512 = more.b >> 16 & 1, pku = more.c >> 4 & 1;
    expect(!(avx | fma | f16c | avx2) || components & 4, "AVX without its state");
    expect(!avx512 || (components & 0xe0) == 0xe0, "AVX-512 without its state");
    expect(!pku || components >> 9 & 1, "protection keys without their state");
    expect(!(fma | f16c | avx2) || avx, "FMA, F16C or AVX2 without AVX");
    expect(!avx512 || avx2, "AVX-512 without AVX2");
    const int allows_bases = getauxval(AT_HWCAP2) >> 1 & 1;
    expect(!allows_bases || more.b & 1, "FSGSBASE only in AT_HWCAP2");
    expect((hwcap() & ~(uint64_t)basic.d) == 0, "AT_HWCAP has more than CPUID");
    expect(hwcap() >> 26 & 1, "AT_HWCAP without SSE2");
}

static int told(void) {
    const uint64_t components = xcr0();
    check_features(components);
    const struct answer all = cpuid(0xd, 0), more = cpuid(0xd, 1);
    if (!has_xsave()) {
        expect(!(cpuid(1, 0).c >> 27 & 1) && !all.a && !more.a, "XSAVE without OSXSAVE");
        return finish();
    }
    const uint64_t supported = (uint64_t)all.d << 32 | all.a;
    expect((components & ~supported) == 0, "XCR0 has what CPUID has not");
    expect((components & 3) == 3, "XCR0 without x87 or SSE");
    // At a level the size is that of Intel's processors.
    expect(all.b >= area_bytes(components, 0), "an area of XSAVE is larger than CPUID says");
    expect(all.c >= area_bytes(supported, 0) && all.c >= all.b, "the largest area is larger");
    const int compacts = more.a >> 1 & 1;
    // Natively the size includes supervisor components.
    expect(!compacts || more.b >= area_bytes(components, 1), "a compact area is larger");
    expect(!(more.a >> 2 & 1) || (xgetbv(1) & ~components) == 0, "used components not in XCR0");
    for (unsigned number = 2; number < 63; ++number) {
        const struct answer found = cpuid(0xd, number);
        const uint64_t known = supported | (uint64_t)more.d << 32 | more.c;
        expect(!found.a || known >> number & 1, "a size of a component that is not there");
    }
    return finish();
}

// --- What instructions write.

// Gives registers other values than the initial ones, also where CPUID does not show them.
static void fill_avx(void) {
    __asm__ volatile("vcmptrueps %%ymm7, %%ymm7, %%ymm7" : : : "xmm7");
}
static void fill_avx512(void) {
    __asm__ volatile(
        "vpternlogd $0xff, %%zmm7, %%zmm7, %%zmm7\n\t"
        ".byte 0x62, 0xa3, 0x45, 0x40, 0x25, 0xff, 0xff\n\t"  // the same of zmm23
        ".byte 0xc5, 0xf4, 0x46, 0xc9"                        // kxnorw %k1, %k1, %k1
        :
        :
        : "xmm7");
}

static sigjmp_buf after_illegal;
static void on_illegal(int number) {
    siglongjmp(after_illegal, number);
}
static volatile int runs_avx, runs_avx512;
static void find_registers(void) {
    signal(SIGILL, on_illegal);
    if (sigsetjmp(after_illegal, 1) == 0) {
        fill_avx();
        runs_avx = 1;
        fill_avx512();
        runs_avx512 = 1;
    }
}
static void use_registers(void) {
    __asm__ volatile("fld1\n\tfstp %%st(1)\n\tpcmpeqd %%xmm7, %%xmm7" : : : "xmm7");
    if (runs_avx) fill_avx();
    if (runs_avx512) fill_avx512();
}

static _Alignas(64) unsigned char area[kRoom];
static uint64_t word_at(const unsigned char* from) {
    uint64_t word;
    memcpy(&word, from, sizeof word);
    return word;
}

// How xsave and its relatives name the area: `at_rax` needs the register that has the mask.
#define DEFINE_SAVE(name, instruction, operand, base)                             \
    static void name(uint64_t mask) {                                             \
        uint64_t rax = mask, carry = 0;                                           \
        unsigned char* const at = area;                                           \
        if (base) rax = (uint64_t)at;                                             \
        __asm__ volatile("stc\n\t" instruction " " operand "\n\tsetc %b[carry]"   \
                         : [carry] "+&r"(carry), "+a"(rax)                        \
                         : [at] "r"(at), "d"(base ? 0 : mask >> 32)               \
                         : "memory", "cc");                                       \
        expect(carry == 1, "flags changed: " instruction);                        \
        expect(rax == (base ? (uint64_t)at : mask), "rax changed: " instruction); \
    }
DEFINE_SAVE(do_xsave, "xsave", "(%[at])", 0)
DEFINE_SAVE(do_xsave64, "xsave64", "(%[at])", 0)
DEFINE_SAVE(do_xsaveopt, "xsaveopt", "(%[at])", 0)
DEFINE_SAVE(do_xsaveopt64, "xsaveopt64", "(%[at])", 0)
DEFINE_SAVE(do_xsavec, "xsavec", "(%[at])", 0)
DEFINE_SAVE(do_xsavec64, "xsavec64", "(%[at])", 0)
DEFINE_SAVE(xsave_at_rax, "xsave", "(%%rax)", 1)
DEFINE_SAVE(xsave_at_both, "xsave64", "(%%rax,%%rdx,2)", 1)
DEFINE_SAVE(xsavec_at_rax, "xsavec64", "(%%rax)", 1)

static void check_save(const char* name, void (*save)(uint64_t), uint64_t mask, int compacted) {
    const uint64_t components = xcr0();
    const uint32_t bytes = area_bytes(components & mask, compacted);
    memset(area, 0xa5, sizeof area);
    memset(area + kLegacy, 0, kHeaderEnd - kLegacy);
    use_registers();
    save(mask);
    const uint64_t saved = word_at(area + kLegacy), layout = word_at(area + kLegacy + 8);
    int contradicts = (saved & ~(components & mask)) != 0;
    if (layout != (compacted ? 1ULL << 63 | (components & mask) : 0)) contradicts |= 2;
    for (uint32_t i = bytes; i < kRoom; ++i)
        if (area[i] != 0xa5) contradicts |= 4;
    for (uint32_t i = kSoftware; i < kLegacy; ++i)
        if (area[i] != 0xa5) contradicts |= 8;
    if (contradicts)
        printf("%s: %d %llx %llx\n", name, contradicts, (unsigned long long)saved,
               (unsigned long long)layout);
    contradictions += contradicts != 0;
}

// In gs, at an offset in rax, which names the two components with its bits.
static void xsave_in_gs(uint64_t mask) {
    syscall(SYS_arch_prctl, ARCH_SET_GS, area - mask);
    __asm__ volatile("xsave64 %%gs:(%%rax)" : : "a"(mask), "d"(0) : "memory");
}

static void check_restore(void) {
    memset(area, 0, sizeof area);
    double value = 2.5, back = 0;
    __asm__ volatile(
        "movsd %[value], %%xmm5\n\txsave %[area]\n\tpxor %%xmm5, %%xmm5\n\tstc\n\txrstor "
        "%[area]\n\t"
        "movsd %%xmm5, %[back]"
        : [area] "+m"(area), [back] "=m"(back)
        : [value] "m"(value), "a"(-1), "d"(-1)
        : "xmm5", "cc");
    expect(back == value, "xrstor");
    memset(area, 0xa5, sizeof area);
    __asm__ volatile("fxsave64 %0" : "+m"(area));
    int more = 0;
    for (unsigned i = kSoftware; i < kRoom; ++i) more |= area[i] != 0xa5;
    expect(!more, "fxsave");
}

static int saved(void) {
    find_registers();
    if (!has_xsave()) return finish();
    const struct answer more = cpuid(0xd, 1);
    static const uint64_t masks[] = {~0ULL, 0xffffffff, 0xee, 0x7, 0xe6, 2};
    for (unsigned i = 0; i < sizeof masks / sizeof masks[0]; ++i) {
        const uint64_t mask = masks[i];
        check_save("xsave", do_xsave, mask, 0);
        check_save("xsave64", do_xsave64, mask, 0);
        if (more.a & 1) check_save("xsaveopt", do_xsaveopt, mask, 0);
        if (more.a & 1) check_save("xsaveopt64", do_xsaveopt64, mask, 0);
        if (more.a & 2) check_save("xsavec", do_xsavec, mask, 1);
        if (more.a & 2) check_save("xsavec64", do_xsavec64, mask, 1);
    }
    const uint64_t at = (uint32_t)(uintptr_t)area;
    check_save("xsave at rax", xsave_at_rax, at, 0);
    check_save("xsave at rax and rdx", xsave_at_both, at, 0);
    if (more.a & 2) check_save("xsavec at rax", xsavec_at_rax, at, 1);
    check_save("xsave in gs", xsave_in_gs, 0xc0, 0);
    check_restore();
    return finish();
}

// --- What the kernel saves.

static void check_frame(int number, siginfo_t* info, void* context) {
    (void)number, (void)info;
    const ucontext_t* const interrupted = context;
    const unsigned char* const state = (const unsigned char*)interrupted->uc_mcontext.fpregs;
    uint32_t words[5], end;
    memcpy(words, state + kSoftware, sizeof words);
    const uint64_t components = words[2] | (uint64_t)words[3] << 32;
    const uint64_t least = getauxval(AT_MINSIGSTKSZ);
    const unsigned char* top = state + (has_xsave() ? words[1] : kLegacy);
    const uint64_t extent = (uint64_t)(top - ((const unsigned char*)context - 8));
    expect(!least || extent <= least, "a frame is larger than AT_MINSIGSTKSZ");
    expect((interrupted->uc_flags & 1) == (unsigned)has_xsave(), "UC_FP_XSTATE");
    if (!has_xsave()) return;
    memcpy(&end, state + words[4], sizeof end);
    expect(end == 0x46505845, "the end of a frame");
    expect((components & ~xcr0()) == 0, "components of a frame");
    expect(words[4] >= area_bytes(components, 0) && words[4] <= cpuid(0xd, 0).b, "a frame's size");
    expect(words[1] == words[4] + 4, "a frame's extent");
    expect((word_at(state + kLegacy) & ~components) == 0, "XSTATE_BV of a frame");
}
static int signalled(void) {
    find_registers();
    static _Alignas(64) unsigned char stack_memory[65536];
    const stack_t stack = {.ss_sp = stack_memory, .ss_size = sizeof stack_memory};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_sigaction = check_frame, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 3; ++i) {
        use_registers();
        raise(SIGUSR1);
    }
    return finish();
}

static int traced(void) {
    const pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGUSR1);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    expect(WIFSTOPPED(status), "the child did not stop");
    static unsigned char set[kRoom];
    struct iovec all = {set, sizeof set};
    const long result = ptrace(PTRACE_GETREGSET, child, (void*)NT_X86_XSTATE, &all);
    const int error = errno;
    if (has_xsave()) {
        const uint64_t components = word_at(set + kSoftware);
        expect(result == 0, "no registers of the child");
        expect((components & ~xcr0()) == 0, "components that a tracer is told");
        expect(all.iov_len >= area_bytes(components, 0) && all.iov_len <= cpuid(0xd, 0).c,
               "the size of what a tracer reads");
        expect((word_at(set + kLegacy) & ~components) == 0, "XSTATE_BV that a tracer reads");
    } else {
        expect(result == -1 && error == ENODEV, "registers without XSAVE");
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return finish();
}

static int asked(void) {
    const long keys = syscall(SYS_pkey_alloc, 0, 0);
    const int has_keys = cpuid(7, 0).c >> 4 & 1;
    // Some kernels answer EINVAL the first time.
    expect(has_keys ? keys >= 0 : keys == -1 && (errno == ENOSPC || errno == EINVAL), "pkey_alloc");
    expect(syscall(SYS_pkey_alloc, 1, 0) == -1 && errno == EINVAL, "flags of pkey_alloc");
    expect(syscall(SYS_pkey_alloc, 0, 4) == -1 && errno == EINVAL, "rights of pkey_alloc");
    void* page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    expect(syscall(SYS_pkey_mprotect, page, 4096, PROT_READ, -1) == 0, "pkey_mprotect");
    const long first = syscall(SYS_pkey_mprotect, page, 4096, PROT_READ, 0);
    expect(has_keys ? first == 0 : first == -1 && errno == EINVAL, "pkey_mprotect with key 0");
    for (int get = 0x1021; get <= 0x1022; ++get) {  // ARCH_GET_XCOMP_SUPP, ARCH_GET_XCOMP_PERM
        uint64_t components = 0;
        const long result = syscall(SYS_arch_prctl, get, &components);
        expect(result != 0 || (components & ~xcr0()) == 0, "components of arch_prctl");
    }
    return finish();
}

// --- Contexts by hand, with lazy binding of all that they call.

static ucontext_t first_context, second_context;
static double halves;
static void count_halves(int times) {
    for (int i = 0; i < times; ++i) {
        halves += 0.5;
        swapcontext(&second_context, &first_context);
    }
}
static int switched(void) {
    static _Alignas(64) char other_stack[65536];
    find_registers();
    getcontext(&second_context);
    second_context.uc_stack.ss_sp = other_stack;
    second_context.uc_stack.ss_size = sizeof other_stack;
    second_context.uc_link = &first_context;
    makecontext(&second_context, (void (*)(void))count_halves, 1, 3);
    for (int i = 0; i < 4; ++i) {
        use_registers();
        swapcontext(&first_context, &second_context);
    }
    expect(halves == 1.5, "contexts");
    char text[32];
    snprintf(text, sizeof text, "%.2f", strtod("1.25", NULL) + halves);
    expect(strcmp(text, "2.75") == 0, "numbers");
    return finish();
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"told", told},     {"saved", saved}, {"signalled", signalled},
        {"traced", traced}, {"asked", asked}, {"switched", switched},
    };
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
