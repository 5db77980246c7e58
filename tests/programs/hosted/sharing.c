// Two threads that share lines: falsely, truly, and not at all. Each counter is read and written
// kTimes times.
#include <pthread.h>
#include <stdalign.h>
#include <stdint.h>

enum { kTimes = 100000, kLine = 64 };

static alignas(kLine) volatile uint64_t together[kLine / 8];  // falsely shared: [0] and [1]
static alignas(kLine) volatile uint64_t common[kLine / 8];    // truly shared: [0]
static alignas(kLine) volatile uint64_t apart[2][kLine / 8];  // not shared
static alignas(kLine) volatile uint64_t left[kLine / 8];      // read when its writer has ended

static void first_together(void) {
    for (int i = 0; i < kTimes; ++i) together[0] = together[0] + 1;
}
static void second_together(void) {
    for (int i = 0; i < kTimes; ++i) together[1] = together[1] + 1;
}
static void both_common(void) {
    for (int i = 0; i < kTimes; ++i) common[0] = common[0] + 1;
}
static void first_apart(void) {
    for (int i = 0; i < kTimes; ++i) apart[0][0] = apart[0][0] + 1;
}
static void second_apart(void) {
    for (int i = 0; i < kTimes; ++i) apart[1][0] = apart[1][0] + 1;
}

static void write_once(void) {
    left[0] = 1;
}
static void read_later(void) {
    for (int i = 0; i < 10 * kTimes; ++i) left[1];
}

static void* first(void* unused) {
    first_together();
    both_common();
    first_apart();
    return unused;
}
static void* second(void* unused) {
    second_together();
    both_common();
    second_apart();
    return unused;
}

static void* third(void* unused) {
    write_once();
    return unused;
}

int main(void) {
    // What the first thread does before there is another one is not shared.
    for (int i = 0; i < kLine / 8; ++i) together[i] = 0;
    pthread_t threads[3];
    if (pthread_create(&threads[0], NULL, first, NULL) != 0) return 1;
    if (pthread_create(&threads[1], NULL, second, NULL) != 0) return 1;
    if (pthread_create(&threads[2], NULL, third, NULL) != 0) return 1;
    for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
    read_later();
    return 0;
}
