/* assay/trace_file.h - the file that assay record writes, and how to read it.
 *
 * Part of assay's C ABI, version 1. C99; needs libzstd. docs/reference/trace-file.md describes
 * the format in words. This header has everything that a reader needs: layouts, and functions
 * that check and decode. They allocate with malloc and have no global state, so several threads
 * can read one file.
 *
 * A file is a header of 16 bytes and a sequence of chunks: each is a chunk header of 64 bytes
 * and a zstd frame of `stored_bytes`. Each chunk can be checked and decompressed alone. Numbers
 * are little-endian. Chunks of several process images and threads are mixed. Code and events
 * come before the chunks that refer to them. A file that was cut off is good up to its last
 * whole chunk.
 */
#ifndef ASSAY_TRACE_FILE_H
#define ASSAY_TRACE_FILE_H

#include "trace_types.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- Layouts. */

#define TRACE_FILE_MAGIC "assaytrc"
enum { TRACE_FILE_VERSION = 2 };

typedef struct trace_file_header {
    char magic[8];    /* TRACE_FILE_MAGIC, without a zero byte */
    uint32_t version; /* 1 or 2; a reader refuses unknown later versions */
    uint32_t reserved;
} trace_file_header_t;

/* Kinds of chunks. Skip unknown kinds: more may come. */
enum {
    TRACE_CHUNK_IMAGE = 1,   /* trace_image_t; the first chunk of its image */
    TRACE_CHUNK_CODE = 2,    /* trace_code_t, then arrays of the new trace_block_t, trace_instr_t
                                and trace_site_t */
    TRACE_CHUNK_EVENTS = 3,  /* events of the image; they continue those of earlier chunks */
    TRACE_CHUNK_RECORDS = 4, /* records of a thread: trace_records_t */
    TRACE_CHUNK_END = 5,     /* trace_image_end_t; the last chunk of its image. With --sample, an
                                array of trace_thread_end_t follows its `size` bytes */
    TRACE_CHUNK_POINTS = 6   /* trace_points_t, then an array of trace_point_t in order: the only
                                recorded parts of the first thread */
};

enum { TRACE_CHUNK_MAGIC = 0x6b6e6863 }; /* "chnk" */

typedef struct trace_chunk {
    uint32_t magic;  /* TRACE_CHUNK_MAGIC */
    uint32_t kind;   /* TRACE_CHUNK_* */
    uint32_t pid;    /* process that the chunk belongs to */
    uint32_t image;  /* number of the image (execve) in the process, from 1 */
    uint32_t thread; /* for records: number of the thread, 0 for the first of the process */
    uint32_t slot;   /* for records: see ThreadSlot; threads may share one in turn */
    uint64_t first_instruction; /* for records: instructions of the thread before this chunk */
    uint64_t instructions;      /* for records: instructions in this chunk */
    uint64_t records;           /* for records: number of trace_record_t */
    uint32_t raw_bytes;         /* decompressed */
    uint32_t stored_bytes;      /* that follow this header */
    uint32_t point;    /* for records: the simulation point, with its warm-up, from 1; 0: none */
    uint32_t checksum; /* trace_chunk_checksum(); the frame has zstd's own */
} trace_chunk_t;

/* The largest size of a decompressed chunk. */
enum { TRACE_CHUNK_MOST_BYTES = 256 * 1024 * 1024 };

typedef struct trace_image {
    uint32_t size;     /* of this struct, as it was written; members may be added at the end */
    uint32_t parent;   /* process id */
    uint32_t place;    /* number among the images of the run, in order of their start, from 0 */
    uint32_t captures; /* TRACE_RECORDED_* */
    uint32_t slice;    /* of --schedule=fair, in instructions; 0: threads ran side by side */
    uint32_t cpu_level;
    uint32_t rank;   /* of MPI, plus 1; 0: none */
    uint32_t values; /* TRACE_VALUES_*, with TRACE_RECORDED_VALUES */
    /* With assay record --sample: `sample_burst` out of every `sample_period` instructions of
     * each thread are recorded, and `sample_warm_up` instructions right before them. If all are
     * 0, everything is recorded. Records of kind TRACE_SITE_BURST mark begin and end. */
    uint64_t sample_burst, sample_period, sample_warm_up;
    uint32_t emulated; /* TRACE_EMULATED_*; 0: the program was for x86-64, and ran natively */
    /* If emulated: the instruction set as in an ELF header: e_machine, EI_CLASS, EI_DATA. */
    uint16_t elf_machine;
    uint8_t elf_class, elf_data;
} trace_image_t;

