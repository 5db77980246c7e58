/* The vector table of a Cortex-M processor, its timer, and the way out of QEMU. */
#include "firmware.h"

void stack_top(void); /* an address: see firmware.ld */

/* The timer SysTick: Armv7-M Architecture Reference Manual, B3.3. */
struct timer {
    unsigned control, period, value;
};
#define TIMER ((volatile struct timer*)0xe000e010)

void start_timer(unsigned period) {
    TIMER->period = period - 1;
    TIMER->value = 0;
    TIMER->control = 7;
}

void stop_timer(void) {
    TIMER->control = 0;
}

/* Ends QEMU with this status (Arm, "Semihosting for AArch32 and AArch64", SYS_EXIT_EXTENDED). */
static void leave(int status) {
    const int arguments[] = {0x20026, status};
    register int operation __asm__("r0") = 0x20;
    register const int* block __asm__("r1") = arguments;
    __asm__ volatile("bkpt 0xab" : : "r"(operation), "r"(block) : "memory");
}

void reset(void) {
    leave(main());
    for (;;) {
    }
}

static void fault(void) {
    for (;;) {
    }
}

__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
    stack_top, reset, fault, fault, [15] = on_tick};
