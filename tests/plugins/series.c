/* Gives series: what the environment variable ASSAY_SERIES names, in vp_finish. Counts nothing but
 * how many of them were kept. */
#include "assay/vprofiler.h"

#include <stdlib.h>
#include <string.h>

enum { LONG = 5000 };

static const vp_host_t* host;
static trace_vlist_table_t* spec;
static vsample_t sample;
static int finished;

static const char* name(void) {
    return "series";
}
static int init(const vp_host_t* given) {
    host = given;
    finished = 0;
    return 0;
}
static const vp_event_t* events(uint32_t* count) {
    static const vp_event_t table[] = {{"Kept", "series that were kept", "series"}};
    *count = 1;
    return table;
}
static trace_vlist_table_t* prof_init(void) {
    spec = trace_vlist_table_alloc();
    trace_capture_block_counts(spec);
    return spec;
}
static void prof_release(void) {
    free(spec);
}

static uint32_t give(const char* what) {
    static uint64_t numbers[3 * LONG];
    static const vp_axis_t columns[2] = {{"height", "m"}, {"depth", "m"}};
    vp_series_t series = {.size = sizeof series,
                          .name = "hills",
                          .description = "how high, and how deep",
                          .column_count = 2,
                          .x = {"way", "km"},
                          .columns = columns,
                          .numbers = numbers,
                          .point_count = 3};
    uint32_t kept = 0;
    for (uint64_t i = 0; i < LONG; ++i) {
        numbers[3 * i] = 10 * i;
        numbers[3 * i + 1] = i % 7;
        numbers[3 * i + 2] = LONG - i;
    }
    if (strcmp(what, "long") == 0) series.point_count = LONG;
    if (strcmp(what, "thread") == 0) series.thread = 2;
    if (strcmp(what, "phase") == 0) series.phase = "a phase";
    if (strcmp(what, "adds") == 0) series.flags = VP_SERIES_ADDS | VP_SERIES_LOG_X;
    if (strcmp(what, "small") == 0) series.size = 16;
    if (strcmp(what, "nameless") == 0) series.name = NULL;
    if (strcmp(what, "columns") == 0) series.column_count = 0;
    if (strcmp(what, "unordered") == 0) numbers[3] = 0;
    if (strcmp(what, "nowhere") == 0) series.numbers = (const uint64_t*)0x123456789000;
    if (strcmp(what, "null") == 0) return host->series(host, NULL);
    for (int i = 0; i < (strcmp(what, "many") == 0 ? VP_SERIES_MAX + 1 : 1); ++i)
        kept += host->series(host, &series);
    return kept;
}

static int finish(uint32_t pid, trace_parser_t* parser, const vsample_t** samples) {
    const char* const what = getenv("ASSAY_SERIES");
    size_t count = 0;
    const trace_instr_t* instrs = trace_parser_instrs(parser, &count);
    (void)pid;
    *samples = &sample;
    if (finished || count == 0) return 0;
    finished = 1;
    sample = (vsample_t){.pc = instrs[0].pc, .weight = give(what ? what : "")};
    return 1;
}

VP_EXPORT const vp_dispatch_t assay_vp_dispatch = {
    .size = sizeof(vp_dispatch_t),
    .abi_version = VP_ABI_VERSION,
    .vp_name = name,
    .vp_init = init,
    .vp_events = events,
    .vp_prof_init = prof_init,
    .vp_prof_release = prof_release,
    .vp_finish = finish,
};