/* What QEMU has run. Threads of a machine are its cores. */
enum {
    TRACE_EMULATED_PROGRAM = 1,
    TRACE_EMULATED_MACHINE = 2,
    TRACE_EMULATED_MICROCONTROLLER = 3 /* a machine with an Arm processor of the M profile */
};

enum {
    TRACE_RECORDED_BLOCKS = 1,
    TRACE_RECORDED_REFERENCES = 2,
    TRACE_RECORDED_CALLS = 4,
    TRACE_RECORDED_SYSTEM_CALLS = 8,
    TRACE_RECORDED_VALUES = 16,
    /* The effective addresses of prefetches, clflush, clflushopt, clwb and cldemote, as values,
     * independent of `values`. Other instructions of the same opcodes also have such records. */
    TRACE_RECORDED_LINE_OPERATIONS = 32,
    TRACE_RECORDED_SOME_BLOCKS = 64 /* only the blocks of some functions: assay trace --function */
};

/* The recorded values, all with TRACE_WIDE. Each instruction has records of its values in this
 * order, like those of value lists (TRACE_SITE_VALUE). An instruction without any has a record
 * with TRACE_NONE. If only TRACE_VALUES_LOADS and TRACE_VALUES_STORES are recorded, other
 * instructions have no records. */
enum {
    TRACE_VALUES_ADDRESSES = 1, /* TRACE_EFFECTIVE_ADDRESS */
    TRACE_VALUES_OPERANDS = 2,  /* TRACE_SOURCE0 and TRACE_SOURCE1, with TRACE_BEFORE */
    TRACE_VALUES_LOADS = 4,     /* TRACE_LOADED */
    TRACE_VALUES_STORES = 8,    /* TRACE_STORED with TRACE_BEFORE, then without */
    TRACE_VALUES_RESULTS = 16,  /* TRACE_DESTINATION */
    TRACE_VALUES_BRANCHES = 32  /* TRACE_BRANCH_TAKEN, TRACE_BRANCH_TARGET */
};

typedef struct trace_code {
    uint32_t first_block, blocks;
    uint32_t first_instr, instrs;
    uint32_t first_site, sites;
} trace_code_t;

/* Intervals that represent the program (assay record --simpoints). Records before each interval
 * only warm up caches; do not count them. Records of kind TRACE_SITE_BURST mark begin and end. */
typedef struct trace_points {
    uint32_t size;          /* of this struct, as for images */
    uint32_t count;         /* trace_point_t */
    uint64_t interval_size; /* instructions */
    uint64_t warm_up;       /* instructions before each, if there are that many */
} trace_points_t;

typedef struct trace_point {
    uint64_t begin;  /* instructions executed before it */
    uint64_t end;    /* and up to its end; both are exact to a basic block */
    uint64_t number; /* of the interval, from 0 */
    double weight;   /* share of the program that it represents; 1 is all of it */
    uint64_t cluster;
} trace_point_t;

typedef struct trace_image_end {
    uint32_t size;
    uint32_t state;      /* TRACE_IMAGE_* */
    int32_t exit_status; /* of the process, if known, which it is for the first one */
    int32_t signal;      /* that ended it, or 0 */
    uint32_t threads;    /* number of threads */
    uint32_t reserved;
    uint64_t parts;        /* number of parts of all threads, for checking that none is missing */
    uint64_t instructions; /* with points: executed by the first thread, recorded or not */
} trace_image_end_t;

/* The last thread of each slot. It can end without a record of its end, for example by
 * exit_group(2). */
typedef struct trace_thread_end {
    uint32_t thread, slot;
    uint64_t instructions; /* executed by it, recorded or not */
} trace_thread_end_t;

