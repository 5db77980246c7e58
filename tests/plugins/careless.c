/* Breaks the rule of the interface that the environment variable ASSAY_CARELESS names; none without
 * it. */
#include "assay/vprofiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const vp_host_t* host;
static trace_vlist_table_t* spec;
static vsample_t sample;
static const trace_record_t* kept_records;
static const trace_instr_t* kept_instrs;
static uint64_t seen;
static uint64_t by_thread[1 << 16];
static char text[64];

/* ASSAY_CARELESS is a list with commas. */
static int does(const char* what) {
    const size_t length = strlen(what);
    const char* chosen = getenv("ASSAY_CARELESS");
    for (; chosen; chosen = *chosen ? chosen + 1 : NULL) {
        const size_t word = strcspn(chosen, ",");
        if (word == length && strncmp(chosen, what, length) == 0) return 1;
        chosen += word;
    }
    return 0;
}

/* Each value of each option is checked by itself, which takes longest. */
static int has_options(void) {
    return !getenv("ASSAY_CARELESS") || does("dashes") || does("bad-default") || does("twice") ||
           does("reserved-option") || does("bad-file") || does("bad-profiler") || does("silent") ||
           does("trusting");
}

static const char* name(void) {
    static int calls;
    if (does("changing-name")) return ++calls % 2 ? "careless" : "carefree";
    return "careless";
}
static const char* description(void) {
    if (does("latin-1"))
        return "br\xfc"
               "cken";
    return does("two-lines") ? "breaks\nrules" : "breaks rules";
}

static int init(const vp_host_t* given) {
    host = given;
    kept_records = NULL;
    kept_instrs = NULL;
    if (!does("old-state")) seen = 0;
    if (does("early-file")) {
        FILE* file = fopen("early", "w");
        if (file) fclose(file);
    }
    return 0;
}
static void release(void) {
    if (does("exit")) exit(3);
}

static const vp_event_t* events(uint32_t* count) {
    static vp_event_t table[257] = {{"Seen", "records", "records"}};
    static char names[257][8];
    int i;
    for (i = 1; i < 257; ++i) {
        snprintf(names[i], sizeof names[i], "E%d", i);
        table[i].name = names[i];
        table[i].description = table[i].unit = "things";
    }
    table[0].unit = does("latin-1-unit") ? "St\xfc"
                                           "ck"
                                         : "records";
    if (!does("no-count")) *count = does("many-events") ? 257 : 1;
    return does("null-table") ? NULL : table;
}

static const vp_derived_t* derived(uint32_t* count) {
    static vp_derived_t table[2];
    const vp_derived_t first = {does("nameless-figure") ? NULL
                                : does("broken-figure") ? "a\nb"
                                                        : "rate",
                                "1 / 2", does("broken-unit") ? "x\ny" : "%"};
    const vp_derived_t second = {does("two-figures") ? "rate" : "other", "3", ""};
    table[0] = first;
    table[1] = second;
    *count = 2;
    return table;
}

static const char* const* value_lists(uint32_t* count) {
    static const char* names[2] = {"old", "new"};
    names[1] = does("two-lists") ? "old" : "new";
    *count = 2;
    return names;
}

static const vp_option_t* option_table(uint32_t* count) {
    static vp_option_t table[4];
    const vp_option_t first = {.name = does("dashes") ? "--depth" : "depth",
                               .default_value = does("bad-default") ? "deep" : "1",
                               .help = "How deep.",
                               .type = VP_OPTION_UNSIGNED,
                               .reserved = does("reserved-option")};
    const vp_option_t second = {
        .name = does("twice") ? "depth" : "width", .help = "How wide.", .type = VP_OPTION_TEXT};
    const vp_option_t third = {.name = "log",
                               .default_value = does("bad-file") ? "%z" : "careless.%p.log",
                               .help = "Never written.",
                               .type = VP_OPTION_OUTPUT_FILE};
    const vp_option_t fourth = {.name = "beside",
                                .argument = "counts",
                                .default_value = does("bad-profiler") ? "maybe" : "no",
                                .help = "Runs another profiler, too.",
                                .type = VP_OPTION_PROFILER};
    table[0] = first;
    table[1] = second;
    table[2] = third;
    table[3] = fourth;
    *count = has_options() ? 4 : 0;
    return table;
}
/* Whoever gives no options gives the defaults of files, with the process id in them. */
static int has_log(const vp_setting_t* settings, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
        if (strcmp(settings[i].name, "log") == 0) return strchr(settings[i].value, '%') == NULL;
    return 0;
}
static int options(const vp_setting_t* settings, uint32_t count) {
    if (does("silent") && count > 1) return -1;
    if (has_options() && !has_log(settings, count) && !does("bad-file")) {
        host->error(host, "was given no file");
        return -1;
    }
    for (uint32_t i = 0; i < count; ++i) /* assay gives no other value */
        if (strcmp(settings[i].name, "beside") == 0 && strcmp(settings[i].value, "yes") != 0 &&
            strcmp(settings[i].value, "no") != 0)
            abort();
    if (does("two-far")) { /* unnoticed without a sanitizer */
        volatile size_t room = sizeof text;
        text[room + 1] = 0;
    }
    if (does("trusting"))
        for (uint32_t i = 0; i < count; ++i)
            if (strcmp(settings[i].name, "depth") == 0)
                by_thread[strtoull(settings[i].value, NULL, 10) / 16] = 1;
    return 0;
}

