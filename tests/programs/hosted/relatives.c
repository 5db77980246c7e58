// Processes that share the memory of the one that makes them, while both run: clone(2) with
// CLONE_VM alone.
#include <elf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

static atomic_long counter;

// A process that shares its parent's memory, and is waited for as a child.
static int add_and_leave(void* number) {
    atomic_fetch_add(&counter, (long)number);
    return 3;
}
static int sharing_process(void) {
    static char stack[65536] __attribute__((aligned(64)));
    int status = 0;
    for (uintptr_t i = 1; i <= 20; ++i) {
        pid_t child = clone(add_and_leave, stack + sizeof stack, CLONE_VM | SIGCHLD, (void*)i);
        if (child < 0 || waitpid(child, &status, 0) != child) return 1;
    }
    printf("%ld, status %d\n", counter, WEXITSTATUS(status));
    return 0;
}

// Threads that a process with the same memory stops, and whose registers it reads, as LeakSanitizer
// does. The tracer executes what nobody has before while they are stopped.
enum { kSpinners = 3 };
static const unsigned long kept_value = 0x5eed0000;
static atomic_int spinners, spun_enough;
static pid_t spinner_tids[kSpinners];
static unsigned long seen[kSpinners];
// What an earlier system call has found in the registers is not in them any more: the processor
// need not write that down.
static void use_registers_for_a_while(void) {
    const int wide = __builtin_cpu_supports("avx");
    __asm__ volatile("pcmpeqd %%xmm7, %%xmm7" : : : "xmm7");
    if (wide) __asm__ volatile("vcmptrueps %%ymm7, %%ymm7, %%ymm7" : : : "xmm7");
    long result = SYS_getppid;
    __asm__ volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
    if (wide)
        __asm__ volatile("vzeroall"
                         :
                         :
                         : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
                           "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    __asm__ volatile("pxor %%xmm7, %%xmm7" : : : "xmm7");
}
static void* spin_with_register(void* number) {
    register unsigned long kept __asm__("r14") = kept_value + (uintptr_t)number;
    spinner_tids[(uintptr_t)number] = gettid();
    use_registers_for_a_while();
    atomic_fetch_add(&spinners, 1);
    __asm__ volatile("1: pause; cmpl $0, %1; je 1b" : "+r"(kept) : "m"(spun_enough));
    return (void*)(kept - kept_value);
}
static char registers_seen[kSpinners][80];
static int look_at_vectors(pid_t tid, char* text) {
    struct user_fpregs_struct legacy;
    static unsigned char all[16384];
    struct iovec area = {all, sizeof all};
    const unsigned *upper = (const unsigned*)(all + 576 + 7 * 16), *xmm = legacy.xmm_space + 7 * 4;
    unsigned used = 0;
    if (ptrace(PTRACE_GETFPREGS, tid, NULL, &legacy) != 0) return 6;
    if (ptrace(PTRACE_GETREGSET, tid, (void*)NT_X86_XSTATE, &area) != 0) return 7;
    for (int i = 0; i < 32; ++i) used |= legacy.st_space[i];
    for (int i = 0; i < 4; ++i) used |= xmm[i] | (area.iov_len >= 832 ? upper[i] : 0);
    snprintf(text, sizeof registers_seen[0], "%x %x %x %x, %x, %d", legacy.cwd, legacy.swd,
             legacy.ftw, legacy.mxcsr, used, memcmp(&legacy, all, 416) == 0);
    return 0;
}
static int stop_and_look(pid_t tid, unsigned long* where) {
    struct user_regs_struct registers = {0};
    struct iovec all = {&registers, sizeof registers};
    int status = 0;
    if (ptrace(PTRACE_ATTACH, tid, NULL, NULL) != 0) return 1;
    if (waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status)) return 2;
    if (WSTOPSIG(status) != SIGSTOP) return 3;
    if (ptrace(PTRACE_GETREGSET, tid, (void*)NT_PRSTATUS, &all) != 0) return 4;
    *where = registers.r14;
    return all.iov_len == sizeof registers ? 0 : 5;
}
static int look_at_relatives(void* unused) {
    (void)unused;
    unsigned long ignored = 0;
    for (int i = 0; i < kSpinners; ++i) {
        int error = stop_and_look(spinner_tids[i], &seen[i]);
        if (!error) error = look_at_vectors(spinner_tids[i], registers_seen[i]);
        if (error) return error;
    }
    if (stop_and_look(getppid(), &ignored) != 0) return 10;
    char text[64];
    snprintf(text, sizeof text, "%a %+.3e", (double)seen[0], (double)seen[1]);
    for (int i = 0; i < kSpinners; ++i) ptrace(PTRACE_DETACH, spinner_tids[i], NULL, NULL);
    ptrace(PTRACE_DETACH, getppid(), NULL, NULL);
    return 0;
}
static int traced_by_relative(void) {
    static char stack[65536] __attribute__((aligned(64)));
    pthread_t threads[kSpinners];
    for (uintptr_t i = 0; i < kSpinners; ++i)
        pthread_create(&threads[i], NULL, spin_with_register, (void*)i);
    while (atomic_load(&spinners) != kSpinners) sched_yield();
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    for (int round = 0; round < 5; ++round) {
        int status = -1;
        pid_t child = clone(look_at_relatives, stack + sizeof stack,
                            CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_UNTRACED, NULL);
        if (child < 0 || waitpid(child, &status, __WALL) != child) return 1;
        printf("%x: %lx %lx %lx\n", (unsigned)status, seen[0], seen[1], seen[2]);
    }
    atomic_store(&spun_enough, 1);
    for (uintptr_t i = 0; i < kSpinners; ++i) {
        void* result = NULL;
        pthread_join(threads[i], &result);
        printf("%d: %s\n", result == (void*)i, registers_seen[i]);
    }
    return 0;
}