enum {
    TRACE_IMAGE_ENDED = 1,
    TRACE_IMAGE_KILLED = 2,
    TRACE_IMAGE_REFUSED = 3,  /* assay could not run it further; the events tell the reason */
    TRACE_IMAGE_REPLACED = 4, /* by the process's next image */
    TRACE_IMAGE_DAMAGED = 5   /* the records end before the program did */
};

/* The head of TRACE_CHUNK_RECORDS: the lengths of its streams, which follow in this order.
 *
 *   parts    the parts of the chunk, see trace_part_t, as varints
 *   runs     how many records were as predicted before the next one that was not, as varints
 *   flags    of that one: TRACE_MISS_*
 *   sites    the difference to the predicted site, zigzag, as varints
 *   values   the difference to the value that TRACE_MISS_VALUE says, likewise
 *   aux      `aux`, as varints
 *
 * A varint is LEB128. trace_predictor_t makes the predictions; it is empty at the beginning of
 * each chunk.
 *
 * With TRACE_CODING_SHORT, `flags` has a byte for each record that was not as predicted: the
 * number of predicted records before it plus TRACE_MANY times a number of trace_miss_kinds. If
 * there were TRACE_MANY - 1 or more, `runs` has how many more, as a varint. The kind says how many
 * bytes of `sites` or `values` have the difference, zigzag. Kind 0 means that a byte of
 * TRACE_MISS_* follows in `flags`, and differences are varints. */
typedef struct trace_records {
    uint32_t part_bytes, run_bytes, flag_bytes, site_bytes, value_bytes, aux_bytes;
    uint32_t parts;
    uint32_t coding; /* TRACE_CODING_* */
} trace_records_t;

enum {
    TRACE_CODING_VARINTS = 0, /* in files of version 1 */
    TRACE_CODING_SHORT = 1
};

enum {
    TRACE_MISS_SITE = 1,      /* the site was not as predicted */
    TRACE_MISS_VALUE = 6,     /* two bits: */
    TRACE_VALUE_FAVOURED = 0, /* the value was as the favoured predictor said */
    TRACE_VALUE_OTHER = 2,    /* as the other one said */
    TRACE_VALUE_LAST = 4,     /* from the site's last value */
    TRACE_VALUE_BASE = 6,     /* from trace_base() */
    TRACE_MISS_AUX = 8        /* `aux` is not 0 */
};

enum { TRACE_MANY = 16, TRACE_MISS_KINDS = 15 };

typedef struct trace_miss_kind {
    unsigned char flags;                   /* TRACE_MISS_* */
    unsigned char site_bytes, value_bytes; /* of the difference */
} trace_miss_kind_t;

static const trace_miss_kind_t trace_miss_kinds[TRACE_MISS_KINDS] = {
    {0, 0, 0}, /* see trace_records_t */
    {TRACE_MISS_SITE, 1, 0},
    {TRACE_MISS_SITE, 2, 0},
    {TRACE_MISS_SITE, 4, 0},
    {TRACE_VALUE_OTHER, 0, 0},
    {TRACE_VALUE_LAST, 0, 1},
    {TRACE_VALUE_LAST, 0, 2},
    {TRACE_VALUE_LAST, 0, 3},
    {TRACE_VALUE_LAST, 0, 4},
    {TRACE_VALUE_LAST, 0, 8},
    {TRACE_VALUE_BASE, 0, 1},
    {TRACE_VALUE_BASE, 0, 2},
    {TRACE_VALUE_BASE, 0, 3},
    {TRACE_VALUE_BASE, 0, 4},
    {TRACE_VALUE_BASE, 0, 8},
};

/* Consecutive records of one thread. */
typedef struct trace_part {
    uint64_t order; /* among the parts of all threads of the image, from 0 */
    uint64_t records;
    uint64_t events;  /* bytes of the image's events before the part */
    uint64_t markers; /* number of trace_part_marker_t that follow */
} trace_part_t;

/* A message of the program (assay/client.h), or the beginning or end of a thread. */
typedef struct trace_part_marker {
    uint64_t record; /* index in the part of the record that follows the marker */
    uint64_t event;  /* offset in the image's events, in bytes */
} trace_part_marker_t;

