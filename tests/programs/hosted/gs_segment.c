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

// Those that name their address in no ModRM byte, and branches.
static int hidden_operands(void) {
    static uint64_t place[2] __attribute__((aligned(16)));
    uint64_t a = 0, b = 0, c = 0, d = 0;
    unsigned char copy[16] = {0};
    for (unsigned i = 0; i < sizeof memory; ++i) memory[i] = (unsigned char)(i * 11 + i / 256);
    set_base(memory);
    __asm__ volatile("lodsq %%gs:(%%rsi), %%rax" : "=a"(a), "+S"(b));
    uint64_t count = sizeof copy;
    c = 40;
    d = (uintptr_t)copy;
    __asm__ volatile("rep movsb %%gs:(%%rsi), %%es:(%%rdi)"
                     : "+S"(c), "+D"(d), "+c"(count)
                     :
                     : "memory");
    printf("%lx %lu %lu %ld %d\n", a, b, c, (long)(d - (uintptr_t)copy),
           memcmp(copy, memory + 40, sizeof copy));
    __asm__ volatile(".byte 0x65, 0xd7" /* xlatb %gs:(%rbx) */ : "=a"(a) : "b"(100L), "0"(0x1205L));
    __asm__ volatile("movabs %%gs:0x48, %%rax" : "=a"(b));
    __asm__ volatile("movabs %%al, %%gs:0x50" : : "a"(0x77L) : "memory");
    printf("%lx %lx %x\n", a, b, memory[0x50]);
    __asm__ volatile("prefetcht0 %%gs:(%0)\n\tbtsq %1, %%gs:64" : : "r"(-1L), "r"(130L) : "memory");
    __asm__ volatile(
        "movq $9, %%rax\n\tmovl $0, %%edx\n\tmov $5, %%rbx\n\tmov $6, %%rcx\n\t"
        "lock cmpxchg16b %%gs:(%%rdi)\n\tmov %%rdx, %0"
        : "=r"(a)
        : "D"((uintptr_t)place - (uintptr_t)memory)
        : "rax", "rbx", "rcx", "rdx", "memory");
    __asm__ volatile(
        "lea 1f(%%rip), %%rax\n\tmov %%rax, %%gs:512\n\tjmp *%%gs:504(,%%rcx,8)\n\tud2\n1:"
        :
        : "c"(1L)
        : "rax", "memory");
    printf("%lx %lx %x\n", a, place[0], memory[80]);
    set_base(NULL);
    __asm__ volatile("mov %%gs:memory(%%rip), %0" : "=r"(a));
    printf("%d\n", memcmp(&a, memory, sizeof a));
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
                                             {"hidden_operands", hidden_operands},
                                             {"faults", faults}};
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
