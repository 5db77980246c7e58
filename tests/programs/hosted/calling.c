// Ways to get into and out of functions, each from a function of its own: for tests that know the
// calling contexts. Work is done by leaf(), from which all have a known number of calls.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "cases.h"

static volatile int sum;
static void leaf(void) {
    ++sum;
}

// --- Plain calls: leaf 3 times in twice, called 5 times.
static void twice(void) {
    leaf();
    leaf();
    leaf();
}
static int plain(void) {
    for (volatile int i = 0; i < 5; ++i) twice();
    leaf();
    return 0;
}

// --- Through a pointer, and a tail call: last() replaces first().
static void last(void) {
    leaf();
    leaf();
}
static void (*volatile to_last)(void) = last;
__attribute__((naked)) static void first(void) {
    __asm__ volatile("jmp *%0" : : "m"(to_last));
}
static void (*volatile to_first)(void) = first;
static int pointers(void) {
    for (volatile int i = 0; i < 4; ++i) to_last();
    for (volatile int i = 0; i < 3; ++i) to_first();
    return 0;
}

// --- Recursion.
static void descend(int depth) {
    leaf();
    if (depth > 0) descend(depth - 1);
    leaf();  // not a tail call
}
static int recursion(void) {
    descend(9);
    leaf();
    return 0;
}
static int deep(void) {
    const size_t bytes = (size_t)512 << 20;
    ucontext_t here, there;
    getcontext(&there);
    there.uc_stack.ss_sp = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    there.uc_stack.ss_size = bytes;
    there.uc_link = &here;
    makecontext(&there, (void (*)(void))descend, 1, 1000000);
    swapcontext(&here, &there);
    leaf();
    return 0;
}

// --- longjmp over several frames.
static jmp_buf back;
static volatile int back_wanted = 1;
static void jump(int depth) {
    if (depth > 0)
        jump(depth - 1);
    else if (back_wanted)
        longjmp(back, 1);
    leaf();
}
static int long_jump(void) {
    for (volatile int i = 0; i < 7; ++i) {
        if (setjmp(back) == 0)
            jump(3);
        else
            leaf();
    }
    twice();
    return 0;
}

// --- Signals: on the same stack, nested, on a stack of their own, left by longjmp.
static sigjmp_buf out_of_handler;
static void inner_handler(int number) {
    (void)number;
    leaf();
}
static void outer_handler(int number) {
    (void)number;
    leaf();
    raise(SIGUSR2);
    leaf();
}
static void leaving_handler(int number) {
    (void)number;
    leaf();
    siglongjmp(out_of_handler, 1);
}
static void handle(int number, void (*handler)(int), int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigaction(number, &action, NULL);
}
static int signals(void) {
    handle(SIGUSR1, outer_handler, 0);
    handle(SIGUSR2, inner_handler, 0);
    for (volatile int i = 0; i < 6; ++i) raise(SIGUSR1);
    leaf();
    return 0;
}
static int alternate_stack(void) {
    static char memory[65536];
    const stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    sigaltstack(&stack, NULL);
    handle(SIGUSR1, outer_handler, SA_ONSTACK);
    handle(SIGUSR2, inner_handler, SA_ONSTACK);
    handle(SIGALRM, leaving_handler, SA_ONSTACK);
    for (volatile int i = 0; i < 6; ++i) raise(SIGUSR1);
    for (volatile int i = 0; i < 4; ++i)
        if (sigsetjmp(out_of_handler, 1) == 0) raise(SIGALRM);
    leaf();
    return 0;
}

// --- Coroutines, on small stacks side by side.
enum { COROUTINES = 3, STACK = 16384, TURNS = 10 };
static ucontext_t whole, parts[COROUTINES];
static void yield(int self) {
    leaf();
    swapcontext(&parts[self], &whole);
    leaf();
}
static void coroutine(int self) {
    for (;;) yield(self);
}
static int coroutines(void) {
    char* stacks = malloc((size_t)COROUTINES * STACK);
    for (int i = 0; i < COROUTINES; ++i) {
        getcontext(&parts[i]);
        parts[i].uc_stack.ss_sp = stacks + (size_t)i * STACK;
        parts[i].uc_stack.ss_size = STACK;
        makecontext(&parts[i], (void (*)(void))coroutine, 1, i);
    }
    for (volatile int turn = 0; turn < TURNS; ++turn)
        for (volatile int i = 0; i < COROUTINES; ++i) {
            swapcontext(&whole, &parts[i]);
            leaf();
        }
    return 0;
}

// --- The same in the way of boost.context: by a few instructions that end in a jump, from each
// coroutine to the next.
void switch_stack(void** from, void* to);
__asm__(
    ".text\n"
    "switch_stack:\n"
    "push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
    "mov %rsp, (%rdi)\n"
    "mov %rsi, %rsp\n"
    "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n"
    "pop %r8\n"
    "jmp *%r8\n");
static void* saved[COROUTINES + 1];
static int running = COROUTINES;
static void turn(void) {
    const int self = running;
    leaf();
    running = (running + 1) % (COROUTINES + 1);
    switch_stack(&saved[self], saved[running]);
    leaf();
}
static void ring(void) {
    for (;;) turn();
}
static int switches(void) {
    enum { REGISTERS = 6 };
    static _Alignas(16) char stacks[COROUTINES][STACK];
    for (int i = 0; i < COROUTINES; ++i) {
        // The registers, the entry, and an address to return to, as if ring() had been called.
        void** top = (void**)(stacks[i] + STACK) - 2;
        top[-1] = (void*)(uintptr_t)ring;
        saved[i] = top - 1 - REGISTERS;
    }
    for (volatile int i = 0; i < TURNS; ++i) turn();
    return 0;
}

// --- Threads.
static void* thread_main(void* argument) {
    (void)argument;
    twice();
    return NULL;
}
static int threads(void) {
    pthread_t ids[4];
    for (volatile int i = 0; i < 4; ++i) pthread_create(&ids[i], NULL, thread_main, NULL);
    for (volatile int i = 0; i < 4; ++i) pthread_join(ids[i], NULL);
    leaf();
    return 0;
}

// --- Processes that share memory and stack for a while.
static int children(void) {
    for (volatile int i = 0; i < 3; ++i) {
        const pid_t child = vfork();
        if (child == 0) {
            leaf();
            _exit(0);
        }
        leaf();
    }
    return 0;
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"plain", plain},
        {"pointers", pointers},
        {"recursion", recursion},
        {"deep", deep},
        {"long_jump", long_jump},
        {"signals", signals},
        {"coroutines", coroutines},
        {"switches", switches},
        {"alternate_stack", alternate_stack},
        {"threads", threads},
        {"children", children},
    };
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