/* Returns the checksum of a chunk header without `checksum`: 32-bit FNV-1a (Fowler, Noll, Vo). */
static inline uint32_t trace_chunk_checksum(const trace_chunk_t* chunk) {
    const unsigned char* at = (const unsigned char*)chunk;
    uint32_t hash = 2166136261u;
    size_t i;
    for (i = 0; i < offsetof(trace_chunk_t, checksum); ++i) hash = (hash ^ at[i]) * 16777619u;
    return hash;
}

/* Returns 1 if `chunk` is the header of a chunk. */
static inline int trace_chunk_is_whole(const trace_chunk_t* chunk) {
    return chunk->magic == (uint32_t)TRACE_CHUNK_MAGIC &&
           chunk->raw_bytes <= (uint32_t)TRACE_CHUNK_MOST_BYTES &&
           chunk->stored_bytes <= (uint32_t)TRACE_CHUNK_MOST_BYTES &&
           chunk->checksum == trace_chunk_checksum(chunk);
}

/* Decompresses `stored`, the bytes after the header, into `raw`, which has room for `raw_bytes`.
 * Returns 0, or -1 if the data is damaged. */
static inline int trace_chunk_decompress(const trace_chunk_t* chunk, const void* stored,
                                         void* raw) {
    const size_t got = ZSTD_decompress(raw, chunk->raw_bytes, stored, chunk->stored_bytes);
    return !ZSTD_isError(got) && got == chunk->raw_bytes ? 0 : -1;
}

/* --- The predictor of records, the same in writer and reader. */

/* The state of a site. */
typedef struct trace_site_state {
    uint64_t last;     /* value */
    uint64_t relative; /* `last` minus trace_base() at that time */
    int32_t stride;    /* seen twice */
    int32_t last_delta;
    uint32_t next;  /* the site of the record that followed, plus 1; 0: none yet */
    uint32_t trust; /* 2 and 3 favour `relative`, 0 and 1 `stride` */
} trace_site_state_t;

enum { TRACE_REGIONS = 16, TRACE_HISTORY_BITS = 17, TRACE_MEMORY_BITS = 16 };

typedef struct trace_predictor {
    trace_site_state_t* sites; /* of `count` sites */
    const trace_site_t* table; /* the sites themselves */
    uint32_t* successors;      /* by the last four blocks: the site of the next block plus 1 */
    uint64_t* memory;          /* the value last loaded or stored, by address: see trace_word */
    uint64_t bases[TRACE_REGIONS];
    uint64_t read, written; /* addresses of the last references */
    uint64_t value;         /* the last TRACE_SITE_VALUE or TRACE_SITE_VALUE_REST */
    uint64_t offset;        /* offset of the next TRACE_SITE_VALUE_REST in that value */
    uint64_t history;       /* of blocks */
    uint32_t last;          /* the site of the last record */
    uint32_t count;
} trace_predictor_t;

/* Regions of 4 GiB. Stack, libraries and program are mostly in different ones. */
static inline unsigned trace_region(uint64_t value) {
    return (unsigned)(value >> 32) % TRACE_REGIONS;
}

static inline uint32_t* trace_successor(const trace_predictor_t* predictor) {
    return &predictor
                ->successors[predictor->history * 0x9e3779b97f4a7c15u >> (64 - TRACE_HISTORY_BITS)];
}

/* Predicts the site of the next record. The site may not exist. */
static inline uint32_t trace_predict_site(const trace_predictor_t* predictor) {
    const uint32_t next = predictor->sites[predictor->last].next;
    uint32_t successor;
    if (next == 0) return predictor->last + 1;
    if (predictor->table[next - 1].kind != TRACE_SITE_BLOCK) return next - 1;
    successor = *trace_successor(predictor);
    return successor != 0 ? successor - 1 : next - 1;
}

static inline void trace_learn_site(trace_predictor_t* predictor, uint32_t site) {
    predictor->sites[predictor->last].next = site + 1;
    predictor->last = site;
}
/* The same for a block. */
static inline void trace_learn_block(trace_predictor_t* predictor, uint32_t site) {
    trace_learn_site(predictor, site);
    *trace_successor(predictor) = site + 1;
    predictor->history = predictor->history << 16 | (site * 0x9e3779b1u) >> 16;
}

