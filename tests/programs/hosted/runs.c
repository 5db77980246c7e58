// One instruction that walks over two arrays, in threads, in a handler of a signal, and again
// behind them, and one that reads pages until one cannot be read. Strides and lines are known on
// paper.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

enum { kLong = 1000, kShort = 100, kRest = 50, kThreads = 3, kPage = 4096, kPages = 4 };

static alignas(64) volatile uint64_t first[kLong], second[kShort + kRest];
static sigjmp_buf fault;

static __attribute__((noinline)) void walk(const volatile uint64_t* from, size_t count) {
    for (size_t i = 0; i < count; ++i) from[i];
}

static void in_handler(int number) {
    (void)number;
    walk(second, kShort);
}

static void* in_thread(void* unused) {
    walk(first, kLong);
    return unused;
}

static void at_fault(int number) {
    (void)number;
    siglongjmp(fault, 1);
}

static __attribute__((noinline)) void read_on(const volatile unsigned char* from) {
    for (;; from += 256) *from;
}

int main(void) {
    signal(SIGUSR1, in_handler);
    signal(SIGSEGV, at_fault);
    walk(first, kLong);
    raise(SIGUSR1);
    for (int i = 0; i < kThreads; ++i) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, in_thread, NULL) != 0) return 1;
        pthread_join(thread, NULL);
    }
    // It goes on where the handler has ended.
    walk(second + kShort, kRest);

    unsigned char* pages =
        mmap(NULL, (kPages + 1) * kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + kPages * kPage, kPage, PROT_NONE) != 0) return 1;
    for (int i = 0; i < 2; ++i)
        if (sigsetjmp(fault, 1) == 0) read_on(pages);
    return 0;
}
