/* assay/trace_vlist.h - building a trace specification: what the driver shall capture.
 *
 * Part of assay's C ABI, version 1. The names are those of DCPI's trace-vlist.h where DCPI has
 * the notion. The functions that begin with trace_capture_ go beyond it.
 *
 * The assay executable defines these functions; a profiler links against nothing. Call them only
 * from vp_prof_init, on the main thread. They allocate with malloc. If they fail, the run ends with
 * a message. Selectors run only while the specification is built.
 */
#ifndef ASSAY_TRACE_VLIST_H
#define ASSAY_TRACE_VLIST_H

#include "trace_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A value list: what to capture for one instruction. At most TRACE_VLIST_MAX values. */
typedef struct trace_vlist trace_vlist_t;

/* A trace specification: value lists by opcode, and the captures of the whole run. */
typedef struct trace_vlist_table trace_vlist_table_t;

enum { TRACE_VLIST_MAX = 7 };

/* A value to capture, one 64-bit word for each execution. It is read after the instruction, or
 * before it with TRACE_BEFORE. Floating-point and vector values are the low 64 bits of the
 * register. Operands of fewer than 64 bits are zero-extended.
 *
 * TRACE_WIDE gives a value all bytes of a vector register or of memory, up to 64. The instruction
 * names the size of an operand (xmm, ymm, zmm). TRACE_VECTOR0 to TRACE_VECTOR0 + 31 have the size
 * of the processor's registers. Memory operands of more than 64 bytes (xsave) and the 14 bytes of
 * fnstenv have the low 8 bytes, as without TRACE_WIDE. x87 registers and values of up to 8 bytes do
 * not change. trace_parser_value_bytes returns all bytes, trace_parser_next the low 8. A value of
 * 16, 32 or 64 bytes takes 2, 4 or 8 records of 16 bytes, and about 2, 4 or 8 times as long as a
 * value of 8 bytes. One instruction can have at most 14 wide values, of all profilers together.
 *
 * An instruction that faults has no values. For repeated string instructions, gathers and scatters,
 * address, loaded and stored value belong to the first access. An execution without an access
 * does not have these three values.
 * The values of system calls and markers are read before them.
 *
 * Register operands are general-purpose, vector, MMX, mask (k0 to k7) and x87 registers. Explicit
 * operands precede implicit ones. The stack pointer of push, pop, call and return, and the mask of
 * a masked instruction, are no operands. Segment, bound and tile registers are not captured, and
 * neither are memory values under a vector mask.
 *
 * An x87 register has the value of the nearest IEEE double, ties to even, whatever rounding the
 * program has chosen. Large numbers become infinity, small ones denormals, NaNs quiet NaNs with the
 * same high bits. An empty register or an unsupported encoding becomes 0xfff8000000000000. An x87
 * operand is the physical register that the instruction names, also after pushes and pops; a popped
 * one is empty. The destination of an instruction that pushes is the pushed register. For fptan,
 * fsincos and fxtract, which replace st(0) first, it is the replacement. Reading changes nothing of
 * the x87's state. It takes some hundred nanoseconds for each execution. An MMX register takes as
 * long, unless the instruction uses MMX registers and either the value is read after it or the
 * instruction does not change it.
 *
 * Mask registers have 64 bits, without AVX-512BW 16. */
typedef uint32_t trace_value_t;
enum {
    TRACE_NONE = 0,
    TRACE_EFFECTIVE_ADDRESS = 1, /* address of the first memory operand, also of a prefetch or line
                                    flush; always as before the instruction */
    TRACE_LOADED = 2,            /* the memory value read, zero-extended, at most the low 64 bits;
                                    always as before the instruction */
    TRACE_STORED = 3,        /* the memory value written, in the same form; with TRACE_BEFORE the
                                overwritten value */
    TRACE_DESTINATION = 4,   /* the first destination register operand */
    TRACE_SOURCE0 = 5,       /* the first source register operand */
    TRACE_SOURCE1 = 6,       /* the second source register operand */
    TRACE_BRANCH_TAKEN = 7,  /* 1 or 0; 1 for jumps, calls and returns */
    TRACE_BRANCH_TARGET = 8, /* where control went */
    TRACE_LATENCY = 9,       /* time-stamp counter ticks for the instruction alone: it starts after
                                all earlier ones have completed, and completes before the second
                                reading. Includes the reading itself. Branches, system calls and
                                instructions with several accesses have no latency */
    TRACE_ST0 = 48,          /* + 0 to 7: st(0) ... st(7), numbered as at the time of reading */
    TRACE_GPR0 = 64,         /* + 0 to 15: rax rcx rdx rbx rsp rbp rsi rdi r8 ... r15 */
    TRACE_MASK0 = 80,        /* + 0 to 7: k0 ... k7, if the processor has AVX-512 */
    TRACE_MMX0 = 88,         /* + 0 to 7: mm0 ... mm7 */
    TRACE_VECTOR0 = 96,      /* + 0 to 31: the low 64 bits of zmm0 ... zmm31 */
    TRACE_BEFORE = 0x10000,  /* flag: read before the instruction instead of after */
    TRACE_WIDE = 0x20000     /* flag: all bytes of a vector or of memory, up to 64 */
};