// A process that shares the memory, and executes a program, or is killed.
static int become_program(void* unused) {
    (void)unused;
    execl("/bin/sh", "sh", "-c", "exit 5", (char*)NULL);
    return 1;
}
static atomic_int waiting;
static int wait_to_be_killed(void* unused) {
    (void)unused;
    ++waiting;
    pause();
    return 1;
}
static int sharing_process_ends(void) {
    static char stack[65536] __attribute__((aligned(64)));
    for (int round = 0; round < 3; ++round) {
        int status = -1;
        pid_t child = clone(become_program, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);
        if (child < 0 || waitpid(child, &status, 0) != child) return 1;
        printf("%x\n", (unsigned)status);
        child = clone(wait_to_be_killed, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);
        while (waiting != round + 1) usleep(1000);
        usleep(20000);  // it is on its way to the call
        kill(child, SIGTERM);
        if (child < 0 || waitpid(child, &status, 0) != child) return 2;
        printf("%x\n", (unsigned)status);
    }
    return 0;
}

// One that is the child of its parent's parent.
static int make_sibling(void* stack_end) {
    pid_t child = clone(add_and_leave, stack_end, CLONE_VM | CLONE_PARENT | SIGCHLD, (void*)5L);
    if (child < 0) return 1;
    while (atomic_load(&counter) != 5) sched_yield();
    return waitpid(child, NULL, 0) == -1 && errno == ECHILD ? 4 : 2;
}
static int sharing_sibling(void) {
    static char stack[65536] __attribute__((aligned(64)));
    for (int round = 0; round < 5; ++round) {
        int sum = 0, status = 0;
        if (fork() == 0) _exit(make_sibling(stack + sizeof stack));
        for (int i = 0; i < 2; ++i) sum += wait(&status) > 0 ? WEXITSTATUS(status) : 100;
        printf("%d\n", sum);
    }
    return 0;
}

// The same where a filter refuses descriptors of processes, which the driver would learn of the
// sibling's end by. The process lives on, and has one thread again some time after it was reaped:
// only then unshare(2) does as it is told.
static void refuse_descriptors_of_processes(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}
static int outlive_sibling(void* stack_end, int reaped) {
    char byte = 0;
    refuse_descriptors_of_processes();
    if (make_sibling(stack_end) != 4 || read(reaped, &byte, 1) != 1) return 1;
    for (int i = 0; i < 5000 && unshare(CLONE_THREAD) != 0; ++i) usleep(1000);
    return unshare(CLONE_THREAD) == 0 ? 5 : 2;
}
static int outlived_sibling(void) {
    static char stack[65536] __attribute__((aligned(64)));
    int reaped[2], status = 0;
    if (pipe(reaped) != 0) return 1;
    const pid_t child = fork();
    if (child == 0) _exit(outlive_sibling(stack + sizeof stack, reaped[0]));
    pid_t ended = wait(&status);
    printf("%d %d\n", ended != child, WEXITSTATUS(status));
    if (ended == child || write(reaped[1], "", 1) != 1) return 1;
    ended = wait(&status);
    printf("%d %d\n", ended == child, WEXITSTATUS(status));
    return 0;
}

