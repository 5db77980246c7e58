// What the processor says of itself, and whether that is true.
#include <cpuid.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "cases.h"

static void print_leaf(unsigned leaf, unsigned subleaf) {
    unsigned a, b, c, d;
    __cpuid_count(leaf, subleaf, a, b, c, d);
    printf("%x.%x: %08x %08x %08x %08x\n", leaf, subleaf, a, b, c, d);
}

static int leaves(void) {
    for (unsigned leaf = 0; leaf <= 0x20; ++leaf) {
        for (unsigned subleaf = 0; subleaf < 20; ++subleaf) print_leaf(leaf, subleaf);
    }
    for (unsigned leaf = 0x80000000; leaf <= 0x80000009; ++leaf) print_leaf(leaf, 0);
    print_leaf(0x40000000, 0);
    return 0;
}

static uint64_t xgetbv(uint32_t index) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(index));
    return (uint64_t)high << 32 | low;
}

static int has_xsave(void) {
    unsigned a, b, c, d;
    __cpuid(1, a, b, c, d);
    return (c & bit_OSXSAVE) != 0;
}

static unsigned leaf_d(unsigned subleaf, int size) {
    unsigned a, b, c, d;
    __cpuid_count(0xd, subleaf, a, b, c, d);
    return size ? b : a;
}

static int enabled(void) {
    if (!has_xsave()) {
        puts("no xsave");
        return 0;
    }
    printf("%llx\n", (unsigned long long)xgetbv(0));
    const int has_in_use = leaf_d(1, 0) >> 2 & 1;
    if (has_in_use) printf("%d\n", (xgetbv(1) & ~xgetbv(0)) == 0);
    return 0;
}

static int vector(void) {
    printf("%lx %lx %lu\n", getauxval(AT_HWCAP), getauxval(AT_HWCAP2), getauxval(51));
    printf("%s\n", (const char*)getauxval(AT_PLATFORM));
    printf("%s\n", getauxval(AT_SYSINFO_EHDR) != 0 ? "vdso" : "no vdso");
    return 0;
}

// Saves and restores with a mask of everything: nothing outside of the area that CPUID promises is
// written, registers and flags stay, and so do the vectors.
static int saved_state(void) {
    enum { kRoom = 16384 };
    static _Alignas(64) unsigned char area[kRoom];
    if (!has_xsave()) {
        puts("saved");
        return 0;
    }
    for (unsigned compact = 0; compact <= (leaf_d(1, 0) >> 1 & 1); ++compact) {
        memset(area, 0xa5, kRoom);
        memset(area + 512, 0, 64);
        uint64_t rax = 0x1111111100000000 | 0xffffffff, rdx = 0x22222222ffffffff;
        unsigned char carry = 0;
        double value = 1.5, back = 0;
        if (compact) {
            __asm__ volatile(
                "movsd %[value], %%xmm5\n stc\n xsavec %[area]\n setc %[carry]\n"
                "pxor %%xmm5, %%xmm5\n xrstor %[area]\n movsd %%xmm5, %[back]\n"
                : "+a"(rax), "+d"(rdx), [carry] "=&r"(carry), [area] "+m"(area), [back] "=m"(back)
                : [value] "m"(value)
                : "xmm5", "cc");
        } else {
            __asm__ volatile(
                "movsd %[value], %%xmm5\n stc\n xsave %[area]\n setc %[carry]\n"
                "pxor %%xmm5, %%xmm5\n xrstor %[area]\n movsd %%xmm5, %[back]\n"
                : "+a"(rax), "+d"(rdx), [carry] "=&r"(carry), [area] "+m"(area), [back] "=m"(back)
                : [value] "m"(value)
                : "xmm5", "cc");
        }
        if (rax != 0x11111111ffffffff || rdx != 0x22222222ffffffff || !carry) return 1;
        if (back != value) return 2;
        for (unsigned i = leaf_d(compact, 1); i < kRoom; ++i)
            if (area[i] != 0xa5) return 3;
    }
    puts("saved");
    return 0;
}

static sigjmp_buf after_fault;
static int registers_kept;

