/* A profiler of version 1 of the interface that uses all of it: each function, member, option type,
 * capture and kind of record. Its binary interface is written down in version-1.abi. */
#include <assay/client.h>
#include <assay/vprofiler.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INSTRUCTIONS, REFERENCES, FETCHES, CALLS, EVENTS };
enum { BATCH = 512 };

static const vp_host_t* host;
static trace_vlist_table_t* spec;
static int with_values;
static uint64_t most; /* samples of vp_finish */
static uint32_t next_instr;
static vsample_t samples[BATCH];
static char text[256];

static const char* name(void) {
    return "version_1";
}
static const char* description(void) {
    return "uses everything that version 1 of the interface has";
}

static int init(const vp_host_t* given) {
    if (given->size < sizeof(vp_host_t) || given->abi_version < 1) return -1;
    host = given;
    with_values = 0;
    most = UINT64_MAX;
    next_instr = 0;
    return given->version[0] != '\0' && given->command ? 0 : -1;
}
static void release(void) {
    host = NULL;
}

static const vp_event_t* events(uint32_t* count) {
    static const vp_event_t table[EVENTS] = {
        {"Ir", "instructions executed", "instructions"},
        {"Refs", "data references that arrived", "references"},
        {"Lines", "fetched lines that arrived", "lines"},
        {"Calls", "calls", "calls"},
    };
    *count = EVENTS;
    return table;
}
static const vp_derived_t* derived(uint32_t* count) {
    static const vp_derived_t table[] = {
        {"references per instruction", "Refs / Ir", ""},
        {"lines per fetch", "(Lines + 0) * 1 / Ir - 0", "%"},
    };
    *count = 2;
    return table;
}
static const vp_option_t* option_table(uint32_t* count) {
    static const vp_option_t table[] = {
        {"label", "TEXT", "none", "Stands in the header.", VP_OPTION_TEXT, 0},
        {"values", NULL, "no", "Captures values too.", VP_OPTION_YES_NO, 0},
        {"most", "N", NULL, "At most so many samples at the end.", VP_OPTION_UNSIGNED, 0},
        {"log", "FILE", NULL, "Is named in the header.", VP_OPTION_OUTPUT_FILE, 0},
    };
    *count = 4;
    return table;
}

static int options(const vp_setting_t* settings, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        if (strcmp(settings[i].name, "values") == 0) with_values = settings[i].value[0] == 'y';
        if (strcmp(settings[i].name, "most") == 0) {
            most = strtoull(settings[i].value, NULL, 10);
            if (most != 0) continue;
            host->error(host, "--most: 0 samples tell nothing");
            return -1;
        }
        if (strcmp(settings[i].name, "label") == 0 || strcmp(settings[i].name, "log") == 0)
            host->describe(host, settings[i].name, settings[i].value);
    }
    return 0;
}

static int loads(uint16_t opcode, uint32_t flags) {
    return (opcode >> 8) < TRACE_MAP_VECTOR && (flags & TRACE_INSTR_LOAD) != 0;
}
static trace_value_t pick(uint16_t opcode, uint32_t flags) {
    return opcode == TRACE_OPCODE(0, 0x89) && (flags & TRACE_INSTR_STORE) ? TRACE_STORED
                                                                          : TRACE_NONE;
}

/* A list of each kind of value, which is not asked for; then the two that are. */
static void capture_values(void) {
    static const trace_value_t all[TRACE_VLIST_MAX] = {
        TRACE_BRANCH_TAKEN, TRACE_BRANCH_TARGET, TRACE_LATENCY,      TRACE_DESTINATION,
        TRACE_SOURCE0,      TRACE_GPR0 + 3,      TRACE_VECTOR0 + 31,
    };
    trace_vlist_t* list = trace_vlist_alloc();
    for (int i = 0; i < TRACE_VLIST_MAX; ++i)
        if (trace_add_value_to_vlist(list, all[i]) != 0) abort();
    if (trace_add_value_to_vlist(list, TRACE_SOURCE1) != -1) abort(); /* full */
    trace_vlist_init(list);
    trace_add_value_to_vlist(list, TRACE_EFFECTIVE_ADDRESS);
    trace_add_value_to_vlist(list, TRACE_LOADED);
    trace_set_vlist_by_pick_value(spec, pick);
    trace_add_vlist_by_opc(spec, TRACE_OPCODE(0, 0x8B), list);
    trace_vlist_init(list);
    trace_add_value_to_vlist(list, TRACE_GPR0 | TRACE_BEFORE);
    trace_add_vlist_by_select(spec, loads, list);
    free(list);
}

