// Signal handlers in every position: by raise, by timer, on a fault, nested.
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "cases.h"

static volatile sig_atomic_t seen;

static void note(int number) {
    seen = seen * 100 + number;
}

static void handle(int number, void (*handler)(int, siginfo_t*, void*), int flags) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

static int raised(void) {
    signal(SIGUSR1, note);
    raise(SIGUSR1);
    kill(getpid(), SIGUSR1);
    printf("seen %d\n", (int)seen);
    return 0;
}

static int interrupt(void) {
    signal(SIGINT, note);
    kill(getpid(), SIGINT);
    printf("handled %d\n", (int)seen);
    fflush(stdout);
    signal(SIGINT, SIG_DFL);
    kill(getpid(), SIGINT);
    return 0;
}

static void with_value(int number, siginfo_t* info, void* context) {
    const ucontext_t* user = context;
    seen = number + info->si_value.sival_int;
    if (info->si_pid != getpid() || user->uc_mcontext.gregs[REG_RSP] == 0) seen = -1;
}
static int siginfo(void) {
    handle(SIGRTMIN, with_value, 0);
    sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 1000});
    printf("%d\n", (int)seen == SIGRTMIN + 1000);
    return 0;
}

static void outer(int number) {
    note(number);
    raise(SIGUSR2);
    note(99);
}
static int nested(void) {
    signal(SIGUSR1, outer);
    signal(SIGUSR2, note);
    raise(SIGUSR1);
    printf("%d\n", (int)seen);
    return 0;
}

static int masked(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    signal(SIGUSR1, note);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGUSR1);
    printf("blocked: %d\n", (int)seen);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    printf("then: %d\n", (int)seen);
    return 0;
}

// Every tick interrupts a computation whose result must not change.
static int timer(void) {
    signal(SIGALRM, note);
    struct itimerval often = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &often, NULL);
    uint64_t state = 1;
    double sum = 0;
    for (int i = 0; i < 6000000; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(state >> 40);
    }
    printf("%d %llx %.0f\n", seen != 0, (unsigned long long)state, sum);
    return 0;
}

static void tick_often(void) {
    signal(SIGALRM, note);
    struct itimerval often = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &often, NULL);
}

