/* assay/trace_vlist.h - building a trace specification: what the driver shall capture.
 *
 * Part of assay's C ABI, version 1. The names are those of DCPI's trace-vlist.h where DCPI has
 * the notion; the calls that begin with trace_capture_ go beyond it.
 *
 * The functions below are defined by the assay executable and found when the profiler is
 * loaded; a profiler links against nothing. They are called from vp_prof_init only, on the
 * collector's main thread. They allocate with malloc and never fail otherwise than by ending
 * the run with a message. Selectors run while the specification is built, never later.
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

/* A value to capture, one 64-bit word per execution. Read after the instruction, unless the
 * value is or-ed with TRACE_BEFORE. Floating-point and vector values are the low 64 bits of
 * the register; operands of fewer than 64 bits are zero-extended.
 *
 * Or-ed with TRACE_WIDE, the value has all bytes of a vector register or of memory, up to 64: of an
 * operand as many as the instruction names (xmm, ymm, zmm), of TRACE_VECTOR0 and those behind it as
 * many as the processor's registers have. Of memory operands of more than 64 bytes (xsave) and of
 * the 14 bytes of fnstenv it has the low 8, as without. trace_parser_value_bytes has them all, and
 * trace_parser_next the low 8. A value of up to 8 bytes is as it is without; so are x87 registers.
 * One of 16, 32 or 64 bytes takes 2, 4 or 8 records of 16 bytes, and about as many times the time
 * that one of 8 does. One instruction can have at most 14 such values, of all profilers together.
 *
 * An instruction that does not complete, because it faults, has no values, whenever they would be
 * read. Of an instruction that makes several accesses (repeated string instructions, gathers and
 * scatters) address, loaded and stored value are those of the first; if it makes none, it has
 * none of the three. Of system calls and markers, everything is as it was before them.
 *
 * Register operands are general-purpose, vector, MMX, mask (k0 to k7) and x87 registers, explicit
 * ones before implicit ones, without the stack pointer of push, pop, call and return, and without
 * the mask that an instruction works under. No other registers (segments, bounds, tiles) are
 * captured, nor memory values of instructions under a vector mask.
 *
 * An x87 register's value is the IEEE double nearest to it, of two the even one, whatever rounding
 * the program has chosen: infinity beyond the largest, denormals below the smallest, a quiet NaN
 * with the same highest bits for a NaN. An empty register, and what is no number to the processor,
 * have its default NaN, 0xfff8000000000000. An x87 operand is the register that the instruction
 * means: read after it, it is found where pushing and popping have moved it, and is empty if it was
 * popped. What an instruction pushes is its destination; of fptan, fsincos and fxtract, which
 * replace st(0) first, what replaced it. Nothing of the x87's state, pending exceptions included,
 * changes by being read. Each execution of an instruction with such a value takes some hundred
 * nanoseconds more; so does one with the value of an MMX register that is read otherwise than after
 * an instruction that uses MMX registers, or not changed by it.
 *
 * Of mask registers all 64 bits are captured, without AVX-512BW 16. */
typedef uint32_t trace_value_t;
enum {
    TRACE_NONE = 0,
    TRACE_EFFECTIVE_ADDRESS = 1, /* of the first memory operand, also of a prefetch and of a
                                    flush of a line; always that of before */
    TRACE_LOADED = 2,            /* the memory value read, zero-extended; always that of before. At
                                    most the low 64 bits */
    TRACE_STORED = 3,            /* the memory value written, the same way; with TRACE_BEFORE what
                                    it overwrote */
    TRACE_DESTINATION = 4,       /* the first destination register operand */
    TRACE_SOURCE0 = 5,           /* the first source register operand */
    TRACE_SOURCE1 = 6,           /* the second source register operand */
    TRACE_BRANCH_TAKEN = 7,      /* 1 or 0; of jumps, calls and returns 1 */
    TRACE_BRANCH_TARGET = 8,     /* where control went */
    TRACE_LATENCY = 9,           /* time-stamp counter ticks around the instruction, by itself:
                                    everything before it has completed, and it has before the
                                    second reading. Includes reading the counter; nothing is
                                    subtracted. Not of branches, system calls and instructions with
                                    several accesses */
    TRACE_ST0 = 48,              /* + 0 to 7: st(0) ... st(7), numbered as they are where they are
                                    read */
    TRACE_GPR0 = 64,             /* + 0 to 15: rax rcx rdx rbx rsp rbp rsi rdi r8 ... r15 */
    TRACE_MASK0 = 80,            /* + 0 to 7: k0 ... k7, if the processor has AVX-512 */
    TRACE_MMX0 = 88,             /* + 0 to 7: mm0 ... mm7 */
    TRACE_VECTOR0 = 96,          /* + 0 to 31: the low 64 bits of zmm0 ... zmm31 */
    TRACE_BEFORE = 0x10000,      /* read before the instruction instead of after */
    TRACE_WIDE = 0x20000         /* all bytes of a vector or of memory, up to 64 */
};

