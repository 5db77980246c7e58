/* Reads a trace file into rows, for assay.trace() of Python. ctypes calls these functions. */
#include "plugins/python/rows.h"

#include <assay/trace_file.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* Records that are decoded at once: they stay in the first level of the cache. */
enum { kBatch = 1024 };

typedef struct table {
    char* rows;
    uint32_t count;
    size_t row_bytes;
} table_t;

/* A program of the trace. */
typedef struct image {
    uint32_t pid, number;
    table_t blocks, instrs, sites;
    python_position_t* positions; /* by thread */
    uint32_t threads;
    trace_decoder_t decoder;
    uint32_t decoder_sites; /* for which it was prepared */
} image_t;

typedef struct reader {
    FILE* file;
    const char* problem;
    image_t* images;
    uint32_t image_count;
    trace_chunk_t chunk; /* the present chunk of records */
    unsigned char* raw;
    image_t* image; /* of the chunk; NULL before the first and after each one */
    trace_record_t batch[kBatch];
} reader_t;

static int fail(reader_t* reader, const char* problem) {
    reader->problem = problem;
    return -1;
}

/* Makes room for rows up to `end`, with zeros between. */
static int grow(table_t* table, uint32_t end) {
    char* rows;
    if (end <= table->count) return 0;
    rows = realloc(table->rows, end * table->row_bytes);
    if (rows == NULL) return -1;
    memset(rows + table->count * table->row_bytes, 0, (end - table->count) * table->row_bytes);
    table->rows = rows;
    table->count = end;
    return 0;
}

static image_t* image_of(reader_t* reader, const trace_chunk_t* chunk) {
    image_t* images;
    uint32_t i;
    for (i = reader->image_count; i-- > 0;)
        if (reader->images[i].pid == chunk->pid && reader->images[i].number == chunk->image)
            return &reader->images[i];
    images = realloc(reader->images, (reader->image_count + (size_t)1) * sizeof *images);
    if (images == NULL) return NULL;
    reader->images = images;
    images += reader->image_count++;
    memset(images, 0, sizeof *images);
    images->pid = chunk->pid;
    images->number = chunk->image;
    images->blocks.row_bytes = sizeof(trace_block_t);
    images->instrs.row_bytes = sizeof(trace_instr_t);
    images->sites.row_bytes = sizeof(trace_site_t);
    return images;
}

/* Reads rows of one table from `*at`, and moves it behind them. */
static int read_table(table_t* table, uint32_t first, uint32_t count, const unsigned char** at,
                      const unsigned char* end) {
    const size_t bytes = count * table->row_bytes;
    if (bytes > (size_t)(end - *at) || first > table->count) return -1;
    if (grow(table, first + count) != 0) return -1;
    memcpy(table->rows + first * table->row_bytes, *at, bytes);
    *at += bytes;
    return 0;
}

static int read_code(reader_t* reader, const trace_chunk_t* chunk) {
    const unsigned char* at = reader->raw;
    const unsigned char* const end = at + chunk->raw_bytes;
    image_t* const image = image_of(reader, chunk);
    trace_code_t code;
    uint32_t i;
    if (image == NULL || chunk->raw_bytes < sizeof code) return -1;
    memcpy(&code, at, sizeof code);
    at += sizeof code;
    if (read_table(&image->blocks, code.first_block, code.blocks, &at, end) != 0 ||
        read_table(&image->instrs, code.first_instr, code.instrs, &at, end) != 0 ||
        read_table(&image->sites, code.first_site, code.sites, &at, end) != 0)
        return -1;
    /* Rows are looked up without checks afterwards. */
    for (i = code.first_site; i < code.first_site + code.sites; ++i)
        if (((trace_site_t*)image->sites.rows)[i].instr >= image->instrs.count) return -1;
    for (i = code.first_instr; i < code.first_instr + code.instrs; ++i)
        if (((trace_instr_t*)image->instrs.rows)[i].block >= image->blocks.count) return -1;
    return 0;
}

/* The position of the chunk's thread, at the beginning of the chunk. */
static python_position_t* position_of(reader_t* reader) {
    enum { kMostThreads = 1 << 16 };
    image_t* const image = reader->image;
    const uint32_t thread = reader->chunk.thread % kMostThreads;
    if (thread >= image->threads) {
        python_position_t* const positions =
            realloc(image->positions, (thread + (size_t)1) * sizeof *positions);
        if (positions == NULL) return NULL;
        memset(positions + image->threads, 0, (thread + 1 - image->threads) * sizeof *positions);
        image->positions = positions;
        image->threads = thread + 1;
    }
    return &image->positions[thread];
}

static int begin_records(reader_t* reader, const trace_chunk_t* chunk) {
    image_t* const image = image_of(reader, chunk);
    if (image == NULL) return -1;
    if (image->decoder_sites != image->sites.count) {
        if (image->decoder_sites != 0) trace_decoder_release(&image->decoder);
        image->decoder_sites = 0;
        if (trace_decoder_init(&image->decoder, (const trace_site_t*)image->sites.rows,
                               image->sites.count) != 0)
            return -1;
        image->decoder_sites = image->sites.count;
    }
    if (image->decoder_sites == 0 || trace_records_begin(&image->decoder, chunk, reader->raw) != 0)
        return -1;
    reader->chunk = *chunk;
    reader->image = image;
    return position_of(reader) == NULL ? -1 : 0;
}