// One that lives on when the process that made it is gone, and executes what nobody has before.
// The kernel clears the word that the maker has named (set_tid_address(2)).
static pid_t maker;
static atomic_int to_be_cleared = 1;
__attribute__((noinline)) static void compute_alone(void) {
    for (volatile int i = 0; i < 1000000; ++i) {
    }
}
static int outlive_maker(void* unused) {
    (void)unused;
    char text[64];
    while (kill(maker, 0) == 0) usleep(1000);
    if (to_be_cleared) return 2;
    compute_alone();
    return snprintf(text, sizeof text, "%a %+.3e", (double)maker, 1.5 * maker) > 0 ? 7 : 1;
}
static int outlived_maker(void) {
    static char stack[65536] __attribute__((aligned(64)));
    for (int round = 0; round < 5; ++round) {
        int status = 0;
        const pid_t child = fork();
        if (child == 0) {
            maker = getpid();
            syscall(SYS_set_tid_address, &to_be_cleared);
            const int flags = CLONE_VM | CLONE_PARENT | SIGCHLD;
            _exit(clone(outlive_maker, stack + sizeof stack, flags, NULL) < 0 ? 1 : 6);
        }
        if (waitpid(child, &status, 0) != child) return 1;
        printf("%x ", (unsigned)status);
        if (wait(&status) < 0) return 2;
        printf("%x\n", (unsigned)status);
    }
    return 0;
}

// What it computes then, for a run of its own.
static int computing_alone(void) {
    compute_alone();
    return 0;
}

// Signals by tgkill between two of them: each is a thread of its own process.

enum { kPart = 50 };
static pid_t parties[2];
static atomic_int arrived[2], blocked, sent, wrong;
static void note_arrival(int number, siginfo_t* info, void* context) {
    (void)number, (void)context;
    const int self = getpid() == parties[0] ? 0 : 1;
    if (gettid() != parties[self] || info->si_pid != parties[!self]) ++wrong;
    ++arrived[self];
}
static void send_to(int party) {
    for (int i = 0; i < kPart; ++i)
        if (syscall(SYS_tgkill, parties[party], parties[party], SIGRTMIN) != 0) ++wrong;
}
// What it receives finds it computing first, then with the signal blocked, then in calls.
static int receive_and_answer(void* unused) {
    (void)unused;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    while (arrived[1] < kPart) {
    }
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    send_to(0);
    blocked = 1;
    while (!sent) {
    }
    if (arrived[1] != kPart) ++wrong;
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    if (arrived[1] != 2 * kPart) ++wrong;
    send_to(0);
    while (arrived[1] < 3 * kPart) usleep(100);
    return 7;
}
static int with_process(int flags) {
    static char stack[65536] __attribute__((aligned(64)));
    int status = 0;
    struct sigaction action = {.sa_sigaction = note_arrival, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGRTMIN, &action, NULL);
    parties[0] = getpid();
    parties[1] = clone(receive_and_answer, stack + sizeof stack, CLONE_VM | SIGCHLD | flags, NULL);
    if (parties[1] < 0) return 1;
    send_to(1);
    while (!blocked) {
    }
    send_to(1);
    sent = 1;
    while (arrived[0] < 2 * kPart) {
    }
    send_to(1);
    const pid_t ended = waitpid(parties[1], &status, 0);
    printf("%d %d: %d and %d signals, %d wrong\n", ended == parties[1], WEXITSTATUS(status),
           arrived[0], arrived[1], wrong);
    return 0;
}
static int signals_between(void) {
    return with_process(0);
}
static int signals_with_same_handlers(void) {
    return with_process(CLONE_SIGHAND);
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"sharing_process", sharing_process},
        {"traced_by_relative", traced_by_relative},
        {"sharing_process_ends", sharing_process_ends},
        {"sharing_sibling", sharing_sibling},
        {"outlived_sibling", outlived_sibling},
        {"outlived_maker", outlived_maker},
        {"computing_alone", computing_alone},
        {"signals_between", signals_between},
        {"signals_with_same_handlers", signals_with_same_handlers},
    };
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
