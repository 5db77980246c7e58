/* Crashes, or fails, in the interface function that an environment variable names:
 * ASSAY_CRASH_IN=vp_finish, and ASSAY_CRASH_BY=fault (default), abort, divide, heap,
 * stack, hang, unstoppable (with all signals blocked), exit, exit_on_thread, quick_exit, close (all
 * files but the standard streams), clearenv, fail.
 * Also in a constructor or destructor of the library (ASSAY_CRASH_IN=constructor, destructor).
 * Or ASSAY_CRASH_IN=huge-table: vp_events says that it returns more than there is; long-name,
 * long-event, long-text: that is too long.
 */
#include "assay/vprofiler.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const vp_host_t* host;
static trace_vlist_table_t* spec;

/* Any depth that no stack has room for. */
static int overflow_stack(unsigned long depth) {
    volatile char room[4096];
    room[0] = (char)depth;
    return depth == 0 ? 0 : overflow_stack(depth - 1) + room[0];
}

static void* end(void* unused) {
    (void)unused;
    exit(0);
}

/* Returns -1 for a failure. */
static int perhaps_crash(const char* function) {
    const char* where = getenv("ASSAY_CRASH_IN");
    const char* how = getenv("ASSAY_CRASH_BY");
    if (!where || strcmp(where, function) != 0) return 0;
    if (!how || strcmp(how, "fault") == 0) {
        volatile char* volatile nowhere = NULL;
        *nowhere = 1;
    } else if (strcmp(how, "abort") == 0) {
        abort();
    } else if (strcmp(how, "divide") == 0) {
        volatile int zero = 0;
        return 100 / zero;
    } else if (strcmp(how, "stack") == 0) {
        return overflow_stack(1000000000);
    } else if (strcmp(how, "heap") == 0) {
        char* volatile freed = malloc(100000); /* too large for a thread's cache */
        char* volatile behind = malloc(100000);
        free(freed);
        free(freed);
        free(behind);
    } else if (strcmp(how, "hang") == 0) {
        for (;;) pause();
    } else if (strcmp(how, "unstoppable") == 0) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
        for (;;) pause();
    } else if (strcmp(how, "exit") == 0) {
        if (host) host->warning(host, "about to exit");
        exit(0);
    } else if (strcmp(how, "exit_on_thread") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, end, NULL);
        pthread_join(thread, NULL);
    } else if (strcmp(how, "clearenv") == 0) {
        clearenv();
        return 0;
    } else if (strcmp(how, "quick_exit") == 0) {
        quick_exit(0);
    } else if (strcmp(how, "close") == 0) { /* as a daemon does */
        closefrom(3);
        return 0;
    }
    if (host) host->error(host, "told to fail");
    return -1;
}

__attribute__((constructor)) static void construct(void) {
    perhaps_crash("constructor");
}
__attribute__((destructor)) static void destruct(void) {
    host = NULL;
    perhaps_crash("destructor");
}

static int is_told(const char* what) {
    const char* where = getenv("ASSAY_CRASH_IN");
    return where && strcmp(where, what) == 0;
}

static const char* long_text(size_t length) {
    static char text[10000];
    memset(text, 'n', length);
    return text;
}

static const char* name(void) {
    perhaps_crash("vp_name");
    if (is_told("long-name")) return long_text(257);
    return "crash";
}

static int init(const vp_host_t* given) {
    host = given;
    return perhaps_crash("vp_init");
}

static void release(void) {
    perhaps_crash("vp_release");
    free(spec);
    spec = NULL;
}

static const vp_event_t* events(uint32_t* count) {
    static vp_event_t table[10000];
    perhaps_crash("vp_events");
    for (unsigned i = 0; i < sizeof table / sizeof table[0]; ++i)
        table[i] = (vp_event_t){"Crashes", "records seen", "records"};
    if (is_told("long-event")) table[0].name = long_text(257);
    if (is_told("long-text")) table[0].description = long_text(4097);
    *count = is_told("huge-table") ? UINT32_MAX : 1;
    return table;
}

static const char* description(void) {
    perhaps_crash("vp_description");
    return "crashes";
}

static const vp_derived_t* derived(uint32_t* count) {
    perhaps_crash("vp_derived");
    *count = 0;
    return NULL;
}

static const vp_option_t* option_table(uint32_t* count) {
    perhaps_crash("vp_option_table");
    *count = 0;
    return NULL;
}

static int options(const vp_setting_t* settings, uint32_t count) {
    (void)settings;
    (void)count;
    return perhaps_crash("vp_options");
}

static trace_vlist_table_t* prof_init(void) {
    if (perhaps_crash("vp_prof_init") < 0) return NULL;
    free(spec); /* of a run before, in the same process, that crashed */
    spec = trace_vlist_table_alloc();
    trace_capture_block_counts(spec);
    trace_capture_references(spec, 64, 64);
    return spec;
}

static void prof_release(void) {
    perhaps_crash("vp_prof_release");
}

static int process(uint32_t pid, trace_parser_t* parser, const vsample_t** samples) {
    (void)pid;
    (void)parser;
    *samples = NULL;
    return perhaps_crash("vp_prof_process");
}

static int finish(uint32_t pid, trace_parser_t* parser, const vsample_t** samples) {
    (void)pid;
    (void)parser;
    *samples = NULL;
    return perhaps_crash("vp_finish");
}

static const char* summary(const uint64_t* totals, uint32_t count) {
    (void)totals;
    (void)count;
    perhaps_crash("vp_summary");
    return NULL;
}

static int count_totals(uint32_t pid, trace_parser_t* parser, uint64_t* totals, uint32_t count) {
    (void)pid;
    (void)parser;
    (void)totals;
    (void)count;
    return perhaps_crash("vp_totals");
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
    .vp_totals = count_totals,
};
