/* assay/trace_parse.h - reading what the driver captured.
 *
 * Part of assay's C ABI, version 1. The assay executable defines these functions. A parser is
 * valid during the call that it was passed to (vp_prof_process, vp_finish or vp_totals), on that
 * thread. Returned data is read-only, and valid as long as the parser unless stated otherwise.
 */
#ifndef ASSAY_TRACE_PARSE_H
#define ASSAY_TRACE_PARSE_H

#include "trace_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trace_parser trace_parser_t;

/* Returns the id of the profiled process. */
uint32_t trace_parser_get_pid(const trace_parser_t* parser);
/* Returns the number of the thread that made the buffer: 0 for the first of the process, then in
 * order of creation. It is not the kernel's thread id, and is never reused in a process.
 * Add 1 for people, to whom all output numbers threads from 1. A program that damages its trace
 * can make it any number, so check it before you use it as an index. 0 in vp_finish. */
uint32_t trace_parser_get_thread(const trace_parser_t* parser);
/* Returns non-zero if records have a context: with trace_capture_calls, and for all profilers in
 * a run with --contexts. */
int trace_parser_has_context(const trace_parser_t* parser);

/* Returns one context number for each of trace_parser_records. A reference has the context of
 * its instruction, another record the context after it. `*count` is 0 without contexts and in
 * vp_finish. */
const uint32_t* trace_parser_contexts(const trace_parser_t* parser, size_t* count);
/* Returns the contexts entered so far, by number. The table only grows, and its address can
 * change between calls. Empty without contexts. */
const trace_context_t* trace_parser_context_table(const trace_parser_t* parser, size_t* count);

/* With --objects, contexts of references are split by data object. Returns the object of
 * `context`, or NULL if the context belongs to no object or without --objects. Valid until the
 * profiler's function returns. */
const trace_data_object_t* trace_parser_data_object(const trace_parser_t* parser, uint32_t context);

/* With --objects, in vp_finish: returns the last known object at `address`, or NULL. `*offset`
 * is the distance from the beginning of a variable or block, and 0 for other kinds. Valid until
 * the next call. */
const trace_data_object_t* trace_parser_data_object_at(const trace_parser_t* parser,
                                                       uint64_t address, uint64_t* offset);

/* Returns the number of the type or member that the references of a site refer to, as --types
 * finds it from debug information and machine code. 0 means unknown, or a stack place that is no
 * struct or array. `*offset` is the distance from the beginning of the outermost type, or
 * UINT64_MAX if it varies, as in an array. Needs no capture. The first call for a file can take
 * seconds. */
uint32_t trace_parser_type_of_site(const trace_parser_t* parser, uint32_t site, uint64_t* offset);
/* Returns the type or member with a number from trace_parser_type_of_site or from another row;
 * NULL for 0. `members` and `next` grow with the questions asked. Valid until the next call. */
const trace_data_type_t* trace_parser_data_type(const trace_parser_t* parser, uint32_t number);

/* Returns the markers of this buffer's thread, in order: phases and memory regions from
 * assay/client.h, and assay's own. A buffer can have markers and no records. None in vp_finish.
 * Strings are valid during this call of vp_prof_process. Needs no capture. */
const trace_marker_t* trace_parser_markers(const trace_parser_t* parser, size_t* count);

/* Finds the next instruction execution that this profiler selected with a value list. Stores its
 * index in the instruction table, its pc, two context values (the context's number, or 0 without
 * contexts, and 0) and at most `max` values in the order of the list. A missing value is 0. All
 * pointers except `values` may be NULL. Returns the number of values stored, or -1 at the end of
 * the buffer. Skips records of other captures and of other profilers. */
int trace_parser_next(trace_parser_t* parser, uint32_t* instr, uint64_t* pc, uint64_t* context0,
                      uint64_t* context1, int max, uint64_t* values);
/* Returns non-zero if the execution that trace_parser_next found last has value `index` of the
 * list: the instruction has such an operand, and the execution such an access. */
int trace_parser_has_value(const trace_parser_t* parser, uint32_t index);
/* Stores at most `size` bytes of that value, the lowest first. Returns the number of bytes of
 * the value: up to 64 with TRACE_WIDE, else at most 8, and 0 if the execution does not have the
 * value. */
