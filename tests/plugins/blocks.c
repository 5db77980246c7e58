/* Counts instructions by the executions of their blocks, and says which records are not where the
 * block is executed that they belong to, or stand before those of an instruction before theirs. */
#include "assay/vprofiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BY_RECORDS, BY_COUNTS, STRAYS, BACKWARDS, EVENTS };
enum { BATCH = 1024, MOST_THREADS = 4096 };

static const vp_host_t* host;
static trace_vlist_table_t* spec;
static char with[200];             /* what is captured besides */
static uint64_t (*counts)[EVENTS]; /* by instruction */
static size_t known;
static uint32_t next_instr;
static struct {
    uint32_t block, position; /* of the last record */
    int in_block;
} threads[MOST_THREADS];
static vsample_t samples[BATCH];

static const char* name(void) {
    return "blocks";
}

static int init(const vp_host_t* given) {
    host = given;
    with[0] = 0;
    counts = NULL;
    known = 0;
    next_instr = 0;
    memset(threads, 0, sizeof threads);
    return 0;
}

static const vp_event_t* events(uint32_t* count) {
    static const vp_event_t table[EVENTS] = {
        {"Ir", "instructions executed, by records of blocks", "instructions"},
        {"Counted", "instructions executed, by block counts", "instructions"},
        {"Strays", "records outside of an execution of their block", "records"},
        {"Backwards", "records behind those of a later instruction", "records"},
    };
    *count = EVENTS;
    return table;
}

static const vp_option_t* option_table(uint32_t* count) {
    static const vp_option_t table[] = {{.name = "with",
                                         .argument = "CAPTURES",
                                         .default_value = "",
                                         .help = "What to capture besides.",
                                         .type = VP_OPTION_TEXT}};
    *count = 1;
    return table;
}

static int options(const vp_setting_t* settings, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) snprintf(with, sizeof with, "%s", settings[i].value);
    return 0;
}

static int wants(const char* word) {
    return strstr(with, word) != NULL;
}

static int is_load(uint16_t opcode, uint32_t flags) {
    (void)opcode;
    return (flags & TRACE_INSTR_LOAD) != 0;
}

static trace_vlist_table_t* prof_init(void) {
    const trace_cache_t level1 = {sizeof level1, 64, 64, 8, TRACE_LRU};
    spec = trace_vlist_table_alloc();
    trace_capture_blocks(spec);
    trace_capture_block_counts(spec);
    if (wants("references")) trace_capture_references(spec, 64, 0);
    if (wants("filter")) trace_capture_references(spec, 64, 64);
    if (wants("writes")) trace_capture_first_writes(spec, 64, 64);
    if (wants("footprints")) trace_capture_footprints(spec, 64, 64);
    if (wants("runs")) trace_capture_runs(spec);
    if (wants("misses")) trace_capture_misses(spec, wants("fetches") ? NULL : &level1, &level1);
    if (wants("fetches")) trace_capture_fetches(spec, 64, 64);
    if (wants("code")) trace_capture_code(spec, 64);
    if (wants("calls")) trace_capture_calls(spec);
    if (wants("branches"))
        trace_capture_branches(spec, TRACE_CONDITIONAL_BRANCHES | TRACE_INDIRECT_BRANCHES |
                                         TRACE_DIRECT_CALLS | TRACE_RETURNS);
    if (wants("predictions")) trace_capture_predictions(spec, 7, 7, 9);
    if (wants("intervals")) trace_capture_intervals(spec, 1000);
    if (wants("systemcalls")) trace_capture_system_calls(spec, 0);
    if (wants("values")) {
        trace_vlist_t* const list = trace_vlist_alloc();
        trace_add_value_to_vlist(list, TRACE_LOADED);
        trace_add_vlist_by_select(spec, is_load, list);
        free(list);
    }
    return spec;
}

/* Of kinds whose site is where they happen. Where runs are left out, data references can come long
 * after they were made. */
