/* Smooths samples of a sensor, until the timer has ticked five times. */
#include "firmware.h"

enum { kSamples = 256, kRounds = 100, kTicks = 5 };

static int samples[kSamples];
static volatile unsigned ticks;

/* The timer's interrupt. */
void on_tick(void) {
    ++ticks;
    if (ticks == kTicks) stop_timer();
}

int smooth(const int* sample) {
    int sum = 0;
    for (int i = 1; i < kSamples - 1; ++i)
        sum += (sample[i - 1] + 2 * sample[i] + sample[i + 1]) / 4;
    return sum;
}

int main(void) {
    volatile int result = 0;
    for (int i = 0; i < kSamples; ++i) samples[i] = i * i;
    start_timer(20000);
    for (int round = 0; round < kRounds; ++round) result += smooth(samples);
    while (ticks < kTicks) {
    }
    return result == 0;
}
