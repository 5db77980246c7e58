// What is on the stack for a handler of a signal, and on which stack: sigaltstack(2).
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "cases.h"

static volatile sig_atomic_t seen;

static void handle(int number, void (*handler)(int, siginfo_t*, void*), int flags) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

// The registers in the context must be the program's own, and changing them must work.
static void skip_and_set(int number, siginfo_t* info, void* context) {
    (void)number, (void)info;
    greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
    const unsigned char* at = (const unsigned char*)registers[REG_RIP];
    if (at[0] != 0x0f || at[1] != 0x0b || registers[REG_RBX] != 0x1122334455) _exit(9);
    registers[REG_RIP] += 2;
    registers[REG_RBX] = 42;
}
static int context(void) {
    handle(SIGILL, skip_and_set, 0);
    uint64_t value = 0x1122334455;
    __asm__ volatile("ud2" : "+b"(value));
    printf("%llu\n", (unsigned long long)value);
    return 0;
}

// A handler that clobbers vector and x87 state must not be felt by what it interrupts.
static volatile double clobbered;
static void clobber(int number) {
    seen = number;
    volatile long double tenth = 0.1L;
    for (int i = 0; i < 20; ++i) clobbered += (double)(tenth * i);
}
static int vector_state(void) {
    signal(SIGUSR1, clobber);
    double before[4] = {1.25, 2.5, 3.75, 5}, after[4];
    __asm__ volatile(
        "movupd (%1), %%xmm6\n\tmovupd 16(%1), %%xmm7\n\tfldl (%1)\n\t"
        "mov $39, %%eax\n\tsyscall\n\tmov %%eax, %%edi\n\tmov $10, %%esi\n\tmov $62, %%eax\n\t"
        "syscall\n\tmovupd %%xmm6, (%0)\n\tmovupd %%xmm7, 16(%0)\n\tfstpl (%0)"
        :
        : "r"(after), "r"(before)
        : "rax", "rcx", "r11", "rdi", "rsi", "xmm6", "xmm7", "memory");
    printf("%g %g %g %g, %d\n", after[0], after[1], after[2], after[3], (int)seen);
    return 0;
}

// What has not been used yet is in the frame, too, and what the handler puts there takes effect.
static void set_unused(int number, siginfo_t* info, void* context) {
    (void)info;
    struct _libc_fpstate* state = ((ucontext_t*)context)->uc_mcontext.fpregs;
    unsigned used = 0;
    for (size_t i = 0; i < 8; ++i) used |= state->_st[i].significand[3] | state->_st[i].exponent;
    printf("%x %x %x %x %x\n", state->cwd, state->swd, state->ftw, state->mxcsr, used);
    state->_xmm[3].element[0] = (unsigned)number;
    state->cwd = 0x27f;
}
static int unused_state(void) {
    handle(SIGILL, set_unused, SA_RESETHAND);
    unsigned low = 0;
    unsigned short control = 0;
    // From the initial state on, as far as the processor knows of it.
    __asm__ volatile(
        "fninit\n\tpxor %%xmm3, %%xmm3\n\tmov $39, %%eax\n\tsyscall\n\t"
        "mov %%eax, %%edi\n\tmov $4, %%esi\n\tmov $62, %%eax\n\tsyscall\n\t"
        "movd %%xmm3, %0\n\tfnstcw %1\n\tfninit"
        : "=m"(low), "=m"(control)
        :
        : "rax", "rcx", "r11", "rdi", "rsi", "xmm3", "memory");
    printf("%u %x\n", low, control);
    return 0;
}

// A handler begins with the registers of a new program, and what it puts there is in the frame of
// one that interrupts it.
static void show_state(const char* name, const ucontext_t* interrupted) {
    unsigned mxcsr = 0;
    unsigned short control = 0;
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr), "=m"(control));
    const struct _libc_fpstate* state = interrupted->uc_mcontext.fpregs;
    printf("%s: %x %x, of %x %x %x\n", name, control, mxcsr, state->cwd, state->mxcsr,
           state->_xmm[6].element[0]);
}
static void show_inner(int number, siginfo_t* info, void* user) {
    (void)number, (void)info;
    show_state("inner", user);
}
static void interrupt_itself(int number, siginfo_t* info, void* user) {
    (void)number, (void)info;
    show_state("outer", user);
    const unsigned short rounds_up = 0xb7f;
    __asm__ volatile(
        "mov $0x1234, %%eax\n\tmovd %%eax, %%xmm6\n\tfldcw %0\n\t"
        "mov $39, %%eax\n\tsyscall\n\tmov %%eax, %%edi\n\tmov $12, %%esi\n\tmov $62, %%eax\n\t"
        "syscall"
        :
        : "m"(rounds_up)
        : "rax", "rcx", "r11", "rdi", "rsi", "xmm6", "memory");
}
static int state_in_handlers(void) {
    handle(SIGUSR1, interrupt_itself, 0);
    handle(SIGUSR2, show_inner, 0);
    return raise(SIGUSR1);
}

