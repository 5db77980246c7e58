// Loads segment registers, each in every way that 64-bit code has: the driver refuses it for fs
// and gs, whose bases are its own business, and passes it through for the others.
#include <stdint.h>

#include "cases.h"

static struct __attribute__((packed)) {
    uint32_t offset;
    uint16_t selector;
} far_pointer = {7, 0};

#define LOADS(name)                                                                         \
    static int mov_##name(void) {                                                           \
        __asm__ volatile("mov %0, %%" #name : : "r"(0));                                    \
        return 0;                                                                           \
    }                                                                                       \
    static int pop_##name(void) {                                                           \
        __asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushq $0\n\tpopq %%" #name              \
                         "\n\tlea 128(%%rsp), %%rsp"                                        \
                         :                                                                  \
                         :                                                                  \
                         : "memory");                                                       \
        return 0;                                                                           \
    }                                                                                       \
    static int l##name(void) {                                                              \
        uint32_t offset;                                                                    \
        __asm__ volatile("l" #name " %1, %0" : "=r"(offset) : "m"(far_pointer) : "memory"); \
        return offset != far_pointer.offset;                                                \
    }
LOADS(fs)
LOADS(gs)

static int others(void) {
    uint16_t before, after;
    uint32_t offset;
    __asm__ volatile("mov %%ss, %0" : "=r"(before));
    far_pointer.selector = before;
    __asm__ volatile("lss %1, %0" : "=r"(offset) : "m"(far_pointer));
    __asm__ volatile("mov %0, %%ds\n\tmov %0, %%es" : : "r"((uint32_t)before));
    __asm__ volatile("mov %%ds, %0" : "=r"(after));
    printf("%u %d\n", offset, before == after);
    __asm__ volatile("mov %0, %%ds\n\tmov %0, %%es" : : "r"(0));
    __asm__ volatile("mov %%ds, %0" : "=r"(after));
    printf("%d\n", after);
    return 0;
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"mov_fs", mov_fs}, {"pop_fs", pop_fs}, {"lfs", lfs},       {"mov_gs", mov_gs},
        {"pop_gs", pop_gs}, {"lgs", lgs},       {"others", others},
    };
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
