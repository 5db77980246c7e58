// A thread writes two words of two lines, again and again; another one reads, turn by turn, the
// second word of one line, and of the other line a word that nobody writes.
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

enum { kTimes = 1000, kLine = 64 };

static alignas(kLine) volatile long one[kLine / 8];
static alignas(kLine) volatile long other[kLine / 8];
static alignas(kLine) atomic_int turn;

__attribute__((noinline)) static long read_second(void) {
    return one[1];
}

__attribute__((noinline)) static long read_other(void) {
    return other[2];
}

static void wait_for(int who) {
    while (atomic_load(&turn) != who) {
    }
}

static void* reader(void* unused) {
    for (int i = 0; i < kTimes; ++i) {
        wait_for(1);
        if (read_second() + read_other() < 0) return NULL;
        atomic_store(&turn, 0);
    }
    return unused;
}

int main(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, reader, NULL) != 0) return 1;
    for (int i = 0; i < kTimes; ++i) {
        wait_for(0);
        one[0] = other[0] = i;
        one[1] = other[1] = i;
        atomic_store(&turn, 1);
    }
    pthread_join(thread, NULL);
    return 0;
}
