/* assay/trace_parse.h - reading what the driver captured.
 *
 * Part of assay's C ABI, version 1. The functions are defined by the assay executable. A parser
 * is valid during the call of vp_prof_process or vp_finish that it was passed to, on that
 * thread. What it points to must not be changed and is valid as long as the parser, unless
 * stated otherwise.
 */
#ifndef ASSAY_TRACE_PARSE_H
#define ASSAY_TRACE_PARSE_H

#include "trace_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trace_parser trace_parser_t;

/* The process that was profiled. */
uint32_t trace_parser_get_pid(const trace_parser_t* parser);
/* The thread whose buffer this is: 0 for the first of the process, then in order of creation. It
 * is not the kernel's thread id, and no two threads of a process have the same, also not one after
 * the other. A program that damages its trace can make it any number: do not use it as the index
 * of an array unchecked. In vp_finish: 0. */
uint32_t trace_parser_get_thread(const trace_parser_t* parser);
/* Non-zero if records and entries have a context: with trace_capture_calls, and for all profilers
 * of a run with --contexts. */
int trace_parser_has_context(const trace_parser_t* parser);

/* The contexts of the buffer's records, one number for each of trace_parser_records: that of the
 * instruction of a reference, and where control goes on behind a record of another kind. `*count`
 * is 0 without context and in vp_finish. */
const uint32_t* trace_parser_contexts(const trace_parser_t* parser, size_t* count);
/* The contexts that have been entered so far, by number. As the tables below, it only grows, and
 * its address can change. Empty without context. */
const trace_context_t* trace_parser_context_table(const trace_parser_t* parser, size_t* count);

/* With --objects, each reference has a context of its own for each object that is referred to in
 * the same calls: what `context` is of. NULL without --objects, and of other contexts. Valid until
 * the profiler's function returns. */
const trace_data_object_t* trace_parser_data_object(const trace_parser_t* parser, uint32_t context);

/* With --objects, in vp_finish: what lies at `address`, or lay there last, as far as that is known;
 * `*offset` is how far it is from the beginning of the variable or block, 0 of others. NULL if
 * there is none. Valid until the next call. */
const trace_data_object_t* trace_parser_data_object_at(const trace_parser_t* parser,
                                                       uint64_t address, uint64_t* offset);

/* What the references of a site are to, as --types finds it from debug information and the machine
 * code: the number of a type or of a member, or 0 if it is not known, or on the stack and no struct
 * or array. `*offset` is how far each begins from the beginning of an object of the outermost type,
 * or UINT64_MAX where that differs, as in an array within it. Nothing needs to be asked for; the
 * first question about code of a file can take seconds. */
uint32_t trace_parser_type_of_site(const trace_parser_t* parser, uint32_t site, uint64_t* offset);
/* The type or member with a number that trace_parser_type_of_site or a row itself has given; NULL
 * for 0. `members` and `next` grow with what is asked about. Valid until the next call. */
const trace_data_type_t* trace_parser_data_type(const trace_parser_t* parser, uint32_t number);

/* What the thread of this buffer said with assay/client.h: its phases, and memory regions of the
 * process, in its order. A buffer can have markers and no records. 0 of them in vp_finish. The
 * strings are valid during this call of vp_prof_process. Nothing needs to be asked for. */
const trace_marker_t* trace_parser_markers(const trace_parser_t* parser, size_t* count);

/* The next instruction execution that this profiler selected with a value list. Stores its index
 * in the instruction table, its pc, two context values (the context's number and 0; both 0 without
 * context) and at most `max` values, in the order of the list; 0 for a value that the execution
 * does not have.
 * Any of the pointers but `values` may be NULL. Returns the number of values stored, or -1 at
 * the end of the buffer. Records of other captures, and what only other profilers selected, are
 * skipped. */
int trace_parser_next(trace_parser_t* parser, uint32_t* instr, uint64_t* pc, uint64_t* context0,
                      uint64_t* context1, int max, uint64_t* values);
/* Non-zero if the execution that trace_parser_next found last has the value with this index of the
 * list: the instruction has such an operand, and its last execution such an access. */
int trace_parser_has_value(const trace_parser_t* parser, uint32_t index);
/* The bytes of that value, the lowest first: stores at most `size` of them, and returns how many
 * there are. Up to 64 of one that the list has with TRACE_WIDE, else at most 8; 0 if the execution
 * does not have the value. */
