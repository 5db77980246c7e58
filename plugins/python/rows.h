/* Rows of NumPy arrays: what Python programs see of records, in trace files and during a run.
 * python/assay/records.py has the same layout. */
#ifndef ASSAY_PYTHON_ROWS_H
#define ASSAY_PYTHON_ROWS_H

#include <assay/trace_file.h>

#include <stdint.h>

/* 32 bytes. */
typedef struct python_row {
    uint64_t instruction; /* number of the instruction in its thread, from 1; 0 if unknown */
    uint64_t pc;
    uint64_t address; /* `value` of the record */
    uint32_t bytes;   /* size of the reference; instructions of a block; 1 for a taken branch */
    uint16_t thread;  /* from 1 */
    uint8_t kind;     /* TRACE_SITE_* */
    uint8_t image;    /* number of the program in the trace, from 1; later ones than 255 are 255 */
} python_row_t;

/* Returns the row of a record. `site` is its site, `instr` the instruction of the site, `block` the
 * block of that instruction. */
static inline python_row_t python_row_of(const trace_record_t* record, const trace_site_t* site,
                                         const trace_instr_t* instr, const trace_block_t* block,
                                         trace_position_t* position) {
    python_row_t row = {0};
    const uint64_t number = trace_position_next(position, record, site, block);
    if (position->place != TRACE_POSITION_UNKNOWN) row.instruction = number;
    row.pc = instr->pc;
    row.address = record->value;
    row.kind = site->kind;
    row.bytes = site->kind == TRACE_SITE_BLOCK    ? block->instr_count
                : site->kind == TRACE_SITE_BRANCH ? record->aux
                                                  : site->bytes;
    return row;
}

#endif
