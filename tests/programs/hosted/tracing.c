// ptrace(2): of children that ask for it, of others, and of the program itself.
#include <elf.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

// A child that its parent traces from the program on that it executes.
static int traced_program(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execl("/nonexistent", "nothing", (char*)NULL);
        execl("/bin/echo", "echo", "traced", (char*)NULL);
        _exit(1);
    }
    int status = 0, stops = 0;
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        if (++stops < 4) printf("%d\n", WSTOPSIG(status));
        ptrace(PTRACE_SYSCALL, child, NULL, NULL);
    }
    printf("%x %d\n", (unsigned)status, stops > 10);
    return 0;
}

static void count_signal(int number) {
    static const char text[] = "handled\n";
    if (number == SIGUSR2) write(1, text, sizeof text - 1);
}

// Stops for its tracer at whatever signal it gets.
static void be_traced(void) {
    show_error(ptrace(PTRACE_TRACEME, 0, NULL, NULL), 0);
    show_error(ptrace(PTRACE_TRACEME, 0, NULL, NULL), EPERM);
    fflush(stdout);
    signal(SIGUSR2, count_signal);
    signal(SIGHUP, SIG_IGN);
    raise(SIGUSR1);
    raise(SIGUSR2);
    raise(SIGHUP);
    raise(SIGCHLD);
    kill(getpid(), SIGSTOP);
    raise(SIGTSTP);
    __asm__ volatile("movl $0x1234567, %%ebx\n\tint3" : : : "rbx");
    __asm__ volatile("movl $0x7654321, %%ebx\n\tud2" : : : "rbx");
}

static const char* const kPassed = "the others are not";
static int passes(int number) {
    return number == SIGUSR2 || number == SIGHUP || number == SIGILL;
}

static void show_stop(pid_t child, int status) {
    siginfo_t info;
    struct user_regs_struct registers;
    struct iovec set = {&registers, sizeof registers};
    ptrace(PTRACE_GETSIGINFO, child, NULL, &info);
    printf("%x %d %d ", (unsigned)status, info.si_signo, info.si_code);
    printf("%d ", info.si_code <= 0 ? info.si_pid == child : -1);
    ptrace(PTRACE_GETREGS, child, NULL, &registers);
    const unsigned long long rbx =
        WSTOPSIG(status) == SIGTRAP || WSTOPSIG(status) == SIGILL ? registers.rbx : 0;
    const long word = ptrace(PTRACE_PEEKUSER, child, offsetof(struct user_regs_struct, rip), NULL);
    printf("%llx %d ", rbx, registers.rip == (unsigned long long)word);
    printf("%ld %d ", ptrace(PTRACE_GETREGSET, child, NT_PRSTATUS, &set),
           registers.rip == (unsigned long long)word);
    const long text = ptrace(PTRACE_PEEKDATA, child, kPassed, NULL);
    printf("%d\n", memcmp(&text, kPassed, sizeof text));
}

static int traced_child(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        be_traced();
        _exit(1);
    }
    int status = 0;
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        show_stop(child, status);
        show_error(ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_EXITKILL), 0);
        const long number = passes(WSTOPSIG(status)) ? WSTOPSIG(status) : 0;
        fflush(stdout);
        ptrace(PTRACE_CONT, child, NULL, number);
    }
    printf("%x\n", (unsigned)status);
    show_error(ptrace(PTRACE_SYSCALL, child, NULL, NULL), ESRCH);
    return 0;
}

// What has been let go is not traced any more.
static int let_go(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        signal(SIGUSR2, count_signal);
        raise(SIGUSR1);
        raise(SIGUSR2);
        raise(SIGTERM);
        _exit(1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("%x\n", (unsigned)status);
    show_error(ptrace(PTRACE_DETACH, child, NULL, SIGUSR2), 0);
    waitpid(child, &status, 0);
    printf("%x\n", (unsigned)status);
    return 0;
}

// Nor is what has lost its tracer.
static int tracer_ends(void) {
    fflush(stdout);
    int ends[2];
    if (pipe(ends) != 0) return 1;
    if (fork() == 0) {
        pid_t child = fork();
        if (child == 0) {
            ptrace(PTRACE_TRACEME, 0, NULL, NULL);
            raise(SIGUSR1);
            signal(SIGUSR2, count_signal);
            raise(SIGUSR2);
            write(ends[1], "goes on", 7);
            _exit(0);
        }
        waitpid(child, NULL, 0);
        _exit(0);
    }
    close(ends[1]);
    char text[8] = "";
    printf("%zd ", read(ends[0], text, sizeof text));
    printf("%s\n", text);
    return 0;
}

static int stepped(void) {
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        _exit(1);
    }
    waitpid(child, NULL, 0);
    ptrace(PTRACE_SINGLESTEP, child, NULL, NULL);
    return 0;
}

static int traced(void) {
    return (int)ptrace(PTRACE_TRACEME, 0, NULL, NULL) + raise(SIGSTOP);
}

static int tracer(void) {
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    show_error(ptrace(PTRACE_SEIZE, child, NULL, NULL), EPERM);
    show_error(ptrace(PTRACE_ATTACH, child, NULL, NULL), EPERM);
    show_error(ptrace(PTRACE_SEIZE, 999999999, NULL, NULL), ESRCH);
    kill(child, SIGKILL);
    return 0;
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"traced_program", traced_program},
        {"traced", traced},
        {"traced_child", traced_child},
        {"let_go", let_go},
        {"tracer_ends", tracer_ends},
        {"stepped", stepped},
        {"tracer", tracer},
    };
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
