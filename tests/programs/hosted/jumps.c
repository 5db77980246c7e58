// setjmp and longjmp, contexts that a program switches by itself, and jumps through registers.
#include <setjmp.h>
#include <stdlib.h>
#include <ucontext.h>

#include "cases.h"

static jmp_buf back;
static volatile int back_wanted = 1;

static void descend(int depth) {
    if (depth > 0) {
        descend(depth - 1);
    } else if (back_wanted) {
        longjmp(back, 5);
    }
    puts("never");
}
static int long_jump(void) {
    for (volatile int i = 0; i < 100; ++i) {
        if (setjmp(back) == 0) descend(i);
    }
    puts("back a hundred times");
    return 0;
}

static ucontext_t here, there;
static int turns;
static void coroutine(void) {
    for (;;) {
        ++turns;
        swapcontext(&there, &here);
    }
}
static int switch_context(void) {
    getcontext(&there);
    there.uc_stack.ss_size = 65536;
    there.uc_stack.ss_sp = malloc(there.uc_stack.ss_size);
    there.uc_link = &here;
    makecontext(&there, coroutine, 0);
    for (int i = 0; i < 1000; ++i) swapcontext(&here, &there);
    printf("%d turns\n", turns);
    return 0;
}

// Coroutines that call one another in a ring, each with a stack and registers of its own.
enum { COROUTINES = 20 };
static ucontext_t ring[COROUTINES];
static double sums[COROUTINES];
static void pass_on(int self) {
    double own = self;  // in a register that swapcontext does not restore: the stack must
    for (int i = 0; i < 200; ++i) {
        own += i * self * 0.25;
        swapcontext(&ring[self], &ring[(self + 1) % COROUTINES]);
    }
    sums[self] = own;
    if (self + 1 < COROUTINES) setcontext(&ring[self + 1]);
}
static int coroutines(void) {
    for (int i = 0; i < COROUTINES; ++i) {
        getcontext(&ring[i]);
        ring[i].uc_stack.ss_size = 65536;
        ring[i].uc_stack.ss_sp = malloc(ring[i].uc_stack.ss_size);
        ring[i].uc_link = &here;
        makecontext(&ring[i], (void (*)(void))pass_on, 1, i);
    }
    swapcontext(&here, &ring[0]);
    for (int i = 0; i < COROUTINES; ++i) printf("%.3f ", sums[i]);
    puts("");
    return 0;
}

// Compilers compare before a jump through a table, for branches that are the table's targets. Here
// the target's address ends in the same 16 bits as one that has been called before.
int flags_of_jump(void);
__asm__(
    ".text\n"
    ".p2align 16\n"
    "called_before: xor %eax, %eax\n"
    "ret\n"
    ".p2align 16\n"
    "jump_target: jne 1f\n"
    "mov $1, %eax\n"
    "ret\n"
    "1: mov $2, %eax\n"
    "ret\n"
    ".globl flags_of_jump\n"
    "flags_of_jump: lea called_before(%rip), %rax\n"
    "call *%rax\n"
    "lea jump_target(%rip), %rdx\n"
    "cmp %eax, %eax\n"
    "jmp *%rdx\n");

// A return to code that reads the flags which popf has put back: Go's asyncPreempt.
int flags_put_back(long, long);
__asm__(
    ".text\n"
    ".globl flags_put_back\n"
    "flags_put_back: push %rbp\n"
    "lea 1f(%rip), %rax\n"
    "push %rax\n"
    "cmp %rsi, %rdi\n"
    "pushfq\n"
    "push %rbp\n"
    "xor %eax, %eax\n"
    "add $1, %eax\n"
    "pop %rbp\n"
    "popfq\n"
    "mov -8(%rsp), %rdx\n"
    "ret\n"
    ".p2align 4\n"
    "1: jl 2f\n"
    "je 3f\n"
    "mov $3, %eax\n"
    "pop %rbp\n"
    "ret\n"
    "2: mov $1, %eax\n"
    "pop %rbp\n"
    "ret\n"
    "3: mov $2, %eax\n"
    "pop %rbp\n"
    "ret\n");

static int flags_from_stack(void) {
    printf("%d %d %d\n", flags_put_back(1, 2), flags_put_back(2, 2), flags_put_back(3, 2));
    return 0;
}

static int flags(void) {
    printf("%d\n", flags_of_jump());
    return 0;
}

// Targets in fs, relative to rip: where fs begins counts, too.
static const void* table_of_fs[2] __attribute__((used));
static int through_fs(void) {
    unsigned long base = 0, taken = 0;
    __asm__ volatile(
        "rdfsbase %1\n\tlea 1f(%%rip), %%rax\n\tmov %%rax, %2\n\tlea 2f(%%rip), %%rax\n\t"
        "mov %%rax, %3\n\tmov $4096, %%eax\n\twrfsbase %%rax\n\t"
        "lea -128(%%rsp), %%rsp\n\tjmp *%%fs:table_of_fs-4096(%%rip)\n\tud2\n"
        "1:\tinc %0\n\tcall *%%fs:table_of_fs-4088(%%rip)\n\tjmp 3f\n"
        "2:\tadd $2, %0\n\tret\n"
        "3:\tlea 128(%%rsp), %%rsp\n\twrfsbase %1"
        : "+r"(taken), "=&r"(base), "=m"(table_of_fs[0]), "=m"(table_of_fs[1])
        :
        : "rax", "cc", "memory");
    printf("%lu\n", taken);
    return 0;
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {{"long_jump", long_jump},
                                             {"through_fs", through_fs},
                                             {"switch_context", switch_context},
                                             {"coroutines", coroutines},
                                             {"flags", flags},
                                             {"flags_from_stack", flags_from_stack}};
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
