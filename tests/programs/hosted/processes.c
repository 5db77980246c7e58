// Child processes: forked, spawned, through a shell, and replaced.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

extern char** environ;

static int report(pid_t child) {
    int status = 0;
    if (waitpid(child, &status, 0) != child) return 9;
    if (WIFSIGNALED(status)) printf("signal %d\n", WTERMSIG(status));
    if (WIFEXITED(status)) printf("status %d\n", WEXITSTATUS(status));
    return 0;
}

static int forked(void) {
    int ends[2];
    if (pipe(ends) != 0) return 1;
    pid_t child = fork();
    if (child == 0) {
        unsigned sum = 0;
        for (unsigned i = 0; i < 100000; ++i) sum = sum * 31 + i;
        _exit(write(ends[1], &sum, sizeof sum) == sizeof sum ? 4 : 5);
    }
    unsigned sum = 0;
    if (read(ends[0], &sum, sizeof sum) != sizeof sum) return 2;
    printf("child computed %u\n", sum);
    return report(child);
}

static int forked_and_exits(void) {
    pid_t child = fork();
    if (child == 0) {
        puts("child leaves");
        exit(6);
    }
    return report(child);
}

static int forked_and_killed(void) {
    pid_t child = fork();
    if (child == 0) {
        for (;;) pause();
    }
    kill(child, SIGTERM);
    return report(child);
}

static int spawned(void) {
    pid_t child;
    char* const arguments[] = {"sh", "-c", "echo spawned $0 $1; exit 11", "a", "b", NULL};
    if (posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) != 0) return 1;
    return report(child);
}

static int spawn_missing(void) {
    pid_t child;
    char* const arguments[] = {"missing", NULL};
    printf("error %d\n",
           posix_spawn(&child, "/nonexistent/missing", NULL, NULL, arguments, environ));
    return 0;
}

static int piped(void) {
    FILE* from = popen("echo piped; exit 2", "r");
    char line[64] = "";
    if (from == NULL || fgets(line, sizeof line, from) == NULL) return 1;
    fputs(line, stdout);
    printf("closed %d\n", WEXITSTATUS(pclose(from)));
    return 0;
}

static int through_shell(void) {
    fflush(stdout);
    printf("%d\n", WEXITSTATUS(system("echo shell; exit 3")));
    return 0;
}

static int replaced(void) {
    puts("before");
    fflush(stdout);
    execl("/bin/echo", "echo", "after", (char*)NULL);
    return 1;
}

static int named(void) {
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    printf("%s, %s\n", name, (const char*)getauxval(AT_EXECFN));
    return 0;
}
static int replaced_by_itself(void) {
    execl("/proc/self/exe", "processes", "named", (char*)NULL);
    return 1;
}

static int replaced_not(void) {
    execl("/nonexistent/missing", "missing", (char*)NULL);
    puts("still here");
    return 0;
}

static void execute_badly(const char* what, const void* file, const void* arguments,
                          const void* variables) {
    syscall(SYS_execve, file, arguments, variables);
    printf("%s: error %d\n", what, errno);
}

// The errors of execve, which are the kernel's whoever looks at the file first.
static int replaced_by_nothing(void) {
    char* const arguments[] = {"x", NULL};
    char* const unreadable[] = {(char*)16, NULL};
    static char too_long[200 * 1024], long_name[5000];
    char* const large[] = {"x", too_long, NULL};
    memset(too_long, 'x', sizeof too_long - 1);
    memset(long_name, 'x', sizeof long_name - 1);
    char script[] = "/tmp/assay-test-script-XXXXXX", text[] = "/tmp/assay-test-text-XXXXXX";
    int file = mkstemp(script);
    dprintf(file, "#!%s\n", script);
    fchmod(file, 0700);
    close(file);
    file = mkstemp(text);
    dprintf(file, "text\n");
    fchmod(file, 0700);
    close(file);

    execute_badly("unreadable name", (char*)16, arguments, environ);
    execute_badly("unreadable array", "/bin/true", (char*)16, environ);
    execute_badly("unreadable argument", "/bin/true", unreadable, environ);
    execute_badly("unreadable variable", "/bin/true", arguments, unreadable);
    execute_badly("long argument", "/bin/true", large, environ);
    execute_badly("empty name", "", arguments, environ);
    execute_badly("long name", long_name, arguments, environ);
    execute_badly("no file", "/nonexistent", arguments, environ);
    execute_badly("no folder", "/bin/true/x", arguments, environ);
    execute_badly("folder", "/tmp", arguments, environ);
    execute_badly("no permission", "/etc/passwd", arguments, environ);
    execute_badly("text", text, arguments, environ);
    execute_badly("own interpreter", script, arguments, environ);
    syscall(SYS_execveat, 99, "", arguments, environ, AT_EMPTY_PATH);
    printf("no descriptor: error %d\n", errno);
    syscall(SYS_execveat, AT_FDCWD, "/bin/true", arguments, environ, 1);
    printf("flags: error %d\n", errno);
    unlink(script);
    unlink(text);
    return 0;
}