static inline int trace_is_value(const trace_site_t* site) {
    return site->kind == TRACE_SITE_VALUE || site->kind == TRACE_SITE_VALUE_REST;
}
/* Returns 1 for a value of memory: TRACE_LOADED or TRACE_STORED. */
static inline int trace_is_of_memory(const trace_site_t* site) {
    return (site->operand & 127) == 2 || (site->operand & 127) == 3;
}
/* The entry for a value of memory, by the address of the instruction's reference. */
static inline uint64_t* trace_word(const trace_predictor_t* predictor, const trace_site_t* site) {
    const uint64_t address = ((site->operand & 127) == 2 ? predictor->read : predictor->written) +
                             (site->kind == TRACE_SITE_VALUE ? 0 : predictor->offset);
    return &predictor->memory[address * 0x9e3779b97f4a7c15u >> (64 - TRACE_MEMORY_BITS)];
}
/* The base from which a value is predicted, apart from the site's last value. For addresses, it
 * is the last address in the region, because references to the stack are close together in all
 * functions. For values of memory, it is the last value at the address; for registers, the last
 * value. */
static inline uint64_t trace_base(const trace_predictor_t* predictor, uint32_t site) {
    const trace_site_t* const of = &predictor->table[site];
    uint64_t word;
    if (!trace_is_value(of)) return predictor->bases[trace_region(predictor->sites[site].last)];
    if (!trace_is_of_memory(of)) return predictor->value;
    word = *trace_word(predictor, of);
    return of->bytes < 8 ? word & (((uint64_t)1 << 8 * of->bytes) - 1) : word;
}

static inline uint64_t trace_guess_stride(const trace_site_state_t* site) {
    return site->last + (uint64_t)(int64_t)site->stride;
}
/* `base`: trace_base(). */
static inline uint64_t trace_guess_relative(const trace_site_state_t* site, uint64_t base) {
    return base + site->relative;
}

/* Learns a value. The value of a block is always 0 and not learnt. `base` is trace_base() before
 * the call. */
static inline void trace_learn_value(trace_predictor_t* predictor, uint32_t site, uint64_t base,
                                     uint64_t value) {
    const trace_site_t* const of = &predictor->table[site];
    trace_site_state_t* const state = &predictor->sites[site];
    const int by_stride = trace_guess_stride(state) == value;
    const int by_relative = trace_guess_relative(state, base) == value;
    const int64_t delta = (int64_t)(value - state->last);
    const int32_t near_delta = delta == (int32_t)delta ? (int32_t)delta : 0;
    if (by_stride && !by_relative && state->trust > 0) --state->trust;
    if (by_relative && !by_stride && state->trust < 3) ++state->trust;
    if (near_delta == state->last_delta) state->stride = near_delta;
    state->last_delta = near_delta;
    state->last = value;
    if (trace_is_value(of)) {
        if (trace_is_of_memory(of))
            *trace_word(predictor, of) = value;
        else
            state->relative = value - base;
        predictor->value = value;
        predictor->offset = of->kind == TRACE_SITE_VALUE ? 8 : predictor->offset + 8;
        return;
    }
    if (of->kind == TRACE_SITE_READ || of->kind == TRACE_SITE_MODIFY) predictor->read = value;
    if (of->kind == TRACE_SITE_WRITE || of->kind == TRACE_SITE_MODIFY) predictor->written = value;
    /* The value's own region can differ from that of `last`. */
    state->relative = value - predictor->bases[trace_region(value)];
    predictor->bases[trace_region(value)] = value;
}

/* --- Decoding the records of a chunk. */

typedef struct trace_stream {
    const unsigned char *at, *end;
} trace_stream_t;

/* Returns 0 after the end, which trace_next_record detects. */
static inline uint64_t trace_varint(trace_stream_t* stream) {
    uint64_t value = 0;
    unsigned shift = 0;
    while (stream->at < stream->end && shift < 64) {
        const unsigned char byte = *stream->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) break;
        shift += 7;
    }
    return value;
}
/* The next `bytes` bytes, at most 8, as a number; 0 after the end. */
static inline uint64_t trace_fixed(trace_stream_t* stream, unsigned bytes) {
    uint64_t value = 0;
    unsigned i;
    if (stream->end - stream->at >= 8) {
        memcpy(&value, stream->at, 8);
        stream->at += bytes;
        return bytes < 8 ? value & (((uint64_t)1 << 8 * bytes) - 1) : value;
    }
    for (i = 0; i < bytes && stream->at < stream->end; ++i)
        value |= (uint64_t)*stream->at++ << 8 * i;
    return value;
}
static inline uint64_t trace_unzigzag(uint64_t value) {
    return value >> 1 ^ (0 - (value & 1));
}

