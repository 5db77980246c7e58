// System calls whose numbers are known, for the syscalls profiler: test_syscalls.py knows how many
// each function makes. What they do is also what strace counts.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int pipe_ends[2];

static void must(int is_so) {
    if (!is_so) abort();
}

static void read_bytes(const char* self) {
    char bytes[100];
    const int file = open(self, O_RDONLY);
    for (int i = 0; i < 10; ++i) must(pread(file, bytes, sizeof bytes, i) == sizeof bytes);
    close(file);
}

static void write_bytes(void) {
    const int file = open("/dev/null", O_WRONLY);
    for (int i = 0; i < 4; ++i) must(write(file, "thirty-three bytes, with the zero", 33) == 33);
    close(file);
}

static void fail(void) {
    for (int i = 0; i < 7; ++i) must(open("/does/not/exist", O_RDONLY) < 0 && errno == ENOENT);
    for (int i = 0; i < 3; ++i) must(close(-1) < 0 && errno == EBADF);
}

static void copy(const char* self) {
    const int from = open(self, O_RDONLY), to = open("/dev/null", O_WRONLY);
    must(sendfile(to, from, NULL, 1000) == 1000);
    close(from);
    close(to);
}

static void ask_the_time(void) {
    struct timespec now;
    for (int i = 0; i < 50; ++i) clock_gettime(CLOCK_MONOTONIC, &now);
}

static void* ask_in_thread(void* ignored) {
    for (int i = 0; i < 5; ++i) getppid();
    return ignored;
}

static void run_threads(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, ask_in_thread, NULL);
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
}

static void run_child(void) {
    const pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 6; ++i) getppid();
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static void answer(int number) {
    (void)number;
    must(write(pipe_ends[1], "x", 1) == 1);
}

// Reads what the handler writes, which interrupts it: one read if it begins again, else two.
static void read_interrupted(int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = answer;
    action.sa_flags = flags;
    sigaction(SIGALRM, &action, NULL);
    const struct itimerval soon = {{0, 0}, {0, 50000}};
    setitimer(ITIMER_REAL, &soon, NULL);
    char byte;
    ssize_t got = read(pipe_ends[0], &byte, 1);
    if (got < 0) {
        must(errno == EINTR && flags == 0);
        got = read(pipe_ends[0], &byte, 1);
    }
    must(got == 1);
}

static void restarted(void) {
    read_interrupted(SA_RESTART);
}
static void not_restarted(void) {
    read_interrupted(0);
}

static void execute_badly(void) {
    char* const arguments[] = {"exist", NULL};
    must(execv("/does/not/exist", arguments) < 0 && errno == ENOENT);
}

int main(int count, char** arguments) {
    must(count >= 1 && pipe(pipe_ends) == 0);
    read_bytes(arguments[0]);
    write_bytes();
    fail();
    copy(arguments[0]);
    ask_the_time();
    run_threads();
    run_child();
    restarted();
    not_restarted();
    execute_badly();
    return 0;
}
