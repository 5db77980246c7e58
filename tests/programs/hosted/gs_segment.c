// Memory at gs, as WebAssembly that was compiled to C uses it: the base is the program's to choose.
#include <asm/prctl.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cases.h"

static unsigned char memory[4096];

static void set_base(const void* base) {
    syscall(SYS_arch_prctl, ARCH_SET_GS, base);
}

static int base(void) {
    uint64_t read = 0, again = 0;
    set_base(memory);
    syscall(SYS_arch_prctl, ARCH_GET_GS, &read);
    __asm__ volatile("rdgsbase %0" : "=r"(again));
    printf("%d %d ", read == (uintptr_t)memory, again == (uintptr_t)memory);
    __asm__ volatile("wrgsbase %0\n\trdgsbase %%r12" : : "r"(memory + 8) : "r12");
    syscall(SYS_arch_prctl, ARCH_GET_GS, &read);
    printf("%d\n", read == (uintptr_t)memory + 8);
    return 0;
}

// Addresses that the kernel refuses, of fs too.
static int refused_bases(void) {
    const uintptr_t refused[] = {0x7ffffffff000, 1UL << 63, -1UL};
    static char stack[4096];
    for (size_t i = 0; i < 3; ++i) {
        for (int code = ARCH_SET_GS; code <= ARCH_SET_FS; ++code) {
            errno = 0;
            const long result = syscall(SYS_arch_prctl, code, refused[i]);
            printf("%ld %d, ", result, errno);
        }
        errno = 0;
        const long result = syscall(SYS_clone, CLONE_VM | CLONE_SETTLS, stack + sizeof stack, NULL,
                                    NULL, refused[i]);
        printf("%ld %d\n", result, errno);
    }
    set_base((void*)0x7fffffffefff);
    return 0;
}

// Operands of every shape: displacement alone, base and index, 32-bit address, extended registers,
// an immediate behind, push and pop, read-modify-write, VEX and EVEX encodings.
static int operands(void) {
    uint64_t a = 0, b = 0, c = 0, d = 0;
    for (unsigned i = 0; i < sizeof memory; ++i) memory[i] = (unsigned char)(i * 7 + i / 256);
    set_base(memory);
    __asm__ volatile("mov %%gs:8, %0" : "=r"(a));
    __asm__ volatile("mov %%gs:3(%1,%2,4), %0" : "=r"(b) : "r"(16L), "r"(5L));
    __asm__ volatile(
        "mov $0xf00000010, %%r9\n\tmov $3, %%r13\n\tmov %%gs:1(%%r9d,%%r13d,2), %%r14\n\t"
        "mov %%r14, %0"
        : "=r"(c)
        :
        : "r9", "r13", "r14");
    __asm__ volatile("addl $0x1234567, %%gs:64\n\tmovw $0x4321, %%gs:72\n\tmov %%gs:64, %0"
                     : "=r"(d));
    printf("%lx %lx %lx %lx ", a, b, c, d);
    __asm__ volatile(
        "lea -128(%%rsp), %%rsp\n\tpushq %%gs:128\n\tpopq %%gs:136\n\tlea 128(%%rsp), %%rsp\n\t"
        "mov %%gs:136, %0"
        : "=r"(a)
        :
        : "memory");
    __asm__ volatile("mov $7, %%eax\n\tlock xaddl %%eax, %%gs:(%1)\n\tmov %%rax, %0"
                     : "=r"(b)
                     : "r"(200L)
                     : "rax", "memory");
    uint32_t lanes[8];
    __asm__ volatile("movdqu %%gs:256, %%xmm1\n\tpaddd %%gs:272, %%xmm1\n\tmovdqu %%xmm1, %0"
                     : "=m"(lanes)
                     :
                     : "xmm1");
    printf("%lx %lx %x\n", a, b, lanes[0] ^ lanes[3]);
    if (__builtin_cpu_supports("avx2")) {
        __asm__ volatile("mov $300, %%r10\n\tvmovdqu %%gs:4(%%r10), %%ymm9\n\tvmovdqu %%ymm9, %0"
                         : "=m"(lanes)
                         :
                         : "ymm9", "r10");
        printf("%d\n", memcmp(lanes, memory + 304, sizeof lanes));
    }
    return 0;
}

// Without memory at the base: SIGSEGV.
static int faults(void) {
    set_base(NULL);
    printf("faults\n");
    fflush(stdout);
    uint64_t value;
    __asm__ volatile("mov %%gs:16, %0" : "=r"(value));
    return (int)value;
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {{"base", base},
                                             {"refused_bases", refused_bases},
                                             {"operands", operands},
                                             {"faults", faults}};
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
