// Control goes on without a call or a return: exceptions, longjmp(3), and signal handlers. Each
// place calls `work` with a number of turns of its own.
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

static long cell;

#define APART __attribute__((noinline, noclone, noipa))

APART static void work(int turns) {
    volatile long* const to = &cell;
    for (int i = 0; i < turns; ++i) *to = i;
}

// --- Exceptions, through functions with and without landing pads.

struct Guard {
    APART ~Guard() { work(1); }
};

APART static void throw_one(int number) {
    work(2);
    throw number;
}

APART static void clean_up(int number) {
    const Guard guard;
    throw_one(number);
    work(3);
}

APART static void pass_on(int calls, int number) {
    if (calls > 0)
        pass_on(calls - 1, number);
    else
        clean_up(number);
    work(4);
}

APART static void catch_long(int number) {
    try {
        pass_on(2, number);
    } catch (long) {
        work(5);
    }
}

APART static void throw_again(int number) {
    const Guard guard;
    try {
        catch_long(number);
    } catch (int) {
        work(6);
        throw;
    }
}

APART static void catch_one() {
    for (int i = 0; i < 3; ++i) {
        try {
            throw_again(i);
        } catch (int) {
            work(7);
        }
        work(8);
    }
}

// --- longjmp(3)

static jmp_buf before;

APART static void jump(int calls) {
    if (calls > 0) jump(calls - 1);
    work(9);
    longjmp(before, 1);
}

APART static void jump_back() {
    if (setjmp(before) == 0) jump(3);
    work(10);
}

// --- Signals

static sigjmp_buf before_signal;
static char* page;
static long page_bytes;
static void (*volatile pointer)(int);

APART static void help(int turns) {
    work(turns);
}

APART static void on_signal(int) {
    help(11);
    work(12);
}

APART static void on_signal_in_handler(int) {
    work(13);
    raise(SIGUSR1);
    work(14);
}

APART static void on_signal_to_pass_on(int number) {
    work(15);
    pointer(number);
    work(16);
}

APART static void on_fault(int) {
    work(17);
    mprotect(page, static_cast<size_t>(page_bytes), PROT_READ | PROT_WRITE);
}

APART static void on_signal_to_leave(int) {
    work(18);
    siglongjmp(before_signal, 1);
}

APART static void get_signals() {
    work(19);
    raise(SIGUSR1);
    work(20);
    raise(SIGUSR2);
    work(21);
    raise(SIGHUP);
    work(22);
    pointer(0);
    work(23);
}

APART static void touch() {
    page[0] = 1;
}

APART static void fault() {
    touch();
    work(24);
}

APART static void leave_handler() {
    if (sigsetjmp(before_signal, 1) == 0) {
        raise(SIGALRM);
        work(25);
    }
    work(26);
}

int main() {
    catch_one();
    work(27);
    jump_back();
    work(28);
    signal(SIGUSR1, on_signal);
    signal(SIGUSR2, on_signal_in_handler);
    signal(SIGHUP, on_signal_to_pass_on);
    signal(SIGSEGV, on_fault);
    signal(SIGALRM, on_signal_to_leave);
    pointer = on_signal;
    get_signals();
    page_bytes = sysconf(_SC_PAGESIZE);
    page = static_cast<char*>(mmap(nullptr, static_cast<size_t>(page_bytes), PROT_NONE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    fault();
    for (int i = 0; i < 2; ++i) leave_handler();
    work(29);
    return 0;
}