static int replaced_by_descriptor(void) {
    char* const arguments[] = {"echo", "by", "descriptor", NULL};
    fexecve(open("/bin/echo", O_RDONLY | O_CLOEXEC), arguments, environ);
    return 1;
}

// What is inherited: ignored signals, the mask, and what is pending.
// --- The first process of a PID namespace, which only faults and its parent can end.

static int in_namespace(void (*first)(int), int argument) {
    fflush(stdout);
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) return puts("no namespace") < 0;
    const pid_t child = fork();
    if (child == 0) {
        first(argument);
        fflush(stdout);
        _exit(9);
    }
    return report(child);
}
static void execute(int status) {
    char command[32];
    snprintf(command, sizeof command, "echo $$; exit %d", status);
    execl("/bin/sh", "sh", "-c", command, (char*)NULL);
}
static int first_executes(void) {
    return in_namespace(execute, 3);
}
static void send_itself(int number) {
    (void)number;
    const int numbers[] = {SIGTERM, SIGSEGV, SIGTRAP, SIGKILL, SIGABRT, SIGRTMIN, SIGTSTP};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; ++i) kill(getpid(), numbers[i]);
    if (fork() == 0) {
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; ++i) kill(1, numbers[i]);
        _exit(0);
    }
    wait(NULL);
    puts("ignored");
}
static int first_ignores(void) {
    return in_namespace(send_itself, 0);
}
static void fault(int number) {
    switch (number) {
        case SIGSEGV:
            *(volatile int*)8 = 1;
            break;
        case SIGILL:
            __asm__ volatile("ud2");
            break;
        case SIGFPE:
            __asm__ volatile("xor %%ecx, %%ecx; div %%ecx" : : : "eax", "ecx", "edx", "cc");
            break;
        case SIGTRAP:
            __asm__ volatile("int3");
            break;
        case SIGBUS:
            *(volatile char*)mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED,
                                  memfd_create("empty", 0), 0) = 1;
            break;
        default:
            abort();
    }
}
static int first_segfaults(void) {
    return in_namespace(fault, SIGSEGV);
}
static int first_has_no_instruction(void) {
    return in_namespace(fault, SIGILL);
}
static int first_divides_by_zero(void) {
    return in_namespace(fault, SIGFPE);
}
static int first_meets_breakpoint(void) {
    return in_namespace(fault, SIGTRAP);
}
static int first_has_bus_error(void) {
    return in_namespace(fault, SIGBUS);
}
static int first_aborts(void) {
    return in_namespace(fault, SIGABRT);
}

static int replaced_with_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGUSR2, SIG_IGN);
    raise(SIGTERM);
    execl("/bin/grep", "grep", "-E", "^(SigPnd|ShdPnd|SigBlk|SigIgn)", "/proc/self/status",
          (char*)NULL);
    return 1;
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"forked", forked},
        {"forked_and_exits", forked_and_exits},
        {"forked_and_killed", forked_and_killed},
        {"spawned", spawned},
        {"spawn_missing", spawn_missing},
        {"piped", piped},
        {"through_shell", through_shell},
        {"replaced", replaced},
        {"named", named},
        {"replaced_by_itself", replaced_by_itself},
        {"replaced_not", replaced_not},
        {"replaced_by_nothing", replaced_by_nothing},
        {"replaced_by_descriptor", replaced_by_descriptor},
        {"replaced_with_signals", replaced_with_signals},
        {"first_executes", first_executes},
        {"first_ignores", first_ignores},
        {"first_segfaults", first_segfaults},
        {"first_has_no_instruction", first_has_no_instruction},
        {"first_divides_by_zero", first_divides_by_zero},
        {"first_meets_breakpoint", first_meets_breakpoint},
        {"first_has_bus_error", first_has_bus_error},
        {"first_aborts", first_aborts},
    };
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
