/* Values of instructions that fault first, that access some elements only, or that end where memory
 * does: tests/end_to_end/test_values.py. */
#include <cpuid.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>

static char* page;

static void permit(int number) {
    (void)number;
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

/* Each faults, and is executed once more. */
static void faults(void) {
    signal(SIGSEGV, permit);
    mprotect(page, 4096, PROT_NONE);
    __asm__ volatile(".globl faulting_store\nfaulting_store: movq $77, (%0)"
                     :
                     : "r"(page)
                     : "memory");
    mprotect(page, 4096, PROT_READ);
    __asm__ volatile(".globl faulting_modify\nfaulting_modify: addq $5, (%0)"
                     :
                     : "r"(page)
                     : "memory");
    printf("%ld\n", *(long*)page);
}

/* Without the first element. */
static void gather(void) {
    static const int table[8] = {10, 11, 12, 13, 14, 15, 16, 17};
    static const int indexes[8] = {3, 1, 2, 0, 4, 5, 6, 7};
    static const int mask[8] = {0, -1, -1, -1, -1, -1, -1, -1};
    int result[8];
    __asm__ volatile(
        "vmovdqu (%1), %%ymm1\n\tvmovdqu (%2), %%ymm2\n\tvpxor %%ymm0, %%ymm0, %%ymm0\n"
        ".globl gather_here\ngather_here: vpgatherdd %%ymm2, (%0, %%ymm1, 4), %%ymm0\n\t"
        "vmovdqu %%ymm0, (%3)"
        :
        : "r"(table), "r"(indexes), "r"(mask), "r"(result)
        : "xmm0", "xmm1", "xmm2", "memory");
    printf("gathered: %d %d %d\n", result[0], result[1], result[7]);
}

/* One element each: of the upper half of a register, and by a register that only AVX-512 has. */
__attribute__((target("avx512f"))) static void gather_by_mask(void) {
    static const int table[8] = {10, 11, 12, 13, 14, 15, 16, 17};
    static const int indexes[16] = {0, 6, 0, 0, 0, 0, 0, 0, 0, 5};
    int result[16], other[16];
    __asm__ volatile(
        "vmovdqu32 (%1), %%zmm1\n\tvmovdqa32 %%zmm1, %%zmm17\n\t"
        "vpxord %%zmm0, %%zmm0, %%zmm0\n\tvpxord %%zmm2, %%zmm2, %%zmm2\n\t"
        "movl $512, %%eax\n\tkmovw %%eax, %%k1\n\tmovl $2, %%eax\n\tkmovw %%eax, %%k2\n"
        ".globl gather_upper\ngather_upper: vpgatherdd (%0, %%zmm1, 4), %%zmm0 %{%%k1%}\n"
        ".globl gather_high\ngather_high: vpgatherdd (%0, %%zmm17, 4), %%zmm2 %{%%k2%}\n\t"
        "vmovdqu32 %%zmm0, (%2)\n\tvmovdqu32 %%zmm2, (%3)"
        :
        : "r"(table), "r"(indexes), "r"(result), "r"(other)
        : "eax", "xmm0", "xmm1", "xmm2", "xmm17", "k1", "k2", "memory");
    printf("by mask: %d %d\n", result[9], other[1]);
}

/* AMD's: the line that an address lies in. */
static void clear_line(void) {
    static _Alignas(64) char lines[128] = {[63] = 1, [64] = 2, [127] = 3};
    __asm__ volatile(".globl cleared_line\ncleared_line: clzero" : : "a"(lines + 70) : "memory");
    printf("cleared: %d %d %d\n", lines[63], lines[64], lines[127]);
}

static int has_clzero(void) {
    unsigned a, b, c, d;
    return __get_cpuid(0x80000008, &a, &b, &c, &d) && (b & 1);
}

/* The last eight bytes of a page, with nothing behind it. */
static void masked(void) {
    static const int mask[8] = {-1, -1, 0, 0, 0, 0, 0, 0};
    int* const end = (int*)(page + 4096) - 2;
    __asm__ volatile(
        "vmovdqu (%1), %%ymm1\n"
        ".globl masked_load\nmasked_load: vpmaskmovd (%0), %%ymm1, %%ymm0\n\t"
        "vpmaskmovd %%ymm0, %%ymm1, (%0)"
        :
        : "r"(end), "r"(mask)
        : "xmm0", "xmm1", "memory");
    printf("%d %d\n", end[0], end[1]);
}

/* Operands that are not accessed: hints, and bounds of MPX that nobody has enabled, whose registers
 * not all assemblers know: bndmov both ways, bndldx, bndstx. */
static void hints(void) {
    __asm__ volatile(
        "prefetcht0 (%0)\n\tprefetchw (%0)\n\tprefetchwt1 (%0)\n\tnopl (%0)\n\t"
        ".byte 0x66, 0x0f, 0x1a, 0x00, 0x66, 0x0f, 0x1b, 0x00, 0x0f, 0x1a, 0x00, 0x0f, 0x1b, 0x00"
        :
        : "a"(8UL)
        : "memory");
}

int main(void) {
    page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(page + 4096, 4096, PROT_NONE);
    if (__builtin_cpu_supports("avx2")) {
        gather();
        masked();
    }
    if (__builtin_cpu_supports("avx512f")) gather_by_mask();
    if (has_clzero()) clear_line();
    hints();
    faults();
    return 0;
}
