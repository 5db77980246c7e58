// Signals that are sent while they are blocked: those that processors cause, too, which a driver
// cannot leave to the kernel; and calls that wait with a mask of their own.
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"

// Not SIGTRAP: it is lost if one of the driver's waits, which is often in stress mode.
static const int synchronous[] = {SIGILL, SIGBUS, SIGFPE, SIGSEGV};
enum { KINDS = sizeof synchronous / sizeof synchronous[0] };

static void note(int number, siginfo_t* info, void* context) {
    (void)context;
    printf(" %d/%d", number, info->si_code);
}

static void note_all(void) {
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO};
    sigfillset(&action.sa_mask);
    for (int number = 1; number < 32; ++number)
        if (number != SIGKILL && number != SIGSTOP && number != SIGCHLD)
            sigaction(number, &action, NULL);
}

static void set_mask(bool blocked) {
    sigset_t set;
    if (blocked)
        sigfillset(&set);
    else
        sigemptyset(&set);
    sigprocmask(SIG_SETMASK, &set, NULL);
}

static void begin(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    note_all();
    set_mask(true);
}

static void end(void) {
    printf(" |");
    set_mask(false);
    puts("");
}

static void show_pending(void) {
    sigset_t set;
    sigpending(&set);
    printf("pending:");
    for (int number = 1; number < 32; ++number)
        if (sigismember(&set, number)) printf(" %d", number);
    puts("");
}

static int kept(void) {
    begin();
    for (int i = 0; i < KINDS; ++i) raise(synchronous[i]);
    for (int i = 0; i < KINDS; ++i) raise(synchronous[i]);
    raise(SIGUSR1);
    show_pending();
    show_pending();
    for (int i = 0; i < KINDS; ++i) {
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, synchronous[i]);
        sigprocmask(SIG_UNBLOCK, &one, NULL);
    }
    end();
    return 0;
}

// In one go: the kernel takes those that processors cause first, and the last one taken is the
// first to run.
static int kept_together(void) {
    begin();
    raise(SIGHUP);
    for (int i = 0; i < KINDS; ++i) raise(synchronous[i]);
    raise(SIGUSR1);
    end();
    return 0;
}

static void raise_others(int number) {
    for (int i = 0; i < KINDS; ++i) raise(synchronous[i]);
    printf(" <%d>", number);
}
static int kept_by_handler(void) {
    begin();
    struct sigaction action = {.sa_handler = raise_others};
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    end();
    return 0;
}

static int ends_when_unblocked(void) {
    begin();
    signal(SIGBUS, SIG_DFL);
    raise(SIGBUS);
    puts("still here");
    set_mask(false);
    puts("not here");
    return 0;
}

// As those do that report a crash and then leave it to who comes next.
static int sent_as_a_fault(void) {
    begin();
    siginfo_t info = {.si_signo = SIGSEGV, .si_code = SEGV_MAPERR};
    syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGSEGV, &info);
    end();
    syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGSEGV, &info);
    puts("");
    return 0;
}

static int waited(void) {
    begin();
    sigset_t set;
    sigfillset(&set);
    raise(SIGSEGV);
    raise(SIGBUS);
    siginfo_t info;
    for (int i = 0; i < 2; ++i) {
        const int number = sigwaitinfo(&set, &info);
        printf(" %d/%d", number, info.si_code);
    }
    const struct timespec at_once = {0, 0};
    printf(" %d", sigtimedwait(&set, &info, &at_once));
    end();
    return 0;
}

// The parent's child sends it while the parent waits.
// Any thread can have what is sent to the process, also one that begins to wait later.
static sem_t taken;
static void* take_all(void* set) {
    for (int i = 0; i < 2 * KINDS; ++i) {
        siginfo_t info;
        while (sigwaitinfo(set, &info) < 0) {
        }
        printf("%d %d %d\n", info.si_signo, info.si_code, info.si_pid == getpid());
        sem_post(&taken);
    }
    return NULL;
}
static volatile bool spins = true;
static void* spin(void* unused) {
    while (spins) sched_yield();
    return unused;
}
static int waited_by_another(void) {
    begin();
    sigset_t all;
    sigfillset(&all);
    pthread_t waiting, spinning;
    sem_init(&taken, 0, 0);
    pthread_create(&waiting, NULL, take_all, &all);
    pthread_create(&spinning, NULL, spin, NULL);
    // The first wait has begun when this has been taken.
    for (int round = 0; round < 2; ++round) {
        for (int i = 0; i < KINDS; ++i) {
            kill(getpid(), round == 0 && i == 0 ? SIGUSR1 : synchronous[i]);
            sem_wait(&taken);
        }
    }
    spins = false;
    pthread_join(waiting, NULL);
    pthread_join(spinning, NULL);
    end();
    return 0;
}

static int read_by_descriptor(void) {
    begin();
    sigset_t set;
    sigfillset(&set);
    const int descriptor = signalfd(-1, &set, 0);
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child == 0) {
        usleep(20000);
        kill(parent, SIGFPE);
        _exit(0);
    }
    struct signalfd_siginfo info;
    do {
        if (read(descriptor, &info, sizeof info) != sizeof info) return 1;
    } while (info.ssi_signo == SIGCHLD);
    printf("%u %d", info.ssi_signo, info.ssi_pid == (unsigned)child);
    waitpid(child, NULL, 0);
    end();
    return 0;
}