/* Chooses opcodes. Called once for each valid combination of `opcode` (TRACE_OPCODE) and
 * `flags` (TRACE_INSTR_* of an instruction with that opcode and those operands). */
typedef int (*trace_selector_t)(uint16_t opcode, uint32_t flags);
typedef trace_value_t (*trace_pick_value_t)(uint16_t opcode, uint32_t flags);

/* A new, empty specification; the caller gives it to assay by returning it from vp_prof_init
 * and frees it with free() in vp_prof_release or never. */
trace_vlist_table_t* trace_vlist_table_alloc(void);
/* Empties `spec`: nothing is captured. */
void trace_vlist_table_init(trace_vlist_table_t* spec);

/* A new value list, to be freed by the caller with free(). */
trace_vlist_t* trace_vlist_alloc(void);
/* Empties `vlist`: it then records only which instruction was executed. */
void trace_vlist_init(trace_vlist_t* vlist);

/* Appends `value`. Returns 0, or -1 if the list is full or the value unknown. */
int trace_add_value_to_vlist(trace_vlist_t* vlist, trace_value_t value);
/* Adds `vlist` to what is captured for `opcode`, with any operands. Copies. Returns 0, or -1
 * if one instruction would then have more than TRACE_VLIST_MAX values, or if `opcode` is of no map
 * that this assay knows. */
int trace_add_vlist_by_opc(trace_vlist_table_t* spec, uint16_t opcode, const trace_vlist_t* vlist);
/* The same for each opcode for which `selector` returns non-zero. */
int trace_add_vlist_by_select(trace_vlist_table_t* spec, trace_selector_t selector,
                              const trace_vlist_t* vlist);
/* Captures exactly the value that `pick` returns for an opcode, nothing for TRACE_NONE. */
int trace_set_vlist_by_pick_value(trace_vlist_table_t* spec, trace_pick_value_t pick);

/* Exact execution counts of every basic block, read in vp_finish with trace_parser_count. */
void trace_capture_block_counts(trace_vlist_table_t* spec);

/* Data references, as records whose site is TRACE_SITE_READ, _WRITE or _MODIFY (and _COUNT).
 *
 * With `filter_sets` of 0 every reference arrives. Otherwise assay may leave out a reference
 * when the line that it touches is also the line of the previous reference that fell into the
 * same of `filter_sets` sets (set = address / `filter_line` modulo `filter_sets`). A simulation
 * of a cache with that line size, at least that many sets, and a replacement to which repeating
 * the most recent reference changes nothing, loses nothing by it. A reference that straddles a
 * line boundary is left out only if that is so of both lines. Both numbers are powers of two;
 * `filter_line` is 16 to 4096 bytes.
 *
 * A filter takes a reference that is larger than `filter_line` for one to its first `filter_line`
 * bytes, so that none touches three lines; a simulation must do the same. Sites have the whole
 * sizes.
 *
 * Where several profilers ask, each gets at least what it asked for, and may get more: if one asks
 * for 0 sets, or if their lines differ, there is no filter for any. */
void trace_capture_references(trace_vlist_table_t* spec, uint32_t filter_line,
                              uint32_t filter_sets);

/* The same for a simulation to which a write says what a read does not, as that a line is dirty: a
 * write is left out only if the line was also written by a reference since another line of its set
 * was referenced. */
void trace_capture_first_writes(trace_vlist_table_t* spec, uint32_t filter_line,
                                uint32_t filter_sets);

/* The same for a simulation that also notes which bytes of a line are touched. Those that are left
 * out are told by records of sites of kind TRACE_SITE_FOOTPRINT, and at the end of each buffer by
 * trace_parser_footprints. No line is the most recent one of its set when a buffer begins. A
 * reference across lines is always recorded, and makes its lines the most recent ones in the order
 * of their addresses. There is such a filter for lines of 64 bytes, on a processor with BMI2, and
 * unless another profiler of the run wants what it leaves out; else all references arrive. Then
 * trace_parser_footprints has no sets; otherwise as many as asked for, or fewer. */