static void on_fault(int number, siginfo_t* info, void* context) {
    (void)number;
    (void)info;
    const greg_t* registers = ((const ucontext_t*)context)->uc_mcontext.gregs;
    registers_kept =
        registers[REG_RAX] == 0x11111111ffffffff && registers[REG_RDX] == 0x2222222200000000;
    siglongjmp(after_fault, 1);
}

static int state_fault(void) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    void* area = mmap(NULL, 16384, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (has_xsave() && sigsetjmp(after_fault, 1) == 0) {
        __asm__ volatile("xsave (%0)"
                         :
                         : "r"(area), "a"(0x11111111ffffffff), "d"(0x2222222200000000)
                         : "memory");
    }
    printf("%d\n", registers_kept == has_xsave());
    return 0;
}

// The mask of components is the address, too.
static int state_at_rax(void) {
    static _Alignas(64) unsigned char area[16384];
    __asm__ volatile("xsave (%%rax)" : : "a"(area), "d"(0) : "memory");
    puts("saved");
    return 0;
}

static uint64_t frame_components;
static uint32_t frame_bytes;

static void on_signal(int number, siginfo_t* info, void* context) {
    (void)number;
    (void)info;
    const ucontext_t* interrupted = context;
    // struct _fpx_sw_bytes: arch/x86/include/uapi/asm/sigcontext.h
    const unsigned char* state = (const unsigned char*)interrupted->uc_mcontext.fpregs;
    memcpy(&frame_components, state + 464 + 8, 8);
    memcpy(&frame_bytes, state + 464 + 16, 4);
}

static int signal_frame(void) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    if (has_xsave()) {
        printf("%d\n", (frame_components & ~xgetbv(0)) == 0);
        printf("%d\n", frame_bytes <= leaf_d(0, 1));
    }
    printf("%d\n", frame_bytes < getauxval(51));
    return 0;
}

// What tells a handler how much there is: uc_flags, and struct _fpx_sw_bytes.
static void show_words(int number, siginfo_t* info, void* context) {
    (void)number;
    (void)info;
    const ucontext_t* interrupted = context;
    const unsigned char* state = (const unsigned char*)interrupted->uc_mcontext.fpregs;
    uint32_t words[5], end = 0;
    memcpy(words, state + 464, sizeof words);
    if (interrupted->uc_flags & 1) memcpy(&end, state + words[4], sizeof end);
    printf("%lx %x %u %x %x %u, %x\n", (unsigned long)interrupted->uc_flags, words[0], words[1],
           words[2], words[3], words[4], end);
}

