// System calls that a signal handler interrupts: with SA_RESTART some go on, and some of those do
// not if the time that they may take is limited: signal(7).
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"

static volatile sig_atomic_t handled;

static void handle(int number) {
    (void)number;
    handled = 1;
}

// A pair of sockets or a pipe, and a futex.
static int ends[2];
static uint32_t* word;

static void write_byte(void) {
    if (write(ends[1], "x", 1) != 1) _exit(1);
}

static void empty_socket(void) {
    char bytes[4096];
    while (recv(ends[1], bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
}

static void wake(void) {
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void connect_to_parent(void) {
    struct sockaddr_un address;
    socklen_t size = sizeof address;
    getsockname(ends[0], (struct sockaddr*)&address, &size);
    const int one = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(one, (struct sockaddr*)&address, size) != 0) _exit(1);
}

static int is_waiting_in(pid_t process, long number) {
    char name[64], words[64] = "";
    snprintf(name, sizeof name, "/proc/%d/syscall", process);
    const int file = open(name, O_RDONLY);
    if (file < 0) _exit(1);
    const ssize_t count = read(file, words, sizeof words - 1);
    close(file);
    return count > 0 && words[0] != 'r' && strtol(words, NULL, 10) == number;
}

// A child that sends the signal as soon as the parent waits in that call, and later does what the
// parent waits for.
static void interrupt_parent_in(long number, void (*complete)(void)) {
    const pid_t parent = getpid();
    if (fork() != 0) return;
    const struct timespec moment = {0, 1000000}, a_while = {0, 100000000};
    while (!is_waiting_in(parent, number)) nanosleep(&moment, NULL);
    kill(parent, SIGUSR1);
    nanosleep(&a_while, NULL);
    if (complete) complete();
    _exit(0);
}

static void show(long result) {
    printf(" %ld/%s/%d", result, result < 0 ? strerrorname_np(errno) : "-", (int)handled);
    handled = 0;
    while (wait(NULL) > 0) {
    }
}

// Once without SA_RESTART, and once with it.
static int run_both(void (*run)(void)) {
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int i = 0; i < 2; ++i) {
        const struct sigaction action = {.sa_handler = handle, .sa_flags = i ? SA_RESTART : 0};
        sigaction(SIGUSR1, &action, NULL);
        run();
    }
    puts("");
    return 0;
}

static void limit(int socket, int option) {
    const struct timeval seconds = {10, 0};
    if (setsockopt(socket, SOL_SOCKET, option, &seconds, sizeof seconds) != 0) abort();
}

static void read_pipe(void) {
    char byte;
    if (pipe(ends) != 0) abort();
    interrupt_parent_in(SYS_read, write_byte);
    show(read(ends[0], &byte, 1));
}

static void receive_within(int limited, int by_read) {
    char byte;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) abort();
    if (limited) limit(ends[0], SO_RCVTIMEO);
    interrupt_parent_in(by_read ? SYS_read : SYS_recvfrom, write_byte);
    show(by_read ? read(ends[0], &byte, 1) : recv(ends[0], &byte, 1, 0));
}

static void receive_all(void) {
    for (int i = 0; i < 4; ++i) receive_within(i / 2, i % 2);
}

static void send_within(int limited) {
    static const char bytes[4096];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) abort();
    while (send(ends[0], bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
    if (limited) limit(ends[0], SO_SNDTIMEO);
    interrupt_parent_in(SYS_sendto, empty_socket);
    show(send(ends[0], bytes, 1, 0));
}

static void send_all(void) {
    send_within(0);
    send_within(1);
}

static void accept_within(int limited) {
    const struct sockaddr_un any = {.sun_family = AF_UNIX};
    ends[0] = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(ends[0], (const struct sockaddr*)&any, sizeof(sa_family_t)) != 0) abort();
    if (listen(ends[0], 1) != 0) abort();
    if (limited) limit(ends[0], SO_RCVTIMEO);
    interrupt_parent_in(SYS_accept, connect_to_parent);
    const int accepted = accept(ends[0], NULL, NULL);
    show(accepted < 0 ? accepted : 0);
}

static void accept_all(void) {
    accept_within(0);
    accept_within(1);
}

static void wait_for_word(const struct timespec* time) {
    interrupt_parent_in(SYS_futex, wake);
    show(syscall(SYS_futex, word, FUTEX_WAIT, 0, time, NULL, 0));
}

static void futex_all(void) {
    const struct timespec seconds = {10, 0};
    word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    wait_for_word(NULL);
    wait_for_word(&seconds);
}

// With a limit of its own a call never goes on.
static void wait_for_events(void) {
    const struct timespec seconds = {2, 0};
    struct epoll_event event;
    struct pollfd nothing = {.fd = -1};
    struct sembuf down = {.sem_op = -1};
    interrupt_parent_in(SYS_ppoll, NULL);
    show(ppoll(&nothing, 1, &seconds, NULL));
    interrupt_parent_in(SYS_clock_nanosleep, NULL);
    show(nanosleep(&seconds, NULL));
    const int set = epoll_create1(0);
    interrupt_parent_in(SYS_epoll_wait, NULL);
    show(epoll_wait(set, &event, 1, 2000));
    const int semaphores = semget(IPC_PRIVATE, 1, 0600);
    interrupt_parent_in(SYS_semtimedop, NULL);
    show(semtimedop(semaphores, &down, 1, &seconds));
    semctl(semaphores, 0, IPC_RMID);
}

// The lock of a file, and a child's end.
static void wait_for_others(void) {
    const struct timespec a_while = {0, 300000000};
    const pid_t child = fork();
    if (child == 0) {
        nanosleep(&a_while, NULL);
        _exit(7);
    }
    const pid_t parent = getpid();
    if (fork() == 0) {
        while (!is_waiting_in(parent, SYS_wait4)) {
        }
        kill(parent, SIGUSR1);
        _exit(0);
    }
    int status = 0;
    const pid_t ended = waitpid(child, &status, 0);
    printf(" %d", status);
    show(ended == child ? 0 : ended);
}

static int case_pipe(void) {
    return run_both(read_pipe);
}
static int case_receiving(void) {
    return run_both(receive_all);
}
static int case_sending(void) {
    return run_both(send_all);
}
static int case_accepting(void) {
    return run_both(accept_all);
}
static int case_futex(void) {
    return run_both(futex_all);
}
static int case_events(void) {
    return run_both(wait_for_events);
}
static int case_children(void) {
    return run_both(wait_for_others);
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"pipe", case_pipe},           {"receiving", case_receiving}, {"sending", case_sending},
        {"accepting", case_accepting}, {"futex", case_futex},         {"events", case_events},
        {"children", case_children},
    };
    return run_case(cases, sizeof cases / sizeof *cases, argc, argv);
}