uint32_t trace_parser_value_bytes(const trace_parser_t* parser, uint32_t index, void* bytes,
                                  uint32_t size);

/* The records of the buffer, `*count` of them, read in place. 0 of them in vp_finish. How many a
 * buffer can have is no part of the interface. */
const trace_record_t* trace_parser_records(const trace_parser_t* parser, size_t* count);

/* With trace_capture_footprints, what no TRACE_SITE_FOOTPRINT of the buffer tells any more: of each
 * set of the filter, the bytes of the line that was the most recent one at the buffer's end. 0 of
 * them in vp_finish, and where there is no filter: then all references arrive. */
const uint64_t* trace_parser_footprints(const trace_parser_t* parser, size_t* count);

/* The tables of everything that has been translated so far. They only grow; the address of a
 * table can change from one call of the profiler to the next, an index stays valid for the
 * whole run. */
const trace_site_t* trace_parser_sites(const trace_parser_t* parser, size_t* count);
const trace_instr_t* trace_parser_instrs(const trace_parser_t* parser, size_t* count);
const trace_block_t* trace_parser_blocks(const trace_parser_t* parser, size_t* count);

/* How often the instruction with index `instr` has been executed; a repeated string instruction
 * counts once, however many iterations it makes. Exact in vp_finish, 0 before, and 0 if no
 * profiler captures block counts. With --sample, executions in the bursts; in vp_totals exact, too.
 */
uint64_t trace_parser_count(const trace_parser_t* parser, uint32_t instr);

/* The next interval (trace_capture_intervals) that ends in this buffer, of its thread; NULL if
 * there is none. In vp_finish: of each thread that has executed anything, in the order of their
 * numbers, what it has executed since its last complete interval. Valid until the profiler's
 * function returns. */
const trace_interval_t* trace_parser_next_interval(trace_parser_t* parser);
/* How often the branch that is the instruction with index `instr` was mispredicted by the predictor
 * of trace_capture_predictions. Exact in vp_finish, 0 before, and 0 for other instructions; those
 * of repeated string instructions arrive as records instead. */
uint64_t trace_parser_mispredictions(const trace_parser_t* parser, uint32_t instr);

/* How many bytes each access of the instruction stores, of which TRACE_STORED has the low 8 at
 * most, or 64 with TRACE_WIDE: those of the first memory operand that it writes. 0 if it writes
 * none; 255 for 255 or more. */
uint32_t trace_parser_stored_bytes(const trace_parser_t* parser, uint32_t instr);

/* What the instruction with index `instr` is: mnemonic, instruction set, vectors, bytes moved. NULL
 * if there is no such instruction. The struct is valid until the next call, its names for ever.
 * Takes about a microsecond. */
const trace_instr_facts_t* trace_parser_instr_facts(const trace_parser_t* parser, uint32_t instr);

/* What of this profiler's trace_capture_misses is done in the program, the same in the whole run: a
 * set of TRACE_FETCH_MISSES (all fetches among the records are misses) and TRACE_DATA_MISSES (all
 * references to data are). */
enum { TRACE_FETCH_MISSES = 1, TRACE_DATA_MISSES = 2 };
uint32_t trace_parser_misses(const trace_parser_t* parser);

/* Non-zero if this buffer is only to bring caches and the like into the state that they would be
 * in: see trace_capture_warm_up. */
int trace_parser_is_warm_up(const trace_parser_t* parser);
/* With --sample, in vp_finish: what the counts of this run are multiplied by, for what a profiler
 * writes by itself. Samples are multiplied by assay. Else 1. */
double trace_parser_scale(const trace_parser_t* parser);

/* The object that contains address `pc` now, or NULL. */
const trace_object_t* trace_parser_object(const trace_parser_t* parser, uint64_t pc);

/* Where the instruction at `pc` comes from in the source, `*count` frames and at least one: the
 * innermost inlined function first, the function that is not inlined last. Valid until
 * vp_prof_release has returned. For reports; places of samples assay finds by itself. */
const trace_frame_t* trace_parser_frames(const trace_parser_t* parser, uint64_t pc, size_t* count);
/* Finds those of `count` instructions at once, for trace_parser_frames: reading an object's debug
 * information can take a second, and without this, each question does it. */
void trace_parser_prepare_frames(const trace_parser_t* parser, const uint64_t* pcs, size_t count);

#ifdef __cplusplus
}
#endif
#endif