void trace_capture_footprints(trace_vlist_table_t* spec, uint32_t filter_line,
                              uint32_t filter_sets);

/* The same without references that continue a run, for profilers that follow each data operand of
 * each instruction by itself. An operand is what sites with the same pc, `operand`, `kind` and
 * `bytes` stand for, and of each thread by itself. A run is references of it, each as far from the
 * one before as that was from its own predecessor; before its first reference an operand counts as
 * having been at address 0, twice. A reference that breaks the rhythm is recorded, and one that
 * keeps it may be left out. `aux` of each record says how many of its operand were, between it and
 * the record before: they went on as the two references before them had. The last one of those that
 * no record follows is recorded at the end, that of a thread or of the program; so it is before a
 * TRACE_MARKER_THREAD.
 *
 * Where those that are left out stand among other records is not told, nor is their context. Where
 * another profiler captures references otherwise, and with --sample, `aux` is 0 and all arrive. */
void trace_capture_runs(trace_vlist_table_t* spec);

/* Instruction fetches, as records of sites of kind TRACE_SITE_FETCH, in order with the data
 * references: the fetch of an instruction stands before its data references. Within a basic
 * block only the fetches that touch a line which the instruction before did not touch are
 * recorded; the filter is as above, with lines of instruction addresses. With 0 `filter_sets` the
 * fetch of each instruction that is executed is recorded, however many iterations it makes. */
void trace_capture_fetches(trace_vlist_table_t* spec, uint32_t filter_line, uint32_t filter_sets);

/* A cache of each thread by itself, for trace_capture_misses. */
typedef struct trace_cache {
    uint32_t size;       /* of this struct, as the profiler was built */
    uint32_t line_bytes; /* a power of two from 16 to 4096 */
    uint32_t sets;       /* a power of two */
    uint32_t ways;       /* not 0 */
    uint32_t policy;     /* TRACE_LRU */
} trace_cache_t;

enum {
    TRACE_LRU = 0, /* the line is replaced that was referenced least recently; a write brings its
                      line in as a read does */
};

/* References and fetches as above, but only those that miss the first level of caches, which is
 * simulated in the program, where it is many times cheaper than from records. `fetch` and `data`:
 * its caches, empty when a thread begins; NULL for what is not to be captured by this function. A
 * reference across two lines is one to both, the lower one first, and misses if one of them does.
 *
 * It is a matter of speed only, and not always possible: not where a cache has more than 4096
 * lines or 64 ways, and not where another profiler of the run wants to have what would be left out.
 * Then they arrive as through a filter with the lines and sets of the cache, and the profiler
 * simulates it itself: see trace_parser_misses. */
void trace_capture_misses(trace_vlist_table_t* spec, const trace_cache_t* fetch,
                          const trace_cache_t* data);

/* Instruction fetches as references like those to data, for a simulation in which code and data
 * share what is simulated: with trace_capture_references or trace_capture_footprints, in order with
 * the data references and through their filter, which then has the lines of both. Of kind
 * TRACE_SITE_CODE. One is the fetch of all instructions of a basic block that follow one another
 * without a data reference in between, up to and including the one that makes the next data
 * references, cut at the ends of lines of `line` bytes, or of smaller ones. The site's instruction
 * is the first that has bytes in the line. That is as if each instruction were fetched by itself,
 * right before its own data references; a repeated string instruction is fetched once. `line` is a
 * power of two from 16 to 4096. Together with trace_capture_runs nothing is left out of runs. */
void trace_capture_code(trace_vlist_table_t* spec, uint32_t line);

/* Calls and returns, as records of the sites of kind TRACE_SITE_CALL and those behind it, in order
 * with all others; and the context of every record, with trace_parser_contexts. */
void trace_capture_calls(trace_vlist_table_t* spec);

/* Intervals of instructions: whenever a thread has executed `instructions` of them, which blocks
 * they belong to (trace_parser_next_interval), and block counts. Not 0 and at most 2^62. An
 * interval ends exactly, within a block too, as exp-bbv's: behind the instruction with which the
 * thread has executed more than a multiple of `instructions`. So the first has one instruction more
 * than `instructions`. If that instruction is a repeated string instruction, the interval ends
 * behind the next one that is not. Only one length is possible in a run.
 *
 * With references, too: the TRACE_SITE_INTERVAL stands before the references of the block in which
 * the interval ends, and no line is the most recent one of its set then, so that what is referenced
 * in an interval is among the records of it, whatever the filter. */
void trace_capture_intervals(trace_vlist_table_t* spec, uint64_t instructions);