/* Chooses opcodes. Called once for each valid combination of `opcode` (TRACE_OPCODE) and
 * `flags` (TRACE_INSTR_* of an instruction with that opcode and those operands). */
typedef int (*trace_selector_t)(uint16_t opcode, uint32_t flags);
typedef trace_value_t (*trace_pick_value_t)(uint16_t opcode, uint32_t flags);

/* Returns a new, empty specification. Return it from vp_prof_init, and free it with free() in
 * vp_prof_release or never. */
trace_vlist_table_t* trace_vlist_table_alloc(void);
/* Empties `spec`: nothing is captured. */
void trace_vlist_table_init(trace_vlist_table_t* spec);

/* Returns a new value list. The caller frees it with free(). */
trace_vlist_t* trace_vlist_alloc(void);
/* Empties `vlist`. An empty list records only that the instruction was executed. */
void trace_vlist_init(trace_vlist_t* vlist);

/* Appends `value`. Returns 0, or -1 if the list is full or the value unknown. */
int trace_add_value_to_vlist(trace_vlist_t* vlist, trace_value_t value);
/* Captures the values of `vlist` for `opcode`, with any operands. Copies `vlist`. Returns 0, or -1
 * if one instruction would then have more than TRACE_VLIST_MAX values, or if this assay does not
 * know the map of `opcode`. */
int trace_add_vlist_by_opc(trace_vlist_table_t* spec, uint16_t opcode, const trace_vlist_t* vlist);
/* The same for each opcode for which `selector` returns non-zero. */
int trace_add_vlist_by_select(trace_vlist_table_t* spec, trace_selector_t selector,
                              const trace_vlist_t* vlist);
/* Captures exactly the value that `pick` returns for an opcode, and nothing for TRACE_NONE. */
int trace_set_vlist_by_pick_value(trace_vlist_table_t* spec, trace_pick_value_t pick);

/* Counts executions of every basic block exactly. Read them in vp_finish with trace_parser_count.
 */
void trace_capture_block_counts(trace_vlist_table_t* spec);

/* Captures data references, as records of sites TRACE_SITE_READ, _WRITE, _MODIFY and _COUNT.
 *
 * If `filter_sets` is 0, every reference arrives. Otherwise assay may omit a reference to the line
 * of the previous reference in the same set (set = address / `filter_line` modulo `filter_sets`).
 * This changes no result of a simulated cache with that line size and at least that many sets, if
 * repeating the most recent reference to a set leaves its state unchanged, as with LRU. A reference
 * across two lines is omitted only if this holds for both. `filter_sets` and `filter_line` are
 * powers of two; `filter_line` is 16 to 4096 bytes.
 *
 * The filter treats a reference larger than `filter_line` as one to its first `filter_line` bytes,
 * so no reference touches three lines. A simulation must do the same. Sites have the whole sizes.
 *
 * A profiler may get more references because of other profilers. There is no
 * filter if one profiler asks for 0 sets, or if their lines differ. */
void trace_capture_references(trace_vlist_table_t* spec, uint32_t filter_line,
                              uint32_t filter_sets);

/* The same for a simulation in which writes differ from reads, such as one with dirty lines. A
 * write is omitted only if its line has also been written since it became the most recent of its
 * set. */
void trace_capture_first_writes(trace_vlist_table_t* spec, uint32_t filter_line,
                                uint32_t filter_sets);