static int has_place(const trace_site_t* site) {
    switch (site->kind) {
        case TRACE_SITE_READ:
        case TRACE_SITE_WRITE:
        case TRACE_SITE_MODIFY:
            return !wants("runs");
        case TRACE_SITE_FETCH:
        case TRACE_SITE_CODE:
        case TRACE_SITE_COUNT:
        case TRACE_SITE_CALL:
        case TRACE_SITE_TARGET:
        case TRACE_SITE_RETURN:
        case TRACE_SITE_BRANCH:
        case TRACE_SITE_PREDICTIONS:
        case TRACE_SITE_VALUE:
        case TRACE_SITE_VALUE_REST:
        case TRACE_SITE_SYSTEM_CALL:
            return 1;
        default:
            return 0;
    }
}

/* They are read behind their instruction, where references of the next one can be recorded already.
 */
static int is_value(const trace_site_t* site) {
    return site->kind == TRACE_SITE_VALUE || site->kind == TRACE_SITE_VALUE_REST;
}

static int make_room(size_t instr_count) {
    void* const grown = realloc(counts, 2 * instr_count * sizeof *counts);
    if (!grown) {
        host->error(host, "no memory");
        return 0;
    }
    counts = grown;
    memset(counts + known, 0, (2 * instr_count - known) * sizeof *counts);
    known = 2 * instr_count;
    return 1;
}

static int process(uint32_t pid, trace_parser_t* parser, const vsample_t** out) {
    size_t count, site_count, instr_count, block_count;
    const trace_record_t* records = trace_parser_records(parser, &count);
    const trace_site_t* sites = trace_parser_sites(parser, &site_count);
    const trace_instr_t* instrs = trace_parser_instrs(parser, &instr_count);
    const trace_block_t* blocks = trace_parser_blocks(parser, &block_count);
    const uint32_t thread = trace_parser_get_thread(parser) % MOST_THREADS;
    (void)pid;
    *out = NULL;
    if (instr_count > known && !make_room(instr_count)) return -1;
    for (size_t i = 0; i < count; ++i) {
        const trace_site_t* site = &sites[records[i].site];
        const uint32_t block = instrs[site->instr].block;
        const uint32_t position = site->instr - blocks[block].first_instr;
        if (site->kind == TRACE_SITE_BLOCK) {
            threads[thread].block = block;
            threads[thread].position = 0;
            threads[thread].in_block = 1;
            for (uint32_t n = 0; n < blocks[block].instr_count; ++n)
                ++counts[site->instr + n][BY_RECORDS];
        } else if (site->kind == TRACE_SITE_BLOCK_LEFT) {
            counts[site->instr][STRAYS] +=
                !threads[thread].in_block || block != threads[thread].block;
            threads[thread].in_block = 0;
            for (uint64_t n = records[i].value; n < blocks[block].instr_count; ++n)
                --counts[site->instr + n][BY_RECORDS];
        } else if (has_place(site)) {
            if (!threads[thread].in_block || block != threads[thread].block)
                ++counts[site->instr][STRAYS];
            else if (!is_value(site) && position < threads[thread].position)
                ++counts[site->instr][BACKWARDS];
            if (!is_value(site)) threads[thread].position = position;
        }
    }
    return 0;
}

static int finish(uint32_t pid, trace_parser_t* parser, const vsample_t** out) {
    size_t instr_count;
    const trace_instr_t* instrs = trace_parser_instrs(parser, &instr_count);
    int n = 0;
    (void)pid;
    if (instr_count > known && !make_room(instr_count)) return -1;
    for (; next_instr < instr_count && n + EVENTS <= BATCH; ++next_instr) {
        counts[next_instr][BY_COUNTS] = trace_parser_count(parser, next_instr);
        for (uint32_t event = 0; event < EVENTS; ++event)
            if (counts[next_instr][event] != 0)
                samples[n++] = (vsample_t){.pc = instrs[next_instr].pc,
                                           .event = event,
                                           .weight = counts[next_instr][event]};
    }
    *out = samples;
    return n;
}

static void prof_release(void) {
    free(counts);
    free(spec);
}

VP_EXPORT const vp_dispatch_t assay_vp_dispatch = {
    .size = sizeof(vp_dispatch_t),
    .abi_version = VP_ABI_VERSION,
    .vp_name = name,
    .vp_init = init,
    .vp_events = events,
    .vp_option_table = option_table,
    .vp_options = options,
    .vp_prof_init = prof_init,
    .vp_prof_process = process,
    .vp_finish = finish,
    .vp_prof_release = prof_release,
};