static trace_vlist_table_t* prof_init(void) {
    spec = trace_vlist_table_alloc();
    trace_vlist_table_init(spec);
    trace_capture_block_counts(spec);
    trace_capture_references(spec, 64, 0);
    trace_capture_fetches(spec, 64, 64);
    trace_capture_calls(spec);
    trace_capture_intervals(spec, 100000);
    trace_capture_footprints(spec, 64, 64);
    trace_capture_runs(spec);
    trace_capture_code(spec, 64);
    trace_capture_repeats(spec);
    trace_capture_facts(spec);
    trace_capture_warm_up(spec, 1000);
    trace_capture_system_calls(spec, TRACE_SYSTEM_CALL_TIMES);
    trace_capture_mappings(spec);
    trace_capture_blocks(spec);
    if (host->samples) host->unscaled(host, CALLS);
    if (host->samples) host->no_error(host, CALLS, "they are not scaled");
    trace_capture_branches(spec, TRACE_CONDITIONAL_BRANCHES | TRACE_RETURNS);
    trace_capture_predictions(spec, 7, 7, 9);
    if (with_values) capture_values();
    return spec;
}
static void prof_release(void) {
    free(spec);
    spec = NULL;
}

static int event_of(const trace_site_t* site) {
    switch (site->kind) {
        case TRACE_SITE_FETCH:
            return FETCHES;
        case TRACE_SITE_READ:
        case TRACE_SITE_WRITE:
        case TRACE_SITE_MODIFY:
            return REFERENCES;
        case TRACE_SITE_CALL:
            return CALLS;
        default: /* _COUNT, _TARGET, _RETURN, _STACK, _SIGNAL, _INTERRUPTED, later ones */
            return EVENTS;
    }
}

/* One sample for each reference, fetch and call; then the values. */
static int process(uint32_t pid, trace_parser_t* parser, const vsample_t** out) {
    static vsample_t* batch;
    static size_t room;
    size_t record_count, site_count, instr_count, context_count, tree_size, marker_count;
    const trace_marker_t* markers;
    const trace_record_t* records = trace_parser_records(parser, &record_count);
    const trace_site_t* sites = trace_parser_sites(parser, &site_count);
    const trace_instr_t* instrs = trace_parser_instrs(parser, &instr_count);
    const uint32_t* contexts = trace_parser_contexts(parser, &context_count);
    const trace_context_t* tree = trace_parser_context_table(parser, &tree_size);
    int has_context = trace_parser_has_context(parser), stored, n = 0;
    uint32_t instr;
    uint64_t pc, context0, context1, values[TRACE_VLIST_MAX];
    const trace_interval_t* interval;
    if (pid != trace_parser_get_pid(parser)) return -1;
    (void)trace_parser_get_thread(parser);
    markers = trace_parser_markers(parser, &marker_count);
    if (marker_count != 0 && markers[marker_count - 1].record > record_count) return -1;
    if (room < 2 * record_count) {
        void* grown = realloc(batch, 2 * record_count * sizeof *batch);
        if (!grown) return -1;
        batch = grown;
        room = 2 * record_count;
    }
    for (size_t i = 0; i < record_count; ++i) {
        const trace_site_t* site = &sites[records[i].site];
        const int event = event_of(site);
        const uint32_t context = has_context && i < context_count ? contexts[i] : 0;
        if (event == EVENTS) continue;
        if (context >= tree_size && context != 0) return -1;
        if (context != 0 && tree[context].parent >= context) return -1;
        batch[n++] = (vsample_t){.pc = instrs[site->instr].pc,
                                 .context0 = context,
                                 .event = (uint32_t)event,
                                 .weight = 1};
    }
    while ((size_t)n < room &&
           (stored = trace_parser_next(parser, &instr, &pc, &context0, &context1, TRACE_VLIST_MAX,
                                       values)) >= 0)
        if (stored > 0 && trace_parser_has_value(parser, 0))
            batch[n++] = (vsample_t){.pc = pc,
                                     .context0 = context0,
                                     .context1 = context1,
                                     .value = values[0],
                                     .event = VP_VALUE,
                                     .weight = 1};
    if (trace_parser_value_bytes(parser, TRACE_VLIST_MAX, values, sizeof values) != 0) return -1;
    while ((interval = trace_parser_next_interval(parser)) != NULL)
        for (uint32_t i = 0; i < interval->block_count; ++i)
            if (interval->blocks[i].instructions == 0) return -1;
    if (trace_parser_footprints(parser, &site_count) == NULL && site_count != 0) return -1;
    *out = batch;
    return n;
}