// Within one string instruction there is time for several signals.
static volatile sig_atomic_t ticks;
static void count_tick(int number) {
    (void)number;
    ++ticks;
}
static int timer_and_strings(void) {
    const size_t bytes = (size_t)32 << 20;
    const struct itimerval often = {{0, 5000}, {0, 5000}}, never = {{0, 0}, {0, 0}};
    char* zeros = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    signal(SIGALRM, count_tick);
    setitimer(ITIMER_REAL, &often, NULL);
    // A fast processor needs more than 20 rounds for some ticks.
    for (int i = 0; i < 20 || ticks <= 3; ++i) {
        char* at = zeros;
        size_t count = bytes;
        __asm__ volatile("repe scasb" : "+D"(at), "+c"(count) : "a"(0) : "cc", "memory");
        if (at != zeros + bytes || count != 0) return 1;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%d\n", ticks > 3);
    return 0;
}

// Each read is of another line, so that trace buffers become full at any time, also while a tick
// waits for the end of its unit.
static int timer_and_reads(void) {
    static volatile unsigned char lines[64 * 65536];
    tick_often();
    unsigned sum = 0;
    for (int round = 0; round < 500; ++round) {
        for (volatile unsigned char* at = lines; at != lines + sizeof lines; at += 64 * 64) {
#define READ(n) sum += at[64 * (n)]
#define READ_4(n) READ(n), READ(n + 1), READ(n + 2), READ(n + 3)
#define READ_16(n) READ_4(n), READ_4(n + 4), READ_4(n + 8), READ_4(n + 12)
            READ_16(0), READ_16(16), READ_16(32), READ_16(48);
        }
    }
    printf("%d %u\n", seen != 0, sum);
    return 0;
}

// So do faults, which have handlers of their own.
static volatile int divisor, faults;
static void divide_by_one(int number, siginfo_t* info, void* context) {
    (void)number, (void)info, (void)context;
    divisor = 1;
    ++faults;
}
static int timer_and_faults(void) {
    handle(SIGFPE, divide_by_one, 0);
    tick_often();
    unsigned sum = 0;
    for (int round = 1; round <= 30000; ++round) {
        divisor = 0;
        unsigned state = (unsigned)round;
#define STEP state = (state ^ state >> 7) * 1664525
#define STEP_8 STEP, STEP, STEP, STEP, STEP, STEP, STEP, STEP
        STEP_8, STEP_8, STEP_8, STEP_8, STEP_8, STEP_8;
        __asm__ volatile("xor %%edx, %%edx\n\tdivl %1" : "+a"(state) : "m"(divisor) : "edx");
        sum += state;
    }
    printf("%d %d %u\n", seen != 0, faults, sum);
    return 0;
}

// Signals that another process sends right after one another, two of them numbered as faults are:
// each must arrive.
static volatile sig_atomic_t arrived[65];
static void arrive(int number) {
    ++arrived[number];
}
static int sent_together(void) {
    enum { ROUNDS = 500 };
    int ends[2];
    if (pipe(ends) != 0) return 1;
    signal(SIGUSR1, arrive);
    signal(SIGFPE, arrive);
    signal(SIGSEGV, arrive);
    pid_t parent = getpid();
    if (fork() == 0) {
        char byte;
        close(ends[1]);  // the parent's end is the parent's
        for (int round = 0; round < ROUNDS; ++round) {
            kill(parent, SIGUSR1);
            kill(parent, SIGFPE);
            kill(parent, SIGSEGV);
            if (read(ends[0], &byte, 1) != 1) _exit(1);
        }
        _exit(0);
    }
    for (int round = 1; round <= ROUNDS; ++round) {
        while (arrived[SIGUSR1] < round || arrived[SIGFPE] < round || arrived[SIGSEGV] < round) {
        }
        while (write(ends[1], "x", 1) != 1) {
        }
    }
    printf("%d %d %d\n", (int)arrived[SIGUSR1], (int)arrived[SIGFPE], (int)arrived[SIGSEGV]);
    return 0;
}

// The kernel cannot write the handler's frame.
static int no_stack(void) {
    tick_often();
    __asm__ volatile("mov $4096, %%esp\n1:\tjmp 1b" : : : "memory");
    return 0;
}

static int interrupted_read(void) {
    int ends[2];
    char byte;
    if (pipe(ends) != 0) return 1;
    handle(SIGALRM, with_value, 0);
    // Again and again: on a busy machine the first can come before the read has begun.
    struct itimerval often = {{0, 20000}, {0, 20000}};
    setitimer(ITIMER_REAL, &often, NULL);
    ssize_t got = read(ends[0], &byte, 1);
    printf("%zd %d\n", got, errno == EINTR);
    return 0;
}

static int restart_end;
static void write_byte(int number, siginfo_t* info, void* context) {
    (void)number, (void)info, (void)context;
    if (write(restart_end, "x", 1) != 1) _exit(9);
}
static int restarted_read(void) {
    int ends[2];
    char byte = 0;
    if (pipe(ends) != 0) return 1;
    restart_end = ends[1];
    handle(SIGALRM, write_byte, SA_RESTART);
    struct itimerval once = {{0, 0}, {0, 20000}};
    setitimer(ITIMER_REAL, &once, NULL);
    ssize_t got = read(ends[0], &byte, 1);
    printf("%zd %c\n", got, byte);
    return 0;
}

static int broken_pipe(void) {
    int ends[2];
    if (pipe(ends) != 0) return 1;
    close(ends[0]);
    signal(SIGPIPE, SIG_IGN);
    ssize_t written = write(ends[1], "x", 1);
    printf("%zd %d\n", written, errno == EPIPE);
    fflush(stdout);
    signal(SIGPIPE, SIG_DFL);
    return (int)write(ends[1], "x", 1);
}

static char* guarded;
static void unprotect(int number, siginfo_t* info, void* context) {
    (void)context;
    if (info->si_addr != guarded + 123 || info->si_code != SEGV_ACCERR) _exit(9);
    note(number);
    mprotect(guarded, 4096, PROT_READ | PROT_WRITE);
}
static int fault_and_retry(void) {
    guarded = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    handle(SIGSEGV, unprotect, 0);
    ((volatile char*)guarded)[123] = 'y';
    printf("%d %c\n", (int)seen, guarded[123]);
    return 0;
}

static void skip_int(int number, siginfo_t* info, void* context) {
    greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
    const unsigned char* at = (const unsigned char*)registers[REG_RIP];
    printf("%d %d %p %x %d %x\n", number, info->si_code, info->si_addr, at[1],
           (int)registers[REG_TRAPNO], (unsigned)registers[REG_ERR]);
    registers[REG_RIP] += 2;
}
static int forbidden_interrupts(void) {
    handle(SIGSEGV, skip_int, 0);
    __asm__ volatile("int $0\n int $1\n int $0x20\n int $0x2e\n int $0x81\n int $0xff" ::
                         : "memory");
    return 0;
}

extern const char before_int1[], after_int1[];
static void go_on(int number, siginfo_t* info, void* context) {
    greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
    printf("%d %d %d %d\n", number, info->si_code,
           (int)(registers[REG_RIP] - (greg_t)(uintptr_t)before_int1), (int)registers[REG_TRAPNO]);
    registers[REG_RIP] = (greg_t)(uintptr_t)after_int1;
}
static int debug_trap(void) {
    handle(SIGTRAP, go_on, 0);
    __asm__ volatile("nop\n before_int1: .byte 0xf1\n nop\n after_int1:" ::: "memory");
    return 0;
}

static sigjmp_buf escape;
static void jump_out(int number) {
    siglongjmp(escape, number);
}
static int jump_from_handler(void) {
    signal(SIGSEGV, jump_out);
    signal(SIGFPE, jump_out);
    volatile int many = 100, zero = 0, rounds = 0;
    while (rounds < 3) {
        int number = sigsetjmp(escape, 1);
        if (number == 0) {
            if (rounds % 2 == 0) *(volatile int*)8 = 1;
            zero = many / zero;
        }
        printf("escaped %d\n", number);
        ++rounds;
    }
    return 0;
}

static int waited(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    kill(getpid(), SIGUSR1);
    int number = 0;
    sigwait(&set, &number);
    printf("%d\n", number);
    return 0;
}

// SA_NODEFER: the handler interrupts itself. SA_RESETHAND: it is called once.
static volatile sig_atomic_t raised_again, depth, deepest;
static void raise_again(int number) {
    if (++depth > deepest) deepest = depth;
    if (++raised_again < 10) raise(number);
    --depth;
}
static int no_defer(void) {
    struct sigaction action = {.sa_handler = raise_again, .sa_flags = SA_NODEFER};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    printf("%d deep, ", (int)deepest);
    action.sa_flags = 0;
    deepest = raised_again = 0;
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);  // each waits for the end of the one before
    printf("%d deep, %d raised\n", (int)deepest, (int)raised_again);
    return 0;
}
static void show_action(int number) {
    struct sigaction now;
    sigaction(number, NULL, &now);
    printf("%d, %x, %d, seen %d\n", now.sa_handler == SIG_DFL, (unsigned)now.sa_flags,
           sigismember(&now.sa_mask, SIGUSR2), (int)seen);
    fflush(stdout);
}
static int reset_handler(void) {
    struct sigaction action = {.sa_handler = note, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
    sigaddset(&action.sa_mask, SIGUSR2);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    show_action(SIGUSR1);
    raise(SIGUSR1);
    return 0;
}

// What is done then by default may be to stop.
static int reset_stop_handler(void) {
    const pid_t child = fork();
    if (child == 0) {
        struct sigaction action = {.sa_handler = note, .sa_flags = (int)SA_RESETHAND};
        sigaction(SIGTSTP, &action, NULL);
        setpgid(0, 0);
        raise(SIGTSTP);
        raise(SIGTSTP);
        _exit(seen == SIGTSTP ? 5 : 6);
    }
    int status = 0;
    for (int i = 0; i < 2; ++i) {
        waitpid(child, &status, WUNTRACED);
        printf("%x\n", (unsigned)status);
        if (!WIFSTOPPED(status)) break;
        kill(child, SIGCONT);
    }
    return 0;
}

// A signal may arrive while its handler is being removed.
static int stopped_without_handler(void) {
    const pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 100000; ++i) {
            signal(SIGTSTP, note);
            signal(SIGTSTP, SIG_DFL);
        }
        _exit(5);
    }
    int status = 0;
    while (waitpid(child, &status, WNOHANG) != child) {
        kill(child, SIGTSTP);
        usleep(50);
        kill(child, SIGCONT);
    }
    printf("%x\n", (unsigned)status);
    return 0;
}

