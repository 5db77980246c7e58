/* Counts executed instructions from block counts, and references from trace buffers: every
 * interface function once. */
#include "assay/vprofiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IR, REFERENCES, FETCHES, EVENTS };
enum { BATCH = 1024 };

static const vp_host_t* host;
static trace_vlist_table_t* spec;
static vsample_t* samples;
static size_t capacity;
static uint32_t next_instr;
static int references; /* capture them */
static unsigned long long fetches;

static const char* name(void) {
    return "counts";
}

static const char* description(void) {
    return "counts instructions, and references if asked to";
}

static int init(const vp_host_t* given) {
    host = given;
    next_instr = 0;
    references = 0;
    fetches = 0;
    return 0;
}

static const vp_event_t* events(uint32_t* count) {
    static const vp_event_t table[EVENTS] = {
        {"Ir", "instructions executed", "instructions"},
        {"Refs", "data references that arrived", "references"},
        {"Lines", "fetched lines that arrived", "lines"},
    };
    *count = EVENTS;
    return table;
}

static const vp_derived_t* derived(uint32_t* count) {
    static const vp_derived_t table[] = {{"references per instruction", "Refs / Ir", ""}};
    *count = 1;
    return table;
}

static const vp_option_t* option_table(uint32_t* count) {
    static const vp_option_t table[] = {
        {.name = "references",
         .default_value = "no",
         .help = "Counts references too.",
         .type = VP_OPTION_YES_NO},
        {.name = "limit",
         .argument = "N",
         .help = "Must be below 100.",
         .type = VP_OPTION_UNSIGNED},
        {.name = "log",
         .argument = "FILE",
         .help = "Is named in the header.",
         .type = VP_OPTION_OUTPUT_FILE},
    };
    *count = sizeof table / sizeof *table;
    return table;
}

static int options(const vp_setting_t* settings, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        if (strcmp(settings[i].name, "references") == 0)
            references = strcmp(settings[i].value, "yes") == 0;
        if (strcmp(settings[i].name, "log") == 0) host->describe(host, "log", settings[i].value);
        if (strcmp(settings[i].name, "limit") == 0 && atol(settings[i].value) >= 100) {
            host->error(host, "--limit: must be below 100");
            return -1;
        }
    }
    return 0;
}

static trace_vlist_table_t* prof_init(void) {
    spec = trace_vlist_table_alloc();
    trace_capture_block_counts(spec);
    if (references) {
        trace_capture_references(spec, 64, 0);
        trace_capture_fetches(spec, 64, 64);
    }
    host->describe(host, "counts", host->command);
    return spec;
}

static void prof_release(void) {
    free(spec);
    free(samples);
    spec = NULL;
    samples = NULL;
    capacity = 0;
}

static void make_room(size_t count) {
    if (count <= capacity) return;
    samples = realloc(samples, count * sizeof *samples);
    capacity = count;
}

static int process(uint32_t pid, trace_parser_t* parser, const vsample_t** out) {
    size_t count, site_count, instr_count;
    const trace_record_t* records = trace_parser_records(parser, &count);
    const trace_site_t* sites = trace_parser_sites(parser, &site_count);
    const trace_instr_t* instrs = trace_parser_instrs(parser, &instr_count);
    int n = 0;
    (void)pid;
    make_room(count);
    for (size_t i = 0; i < count; ++i) {
        const trace_site_t* site = &sites[records[i].site];
        if (site->kind > TRACE_SITE_MODIFY) continue; /* no reference */
        fetches += site->kind == TRACE_SITE_FETCH;
        samples[n++] = (vsample_t){
            .pc = instrs[site->instr].pc,
            .event = site->kind == TRACE_SITE_FETCH ? FETCHES : REFERENCES,
            .weight = 1,
        };
    }
    *out = samples;
    return n;
}

static int finish(uint32_t pid, trace_parser_t* parser, const vsample_t** out) {
    size_t instr_count;
    const trace_instr_t* instrs = trace_parser_instrs(parser, &instr_count);
    int n = 0;
    (void)pid;
    make_room(BATCH);
    for (; next_instr < instr_count && n < BATCH; ++next_instr) {
        const uint64_t executed = trace_parser_count(parser, next_instr);
        if (executed == 0) continue;
        samples[n++] = (vsample_t){.pc = instrs[next_instr].pc, .event = IR, .weight = executed};
    }
    *out = samples;
    return n;
}

static const char* summary(const uint64_t* totals, uint32_t count) {
    static char text[200];
    (void)count;
    snprintf(text, sizeof text, "instructions: %llu\nreferences:   %llu\n",
             (unsigned long long)totals[IR], (unsigned long long)totals[REFERENCES]);
    return text;
}

VP_EXPORT const vp_dispatch_t assay_vp_dispatch = {
    .size = sizeof(vp_dispatch_t),
    .abi_version = VP_ABI_VERSION,
    .vp_name = name,
    .vp_description = description,
    .vp_init = init,
    .vp_events = events,
    .vp_derived = derived,
    .vp_option_table = option_table,
    .vp_options = options,
    .vp_prof_init = prof_init,
    .vp_prof_release = prof_release,
    .vp_prof_process = process,
    .vp_finish = finish,
    .vp_summary = summary,
};