/* The same for a simulation that also notes the touched bytes of each line. Records of sites
 * TRACE_SITE_FOOTPRINT tell the bytes of omitted references, and at the end of each buffer
 * trace_parser_footprints. When a buffer begins, no line is the most recent one of its set. A
 * reference across lines is always recorded, and makes its lines the most recent ones in the order
 * of their addresses.
 *
 * This filter needs lines of 64 bytes, a processor with BMI2, and no other profiler that wants the
 * omitted references. Otherwise all references arrive, and trace_parser_footprints has no sets.
 * With the filter it has `filter_sets` sets or fewer. */
void trace_capture_footprints(trace_vlist_table_t* spec, uint32_t filter_line,
                              uint32_t filter_sets);

/* Captures data references without those that continue a run, for profilers that follow each data
 * operand alone. An operand is all sites with the same pc, `operand`, `kind` and `bytes`, in one
 * thread. In a run, each reference is as far from its predecessor as that was from its own. Before
 * its first reference, an operand counts as having been at address 0, twice.
 *
 * A reference that breaks the rhythm is recorded; others may be omitted. `aux` of a record is the
 * number of references of its operand that were omitted before it. The last reference of an open
 * run is recorded at the end of the thread or program, and before a TRACE_MARKER_THREAD.
 *
 * Position and context of omitted references are unknown. With --sample, or if another profiler
 * captures references in another way, `aux` is 0 and all references arrive. */
void trace_capture_runs(trace_vlist_table_t* spec);

/* Captures instruction fetches, as records of sites TRACE_SITE_FETCH. The fetch of an instruction
 * precedes its data references. Within a basic block, only fetches of a line that the previous
 * instruction did not touch are recorded. The filter works as above, with lines of instruction
 * addresses. If `filter_sets` is 0, each executed instruction has a fetch, whatever its number of
 * iterations. */
void trace_capture_fetches(trace_vlist_table_t* spec, uint32_t filter_line, uint32_t filter_sets);

/* A cache of each thread, for trace_capture_misses. */
typedef struct trace_cache {
    uint32_t size;       /* of this struct, as the profiler was built */
    uint32_t line_bytes; /* a power of two from 16 to 4096 */
    uint32_t sets;       /* a power of two */
    uint32_t ways;       /* not 0 */
    uint32_t policy;     /* TRACE_LRU */
} trace_cache_t;

enum {
    TRACE_LRU =
        0, /* replaces the least recently referenced line; a write allocates as a read does */
};

/* Captures only references and fetches that miss a first level of caches. The program simulates
 * this level itself, which is many times cheaper than simulating it from records. `fetch` and
 * `data` describe the caches; NULL captures nothing of that kind. Caches are empty when a thread
 * begins. A reference across two lines refers to the lower line first, and misses if one of them
 * misses.
 *
 * assay does not simulate caches with more than 4096 lines or 64 ways, nor if another profiler of
 * the run wants the omitted references. References then arrive through a filter with the lines and
 * sets of the cache, and the profiler simulates it itself; see trace_parser_misses. */
void trace_capture_misses(trace_vlist_table_t* spec, const trace_cache_t* fetch,
                          const trace_cache_t* data);

/* Captures instruction fetches for a simulation in which code and data share a cache: together with
 * trace_capture_references or trace_capture_footprints, in order with data references and through
 * their filter, as records of sites TRACE_SITE_CODE.
 *
 * One record stands for consecutive instructions of a basic block, up to and including the next one
 * with data references, cut at the ends of lines of `line` bytes or smaller ones. The instruction
 * of the site is the first with bytes in the line. The effect is as if each instruction were
 * fetched right before its data references; a repeated string instruction is fetched once. `line`
 * is a power of two from 16 to 4096. Together with trace_capture_runs, no references are omitted.
 */
void trace_capture_code(trace_vlist_table_t* spec, uint32_t line);

/* Captures calls and returns, as records of sites TRACE_SITE_CALL to TRACE_SITE_INTERRUPTED, and
 * the context of every record (trace_parser_contexts). */
void trace_capture_calls(trace_vlist_table_t* spec);

/* Captures block counts, and for each interval of `instructions` executed by a thread its blocks
 * (trace_parser_next_interval). `instructions` is 1 to 2^62; all profilers of a run must ask for
 * the same number.
 *
 * An interval ends exactly where exp-bbv ends it, also within a block: after the instruction with
 * which the thread has executed more than a multiple of `instructions`. The first interval
 * therefore has one instruction more. An interval does not end after a repeated string instruction,
 * but after the next other one.
 *
 * With references, TRACE_SITE_INTERVAL precedes the references of the block in which the interval
 * ends. Filters then forget their lines, so each interval has records of all lines that it uses. */
