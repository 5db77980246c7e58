// Faults and timers that interrupt loops which have run for long: nothing of the loop's state may
// be lost, and nothing of it may be seen changed by a handler.
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "cases.h"

#define NOINLINE __attribute__((noinline))

enum { REGION = 4 << 20, PAGE = 4096, STEPS = 150000 };

// 4 MiB in which one page cannot be touched, and a page that can behind them.
static char* region;

// Walks about in the region: a load, a vector load and a modification at pseudo-random addresses,
// most of them unaligned, while all other registers hold what they must keep. The fault handler
// passes over an instruction by going on where the next label stands.
struct walk {
    uint64_t state, sum;
    uint64_t kept[12];     // rbx rbp r8 r9 r11-r15, and two sums of vectors
    uint64_t vectors[12];  // the low halves of xmm4-xmm15
};
void walk(struct walk* walk, char* region, uint64_t steps);
extern const char walk_loop[], walk_load[], walk_vector[], walk_modify[], walk_next[], walk_end[];
__asm__(
    ".text\n.type walk, @function\nwalk:\n"
    "push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n push %rdi\n"
    "mov (%rdi), %rax\n mov %rsi, %rdi\n mov %rdx, %rsi\n"
    "movabs $0x5851f42d4c957f2d, %r8\n movabs $0x14057b7ef767814f, %r9\n"
    "xor %r10d, %r10d\n xor %r11d, %r11d\n"
    "mov $0x1b, %ebx\n mov $0x1c, %ebp\n mov $0x1d, %r12d\n mov $0x1e, %r13d\n"
    "mov $0x1f, %r14d\n mov $0x20, %r15d\n"
    "pxor %xmm1, %xmm1\n movq %r8, %xmm4\n movq %r9, %xmm5\n movq %rbx, %xmm6\n"
    "movq %rbp, %xmm7\n movq %r12, %xmm8\n movq %r13, %xmm9\n movq %r14, %xmm10\n"
    "movq %r15, %xmm11\n movq %r8, %xmm12\n movq %r9, %xmm13\n movq %rbx, %xmm14\n"
    "movq %rbp, %xmm15\n"
    "walk_loop:\n"
    "mov %rax, %rcx\n shr $42, %rcx\n imul %r8, %rax\n add %r9, %rax\n"  // a carry, or none
    "walk_load: mov (%rdi,%rcx), %rdx\n"
    "walk_vector: movdqu 8(%rdi,%rcx), %xmm0\n"
    "adc %rdx, %r10\n paddq %xmm0, %xmm1\n"
    "mov %rax, %rcx\n shr $43, %rcx\n"
    "walk_modify: add %rax, (%rdi,%rcx,2)\n"
    "walk_next: adc $0, %r11\n"
    "dec %rsi\n jnz walk_loop\n"
    "walk_end:\n"
    "pop %rdi\n mov %rax, (%rdi)\n mov %r10, 8(%rdi)\n mov %rbx, 16(%rdi)\n mov %rbp, 24(%rdi)\n"
    "mov %r8, 32(%rdi)\n mov %r9, 40(%rdi)\n mov %r11, 48(%rdi)\n mov %r12, 56(%rdi)\n"
    "mov %r13, 64(%rdi)\n mov %r14, 72(%rdi)\n mov %r15, 80(%rdi)\n movdqu %xmm1, 88(%rdi)\n"
    "movq %xmm4, 112(%rdi)\n movq %xmm5, 120(%rdi)\n movq %xmm6, 128(%rdi)\n"
    "movq %xmm7, 136(%rdi)\n movq %xmm8, 144(%rdi)\n movq %xmm9, 152(%rdi)\n"
    "movq %xmm10, 160(%rdi)\n movq %xmm11, 168(%rdi)\n movq %xmm12, 176(%rdi)\n"
    "movq %xmm13, 184(%rdi)\n movq %xmm14, 192(%rdi)\n movq %xmm15, 200(%rdi)\n"
    "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret\n"
    ".size walk, . - walk\n");