static char other_stack[65536];
static void where(int number, siginfo_t* info, void* user) {
    (void)info, (void)user;
    char local = 0;
    uintptr_t here = (uintptr_t)&local, base = (uintptr_t)other_stack;
    seen = number + (here > base && here < base + sizeof other_stack ? 1000 : 0);
}
static int alternate_stack(void) {
    stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    sigaltstack(&stack, NULL);
    handle(SIGUSR1, where, SA_ONSTACK);
    raise(SIGUSR1);
    printf("%d\n", (int)seen);
    return 0;
}

// A handler on the alternate stack is interrupted by another, which leaves both with a jump; then
// the stack must be free again.
static sigjmp_buf out;
static void fault_on_stack(int number, siginfo_t* info, void* user) {
    where(number, info, user);
    *(volatile int*)8 = 1;
}
static void leave_both(int number, siginfo_t* info, void* user) {
    const int outside = seen;
    where(number, info, user);
    siglongjmp(out, outside * 10000 + seen);
}
static int nested_on_alternate_stack(void) {
    const stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    sigaltstack(&stack, NULL);
    handle(SIGUSR1, fault_on_stack, SA_ONSTACK);
    handle(SIGSEGV, leave_both, SA_ONSTACK);
    for (volatile int i = 0; i < 3; ++i) {
        const int result = sigsetjmp(out, 1);
        if (result == 0) raise(SIGUSR1);
        stack_t now;
        sigaltstack(NULL, &now);
        printf("%d %d\n", result, now.ss_flags);
    }
    return 0;
}

// SS_AUTODISARM: while a handler runs there is no alternate stack, and it can set another.
enum { AUTODISARM = (int)(1U << 31) };
static char third_stack[65536];
static void show_stack(const char* where, const void* user) {
    const char local = 0;
    const uintptr_t here = (uintptr_t)&local, base = (uintptr_t)third_stack;
    stack_t now;
    sigaltstack(NULL, &now);
    printf("%s: %x %zu, on third %d", where, (unsigned)now.ss_flags, now.ss_size,
           here > base && here < base + sizeof third_stack);
    if (user) {
        const stack_t* frame = &((const ucontext_t*)user)->uc_stack;
        printf(", frame %x %zu", (unsigned)frame->ss_flags, frame->ss_size);
    }
    puts("");
}
static void on_third(int number, siginfo_t* info, void* user) {
    (void)number, (void)info;
    show_stack("inner", user);
}
static void change_stack(int number, siginfo_t* info, void* user) {
    (void)number, (void)info;
    show_stack("outer", user);
    const stack_t third = {.ss_sp = third_stack, .ss_size = sizeof third_stack};
    printf("%d\n", sigaltstack(&third, NULL));
    raise(SIGUSR2);
    if (++seen == 2) ((ucontext_t*)user)->uc_stack = third;
}
static int disarmed_stack(void) {
    const stack_t stack = {
        .ss_sp = other_stack, .ss_size = sizeof other_stack, .ss_flags = AUTODISARM};
    printf("%d\n", sigaltstack(&stack, NULL));
    handle(SIGUSR1, change_stack, SA_ONSTACK);
    handle(SIGUSR2, on_third, SA_ONSTACK);
    for (int i = 0; i < 3; ++i) {
        raise(SIGUSR1);
        show_stack("behind", NULL);
    }
    return 0;
}