static pid_t first_process;
static void note_first(int number) {
    if (getpid() == first_process) seen = number;
}
static void make_child(int rounds) {
    const struct itimerval often = {{0, 30}, {0, 30}};
    const pid_t child = vfork();
    if (child == 0) {
        setitimer(ITIMER_REAL, &often, NULL);
        for (volatile int i = 0; i < rounds; ++i) {
        }
        _exit(0);
    }
    waitpid(child, NULL, 0);
}
// What arrives at a child of vfork(2), which shares the memory, is not its parent's.
static int arrives_in_child(void) {
    first_process = getpid();
    signal(SIGALRM, note_first);
    for (int i = 0; i < 500; ++i) make_child(20 * i);
    printf("%d\n", (int)seen);
    return 0;
}

// Flags that the kernel does not know read back as 0.
static int unknown_flags(void) {
    const int numbers[] = {SIGUSR1, SIGSEGV, SIGCHLD, SIGRTMIN};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; ++i) {
        struct sigaction action = {.sa_sigaction = with_value, .sa_flags = -1};
        sigaction(numbers[i], &action, NULL);
        show_action(numbers[i]);
    }
    return 0;
}

// Real-time signals: the lowest number first, those of one number in the order of sending, none
// lost. signal(7)
static unsigned values_in_order;
static void note_value(int number, siginfo_t* info, void* user) {
    (void)user;
    values_in_order = values_in_order * 31 + (unsigned)(number - SIGRTMIN) * 100 +
                      (unsigned)info->si_value.sival_int;
    if (info->si_code != SI_QUEUE || info->si_pid != getpid()) seen = 1;
}
static int real_time_order(void) {
    sigset_t all;
    struct sigaction action = {.sa_sigaction = note_value, .sa_flags = SA_SIGINFO};
    sigfillset(&all);
    action.sa_mask = all;
    sigprocmask(SIG_BLOCK, &all, NULL);
    for (int i = 0; i < 100; ++i) {
        sigaction(SIGRTMIN + i % 5, &action, NULL);
        sigqueue(getpid(), SIGRTMIN + (99 - i) % 5, (union sigval){.sival_int = i});
    }
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    printf("%x %d\n", values_in_order, (int)seen);
    return 0;
}