typedef struct trace_decoder {
    trace_predictor_t predictor;
    trace_stream_t parts, runs, flags, sites, values, aux;
    uint64_t left; /* records */
    uint64_t run;  /* number of predicted records from here on */
    uint64_t parts_left;
    uint64_t order, events, event; /* of the last part and marker */
    uint32_t coding;
    uint32_t kind; /* of the record after the predicted ones: a number of trace_miss_kinds */
} trace_decoder_t;

static inline void trace_decoder_release(trace_decoder_t* decoder) {
    free(decoder->predictor.sites);
    free(decoder->predictor.successors);
    free(decoder->predictor.memory);
    decoder->predictor.sites = NULL;
    decoder->predictor.successors = NULL;
    decoder->predictor.memory = NULL;
}

/* Prepares `decoder` for any number of chunks of one image. `table` has all sites of the image,
 * and must stay valid. Returns 0, or -1 without memory. Free with trace_decoder_release. */
static inline int trace_decoder_init(trace_decoder_t* decoder, const trace_site_t* table,
                                     uint32_t sites) {
    memset(decoder, 0, sizeof *decoder);
    decoder->predictor.table = table;
    decoder->predictor.count = sites;
    decoder->predictor.sites =
        (trace_site_state_t*)malloc((sites + (size_t)1) * sizeof(trace_site_state_t));
    decoder->predictor.successors = (uint32_t*)malloc(sizeof(uint32_t) << TRACE_HISTORY_BITS);
    decoder->predictor.memory = (uint64_t*)malloc(sizeof(uint64_t) << TRACE_MEMORY_BITS);
    if (decoder->predictor.sites && decoder->predictor.successors && decoder->predictor.memory)
        return 0;
    trace_decoder_release(decoder);
    return -1;
}

static inline void trace_next_run(trace_decoder_t* decoder) {
    if (decoder->coding == (uint32_t)TRACE_CODING_VARINTS) {
        decoder->run =
            decoder->runs.at < decoder->runs.end ? trace_varint(&decoder->runs) : UINT64_MAX;
    } else if (decoder->flags.at < decoder->flags.end) {
        decoder->kind = *decoder->flags.at / TRACE_MANY;
        decoder->run = *decoder->flags.at % TRACE_MANY;
        if (decoder->run == TRACE_MANY - 1) decoder->run += trace_varint(&decoder->runs);
        ++decoder->flags.at;
    } else {
        decoder->run = UINT64_MAX;
        decoder->kind = TRACE_MISS_KINDS;
    }
}

/* Returns how the record after the predicted ones differs; NULL if the chunk is damaged. `room`
 * holds what is not in trace_miss_kinds. Its differences have 0 bytes: they are varints. */
static inline const trace_miss_kind_t* trace_next_miss(trace_decoder_t* decoder,
                                                       trace_miss_kind_t* room) {
    if (decoder->coding != (uint32_t)TRACE_CODING_VARINTS) {
        if (decoder->kind >= (uint32_t)TRACE_MISS_KINDS) return NULL;
        if (decoder->kind != 0) return &trace_miss_kinds[decoder->kind];
    }
    if (decoder->flags.at == decoder->flags.end) return NULL;
    room->flags = *decoder->flags.at++;
    room->site_bytes = room->value_bytes = 0;
    return room;
}

/* The next difference of a stream, as trace_miss_kind_t says: of `bytes` bytes, or a varint. */
static inline uint64_t trace_difference(trace_stream_t* stream, unsigned bytes) {
    return trace_unzigzag(bytes != 0 ? trace_fixed(stream, bytes) : trace_varint(stream));
}

