/* Rows of NumPy arrays: what Python programs see of records, in trace files and during a run.
 * python/assay/records.py has the same layout. */
#ifndef ASSAY_PYTHON_ROWS_H
#define ASSAY_PYTHON_ROWS_H

#include <assay/trace_types.h>

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

/* Counts the instructions of a thread by its records of blocks. Zero at first. */
typedef struct python_position {
    uint64_t done; /* instructions before the present block */
    uint64_t end;  /* and with it */
    uint32_t first_instr;
    int has_blocks;
} python_position_t;

/* Returns the row of a record. `site` is its site, `instr` the instruction of the site, `block` the
 * block of that instruction. */
static inline python_row_t python_row_of(const trace_record_t* record, const trace_site_t* site,
                                         const trace_instr_t* instr, const trace_block_t* block,
                                         python_position_t* position) {
    python_row_t row = {0};
    row.pc = instr->pc;
    row.address = record->value;
    row.kind = site->kind;
    row.bytes = site->bytes;
    switch (site->kind) {
        case TRACE_SITE_BLOCK:
            position->done = position->end;
            position->end += block->instr_count;
            position->first_instr = block->first_instr;
            position->has_blocks = 1;
            row.bytes = block->instr_count;
            break;
        case TRACE_SITE_BLOCK_LEFT:
            position->end = position->done + record->value;
            break;
        case TRACE_SITE_BURST: /* 3 begins with what comes after, the others end */
            if (record->aux < 4) position->done = position->end = record->value;
            break;
        case TRACE_SITE_BRANCH:
            row.bytes = record->aux;
            break;
        default:
            break;
    }
    if (position->has_blocks)
        row.instruction = position->done + (site->instr - position->first_instr) + 1;
    return row;
}

#endif
