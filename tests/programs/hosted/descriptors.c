// Descriptors that the program has not opened do not exist for it.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

static void show_open(void) {
    for (int number = 0; number < 4096; ++number) {
        struct stat status;
        int flags = fcntl(number, F_GETFD);
        int known = fstat(number, &status) == 0;
        if (flags >= 0 || known) printf("%d %d %d\n", number, flags, known);
    }
}

// Whatever has been closed, processes and programs can be started.
static int start_others(void) {
    fflush(stdout);
    int status = -1;
    if (fork() == 0) {
        execl("/bin/echo", "echo", "started", NULL);
        _exit(1);
    }
    wait(&status);
    printf("%d\n", status);
    return 0;
}

static int closed_one_by_one(void) {
    int closed = 0;
    for (int number = 3; number < 4096; ++number) closed += close(number) == 0;
    printf("%d\n", closed);
    return start_others();
}

static int closed_at_once(void) {
    open("/dev/null", O_RDONLY);
    printf("%ld\n", syscall(SYS_close_range, 3U, ~0U, 0U));
    show_error(syscall(SYS_close_range, 9U, 3U, 0U), EINVAL);
    show_open();
    return start_others();
}

static int closed_on_exec(void) {
    int number = open("/dev/null", O_RDONLY);
    printf("%ld\n", syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC));
    printf("%d\n", fcntl(number, F_GETFD));
    show_open();
    return start_others();
}

static int duplicated(void) {
    printf("%d\n", dup2(1, 255));
    printf("%d\n", dup3(1, 500, O_CLOEXEC));
    printf("%d\n", fcntl(1, F_DUPFD, 800));
    show_error(dup2(4000, 5), EBADF);
    show_open();
    return 0;
}

static int listed(const char* folder) {
    DIR* open_folder = opendir(folder);
    if (open_folder == NULL) return 1;
    int sum = 0;
    for (struct dirent* entry; (entry = readdir(open_folder)) != NULL;)
        if (atoi(entry->d_name) != 0) sum = sum * 31 + atoi(entry->d_name);
    printf("%s %d\n", folder, sum);
    closedir(open_folder);
    return 0;
}

static int folders(void) {
    char own[64];
    snprintf(own, sizeof own, "/proc/%d/fd", getpid());
    int failed = listed("/proc/self/fd") + listed("/dev/fd") + listed("/proc/self/fdinfo");
    printf("%d\n", failed);
    DIR* folder = opendir(own);
    int entries = 0;
    while (readdir(folder) != NULL) ++entries;
    printf("%d\n", entries);
    return 0;
}

// The usual way to close what a parent has left open.
static int closed_as_listed(void) {
    DIR* folder = opendir("/proc/self/fd");
    for (struct dirent* entry; (entry = readdir(folder)) != NULL;) {
        int number = atoi(entry->d_name);
        if (number > 2 && number != dirfd(folder)) printf("%d %d\n", number, close(number));
    }
    closedir(folder);
    show_open();
    return start_others();
}

// A child has its parent's descriptors until it becomes another program, and leaves none there.
static int execute_true(void* unused) {
    (void)unused;
    execl("/bin/true", "true", NULL);
    _exit(1);
}
static int shared_with_child(void) {
    static char stack[65536] __attribute__((aligned(16)));
    const int kinds[] = {CLONE_VM | CLONE_VFORK, CLONE_VM, 0};
    for (int i = 0; i < 6; ++i) {
        const int flags = kinds[i % 3] | CLONE_FILES | SIGCHLD;
        const pid_t child = clone(execute_true, stack + sizeof stack, flags, NULL);
        int status = -1;
        waitpid(child, &status, 0);
        printf("%d\n", status);
    }
    show_open();
    return 0;
}

static void* count(void* number) {
    ++*(int*)number;
    return NULL;
}
static void show_thread(const char* where) {
    pthread_t thread;
    int number = 0, error = pthread_create(&thread, NULL, count, &number);
    if (error == 0) pthread_join(thread, NULL);
    printf("%s %d %d\n", where, error, number);
    fflush(stdout);
}

// Both have one table of descriptors, but a memory each: either goes on when the other has ended,
// whatever they close.
static int shared_apart(void) {
    for (int round = 0; round < 3; ++round) {
        fflush(stdout);
        const pid_t child = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
        if (child == 0) {
            show_thread("child");
            const int number = open("/dev/null", O_RDONLY);
            printf("%d\n", number);
            if (round == 1) syscall(SYS_close_range, 3U, ~0U, 0U);
            fflush(stdout);
            if (round == 2) execute_true(NULL);
            _exit(number);
        }
        int status = -1;
        waitpid(child, &status, 0);
        printf("%x\n", status);
        show_thread("parent");
        show_open();
    }
    return start_others();
}

// The parent ends first.
static int left_to_child(void) {
    const pid_t parent = getpid();
    fflush(stdout);
    if (syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0) != 0) return 0;
    while (getppid() == parent) usleep(1000);
    show_thread("child");
    return start_others();
}

static int limited(void) {
    struct rlimit limit = {32, 32};
    printf("%d\n", setrlimit(RLIMIT_NOFILE, &limit));
    int opened = 0;
    while (open("/dev/null", O_RDONLY) >= 0) ++opened;
    show_error(opened, EMFILE);
    closefrom(3);
    return start_others();
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"closed_one_by_one", closed_one_by_one},
        {"closed_at_once", closed_at_once},
        {"closed_on_exec", closed_on_exec},
        {"duplicated", duplicated},
        {"folders", folders},
        {"closed_as_listed", closed_as_listed},
        {"shared_with_child", shared_with_child},
        {"shared_apart", shared_apart},
        {"left_to_child", left_to_child},
        {"limited", limited},
    };
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