/* Begins a decompressed chunk of TRACE_CHUNK_RECORDS, which must stay valid. Returns 0, or -1 if
 * it is damaged. */
static inline int trace_records_begin(trace_decoder_t* decoder, const trace_chunk_t* chunk,
                                      const void* raw) {
    trace_records_t head;
    trace_predictor_t* const predictor = &decoder->predictor;
    const unsigned char* at = (const unsigned char*)raw;
    const unsigned char* const end = at + chunk->raw_bytes;
    trace_stream_t* streams[6];
    uint32_t lengths[6];
    size_t i;
    streams[0] = &decoder->parts, streams[1] = &decoder->runs, streams[2] = &decoder->flags;
    streams[3] = &decoder->sites, streams[4] = &decoder->values, streams[5] = &decoder->aux;
    if (chunk->raw_bytes < sizeof head) return -1;
    memcpy(&head, at, sizeof head);
    memcpy(lengths, &head, sizeof lengths);
    at += sizeof head;
    for (i = 0; i < 6; ++i) {
        if (lengths[i] > (size_t)(end - at)) return -1;
        streams[i]->at = at;
        streams[i]->end = at += lengths[i];
    }
    memset(predictor->sites, 0, (predictor->count + (size_t)1) * sizeof(trace_site_state_t));
    memset(predictor->successors, 0, sizeof(uint32_t) << TRACE_HISTORY_BITS);
    memset(predictor->memory, 0, sizeof(uint64_t) << TRACE_MEMORY_BITS);
    memset(predictor->bases, 0, sizeof predictor->bases);
    predictor->read = predictor->written = predictor->value = predictor->offset = 0;
    predictor->history = 0;
    predictor->last = 0;
    decoder->left = chunk->records;
    decoder->parts_left = head.parts;
    decoder->order = decoder->events = decoder->event = 0;
    decoder->coding = head.coding;
    if (head.coding > (uint32_t)TRACE_CODING_SHORT) return -1;
    trace_next_run(decoder);
    return predictor->count != 0 || chunk->records == 0 ? 0 : -1;
}

/* Reads the next part. Read its records and markers before the next call. Returns 1, 0 after the
 * last part, -1 if the chunk is damaged. */
static inline int trace_next_part(trace_decoder_t* decoder, trace_part_t* part) {
    if (decoder->parts_left == 0) return 0;
    if (decoder->parts.at == decoder->parts.end) return -1;
    --decoder->parts_left;
    part->order = decoder->order += trace_varint(&decoder->parts);
    part->records = trace_varint(&decoder->parts);
    part->events = decoder->events += trace_varint(&decoder->parts);
    part->markers = trace_varint(&decoder->parts);
    return part->records <= decoder->left ? 1 : -1;
}

/* Reads the next marker of the part. */
static inline trace_part_marker_t trace_next_marker(trace_decoder_t* decoder) {
    trace_part_marker_t marker;
    marker.record = trace_varint(&decoder->parts);
    marker.event = decoder->event += trace_varint(&decoder->parts);
    return marker;
}

/* Decodes the value of a record of `site`, which is not a block. */
static inline uint64_t trace_next_value(trace_decoder_t* decoder, uint32_t site,
                                        const trace_miss_kind_t* miss) {
    trace_predictor_t* const predictor = &decoder->predictor;
    const trace_site_state_t* const state = &predictor->sites[site];
    const uint64_t base = trace_base(predictor, site);
    const uint64_t stride = trace_guess_stride(state);
    const uint64_t relative = trace_guess_relative(state, base);
    uint64_t value;
    switch (miss->flags & TRACE_MISS_VALUE) {
        case TRACE_VALUE_FAVOURED:
            value = state->trust >= 2 ? relative : stride;
            break;
        case TRACE_VALUE_OTHER:
            value = state->trust >= 2 ? stride : relative;
            break;
        case TRACE_VALUE_LAST:
            value = state->last + trace_difference(&decoder->values, miss->value_bytes);
            break;
        default:
            value = base + trace_difference(&decoder->values, miss->value_bytes);
            break;
    }
    trace_learn_value(predictor, site, base, value);
    return value;
}

/* Decodes the next record. `left` must not be 0. Returns 1, or 0 if the chunk is damaged:
 * trace_records_damaged() is then not 0. */