static void change_used_stack(int number) {
    (void)number;
    const stack_t off = {.ss_flags = SS_DISABLE};
    const int result = sigaltstack(&off, NULL);
    printf("%d %d\n", result, errno);
}
static int stack_errors(void) {
    const struct {
        size_t bytes;
        int flags;
    } tried[] = {
        {65536, 99},         {65536, SS_ONSTACK},          {65536, SS_ONSTACK | SS_DISABLE},
        {2047, 0},           {2047, SS_DISABLE},           {2047, AUTODISARM},
        {65536, AUTODISARM}, {0, AUTODISARM | SS_DISABLE}, {65536, 0}};
    for (size_t i = 0; i < sizeof tried / sizeof tried[0]; ++i) {
        const stack_t stack = {
            .ss_sp = other_stack, .ss_size = tried[i].bytes, .ss_flags = tried[i].flags};
        errno = 0;
        const int result = sigaltstack(&stack, NULL);
        stack_t now;
        const int error = errno;
        sigaltstack(NULL, &now);
        printf("%d %d, %d %x %zu\n", result, error, now.ss_sp == other_stack,
               (unsigned)now.ss_flags, now.ss_size);
    }
    struct sigaction action = {.sa_handler = change_used_stack, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    return 0;
}

// The last frames find no room on it.
static void raise_forever(int number) {
    raise(number);
}
static int stack_without_room(void) {
    const stack_t stack = {.ss_sp = other_stack + 16384, .ss_size = 16384};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_handler = raise_forever, .sa_flags = SA_ONSTACK | SA_NODEFER};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    return 0;
}

static void overflow(int number, siginfo_t* info, void* user) {
    (void)number, (void)user;
    printf("%d %d\n", info->si_code, info->si_addr != NULL);
    siglongjmp(out, 1);
}
static int descend(volatile char* above) {
    volatile char frame[8192];
    frame[0] = above[0];
    return (above[0] ? descend(frame) : 0) + frame[0];
}
static int stack_overflow(void) {
    const stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    sigaltstack(&stack, NULL);
    handle(SIGSEGV, overflow, SA_ONSTACK);
    volatile char first = 1;
    for (volatile int i = 0; i < 2; ++i)
        if (sigsetjmp(out, 1) == 0) descend(&first);
    return 0;
}

// The frame of a handler without another stack cannot be written: who has one is told.
static int lack_of_stack(void) {
    const stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    sigaltstack(&stack, NULL);
    handle(SIGSEGV, overflow, SA_ONSTACK);
    handle(SIGUSR1, where, 0);
    const pid_t self = getpid();
    for (volatile int i = 0; i < 2; ++i)
        if (sigsetjmp(out, 1) == 0)
            __asm__ volatile("mov $4096, %%esp\n\tsyscall\n1:\tjmp 1b"
                             :
                             : "a"(SYS_kill), "D"(self), "S"(SIGUSR1)
                             : "rcx", "r11", "memory");
    return 0;
}