// A timer that counts what it could not deliver, and one that only processor time moves.
static int posix_timers(void) {
    const struct itimerspec often = {{0, 1000000}, {0, 1000000}};
    const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID};
    for (size_t i = 0; i < 2; ++i) {
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
        event.sigev_value.sival_int = 7;
        timer_t created;
        seen = 0;
        handle(SIGUSR2, with_value, 0);
        timer_create(clocks[i], &event, &created);
        timer_settime(created, 0, &often, NULL);
        while (seen == 0) {
        }
        timer_delete(created);
        puts("expired");
    }
    return 0;
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"raised", raised},
        {"interrupt", interrupt},
        {"siginfo", siginfo},
        {"nested", nested},
        {"masked", masked},
        {"timer", timer},
        {"timer_and_strings", timer_and_strings},
        {"timer_and_reads", timer_and_reads},
        {"timer_and_faults", timer_and_faults},
        {"sent_together", sent_together},
        {"no_stack", no_stack},
        {"interrupted_read", interrupted_read},
        {"restarted_read", restarted_read},
        {"broken_pipe", broken_pipe},
        {"fault_and_retry", fault_and_retry},
        {"forbidden_interrupts", forbidden_interrupts},
        {"debug_trap", debug_trap},
        {"jump_from_handler", jump_from_handler},
        {"waited", waited},
        {"no_defer", no_defer},
        {"reset_handler", reset_handler},
        {"reset_stop_handler", reset_stop_handler},
        {"stopped_without_handler", stopped_without_handler},
        {"arrives_in_child", arrives_in_child},
        {"unknown_flags", unknown_flags},
        {"real_time_order", real_time_order},
        {"posix_timers", posix_timers},
    };
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