/* Once, and not by an assay that is older than series. */
static void give_series(void) {
    static const vp_axis_t columns[] = {{"executed", "instructions"}, {"batches", "batches"}};
    static const uint64_t numbers[] = {1, 10, 1, 4, 20, 2};
    const vp_series_t series = {.size = sizeof series,
                                .flags = VP_SERIES_LOG_X | VP_SERIES_ADDS,
                                .name = "a series",
                                .description = "of two points",
                                .phase = "a phase",
                                .thread = 1,
                                .column_count = 2,
                                .x = {"size", "bytes"},
                                .columns = columns,
                                .numbers = numbers,
                                .point_count = 2};
    if (next_instr != 0 || host->size < offsetof(vp_host_t, series) + sizeof host->series) return;
    if (host->series(host, &series) != 1) host->warning(host, "a series is not kept");
}

static int finish(uint32_t pid, trace_parser_t* parser, const vsample_t** out) {
    size_t instr_count, block_count, frame_count;
    const trace_instr_t* instrs = trace_parser_instrs(parser, &instr_count);
    const trace_block_t* blocks = trace_parser_blocks(parser, &block_count);
    const uint32_t part = host->part(host, "part");
    give_series();
    if (trace_parser_is_warm_up(parser) || trace_parser_scale(parser) < 1) return -1;
    if (instr_count != 0) {
        const trace_frame_t* frames;
        trace_parser_prepare_frames(parser, &instrs[0].pc, 1);
        frames = trace_parser_frames(parser, instrs[0].pc, &frame_count);
        if (frame_count == 0 || !frames[0].function || !frames[0].file || part != 1) return -1;
    }
    int n = 0;
    (void)pid;
    for (; next_instr < instr_count && n < BATCH && most != 0; ++next_instr) {
        const trace_instr_t* instr = &instrs[next_instr];
        const uint64_t executed = trace_parser_count(parser, next_instr);
        if (instr->block >= block_count || blocks[instr->block].first_instr > next_instr) return -1;
        (void)trace_parser_object(parser, instr->pc);
        if (trace_parser_mispredictions(parser, next_instr) > executed) return -1;
        if (trace_parser_stored_bytes(parser, next_instr) > 255) return -1;
        const trace_instr_facts_t* const facts = trace_parser_instr_facts(parser, next_instr);
        if (!facts || !facts->mnemonic[0] ||
            facts->flags & ~(TRACE_FACT_LOCKED | TRACE_FACT_MASKED))
            return -1;
        if (executed == 0) continue;
        --most;
        samples[n++] = (vsample_t){.pc = instr->pc, .event = INSTRUCTIONS, .weight = executed};
    }
    *out = samples;
    return n;
}

static int totals_so_far(uint32_t pid, trace_parser_t* parser, uint64_t* totals, uint32_t count) {
    (void)pid, (void)parser;
    if (count != EVENTS) return -1;
    memset(totals, 0, count * sizeof *totals);
    return 0;
}

static const char* summary(const uint64_t* totals, uint32_t count) {
    if (count != EVENTS) host->warning(host, "there are totals of other events");
    snprintf(text, sizeof text, "instructions: %llu\n",
             (unsigned long long)(count == EVENTS ? totals[INSTRUCTIONS] : 0));
    return text;
}

static const char* preface(const trace_instr_t* instr) {
    return instr->flags & (TRACE_INSTR_LOAD | TRACE_INSTR_STORE) ? "value" : NULL;
}
static const char* format(const trace_instr_t* instr, uint64_t value) {
    snprintf(text, sizeof text, "%#llx of %u bytes", (unsigned long long)value,
             (unsigned)instr->length);
    return text;
}

VP_EXPORT const vp_dispatch_t assay_vp_dispatch = {
    .size = sizeof(vp_dispatch_t),
    .abi_version = VP_ABI_VERSION,
    .vp_name = name,
    .vp_description = description,
    .vp_init = init,
    .vp_release = release,
    .vp_events = events,
    .vp_derived = derived,
    .vp_option_table = option_table,
    .vp_options = options,
    .vp_prof_init = prof_init,
    .vp_prof_release = prof_release,
    .vp_prof_process = process,
    .vp_finish = finish,
    .vp_summary = summary,
    .vp_preface = preface,
    .vp_format = format,
    .vp_totals = totals_so_far,
};

/* Values of macros, which leave no trace in the binary. */
typedef char abi_version_is_1[VP_ABI_VERSION == 1 ? 1 : -1];
typedef char opcode_is_map_and_byte[TRACE_OPCODE(0x12, 0x34) == 0x1234 ? 1 : -1];
typedef char value_is_no_event[VP_VALUE == UINT32_MAX ? 1 : -1];
typedef char symbol_is_known[sizeof VP_DISPATCH_SYMBOL == sizeof "assay_vp_dispatch" ? 1 : -1];