/* Reads up to the next chunk of records. Returns 1, 0 at the end of the file, or -1. */
static int next_chunk(reader_t* reader) {
    trace_chunk_t chunk;
    for (;;) {
        unsigned char *stored, *raw;
        int status;
        if (fread(&chunk, 1, sizeof chunk, reader->file) < sizeof chunk)
            return ferror(reader->file) ? fail(reader, strerror(errno)) : 0;
        if (!trace_chunk_is_whole(&chunk)) return fail(reader, "the trace is damaged");
        if (chunk.kind != TRACE_CHUNK_CODE && chunk.kind != TRACE_CHUNK_RECORDS) {
            if (chunk.kind == TRACE_CHUNK_IMAGE && image_of(reader, &chunk) == NULL)
                return fail(reader, "no memory");
            if (fseek(reader->file, (long)chunk.stored_bytes, SEEK_CUR) != 0)
                return fail(reader, strerror(errno));
            continue;
        }
        stored = malloc(chunk.stored_bytes + (size_t)1);
        raw = realloc(reader->raw, chunk.raw_bytes + (size_t)1);
        if (raw != NULL) reader->raw = raw;
        if (stored == NULL || raw == NULL) {
            free(stored);
            return fail(reader, "no memory");
        }
        /* A file that was cut off is good up to its last whole chunk. */
        if (fread(stored, 1, chunk.stored_bytes, reader->file) < chunk.stored_bytes) {
            free(stored);
            return 0;
        }
        status = trace_chunk_decompress(&chunk, stored, raw);
        free(stored);
        if (status == 0)
            status = chunk.kind == TRACE_CHUNK_CODE ? read_code(reader, &chunk)
                                                    : begin_records(reader, &chunk);
        if (status != 0) return fail(reader, "the trace is damaged");
        if (chunk.kind == TRACE_CHUNK_RECORDS) return 1;
    }
}

EXPORT reader_t* assay_reader_open(const char* path, const char** problem) {
    trace_file_header_t header;
    reader_t* const reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        *problem = "no memory";
        return NULL;
    }
    reader->file = fopen(path, "rb");
    if (reader->file == NULL) {
        *problem = strerror(errno);
    } else if (fread(&header, 1, sizeof header, reader->file) < sizeof header ||
               memcmp(header.magic, TRACE_FILE_MAGIC, sizeof header.magic) != 0) {
        *problem = "this is no trace of assay record";
    } else if (header.version > TRACE_FILE_VERSION) {
        *problem = "a newer assay has written this trace";
    } else {
        return reader;
    }
    if (reader->file != NULL) fclose(reader->file);
    free(reader);
    return NULL;
}

EXPORT void assay_reader_close(reader_t* reader) {
    uint32_t i;
    for (i = 0; i < reader->image_count; ++i) {
        image_t* const image = &reader->images[i];
        if (image->decoder_sites != 0) trace_decoder_release(&image->decoder);
        free(image->blocks.rows);
        free(image->instrs.rows);
        free(image->sites.rows);
        free(image->positions);
    }
    fclose(reader->file);
    free(reader->images);
    free(reader->raw);
    free(reader);
}

EXPORT const char* assay_reader_problem(const reader_t* reader) {
    return reader->problem;
}

/* The process id and number of image `image` (from 1). Returns 0, or -1 if there is none (yet). */
EXPORT int assay_reader_image(const reader_t* reader, uint32_t image, uint32_t* pid,
                              uint32_t* number) {
    if (image == 0 || image > reader->image_count) return -1;
    *pid = reader->images[image - 1].pid;
    *number = reader->images[image - 1].number;
    return 0;
}

/* Stores at most `room` rows whose kind is a bit of `kinds`, and whose thread (from 1) is `thread`,
 * unless that is 0. `room` is at least 1. Returns their number, 0 at the end of the trace, or -1.
 */
EXPORT int64_t assay_reader_next(reader_t* reader, python_row_t* rows, int64_t room, uint64_t kinds,
                                 uint32_t thread) {
    int64_t count = 0;
    while (count < room) {
        python_position_t* position;
        const trace_site_t* sites;
        const trace_instr_t* instrs;
        const trace_block_t* blocks;
        uint32_t image;
        size_t got, wanted, i;
        if (reader->image == NULL) {
            const int more = next_chunk(reader);
            if (more < 0) return -1;
            if (more == 0) return count;
            if (thread != 0 && reader->chunk.thread != thread - 1) {
                reader->image = NULL;
                continue;
            }
        }
        wanted = room - count < kBatch ? (size_t)(room - count) : (size_t)kBatch;
        got = trace_records_next(&reader->image->decoder, reader->batch, wanted);
        position = position_of(reader);
        sites = (const trace_site_t*)reader->image->sites.rows;
        instrs = (const trace_instr_t*)reader->image->instrs.rows;
        blocks = (const trace_block_t*)reader->image->blocks.rows;
        image = (uint32_t)(reader->image - reader->images) + 1;
        for (i = 0; i < got; ++i) {
            const trace_record_t* const record = &reader->batch[i];
            const trace_site_t* const site = &sites[record->site];
            const trace_instr_t* const instr = &instrs[site->instr];
            python_row_t row = python_row_of(record, site, instr, &blocks[instr->block], position);
            row.thread = (uint16_t)(reader->chunk.thread + 1);
            row.image = (uint8_t)(image < 255 ? image : 255);
            rows[count] = row;
            count += site->kind < 64 && kinds >> site->kind & 1;
        }
        if (got < wanted) {
            if (trace_records_damaged(&reader->image->decoder))
                return fail(reader, "the trace is damaged");
            reader->image = NULL;
        }
    }
    return count;
}