void trace_capture_intervals(trace_vlist_table_t* spec, uint64_t instructions);

/* With --sample, also captures `instructions` before each burst, to warm up simulated caches and
 * predictors. trace_parser_is_warm_up marks these buffers. Count nothing in them; execution counts
 * exclude them. Profilers that do not ask do not get them. The longest request counts. */
void trace_capture_warm_up(trace_vlist_table_t* spec, uint64_t instructions);

/* Captures the iterations of repeated string instructions, as records of sites TRACE_SITE_COUNT.
 * trace_capture_references includes them. Each execution takes some hundred nanoseconds more. */
void trace_capture_repeats(trace_vlist_table_t* spec);

/* Says that the profiler calls trace_parser_instr_facts. assay knows facts of x86-64 only, and
 * refuses other programs before they run. */
void trace_capture_facts(trace_vlist_table_t* spec);

/* Captures branches of the kinds in `which` (a set of TRACE_CONDITIONAL_BRANCHES and others, not
 * 0), as a record of a site TRACE_SITE_BRANCH for each execution, after other records of the
 * instruction. A profiler also gets the kinds that others ask for. */
void trace_capture_branches(trace_vlist_table_t* spec, uint32_t which);

/* Captures system calls, as records of sites TRACE_SITE_SYSTEM_CALL and the two after it, in order
 * with other records of the thread. A call that a signal interrupts and that restarts (SA_RESTART)
 * is one call. Calls of assay itself, and answers of the vDSO without the kernel, are no calls.
 * `which` is 0 or TRACE_SYSTEM_CALL_TIMES. Only system calls become slower. */
enum { TRACE_SYSTEM_CALL_TIMES = 1 };
void trace_capture_system_calls(trace_vlist_table_t* spec, uint32_t which);

/* Captures possible page sizes of memory, from the program's mappings and advice, as markers
 * TRACE_MARKER_PAGES_4K to TRACE_MARKER_PAGES_SEEN. They do not depend on the kernel that runs the
 * program. A marker stands where the thread made the change, and arrives before all references that
 * other threads make after it. References that another thread made before it can arrive later,
 * until a TRACE_MARKER_PAGES_SEEN or page marker of that thread. */
void trace_capture_mappings(trace_vlist_table_t* spec);

/* Captures executions of basic blocks: a record of a site TRACE_SITE_BLOCK before all other records
 * of the block, and a TRACE_SITE_BLOCK_LEFT if the block is left early. A profiler then knows at
 * each record which instructions its thread has executed, in order and exactly. Gaps are the parts
 * between bursts (--sample) and while nothing is collected. TRACE_SITE_SIGNAL and
 * TRACE_SITE_INTERRUPTED stand where a signal handler begins. Records are frequent; ask only if you
 * need them. */
void trace_capture_blocks(trace_vlist_table_t* spec);

/* Captures block counts, and mispredictions of a predictor that runs in the program. It makes no
 * records, and is many times cheaper than capturing branches. It is Cachegrind's predictor, one for
 * each thread, with these sizes (Cachegrind has 7, 7 and 9):
 * - a table of 2-bit saturating counters, 0 at first, for conditional branches. The index is the
 *   outcomes of the last `history_bits` conditional branches, the latest in the lowest bit,
 * followed by the lowest `address_bits` of the branch's pc. 2 and 3 predict taken.
 * - a table of targets, 0 at first, for indirect jumps and calls. The index is the lowest
 *   `target_bits` of the pc; it predicts the last target. Returns are not predicted.
 * `history_bits` is at most 8, `address_bits` at most 14 - `history_bits`, `target_bits` at most 9.
 *
 * Two kinds of instructions count as conditional branches, as Cachegrind does it:
 * - a locked one except compare-and-exchange, also xchg with memory. It is never taken. Valgrind
 * adds this branch, which repeats the instruction if another processor wrote in between;
 * - a repeated string instruction: taken before each iteration, not taken at the end. A repeated
 *   comparison also after each iteration, taken if the result does not end it.
 *
 * trace_parser_mispredictions has the results, and records of sites TRACE_SITE_PREDICTIONS those of
 * repeated string instructions. All profilers of a run must ask for the same sizes. */
void trace_capture_predictions(trace_vlist_table_t* spec, uint32_t history_bits,
                               uint32_t address_bits, uint32_t target_bits);

#ifdef __cplusplus
}
#endif
#endif