/* With --sample, `instructions` before each burst, too, for simulations whose state at the
 * beginning of a burst would be that at the end of the one before: caches and predictors. Their
 * buffers are those of which trace_parser_is_warm_up is not 0. Nothing in them shall be counted;
 * executions in them are not. Other profilers do not get these buffers. Where several profilers
 * ask, the longest is taken. */
void trace_capture_warm_up(trace_vlist_table_t* spec, uint64_t instructions);

/* The iterations of repeated string instructions, as records of sites of kind TRACE_SITE_COUNT;
 * with trace_capture_references they arrive anyway. Each execution of such an instruction takes
 * some hundred nanoseconds more. */
void trace_capture_repeats(trace_vlist_table_t* spec);

/* Branches, as records of sites of kind TRACE_SITE_BRANCH, one for each execution of a branch of
 * the kinds in `which` (not 0), in order with all other records; behind those of its instruction.
 * Where several profilers ask, all kinds that one of them asks for arrive. */
void trace_capture_branches(trace_vlist_table_t* spec, uint32_t which);

/* System calls, as records of sites of kind TRACE_SITE_SYSTEM_CALL and those behind it, in order
 * with all others of the thread: those that the program makes, once each. One that a signal
 * interrupts and that is begun again (SA_RESTART) is one; what assay itself asks the kernel for is
 * none, nor is what the vDSO answers without the kernel. `which` is 0 or TRACE_SYSTEM_CALL_TIMES.
 * Without such a call nothing is slower. */
enum { TRACE_SYSTEM_CALL_TIMES = 1 };
void trace_capture_system_calls(trace_vlist_table_t* spec, uint32_t which);

/* How large the pages of memory can be, as the program's mappings and its advice say: markers
 * TRACE_MARKER_PAGES_4K and those behind it (trace_parser_markers). They do not depend on what the
 * kernel does that runs the program. Each stands where the thread has done it, and arrives before
 * any reference that another thread makes behind it. References that another one has made before
 * can still arrive later: up to a TRACE_MARKER_PAGES_SEEN, or what that thread does itself to
 * pages, it may not have known. */
void trace_capture_mappings(trace_vlist_table_t* spec);

/* Executions of basic blocks, as records of sites of kind TRACE_SITE_BLOCK: one where a block
 * begins, before all other records of what its instructions do, their fetches among them, and a
 * TRACE_SITE_BLOCK_LEFT where it is left before its end. So a profiler knows which instructions a
 * thread has executed, in which order, and at each record how many: those of the blocks before, and
 * those of the present one up to the record's instruction. They are exact, to the instruction. What
 * is not captured is not among them: between bursts (--sample), and while nothing is collected.
 * Where a signal handler begins there are also TRACE_SITE_SIGNAL and TRACE_SITE_INTERRUPTED. Each
 * execution of a block is a record: do not ask for them without need. */
void trace_capture_blocks(trace_vlist_table_t* spec);

/* Mispredictions, counted by a predictor that runs in the program: no records, so that it is many
 * times cheaper than the branches themselves. It is Cachegrind's, with these sizes (Cachegrind's
 * own: 7, 7 and 9), and each thread has one:
 * - a table of 2-bit saturating counters, 0 at first, for conditional branches. The index is the
 *   outcomes of the last `history_bits` conditional branches, the latest in the lowest bit, then
 *   the lowest `address_bits` of the branch's pc. 2 and 3 predict taken.
 * - a table of targets, 0 at first, for indirect jumps and calls. The index is the lowest
 *   `target_bits` of the pc; it predicts the last target. Returns are not predicted.
 * `history_bits` is at most 8, `address_bits` at most 14 - `history_bits`, `target_bits` at most 9.
 *
 * As in Cachegrind, two kinds of instruction are conditional branches to it that are none:
 * - a locked one other than a compare-and-exchange, also xchg with memory: executed again if
 *   another processor wrote in between, which is not taken (Valgrind makes it that);
 * - a repeated string instruction: taken before each iteration, not taken at the end; of
 *   a repeated comparison also behind each iteration, taken if the result does not end it.
 *
 * Block counts are captured, too. Results: trace_parser_mispredictions, and for repeated string
 * instructions records of sites of kind TRACE_SITE_PREDICTIONS. All profilers of a run must ask
 * for the same sizes. */
void trace_capture_predictions(trace_vlist_table_t* spec, uint32_t history_bits,
                               uint32_t address_bits, uint32_t target_bits);

#ifdef __cplusplus
}
#endif
#endif
