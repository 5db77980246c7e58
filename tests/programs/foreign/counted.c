/* Loops whose counts can be worked out from the disassembly, for every processor: each function has
 * one loop of kTurns turns. test_qemu_counts.py does that. */
enum { kTurns = 1000 };

unsigned next_of[64];
static volatile unsigned char port;

__attribute__((noipa)) unsigned follow(unsigned from) {
    for (int i = 0; i < kTurns; ++i) from = next_of[from & 63] + 1;
    return from;
}

__attribute__((noipa)) void send(int first) {
    for (int i = 0; i < kTurns; ++i) port = (unsigned char)(first + i);
}

__attribute__((noipa)) int weigh(int value) {
    for (int i = 0; i < kTurns; ++i) value = (value ^ i) * 3;
    return value;
}

__attribute__((noreturn)) static void leave(void) {
#if defined(__aarch64__)
    __asm__ volatile("mov x8, 93; mov x0, 0; svc 0");
#elif defined(__riscv)
    __asm__ volatile("li a7, 93; li a0, 0; ecall");
#elif defined(__x86_64__)
    __asm__ volatile("mov $60, %eax; xor %edi, %edi; syscall");
#elif defined(__i386__)
    __asm__ volatile("mov $1, %eax; xor %ebx, %ebx; int $0x80");
#elif defined(__arm__)
    __asm__ volatile("mov r7, #1; mov r0, #0; svc 0");
#elif defined(__powerpc64__)
    __asm__ volatile("li 0, 1; li 3, 0; sc");
#elif defined(__s390x__)
    __asm__ volatile("lghi %r2, 0; svc 1");
#endif
    __builtin_unreachable();
}

void _start(void) {
#if defined(__riscv)
    __asm__ volatile(".option push; .option norelax; la gp, __global_pointer$; .option pop");
#endif
    send((int)follow(0));
    port = (unsigned char)weigh(7);
    leave();
}
