/* Captures values of every instruction, and compares how many executions it has seen with their
 * counts. With --values-log=FILE each execution of the program's own file becomes a line: the
 * address, and the values, - for those that it does not have. Of values that ~ asks for all bytes
 * of, those in the order of their addresses. */
#include "assay/vprofiler.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEN, MISSING, EVENTS };

static const vp_host_t* host;
static const char* wanted;
static const char* log_name;
static trace_vlist_table_t* table;
static FILE* log_file;
static uint64_t* seen;
static size_t known, next_instr;
static uint32_t values_asked, wide; /* a bit for each wide one */
static vsample_t samples[1024];

static const char* name(void) {
    return "values";
}
static int init(const vp_host_t* given) {
    host = given;
    wanted = "address,loaded,stored,stored!,destination,source0,taken";
    log_name = NULL;
    seen = NULL;
    known = next_instr = 0;
    values_asked = wide = 0;
    return 0;
}

static const vp_event_t* events(uint32_t* count) {
    static const vp_event_t rows[EVENTS] = {{"Seen", "executions seen", "executions"},
                                            {"Missing", "executions not seen", "executions"}};
    *count = EVENTS;
    return rows;
}

static const vp_option_t* option_table(uint32_t* count) {
    static const vp_option_t rows[] = {
        {"capture", "NAME,...", NULL,
         "Values; ! for those of before, ~ for wide ones, in this order.", VP_OPTION_TEXT, 0},
        {"values-log", "FILE", NULL, "Where to write the values.", VP_OPTION_OUTPUT_FILE, 0}};
    *count = 2;
    return rows;
}

static int options(const vp_setting_t* settings, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
        *(strcmp(settings[i].name, "capture") == 0 ? &wanted : &log_name) =
            strdup(settings[i].value);
    return 0;
}

static trace_value_t value_named(const char* text, size_t length) {
    static const char* const names[] = {"",        "address", "loaded", "stored", "destination",
                                        "source0", "source1", "taken",  "target", "latency"};
    static const struct {
        const char* name;
        trace_value_t first;
    } files[] = {{"gpr", TRACE_GPR0},
                 {"vector", TRACE_VECTOR0},
                 {"st", TRACE_ST0},
                 {"mask", TRACE_MASK0},
                 {"mmx", TRACE_MMX0}};
    for (trace_value_t i = 1; i < sizeof names / sizeof *names; ++i)
        if (strlen(names[i]) == length && memcmp(names[i], text, length) == 0) return i;
    for (size_t i = 0; i < sizeof files / sizeof *files; ++i)
        if (strncmp(text, files[i].name, strlen(files[i].name)) == 0)
            return files[i].first + (trace_value_t)atoi(text + strlen(files[i].name));
    return TRACE_NONE;
}

static int all(uint16_t opcode, uint32_t flags) {
    (void)opcode, (void)flags;
    return 1;
}

static trace_vlist_table_t* prof_init(void) {
    trace_vlist_t* list = trace_vlist_alloc();
    int bad = 0;
    table = trace_vlist_table_alloc();
    for (const char* at = wanted; *at;) {
        size_t length = strcspn(at, ",");
        size_t of_name = length;
        trace_value_t flags = 0;
        if (of_name > 0 && at[of_name - 1] == '~') --of_name, flags |= TRACE_WIDE;
        if (of_name > 0 && at[of_name - 1] == '!') --of_name, flags |= TRACE_BEFORE;
        if (flags & TRACE_WIDE) wide |= 1U << values_asked;
        ++values_asked;
        bad |= trace_add_value_to_vlist(list, value_named(at, of_name) | flags);
        at += length + (at[length] == ',');
    }
    bad |= trace_add_vlist_by_select(table, all, list);
    free(list);
    trace_capture_block_counts(table);
    if (!bad) return table;
    host->error(host, "--capture: no such value, or too many");
    return NULL;
}

static void write_bytes(const trace_parser_t* parser, uint32_t index) {
    uint8_t bytes[64];
    const uint32_t count = trace_parser_value_bytes(parser, index, bytes, sizeof bytes);
    fputc(' ', log_file);
    for (uint32_t i = 0; i < count; ++i) fprintf(log_file, "%02x", bytes[i]);
}

static void write_execution(const trace_parser_t* parser, uint64_t pc, int count,
                            const uint64_t* values) {
    const trace_object_t* object = trace_parser_object(parser, pc);
    if (!object || strstr(object->path, ".so")) return;
    fprintf(log_file, "%" PRIx64, pc);
    for (int i = 0; i < count; ++i) {
        if (trace_parser_has_value(parser, (uint32_t)i) && wide >> i & 1)
            write_bytes(parser, (uint32_t)i);
        else if (trace_parser_has_value(parser, (uint32_t)i))
            fprintf(log_file, " %" PRIx64, values[i]);
        else
            fputs(" -", log_file);
    }
    fputc('\n', log_file);
}

static int process(uint32_t pid, trace_parser_t* parser, const vsample_t** out) {
    uint32_t instr;
    uint64_t pc, values[TRACE_VLIST_MAX];
    size_t instrs;
    int count;
    (void)pid;
    *out = NULL;
    trace_parser_instrs(parser, &instrs);
    if (instrs > known) {
        seen = realloc(seen, 2 * instrs * sizeof *seen);
        memset(seen + known, 0, (2 * instrs - known) * sizeof *seen);
        known = 2 * instrs;
    }
    if (log_name && !log_file) log_file = fopen(log_name, "w");
    while ((count = trace_parser_next(parser, &instr, &pc, NULL, NULL, TRACE_VLIST_MAX, values)) >=
           0) {
        ++seen[instr];
        if (log_file) write_execution(parser, pc, count, values);
    }
    return 0;
}

static int finish(uint32_t pid, trace_parser_t* parser, const vsample_t** out) {
    size_t count;
    const trace_instr_t* instrs = trace_parser_instrs(parser, &count);
    int n = 0;
    (void)pid;
    for (; next_instr < count && n + EVENTS <= 1024; ++next_instr) {
        const uint64_t executed = trace_parser_count(parser, (uint32_t)next_instr);
        const uint64_t found = next_instr < known ? seen[next_instr] : 0;
        const uint64_t missing = executed > found ? executed - found : found - executed;
        if (executed == 0 && found == 0) continue;
        samples[n++] = (vsample_t){.pc = instrs[next_instr].pc, .event = SEEN, .weight = found};
        samples[n++] =
            (vsample_t){.pc = instrs[next_instr].pc, .event = MISSING, .weight = missing};
    }
    *out = samples;
    return n;
}

static void prof_release(void) {
    if (log_file) fclose(log_file);
    log_file = NULL;
    free(table);
    free(seen);
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
