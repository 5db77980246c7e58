// Child processes: forked, spawned, through a shell, and replaced.
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
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

static int replaced_not(void) {
    execl("/nonexistent/missing", "missing", (char*)NULL);
    puts("still here");
    return 0;
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
        {"replaced_not", replaced_not},
    };
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
