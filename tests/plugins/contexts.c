/* Counts data references and calls by calling context, and checks what the context table promises.
 */
#include "assay/vprofiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REFS, CALLS, EVENTS };
enum { MOST_RECORDS = 8192 };

static const vp_host_t* host;
static trace_vlist_table_t* spec;
static vsample_t samples[MOST_RECORDS];
static int references, own_calls = 1; /* capture them */
static size_t deepest, known;

static const char* name(void) {
    return "contexts";
}

static int init(const vp_host_t* given) {
    host = given;
    return 0;
}

static const vp_event_t* events(uint32_t* count) {
    static const vp_event_t table[EVENTS] = {
        {"Refs", "data references", "references"},
        {"Calls", "calls, and starts of signal handlers", "calls"},
    };
    *count = EVENTS;
    return table;
}

static const vp_option_t* option_table(uint32_t* count) {
    static const vp_option_t table[] = {{.name = "references",
                                         .default_value = "no",
                                         .help = "Counts references too.",
                                         .type = VP_OPTION_YES_NO},
                                        {.name = "calls",
                                         .default_value = "yes",
                                         .help = "Asks for contexts by itself.",
                                         .type = VP_OPTION_YES_NO}};
    *count = 2;
    return table;
}

static int options(const vp_setting_t* settings, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
        *(strcmp(settings[i].name, "calls") == 0 ? &own_calls : &references) =
            strcmp(settings[i].value, "yes") == 0;
    return 0;
}

static trace_vlist_table_t* prof_init(void) {
    spec = trace_vlist_table_alloc();
    if (own_calls) trace_capture_calls(spec);
    if (references) trace_capture_references(spec, 64, 0);
    return spec;
}

static void prof_release(void) {
    free(spec);
    spec = NULL;
}

/* The number of calls in a context; 0 if one of them is not in the table before it. */
static size_t depth(const trace_context_t* table, uint32_t context) {
    size_t calls = 0;
    for (; context != 0; context = table[context].parent, ++calls)
        if (table[context].parent >= context) return 0;
    return calls;
}

static int check_table(const trace_parser_t* parser) {
    size_t count;
    const trace_context_t* table = trace_parser_context_table(parser, &count);
    for (; known < count; ++known) {
        const size_t calls = depth(table, (uint32_t)known);
        if (calls == 0 && known != 0) {
            host->error(host, "a context stands before its parent");
            return -1;
        }
        if (calls > deepest) deepest = calls;
    }
    return 0;
}

static int enters(const trace_site_t* site, const trace_instr_t* instr) {
    return (site->kind == TRACE_SITE_CALL && !(instr->flags & TRACE_INSTR_INDIRECT)) ||
           site->kind == TRACE_SITE_TARGET || site->kind == TRACE_SITE_INTERRUPTED;
}

static int process(uint32_t pid, trace_parser_t* parser, const vsample_t** out) {
    size_t count, context_count, site_count, instr_count;
    const trace_record_t* records = trace_parser_records(parser, &count);
    const uint32_t* contexts = trace_parser_contexts(parser, &context_count);
    const trace_site_t* sites = trace_parser_sites(parser, &site_count);
    const trace_instr_t* instrs = trace_parser_instrs(parser, &instr_count);
    int n = 0;
    (void)pid;
    if (!trace_parser_has_context(parser) || context_count != count) {
        host->error(host, "no contexts");
        return -1;
    }
    if (check_table(parser) != 0) return -1;
    for (size_t i = 0; i < count; ++i) {
        const trace_site_t* site = &sites[records[i].site];
        const trace_instr_t* instr = &instrs[site->instr];
        const int data = site->kind == TRACE_SITE_READ || site->kind == TRACE_SITE_WRITE ||
                         site->kind == TRACE_SITE_MODIFY;
        if (!data && !enters(site, instr)) continue;
        samples[n++] = (vsample_t){
            .pc = instr->pc, .context0 = contexts[i], .event = data ? REFS : CALLS, .weight = 1};
    }
    *out = samples;
    return n;
}

static const char* summary(const uint64_t* totals, uint32_t count) {
    static char text[200];
    (void)count;
    snprintf(text, sizeof text, "calls: %llu\ncontexts: %zu\ndepth: %zu\n",
             (unsigned long long)totals[CALLS], known, deepest);
    return text;
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
    .vp_prof_release = prof_release,
    .vp_prof_process = process,
    .vp_summary = summary,
};