static inline int trace_next_record(trace_decoder_t* decoder, trace_record_t* record) {
    trace_predictor_t* const predictor = &decoder->predictor;
    uint32_t site = trace_predict_site(predictor);
    trace_miss_kind_t room;
    const trace_miss_kind_t* miss = &trace_miss_kinds[0]; /* as predicted */
    record->aux = 0;
    if (decoder->run-- == 0) {
        miss = trace_next_miss(decoder, &room);
        if (miss == NULL) return 0;
        if (miss->flags & TRACE_MISS_SITE)
            site += (uint32_t)trace_difference(&decoder->sites, miss->site_bytes);
        if (miss->flags & TRACE_MISS_AUX) record->aux = (uint32_t)trace_varint(&decoder->aux);
        trace_next_run(decoder);
    }
    if (site >= predictor->count) return 0;
    record->site = site;
    record->value = 0;
    if (predictor->table[site].kind == TRACE_SITE_BLOCK) {
        trace_learn_block(predictor, site);
    } else {
        record->value = trace_next_value(decoder, site, miss);
        trace_learn_site(predictor, site);
    }
    --decoder->left;
    return 1;
}

/* Decodes up to `count` records, of one part or of several. Returns their number. It is less
 * than `count` at the end of the chunk, or if the chunk is damaged: trace_records_damaged() is
 * then not 0. */
static inline size_t trace_records_next(trace_decoder_t* decoder, trace_record_t* records,
                                        size_t count) {
    size_t i = 0;
    while (i < count && decoder->left != 0 && trace_next_record(decoder, &records[i])) ++i;
    return i;
}

/* Call this after trace_records_next returned fewer records than asked for. */
static inline int trace_records_damaged(const trace_decoder_t* decoder) {
    return decoder->left != 0;
}

/* --- The place of a record in its thread. */

/* Counts the instructions of a thread by its records of blocks. Zero at first. */
typedef struct trace_position {
    uint64_t executed;    /* instructions, with all those of the present block */
    uint32_t first_instr; /* of the last block */
    uint32_t place;       /* TRACE_POSITION_* */
} trace_position_t;

enum {
    TRACE_POSITION_UNKNOWN = 0, /* the records so far were of no block that has begun here */
    TRACE_POSITION_IN_BLOCK = 1,
    TRACE_POSITION_BETWEEN = 2, /* a block was left early */
};

/* The next records follow so many instructions of the thread. */
static inline void trace_position_begin(trace_position_t* position, uint64_t executed) {
    if (position->executed == executed) return;
    position->executed = executed;
    position->place = TRACE_POSITION_UNKNOWN;
}

/* Counts the next record of the thread. `site` is its site, and `block` the block of the site's
 * instruction. Returns the number of the record's instruction in the thread, from 1; for a block,
 * that of its first instruction. */
static inline uint64_t trace_position_next(trace_position_t* position, const trace_record_t* record,
                                           const trace_site_t* site, const trace_block_t* block) {
    const uint64_t count = block->instr_count;
    uint64_t first;
    switch (site->kind) {
        case TRACE_SITE_BLOCK:
            position->executed += count;
            position->first_instr = block->first_instr;
            position->place = TRACE_POSITION_IN_BLOCK;
            return position->executed - count + 1;
        case TRACE_SITE_BLOCK_LEFT:
            first = position->executed - (count < position->executed ? count : position->executed);
            position->executed = first + (record->value < count ? record->value : count);
            position->place = TRACE_POSITION_BETWEEN;
            return first + 1;
        case TRACE_SITE_BURST:
            if (record->aux < 4) trace_position_begin(position, record->value);
            return position->executed + 1;
        default:
            break;
    }
    /* A record of the next block can come before the block's own: that of a signal handler. */
    if (position->place == TRACE_POSITION_BETWEEN ||
        (position->place == TRACE_POSITION_IN_BLOCK && position->first_instr != block->first_instr))
        return position->executed + 1;
    first = position->executed - (count < position->executed ? count : position->executed);
    return first + (site->instr - block->first_instr) + 1;
}

#ifdef __cplusplus
}
#endif
#endif