// A stack on which no frame finds room, or that is not there: SIGSEGV comes instead, for whose
// handler the stack that was interrupted is good enough. With a timer's signal the program may be
// anywhere.
static void tell_lack(int number, siginfo_t* info, void* user) {
    const stack_t* frame = &((const ucontext_t*)user)->uc_stack;
    printf("%d: %d %d, %zu\n", number, info->si_code, info->si_addr != NULL, frame->ss_size);
    siglongjmp(out, 1);
}
static void lack_on_stack(const stack_t* stack) {
    printf("%d\n", sigaltstack(stack, NULL));
    handle(SIGSEGV, tell_lack, 0);
    handle(SIGALRM, where, SA_ONSTACK);
    for (volatile int i = 0; i < 2; ++i)
        if (sigsetjmp(out, 1) == 0) raise(SIGALRM);
    // The handler of SIGSEGV has left it disarmed.
    if (stack->ss_flags & AUTODISARM) return;
    const struct itimerval soon = {.it_value = {.tv_usec = 1000}};
    if (sigsetjmp(out, 1) == 0) {
        setitimer(ITIMER_REAL, &soon, NULL);
        for (;;) pause();
    }
    if (sigsetjmp(out, 1) == 0) {
        setitimer(ITIMER_REAL, &soon, NULL);
        for (;;) seen = 0;
    }
}
static int lack_on_alternate_stack(void) {
    const size_t no_room = 2048;  // what sigaltstack(2) asks for, less than a frame with AVX-512
    const size_t bytes = sizeof other_stack;
    char* unusable = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (getauxval(51) > no_room)  // AT_MINSIGSTKSZ
        lack_on_stack(&(stack_t){.ss_sp = other_stack, .ss_size = no_room});
    lack_on_stack(&(stack_t){.ss_sp = unusable, .ss_size = bytes});
    lack_on_stack(&(stack_t){.ss_sp = unusable, .ss_size = bytes, .ss_flags = AUTODISARM});
    return 0;
}
// Where the handler of SIGSEGV wants that stack, too, there is none for it.
static int lack_for_both(void) {
    char* unusable = mmap(NULL, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const stack_t stack = {.ss_sp = unusable, .ss_size = 65536};
    sigaltstack(&stack, NULL);
    handle(SIGSEGV, tell_lack, SA_ONSTACK);
    handle(SIGALRM, where, SA_ONSTACK);
    return raise(SIGALRM);
}

// What a handler does to the state in the frame that the processor does not take: SIGSEGV behind
// the return, with the other registers restored and the vectors cleared; or only a part of it is
// there.
static int wrecked;
static struct _fpx_sw_bytes* words_of(struct _libc_fpstate* state) {
    return (struct _fpx_sw_bytes*)((char*)state + 464);
}
static void wreck(int number, siginfo_t* info, void* user) {
    (void)number, (void)info;
    struct _libc_fpstate* state = ((ucontext_t*)user)->uc_mcontext.fpregs;
    struct _fpx_sw_bytes* words = words_of(state);
    uint64_t* header = (uint64_t*)((char*)state + 512);
    uint32_t* end = (uint32_t*)((char*)state + words->xstate_size);
    const int has_xsave = words->magic1 == FP_XSTATE_MAGIC1 && words->xstate_size > 512;
    if (wrecked == 1) state->mxcsr |= 0x10000;
    if (!has_xsave) return;
    if (wrecked == 2) header[0] |= 1ULL << 61;
    if (wrecked == 3) header[1] = 1;
    if (wrecked == 4) header[2] = 0xfffffff;
    if (wrecked == 5) header[0] |= 1ULL << 62, words->magic1 = 0;
    if (wrecked == 6) *end = 0;
    if (wrecked == 7) words->xstate_size += 64;
    if (wrecked == 8) words->xstate_bv = 1;
    if (wrecked == 9) words->magic1 = 0;
    if (wrecked == 10) words->xstate_size = 512;
}
static void tell_wrecked(int number, siginfo_t* info, void* user) {
    (void)user;
    printf("%d %d %d\n", number, info->si_code, info->si_addr != NULL);
}
static int wrecked_state(void) {
    handle(SIGUSR1, wreck, 0);
    handle(SIGSEGV, tell_wrecked, 0);
    for (wrecked = 0; wrecked <= 10; ++wrecked) {
        uint64_t kept = 0, low = 0x5566778899;
        __asm__ volatile(
            "movq %1, %%xmm6\n\tmov $39, %%eax\n\tsyscall\n\tmov %%eax, %%edi\n\t"
            "mov $10, %%esi\n\tmov $62, %%eax\n\tmov $77, %%ebx\n\tsyscall\n\t"
            "movq %%xmm6, %1\n\tmov %%rbx, %0"
            : "=r"(kept), "+r"(low)
            :
            : "rax", "rbx", "rcx", "r11", "rdi", "rsi", "xmm6", "memory");
        printf("%d: %llu %llx\n", wrecked, (unsigned long long)kept, (unsigned long long)low);
    }
    return 0;
}

// What the handler interrupts shall go on as code of 32 bits.
static void leave_64_bits(int number, siginfo_t* info, void* user) {
    (void)number, (void)info;
    greg_t* registers = ((ucontext_t*)user)->uc_mcontext.gregs;
    registers[REG_CSGSFS] = (registers[REG_CSGSFS] & ~0xffffLL) | 0x23;
}
static int other_segment(void) {
    handle(SIGUSR1, leave_64_bits, 0);
    return raise(SIGUSR1);
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"context", context},
        {"alternate_stack", alternate_stack},
        {"vector_state", vector_state},
        {"unused_state", unused_state},
        {"state_in_handlers", state_in_handlers},
        {"nested_on_alternate_stack", nested_on_alternate_stack},
        {"disarmed_stack", disarmed_stack},
        {"stack_errors", stack_errors},
        {"stack_without_room", stack_without_room},
        {"stack_overflow", stack_overflow},
        {"lack_of_stack", lack_of_stack},
        {"lack_on_alternate_stack", lack_on_alternate_stack},
        {"lack_for_both", lack_for_both},
        {"wrecked_state", wrecked_state},
        {"other_segment", other_segment},
    };
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