uint32_t trace_parser_value_bytes(const trace_parser_t* parser, uint32_t index, void* bytes,
                                  uint32_t size);

/* Returns the records of the buffer, `*count` of them, to be read in place. None in vp_finish.
 * The largest number is not part of the interface. */
const trace_record_t* trace_parser_records(const trace_parser_t* parser, size_t* count);

/* With trace_capture_footprints: returns, for each set of the filter, the touched bytes of the
 * most recent line at the end of the buffer, which no TRACE_SITE_FOOTPRINT told. `*count` is 0
 * in vp_finish, and without a filter, when all references arrive. */
const uint64_t* trace_parser_footprints(const trace_parser_t* parser, size_t* count);

/* Return the tables of all code translated so far. They only grow. The address of a table can
 * change from one call of the profiler to the next; an index stays valid for the run. */
const trace_site_t* trace_parser_sites(const trace_parser_t* parser, size_t* count);
const trace_instr_t* trace_parser_instrs(const trace_parser_t* parser, size_t* count);
const trace_block_t* trace_parser_blocks(const trace_parser_t* parser, size_t* count);

/* Returns the number of executions of instruction `instr`. A repeated string instruction counts
 * once, whatever its iterations. Exact in vp_finish and vp_totals, 0 before, and 0 if no
 * profiler captures block counts. With --sample, executions in bursts.
 */
uint64_t trace_parser_count(const trace_parser_t* parser, uint32_t instr);

/* Returns the next interval (trace_capture_intervals) of the thread that ends in this buffer, or
 * NULL. In vp_finish, returns the rest of each thread after its last complete interval, in the
 * order of threads. Valid until the profiler's function returns. */
const trace_interval_t* trace_parser_next_interval(trace_parser_t* parser);
/* Returns the number of mispredictions of branch `instr` by the predictor of
 * trace_capture_predictions. Exact in vp_finish, 0 before, and 0 for other instructions.
 * Repeated string instructions have records instead. */
uint64_t trace_parser_mispredictions(const trace_parser_t* parser, uint32_t instr);

/* Returns the size of the first memory operand that the instruction writes, for each access.
 * TRACE_STORED has its low 8 bytes, or 64 with TRACE_WIDE. 0 if it writes none; 255 for 255 or
 * more. */
uint32_t trace_parser_stored_bytes(const trace_parser_t* parser, uint32_t instr);

/* Returns facts about instruction `instr`: mnemonic, instruction set, vectors, bytes moved. NULL
 * if there is no such instruction. The struct is valid until the next call, its names forever.
 * Takes about a microsecond. */
const trace_instr_facts_t* trace_parser_instr_facts(const trace_parser_t* parser, uint32_t instr);

/* Returns the part of this profiler's trace_capture_misses that the program simulates:
 * TRACE_FETCH_MISSES (all recorded fetches are misses), TRACE_DATA_MISSES (all recorded data
 * references are), both, or 0. The same in the whole run. */
enum { TRACE_FETCH_MISSES = 1, TRACE_DATA_MISSES = 2 };
uint32_t trace_parser_misses(const trace_parser_t* parser);

/* Returns non-zero if this buffer only warms up caches and predictors: see
 * trace_capture_warm_up. */
int trace_parser_is_warm_up(const trace_parser_t* parser);
/* With --sample, in vp_finish: returns the factor for counts that a profiler writes itself.
 * assay multiplies samples. Else 1. */
double trace_parser_scale(const trace_parser_t* parser);

/* Returns the mapped file that contains address `pc` now, or NULL. */
const trace_object_t* trace_parser_object(const trace_parser_t* parser, uint64_t pc);

/* Returns the source frames of the instruction at `pc`: `*count`, at least 1, the innermost
 * inlined function first. Valid until vp_prof_release has returned. For a profiler's own
 * reports; assay finds the places of samples. */
const trace_frame_t* trace_parser_frames(const trace_parser_t* parser, uint64_t pc, size_t* count);
/* Prepares trace_parser_frames for `count` instructions at once. Reading an object's debug
 * information can take a second, and happens for each question otherwise. */
void trace_parser_prepare_frames(const trace_parser_t* parser, const uint64_t* pcs, size_t count);

#ifdef __cplusplus
}
#endif
#endif