static int frame_words(void) {
    struct sigaction action = {.sa_sigaction = show_words, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    return raise(SIGUSR1);
}

static uint32_t rights(void) {
    uint32_t read;
    __asm__ volatile("rdpkru" : "=a"(read) : "c"(0) : "rdx");
    return read;
}
static void set_rights(uint32_t wanted) {
    __asm__ volatile("wrpkru" : : "a"(wanted), "c"(0), "d"(0) : "memory");
}

// A handler has the rights of a new program, finds those that it has interrupted, and leaves them
// or puts others there: pkeys(7).
static void change_rights(int number, siginfo_t* info, void* context) {
    (void)info;
    unsigned char* state = (unsigned char*)((ucontext_t*)context)->uc_mcontext.fpregs;
    unsigned a, at, c, d;
    __cpuid_count(0xd, 9, a, at, c, d);
    uint32_t interrupted;
    memcpy(&interrupted, state + at, sizeof interrupted);
    printf("%x %x\n", rights(), interrupted);
    const uint32_t other = 0x55555550;
    set_rights(other);
    if (number == SIGUSR2) memcpy(state + at, &other, sizeof other);
}

static int protection_keys(void) {
    if (pkey_alloc(0, 0) < 0) {
        puts("no keys");
        return 0;
    }
    struct sigaction action = {.sa_sigaction = change_rights, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    for (uint32_t wanted = 0; wanted < 9; wanted += 4) {
        set_rights(wanted);
        raise(SIGUSR1);
        printf("%x\n", rights());
        raise(SIGUSR2);
        printf("%x\n", rights());
    }
    return 0;
}

// Goes on with other flags and on another stack; returns the flags there.
static uint64_t return_with(uint64_t flags, uint64_t* stack) {
    uint64_t found, there;
    __asm__ volatile(
        "mov %%rsp, %%rbx\n\t"
        "sub $128, %%rsp\n\t"  // the red zone
        "mov %%ss, %%eax\n\t"
        "push %%rax\n\t"
        "push %3\n\t"
        "push %2\n\t"
        "mov %%cs, %%eax\n\t"
        "push %%rax\n\t"
        "lea 1f(%%rip), %%rax\n\t"
        "push %%rax\n\t"
        "iretq\n"
        "1:\tmov %%rsp, %1\n\t"
        "pushfq\n\t"
        "pop %0\n\t"
        "mov %%rbx, %%rsp\n\t"
        "cld"
        : "=&r"(found), "=&r"(there)
        : "r"(flags), "r"(stack)
        : "rax", "rbx", "memory", "cc");
    return there == (uint64_t)stack ? found : 0;
}
static int interrupt_return(void) {
    static uint64_t stack[8];
    unsigned sum = 0;
    for (unsigned i = 0; i < 0x1000; ++i) {
        const uint64_t flags = (i & 0xcd5) | 0x202;
        if (return_with(flags, stack + 8) != flags) return 1;
        sum = sum * 3 + i;
    }
    printf("%u\n", sum);
    return 0;
}

// Flags that the manual calls undefined, and processors leave as they were. What is read from
// memory is recorded between the flags' being set and used.
#define PRINT_FLAGS(name, instruction)                                                    \
    do {                                                                                  \
        for (uint64_t before = 2; before <= 0x8d7; before += 0x8d5) {                     \
            uint64_t flags, value = 0x55;                                                 \
            __asm__ volatile(                                                             \
                "pushq %[before]\n popfq\n jmp 1f\n1: movq %%rax, %[room]\n " instruction \
                "\n pushfq\n popq %[flags]"                                               \
                : [flags] "=&r"(flags), [room] "=m"(room), "+a"(value)                    \
                : [before] "r"(before), [other] "m"(other)                                \
                : "rdx", "cc");                                                           \
            printf("%s %03llx\n", name, (unsigned long long)flags & 0x8d5);               \
        }                                                                                 \
    } while (0)

static int undefined_flags(void) {
    static uint64_t room, other = 0x8efcf23ad7e922f3;
    PRINT_FLAGS("bsf", "bsfq %[other], %%rax");
    PRINT_FLAGS("bsr", "bsrq %[other], %%rax");
    PRINT_FLAGS("lzcnt", "lzcntq %[other], %%rax");
    PRINT_FLAGS("tzcnt", "tzcntq %[other], %%rax");
    PRINT_FLAGS("bt", "btq $3, %[other]");
    PRINT_FLAGS("btc", "btcq $3, %[other]");
    PRINT_FLAGS("btr", "btrq $3, %[other]");
    PRINT_FLAGS("bts", "btsq $3, %[other]");
    PRINT_FLAGS("mul", "mulq %[other]");
    PRINT_FLAGS("imul", "imulq %[other], %%rax");
    PRINT_FLAGS("div", "movl $0, %%edx\n divq %[other]");
    PRINT_FLAGS("idiv", "movl $0, %%edx\n idivq %[other]");
    PRINT_FLAGS("shl", "shlq $5, %[other]");
    PRINT_FLAGS("and", "andq $5, %[other]");
    return 0;
}

static sigjmp_buf after_illegal;
extern char xbegin_here[], xend_here[];
static void on_illegal(int number, siginfo_t* info, void* context) {
    const uintptr_t pc = (uintptr_t)((const ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
    printf("%d %d %d %d\n", number, info->si_code, (uintptr_t)info->si_addr == pc,
           pc == (uintptr_t)xbegin_here || pc == (uintptr_t)xend_here);
    siglongjmp(after_illegal, 1);
}

/* By the kernel, which hides nothing. */
static int is_listed(const char* feature) {
    static char line[16384];
    FILE* file = fopen("/proc/cpuinfo", "r");
    int found = 0;
    while (file && !found && fgets(line, sizeof line, file))
        found = strncmp(line, "flags", 5) == 0 && strstr(line, feature) != NULL;
    if (file) fclose(file);
    return found;
}

/* Not on a processor that has it. */
static int transaction(void) {
    if (is_listed(" rtm")) return 0;
    struct sigaction action = {.sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO};
    sigaction(SIGILL, &action, NULL);
    if (sigsetjmp(after_illegal, 1) == 0) {
        __asm__ volatile("xbegin_here: xbegin 1f\n1:" : : : "eax", "memory");
        return 1;
    }
    if (sigsetjmp(after_illegal, 1) == 0) {
        __asm__ volatile("xend_here: xend" : : : "memory");
        return 1;
    }
    return 0;
}

/* Which instructions end in SIGILL, at which of their bytes; 0 for one that does not. */
static sigjmp_buf after_try;
static uintptr_t tried;
static void on_tried(int number, siginfo_t* info, void* context) {
    const uintptr_t pc = (uintptr_t)((const ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
    printf("%d %d %d\n", number, (uintptr_t)info->si_addr == tried, pc == tried);
    siglongjmp(after_try, 1);
}

static void try_code(const unsigned char* code, size_t size) {
    unsigned char* there =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(there, code, size);
    there[size] = 0xc3;
    static _Alignas(64) unsigned char room[1024];
    tried = (uintptr_t)there;
    if (sigsetjmp(after_try, 1) == 0) {
        __asm__ volatile("call *%%rax"
                         : "+a"(there)
                         : "D"(room), "S"(0L)
                         : "rcx", "rdx", "r8", "r9", "r10", "r11", "memory", "cc");
        puts("executed");
    }
}

/* AMX; not on a processor that has it. */
static int tiles(void) {
    static const unsigned char codes[][6] = {
        {0xc4, 0xe2, 0x78, 0x49, 0x07, 0x90},  // ldtilecfg (%rdi)
        {0xc4, 0xe2, 0x79, 0x49, 0x07, 0x90},  // sttilecfg (%rdi)
        {0xc4, 0xe2, 0x78, 0x49, 0xc0, 0x90},  // tilerelease
        {0xc4, 0xe2, 0x7b, 0x4b, 0x04, 0x37},  // tileloadd (%rdi,%rsi), %tmm0
        {0xc4, 0xe2, 0x73, 0x5e, 0xc2, 0x90},  // tdpbssd %tmm1, %tmm2, %tmm0
    };
    if (is_listed(" amx_tile")) return 0;
    struct sigaction action = {.sa_sigaction = on_tried, .sa_flags = SA_SIGINFO};
    sigaction(SIGILL, &action, NULL);
    for (unsigned i = 0; i < sizeof codes / sizeof codes[0]; ++i)
        try_code(codes[i], sizeof codes[i]);
    return 0;
}

/* Which components of XSAVE arch_prctl(2) shows and permits; not on a processor with AMX. */
static int permissions(void) {
    if (is_listed(" amx_tile")) return 0;
    for (int get = 0x1021; get <= 0x1022; ++get) { /* ARCH_GET_XCOMP_SUPP, ARCH_GET_XCOMP_PERM */
        unsigned long components = 0x5a;
        const long result = syscall(SYS_arch_prctl, get, &components);
        printf("%ld %d %lx\n", result, result ? errno : 0, components);
    }
    for (long component = 0; component < 70; ++component) { /* ARCH_REQ_XCOMP_PERM */
        const long result = syscall(SYS_arch_prctl, 0x1023, component);
        printf("%ld %ld %d\n", component, result, result ? errno : 0);
    }
    printf("%ld\n", syscall(SYS_arch_prctl, 0x1021, 1L));
    return 0;
}

static int tile(void) {
    static const unsigned char shapes[64];
    __asm__ volatile(".byte 0xc4, 0xe2, 0x78, 0x49, 0x07"
                     :
                     : "D"(shapes), "m"(shapes));  // ldtilecfg
    return 0;
}

/* APX; not on a processor that has it. */
static int more_registers(void) {
    static const unsigned char codes[][6] = {
        {0xd5, 0x18, 0x89, 0xc0, 0x90, 0x90},  // mov %r16, %rax
        {0x66, 0xd5, 0x10, 0x89, 0xc0, 0x90},
        {0xd5, 0x00, 0x90, 0x90, 0x90, 0x90},
        {0x62, 0xf4, 0x7c, 0x18, 0x01, 0xc0},  // add %eax, %eax, %eax
    };
    if (is_listed(" apx")) return 0;
    struct sigaction action = {.sa_sigaction = on_tried, .sa_flags = SA_SIGINFO};
    sigaction(SIGILL, &action, NULL);
    for (unsigned i = 0; i < sizeof codes / sizeof codes[0]; ++i)
        try_code(codes[i], sizeof codes[i]);
    return 0;
}

// A handler begins with the flag that has led to it, and C code need not be aligned.
static volatile int misaligned_code;
static void on_misaligned(int number, siginfo_t* info, void* context) {
    (void)number;
    (void)context;
    __asm__ volatile("pushq $0x202\n popfq" : : : "cc");
    misaligned_code = info->si_code;
    siglongjmp(after_illegal, 1);
}

static int alignment_check(void) {
    static uint64_t words[2];
    struct sigaction action = {.sa_sigaction = on_misaligned, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
    if (sigsetjmp(after_illegal, 1) == 0) {
        __asm__ volatile("pushq $0x40202\n popfq\n movl 1(%0), %%eax\n pushq $0x202\n popfq"
                         :
                         : "r"(words)
                         : "eax", "memory", "cc");
    }
    printf("%d\n", misaligned_code);
    return 0;
}

// With the flag set, all that is aligned works as without it: calls of the system, those too that
// the driver answers, branches to addresses that it has to look up, and strings.
static int alignment_kept(void) {
    static uint64_t words[16];
    struct sigaction action = {.sa_sigaction = on_misaligned, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
    volatile uint64_t kept = 0;
    if (sigsetjmp(after_illegal, 1) == 0) {
        uint64_t flags = 0, rounds = 200;  // as many as all ways to be translated need
        __asm__ volatile(
            "pushq $0x40202\n popfq\n"
            "1:\n"
            "mov $39, %%eax\n syscall\n"                              // getpid
            "mov $12, %%eax\n xor %%edi, %%edi\n syscall\n"           // brk
            "mov $14, %%eax\n xor %%edi, %%edi\n xor %%esi, %%esi\n"  // rt_sigprocmask
            "lea 32(%[words]), %%rdx\n mov $8, %%r10d\n syscall\n"
            "mov $131, %%eax\n xor %%edi, %%edi\n"  // sigaltstack
            "lea 64(%[words]), %%rsi\n syscall\n"
            "lea 2f(%%rip), %%rax\n call *%%rax\n"
            "lea 3f(%%rip), %%rax\n jmp *%%rax\n"
            "2: ret\n"
            "3: mov (%[words]), %%rax\n movl %%eax, 12(%[words])\n lock incw 10(%[words])\n"
            "mov %%fs:0, %%rax\n"
            "mov %[words], %%rsi\n lea 64(%[words]), %%rdi\n mov $3, %%ecx\n rep movsq\n"
            "mov %[words], %%rsi\n lea 33(%[words]), %%rdi\n mov $3, %%ecx\n rep movsb\n"
            "mov %%rbx, %%r8\n mov $1, %%eax\n cpuid\n mov %%r8, %%rbx\n"
            "dec %[rounds]\n jnz 1b\n"
            "pushfq\n popq %[flags]\n pushq $0x202\n popfq"
            : [rounds] "+r"(rounds), [flags] "=&r"(flags)
            : [words] "r"(words)
            : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r10", "r11", "memory", "cc");
        kept = flags & 0x40000;
    }
    printf("%d %d\n", misaligned_code, kept != 0);
    return 0;
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"leaves", leaves},
        {"enabled", enabled},
        {"vector", vector},
        {"saved_state", saved_state},
        {"signal_frame", signal_frame},
        {"frame_words", frame_words},
        {"protection_keys", protection_keys},
        {"state_fault", state_fault},
        {"state_at_rax", state_at_rax},
        {"interrupt_return", interrupt_return},
        {"undefined_flags", undefined_flags},
        {"transaction", transaction},
        {"tiles", tiles},
        {"permissions", permissions},
        {"tile", tile},
        {"more_registers", more_registers},
        {"alignment_check", alignment_check},
        {"alignment_kept", alignment_kept},
    };
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