static void handle(int number, void (*handler)(int, siginfo_t*, void*), int flags) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

static uint64_t seen;  // everything that handlers of faults saw
static int faults;

static void see(uint64_t value) {
    seen = (seen ^ value) * 0x100000001b3u;
}

// What the program can rely on: registers that it reads again. rdx is written by the load.
static void see_registers(const ucontext_t* user) {
    static const int kKept[] = {REG_RAX, REG_RCX, REG_RBX, REG_RBP, REG_RSI, REG_R8, REG_R9,
                                REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    const greg_t* registers = user->uc_mcontext.gregs;
    for (size_t i = 0; i < sizeof kKept / sizeof kKept[0]; ++i) see((uint64_t)registers[kKept[i]]);
    see((uint64_t)(registers[REG_RDI] - (greg_t)region));
    for (int i = 4; i < 16; ++i) see(user->uc_mcontext.fpregs->_xmm[i].element[0]);
}

static void pass_over(int number, siginfo_t* info, void* context) {
    ucontext_t* user = context;
    greg_t* registers = user->uc_mcontext.gregs;
    const char* at = (const char*)registers[REG_RIP];
    see((uint64_t)number), see((uint64_t)info->si_code), see((uint64_t)(at - walk_loop));
    see((uint64_t)((char*)info->si_addr - region));
    see_registers(user);
    ++faults;
    if (at == walk_load) {
        see(registers[REG_EFL] & 1);  // the carry
        registers[REG_RDX] = 77;
        registers[REG_RIP] = (greg_t)walk_vector;
    } else if (at == walk_vector) {
        see(registers[REG_EFL] & 1), see((uint64_t)registers[REG_RDX]);
        registers[REG_RIP] = (greg_t)(walk_vector + 6);
    } else if (at == walk_modify) {
        registers[REG_EFL] |= 1;
        registers[REG_RIP] = (greg_t)walk_next;
    } else {
        _exit(9);
    }
}

static void make_region(void) {
    region = mmap(NULL, REGION + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (region == MAP_FAILED) exit(9);
}

static uint64_t digest(const struct walk* walk) {
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof *walk / 8; ++i)
        hash = (hash ^ ((const uint64_t*)walk)[i]) * 0x100000001b3u;
    return hash;
}

static void walk_and_print(void) {
    struct walk result = {.state = 1};
    walk(&result, region, STEPS);
    printf("%llx, %d faults, %llx\n", (unsigned long long)digest(&result), faults,
           (unsigned long long)seen);
}

static int faults_in_loop(void) {
    make_region();
    handle(SIGSEGV, pass_over, 0);
    walk_and_print();  // hot, and without a fault
    mprotect(region + REGION / 2, PAGE, PROT_NONE);
    walk_and_print();
    return 0;
}

// --- Ticks.

static volatile sig_atomic_t ticks, wrong;
static volatile double clobbered;

static void tick(int number, siginfo_t* info, void* context) {
    (void)number, (void)info;
    const greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
    const char* at = (const char*)registers[REG_RIP];
    if (at >= walk_loop && at < walk_end &&
        (registers[REG_RBX] != 0x1b || registers[REG_RBP] != 0x1c || registers[REG_R12] != 0x1d ||
         registers[REG_R13] != 0x1e || registers[REG_R14] != 0x1f || registers[REG_R15] != 0x20 ||
         registers[REG_RDI] != (greg_t)region))
        ++wrong;
    for (int i = 0; i < 5; ++i) clobbered = clobbered * 0.5 + i;
    ++ticks;
}

static void tick_every(long microseconds, long first) {
    const struct itimerval interval = {{0, microseconds}, {0, first}};
    setitimer(ITIMER_REAL, &interval, NULL);
}

static int ticks_in_loop(void) {
    make_region();
    handle(SIGALRM, tick, SA_RESTART);
    tick_every(1000, 1000);
    walk_and_print();
    while (ticks < 20) {
        struct walk result = {.state = 2};
        walk(&result, region, 1000);
    }
    tick_every(0, 0);
    printf("%d wrong\n", (int)wrong);
    return 0;
}

static int ticks_and_faults(void) {
    make_region();
    handle(SIGSEGV, pass_over, 0);
    handle(SIGALRM, tick, SA_RESTART);
    mprotect(region + REGION / 2, 16 * PAGE, PROT_NONE);
    tick_every(1000, 1000);
    walk_and_print();
    tick_every(0, 0);
    printf("%d wrong\n", (int)wrong);
    return 0;
}

// Loops that only a signal ends. All that they execute has been translated long before.
typedef uint64_t __attribute__((may_alias, aligned(1))) loose64;

static NOINLINE void straddle_until_tick(void) {
    for (uint64_t i = 0; ticks == 0; ++i) *(loose64*)(region + 60 + i % 64 * 64) = i;
}

static int tick_in_straddling(void) {
    make_region();
    handle(SIGALRM, tick, SA_RESTART);
    for (int round = 0; round < 20; ++round) {
        ticks = 0;
        tick_every(0, 1000);
        straddle_until_tick();
    }
    puts("ended");
    return 0;
}

static NOINLINE int first(int value) {
    return value + 1;
}
static NOINLINE int second(int value) {
    return value + 2;
}
static int (*volatile functions[2])(int) = {first, second};

static NOINLINE int call_both(int value) {
    return functions[0](functions[1](value));
}

static NOINLINE void call_until_tick(void) {
    for (int i = 0; ticks == 0; i = functions[i & 1](i)) {
    }
}

static int tick_in_calls(void) {
    handle(SIGALRM, tick, SA_RESTART);
    int value = first(1) + second(2);  // known before an indirect branch goes there
    for (int round = 0; round < 60; ++round) {
        value = call_both(value);
        ticks = 0;
        tick_every(0, 500);
        call_until_tick();
    }
    printf("ended %d\n", value);
    return 0;
}

// --- Divisions.

uint64_t divide(const uint32_t* divisors, uint64_t count);
extern const char divide_here[], divide_next[];
__asm__(
    ".text\n.type divide, @function\ndivide:\n"
    "mov $0x12345, %r8d\n xor %r9d, %r9d\n"
    "1: mov %r8, %rax\n xor %edx, %edx\n imul $69069, %rsi, %rcx\n and $0xfffff, %ecx\n"
    "divide_here: divl (%rdi,%rcx,4)\n"
    "divide_next: add %rax, %r9\n add %rdx, %r9\n add %rcx, %r9\n inc %r8\n"
    "dec %rsi\n jnz 1b\n mov %r9, %rax\n ret\n"
    ".size divide, . - divide\n");

static void pass_over_division(int number, siginfo_t* info, void* context) {
    greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
    if (info->si_code != FPE_INTDIV || registers[REG_RIP] != (greg_t)divide_here) _exit(9);
    see((uint64_t)number);
    static const int kKept[] = {REG_RAX, REG_RCX, REG_RDX, REG_RSI, REG_R8, REG_R9};
    for (size_t i = 0; i < sizeof kKept / sizeof kKept[0]; ++i) see((uint64_t)registers[kKept[i]]);
    registers[REG_RAX] = registers[REG_RDX] = 5;
    registers[REG_RIP] = (greg_t)divide_next;
    ++faults;
}

static int divisions(void) {
    make_region();
    handle(SIGFPE, pass_over_division, 0);
    uint32_t* divisors = (uint32_t*)(void*)region;
    for (size_t i = 0; i < REGION / 4; ++i) divisors[i] = i % 500 == 0 ? 0 : (uint32_t)(i | 1);
    const uint64_t sum = divide(divisors, 300000);
    printf("%llx, %d faults, %llx\n", (unsigned long long)sum, faults, (unsigned long long)seen);
    return 0;
}

// --- Calls that find no stack: the handler makes room, and the call is executed again.

void call_on(char* stack, void (*target)(void));
extern const char call_here[];
__asm__(
    ".text\n.type call_on, @function\ncall_on:\n"
    "push %rbx\n mov %rsp, %rbx\n mov %rdi, %rsp\n mov %rsi, %r8\n mov $0x7777, %ecx\n"
    "mov $0x8888, %eax\n"
    "call_here: call *%r8\n"
    "mov %rbx, %rsp\n pop %rbx\n ret\n"
    ".size call_on, . - call_on\n"
    ".type called, @function\ncalled: mov %rcx, called_rcx(%rip)\n mov %rax, called_rax(%rip)\n"
    "ret\n .size called, . - called\n");
void called(void);
uint64_t called_rcx, called_rax;

static void make_room(int number, siginfo_t* info, void* context) {
    const greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
    (void)number;
    see(registers[REG_RIP] == (greg_t)call_here), see((uint64_t)registers[REG_RCX]);
    see((uint64_t)registers[REG_RAX]), see((uint64_t)((char*)info->si_addr - region));
    see((uint64_t)(registers[REG_RSP] - (greg_t)region));
    mprotect(region, PAGE, PROT_READ | PROT_WRITE);
    ++faults;
}

static int calls_without_stack(void) {
    static char other_stack[65536];
    const stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    sigaltstack(&stack, NULL);
    make_region();
    handle(SIGSEGV, make_room, SA_ONSTACK);
    for (int i = 0; i < 100; ++i) {
        mprotect(region, PAGE, PROT_NONE);
        call_on(region + PAGE, called);
    }
    printf("%d faults, %llx, %llx %llx\n", faults, (unsigned long long)seen,
           (unsigned long long)called_rcx, (unsigned long long)called_rax);
    return 0;
}

// --- The last words of a stack: below them nothing can be written, and nothing needs to.

uint64_t work_on(char* stack, const uint64_t* table, uint64_t index);
uint64_t last_words[64];
__asm__(
    ".text\n.type work_on, @function\nwork_on:\n"
    "push %rbx\n mov %rsp, %rbx\n mov %rdi, %rsp\n"
    "push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
    "mov (%rsi,%rdx,8), %rax\n add last_words+8(%rip), %rax\n"
    "addq $3, last_words+256(%rip)\n xor 1(%rsi,%rdx,8), %rax\n"
    "movdqu 56(%rsi,%rdx,8), %xmm0\n movq %xmm0, %rcx\n add %rcx, %rax\n"
    "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n"
    "mov %rbx, %rsp\n pop %rbx\n ret\n"
    ".size work_on, . - work_on\n");

static int last_words_of_stack(void) {
    enum { WORDS = 6, PLACES = 24, ROUNDS = 20000 };
    make_region();
    uint64_t* table = (uint64_t*)(void*)(region + REGION / 2);
    for (uint64_t i = 0; i < REGION / 2 / 8; ++i) table[i] = i * 0x9e3779b97f4a7c15u;
    mprotect(region, PAGE, PROT_NONE);
    uint64_t sum = 0, index = 1;
    for (int i = 0; i < ROUNDS; ++i) {
        index = index * 0x5851f42d4c957f2du + 1;
        sum += work_on(region + PAGE + (WORDS + i % PLACES) * 8, table, index >> 47);
    }
    printf("%llx, %llx\n", (unsigned long long)sum, (unsigned long long)last_words[32]);
    return 0;
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"faults_in_loop", faults_in_loop},
        {"ticks_in_loop", ticks_in_loop},
        {"ticks_and_faults", ticks_and_faults},
        {"tick_in_straddling", tick_in_straddling},
        {"tick_in_calls", tick_in_calls},
        {"divisions", divisions},
        {"calls_without_stack", calls_without_stack},
        {"last_words_of_stack", last_words_of_stack},
    };
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
