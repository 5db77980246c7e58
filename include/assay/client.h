/* assay/client.h - functions for a program that assay profiles.
 *
 * Part of assay's C ABI, version 1. For the profiled program, not for profilers. C99 and C++,
 * with nothing to link. Natively, under other tools, and with other compilers or processors,
 * these functions do nothing and return 0.
 *
 * A marker is the eight-byte instruction
 *
 *     0f 1f 84 00 61 73 73 79      nop dword ptr [rax + rax + 0x79737361]
 *
 * with the address of six 64-bit words in rax: the operation and its five arguments. assay sets rdx
 * to 1 if it knows the operation, and to 0 if it does not. The instruction accesses no memory
 * (Intel SDM volume 2, NOP), and neither compilers nor assemblers emit it: the displacement of
 * their padding is zero. Natively a marker takes a few cycles for some stores.
 *
 * A marker takes effect after its instruction. Counted are the instructions after a starting
 * marker, up to and including the instruction of the stopping marker.
 */
#ifndef ASSAY_CLIENT_H
#define ASSAY_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Operations and their arguments. The numbers are final; more may come. */
enum {
    ASSAY_IS_PROFILING = 0,
    ASSAY_START_COLLECTING = 1,
    ASSAY_STOP_COLLECTING = 2,
    ASSAY_BEGIN_PHASE = 3,          /* name */
    ASSAY_END_PHASE = 4,            /* name */
    ASSAY_REGISTER_REGION = 5,      /* address, bytes, owner, label */
    ASSAY_UNREGISTER_REGION = 6,    /* address */
    ASSAY_REGISTER_INTERPRETER = 7, /* function, bytes, displacement */
    ASSAY_REGISTER_LINES = 8        /* first position, count, step, lines */
};

/* Returns 1 if assay runs the program and knows the operation, else 0. */
static inline int assay_marker(uint64_t operation, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                               uint64_t e) {
    uint64_t known = 0;
#if defined(__x86_64__) && defined(__GNUC__)
    const uint64_t words[6] = {operation, a, b, c, d, e};
    __asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00, 0x61, 0x73, 0x73, 0x79"
                     : "+d"(known)
                     : "a"(words)
                     : "memory");
#else
    (void)operation, (void)a, (void)b, (void)c, (void)d, (void)e;
#endif
    return (int)known;
}

static inline uint64_t assay_address(const volatile void* pointer) {
    return (uint64_t)(uintptr_t)pointer;
}

static inline int assay_is_profiling(void) {
    return assay_marker(ASSAY_IS_PROFILING, 0, 0, 0, 0, 0);
}

/* Starts or stops profiling of all threads of the process. The last call counts; calls do not
 * nest. --collect-at-start decides the state at the start. Other threads follow at the end of
 * their basic block. */
static inline void assay_start_collecting(void) {
    assay_marker(ASSAY_START_COLLECTING, 0, 0, 0, 0, 0);
}
static inline void assay_stop_collecting(void) {
    assay_marker(ASSAY_STOP_COLLECTING, 0, 0, 0, 0, 0);
}

/* Begins or ends a phase of the calling thread. Copies `name`, up to 1024 bytes. */
static inline void assay_begin_phase(const char* name) {
    assay_marker(ASSAY_BEGIN_PHASE, assay_address(name), 0, 0, 0, 0);
}
static inline void assay_end_phase(const char* name) {
    assay_marker(ASSAY_END_PHASE, assay_address(name), 0, 0, 0, 0);
}

/* Registers the memory at `address` as a region, such as an arena, until it is unregistered.
 * Reports show `owner` and `label`. Copies both, up to 1024 bytes. */
static inline void assay_register_region(const volatile void* address, size_t bytes,
                                         const char* owner, const char* label) {
    assay_marker(ASSAY_REGISTER_REGION, assay_address(address), bytes, assay_address(owner),
                 assay_address(label), 0);
}
static inline void assay_unregister_region(const volatile void* address) {
    assay_marker(ASSAY_UNREGISTER_REGION, assay_address(address), 0, 0, 0, 0);
}

/* For interpreters: counts by line of the interpreted program, with --contexts.
 *
 * The machine code of `function`, of so many bytes, executes all instructions of interpreted
 * programs. Before each of them it stores the instruction's address, its position, from a register
 * to memory at a register plus `displacement`. Each interpreted function has a call of `function`
 * of its own. Returns 1 if assay counts by line. The last call counts. */
static inline int assay_register_interpreter(const volatile void* function, size_t bytes,
                                             ptrdiff_t displacement) {
    return assay_marker(ASSAY_REGISTER_INTERPRETER, assay_address(function), bytes,
                        (uint64_t)displacement, 0, 0);
}

/* The positions are `count` addresses from `first`, each `step` bytes after the one before.
 * lines[i] is an address that stands for the line of position i, and counts as the place from which
 * `function` was called. A perf map or a jitdump file gives it a function, a file and a line. It is
 * in no file that is mapped. 0: the position belongs to the line that was executed before.
 * Positions can get other lines. No other thread may execute `function` meanwhile. Copies `lines`.
 */
static inline void assay_register_lines(const volatile void* first, size_t count, size_t step,
                                        const uint64_t* lines) {
    assay_marker(ASSAY_REGISTER_LINES, assay_address(first), count, step, assay_address(lines), 0);
}

#ifdef __cplusplus
}
#endif
#endif