static trace_vlist_table_t* prof_init(void) {
    if (does("no-such-event") && host->samples) host->no_error(host, 1, "none");
    if (does("null-spec")) return NULL;
    if (does("long-part")) {
        char name[300] = {0};
        memset(name, 'x', sizeof name - 1);
        host->part(host, name);
    }
    spec = trace_vlist_table_alloc();
    trace_capture_references(spec, does("filter") ? 48 : 64, 64);
    return spec;
}
/* Of the part that is one too many. */
static uint32_t last_part(void) {
    char part[16];
    uint32_t last = 0;
    for (int i = 0; i <= 1000; ++i) {
        snprintf(part, sizeof part, "part%d", i);
        last = host->part(host, part);
    }
    return last;
}
static void prof_release(void) {
    free(spec);
}

static int process(uint32_t pid, trace_parser_t* parser, const vsample_t** samples) {
    size_t count, site_count, instr_count;
    const trace_record_t* records = trace_parser_records(parser, &count);
    const trace_site_t* sites = trace_parser_sites(parser, &site_count);
    const trace_instr_t* instrs = trace_parser_instrs(parser, &instr_count);
    (void)pid;
    seen += count;
    if (!kept_records) kept_records = records;
    if (!kept_instrs) kept_instrs = instrs;
    if (does("keeps-records")) seen += kept_records[0].value & 1;
    if (does("keeps-table")) seen += kept_instrs[sites[records[0].site].instr].length;
    if (does("beyond-end")) seen += records[count].value & 1;
    if (does("writes")) ((trace_record_t*)records)[0].value = 0;
    if (does("thread-index")) ++by_thread[trace_parser_get_thread(parser)];
    if (does("loops"))
        for (volatile uint64_t i = 0; i < records[count / 2].value; ++i) continue;
    sample =
        (vsample_t){.pc = instrs[0].pc, .event = 0, .weight = does("old-state") ? seen : count};
    sample.reserved = does("reserved-sample");
    if (does("other-pc")) sample.pc = 1;
    if (does("parts")) sample.event = last_part(); /* not wrong: that is 0 */
    if (does("other-event")) sample.event = 1;
    if (does("context")) sample.context0 = 1;
    if (does("weightless")) sample.event = VP_VALUE, sample.weight = 0;
    *samples = does("null-samples") ? NULL : &sample;
    return 1;
}

static int finish(uint32_t pid, trace_parser_t* parser, const vsample_t** samples) {
    size_t instr_count;
    const trace_instr_t* instrs = trace_parser_instrs(parser, &instr_count);
    (void)pid;
    if (does("half-series")) {
        const vp_axis_t column = {"height", "m"};
        const vp_series_t series = {.size = sizeof series,
                                    .name = "hills",
                                    .x = {"", "km"},
                                    .columns = &column,
                                    .column_count = 1};
        host->series(host, &series);
    }
    if (does("empty-run")) seen += instrs[0].pc;
    *samples = &sample;
    if (does("endless") && instr_count > 0) return 1;
    return 0;
}

static const char* summary(const uint64_t* totals, uint32_t count) {
    (void)count;
    if (does("latin-1-summary"))
        return "br\xfc"
               "cken\n\t\033[31m\xc3\xa9\n";
    snprintf(text, sizeof text, "%llu%s", (unsigned long long)totals[0],
             does("half-line") ? "" : "\n");
    return text;
}
static int count_totals(uint32_t pid, trace_parser_t* parser, uint64_t* totals, uint32_t count) {
    (void)pid;
    (void)parser;
    if (does("failing-totals")) return -1;
    if (does("totals-before")) totals[-1] = seen;
    totals[0] = seen;
    if (does("totals-beyond")) totals[count] = seen;
    return 0;
}
static const char* preface(const trace_instr_t* instr) {
    (void)instr;
    return "value";
}
static const char* format(const trace_instr_t* instr, uint64_t value) {
    (void)instr;
    if (does("null-text") && value > 1000) return NULL;
    return "x";
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
    .vp_value_lists = value_lists,
    .vp_totals = count_totals,
};