static int not_inherited(void) {
    begin();
    raise(SIGSEGV);
    show_pending();
    const pid_t child = fork();
    if (child == 0) {
        show_pending();
        set_mask(false);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    const pid_t sharing = vfork();
    if (sharing == 0) {
        raise(SIGBUS);
        _exit(0);
    }
    waitpid(sharing, NULL, 0);
    end();
    return 0;
}

static int kept_across_execution(void) {
    begin();
    raise(SIGSEGV);
    raise(SIGHUP);
    execl("/proc/self/exe", "blocked_signals", "pending", NULL);
    return 1;
}
static int pending(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    note_all();
    show_pending();
    end();
    return 0;
}

static int ignored_across_execution(void) {
    for (int i = 0; i < KINDS; ++i) signal(synchronous[i], SIG_IGN);
    execl("/proc/self/exe", "blocked_signals", "ignored", NULL);
    return 1;
}
static int ignored(void) {
    for (int i = 0; i < KINDS; ++i) {
        struct sigaction action;
        sigaction(synchronous[i], NULL, &action);
        const bool is_ignored = action.sa_handler == SIG_IGN;
        printf(" %d", is_ignored);
        if (is_ignored) raise(synchronous[i]);
    }
    puts("");
    return 0;
}

// What the call lets through is handled before it returns, all of it, and what handlers send.
static void send_more(int number) {
    printf(" (%d", number);
    raise(SIGUSR2);
    raise(SIGSEGV);
    printf(")");
}
static void send_two(void) {
    struct sigaction action = {.sa_handler = send_more};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    raise(SIGHUP);
    raise(SIGFPE);
}
static void report(int result) {
    printf(" returned %d %d", result, errno == EINTR);
    end();
}
static int suspended(void) {
    sigset_t none;
    sigemptyset(&none);
    begin();
    send_two();
    report(sigsuspend(&none));
    sigset_t but_one;
    sigfillset(&but_one);
    sigdelset(&but_one, SIGSEGV);
    set_mask(true);
    send_two();
    raise(SIGSEGV);
    report(sigsuspend(&but_one));
    return 0;
}
// In the handler, what cannot be blocked is not, even if all else is.
static void show_mask(int number) {
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    for (int other = 1; other < 32; ++other) printf("%d", sigismember(&mask, other));
    printf(" in %d\n", number);
}
static int suspended_for_one(void) {
    signal(SIGUSR1, show_mask);
    sigset_t but_one;
    sigfillset(&but_one);
    sigdelset(&but_one, SIGUSR1);
    sigprocmask(SIG_BLOCK, &but_one, NULL);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    sigprocmask(SIG_BLOCK, &one, NULL);
    raise(SIGUSR1);
    sigsuspend(&but_one);
    return 0;
}
// Handlers that block nothing more interrupt one another.
static int suspended_for_several(void) {
    sigset_t none;
    sigemptyset(&none);
    begin();
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO};
    for (int i = 0; i < KINDS; ++i) sigaction(synchronous[i], &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    send_two();
    report(sigsuspend(&none));
    return 0;
}
static int polled(void) {
    const struct timespec soon = {0, 1000000};
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    begin();
    send_two();
    report(ppoll(NULL, 0, &soon, &none));
    set_mask(true);
    send_two();
    report(pselect(0, NULL, NULL, NULL, &soon, &none));
    set_mask(true);
    send_two();
    const int epoll = epoll_create1(0);
    struct epoll_event event;
    report(epoll_pwait(epoll, &event, 1, 1, &none));
    errno = 0;
    send_two();
    raise(SIGBUS);
    report(ppoll(NULL, 0, &soon, &all));
    return 0;
}
// With something to return, the call lets nothing through.
static int polled_when_ready(void) {
    begin();
    int ends[2];
    if (pipe(ends) != 0 || write(ends[1], "x", 1) != 1) return 1;
    struct pollfd descriptor = {.fd = ends[0], .events = POLLIN};
    sigset_t none;
    sigemptyset(&none);
    raise(SIGHUP);
    raise(SIGSEGV);
    report(ppoll(&descriptor, 1, NULL, &none));
    return 0;
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"kept", kept},
        {"kept_together", kept_together},
        {"kept_by_handler", kept_by_handler},
        {"ends_when_unblocked", ends_when_unblocked},
        {"sent_as_a_fault", sent_as_a_fault},
        {"waited", waited},
        {"waited_by_another", waited_by_another},
        {"read_by_descriptor", read_by_descriptor},
        {"not_inherited", not_inherited},
        {"kept_across_execution", kept_across_execution},
        {"pending", pending},
        {"ignored_across_execution", ignored_across_execution},
        {"ignored", ignored},
        {"suspended", suspended},
        {"suspended_for_one", suspended_for_one},
        {"suspended_for_several", suspended_for_several},
        {"polled", polled},
        {"polled_when_ready", polled_when_ready},
    };
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
