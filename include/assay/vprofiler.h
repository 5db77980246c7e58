/* assay/vprofiler.h - the interface that a value profiler implements.
 *
 * assay's C ABI, version 1, modelled on the value profilers of HP's DCPI (dcpivprofiler(1)).
 * A profiler is a shared library that exports one constant table:
 *
 *     const vp_dispatch_t assay_vp_dispatch = { .size = sizeof(vp_dispatch_t),
 *         .abi_version = VP_ABI_VERSION, .vp_name = name, .vp_prof_init = ..., ... };
 *
 * It runs in a process of its own beside the profiled program, so it may use any
 * library and any amount of time; the program waits only when its trace buffers are full.
 *
 * Order of calls, all on one thread, for one run of one program:
 *     vp_init, vp_options, vp_prof_init, vp_prof_process any number of times,
 *     vp_finish until it returns 0, vp_summary, vp_prof_release, vp_release.
 * vp_name, vp_description, vp_events, vp_derived, vp_value_lists and vp_option_table may be called
 * at any time after vp_init. From vp_options on, the tables of events and figures can be others
 * than before it, as the options want them; then they stay.
 *
 * Tools call a part of that, without a program: vp_init, the functions for names and tables, and
 * vp_release; to show what a profiler captures also vp_options without options, vp_prof_init and
 * vp_prof_release; to print values vp_preface and vp_format. Hence create no files before
 * vp_prof_process or vp_finish.
 *
 * Where children of the program are followed, each is a run of one program, and has a process in
 * which the profiler is loaded anew. (assay's own profilers run in the process that collects for
 * the child, which is forked after vp_init.)
 *
 * A pointer may be NULL unless its comment says "required". Strings are UTF-8, owned by the
 * profiler, and must stay valid until vp_release. Names have at most 256 bytes, other strings of
 * the tables 4096, or the profiler is refused. A function that fails returns a negative
 * number; what it wrote with vp_host_t.error is the reason shown to the user. A profiler that
 * fails or crashes, or ends its process in another way, loses its own columns; the run goes on.
 */
#ifndef ASSAY_VPROFILER_H
#define ASSAY_VPROFILER_H

#include "trace_parse.h"
#include "trace_vlist.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VP_ABI_VERSION 1u
#define VP_DISPATCH_SYMBOL "assay_vp_dispatch"

#ifdef __GNUC__
#define VP_EXPORT __attribute__((visibility("default")))
#else
#define VP_EXPORT
#endif

/* What a profiler returns: DCPI's (pc, context, value), with an event and a weight.
 * With event = VP_VALUE the sample is a value seen `weight` times, for the hotlist of the
 * instruction, which has the most frequent ones and a bound of its error
 * (docs/reference/events-file.md). Otherwise `event` is an index in the profiler's event table and
 * `weight` is added to that event's count of the instruction; `value` is ignored. 48 bytes. */
typedef struct vsample {
    uint64_t pc;
    uint64_t context0; /* the context that the count is of, VP_NO_CONTEXT, or 0: not said */
    uint64_t context1; /* the part of the profile that the count is of (vp_host_t.part), or 0 */
    uint64_t value;
    uint32_t event;
    uint32_t reserved; /* 0 */
    uint64_t weight;
} vsample_t;
/* As context0: the count is outside of all contexts, or of which is not known. Of what a profiler
 * leaves 0, and does not capture calls itself, assay gives contexts their shares in a run with
 * --contexts: where it is a multiple of the instruction's executions, by those, or else where it is
 * one of its mispredictions. */
#define VP_NO_CONTEXT UINT64_MAX
#define VP_VALUE UINT32_MAX
/* A profiler that keeps several lists for an instruction (vp_value_lists) says which is meant; the
 * first is that of VP_VALUE. */
#define VP_VALUE_OF(list) (VP_VALUE - 2u * (list))
/* `weight` values of that list that the profiler has seen and does not know any more, among which
 * none can be more than `value` times: they add to the total, and to the list's error. */
#define VP_VALUE_REST(list) (VP_VALUE - 2u * (list)-1u)
enum { VP_VALUE_LISTS_MAX = 16 };

/* A column of the events file. */
typedef struct vp_event {
    const char* name;        /* letters, digits, _ and -, a letter first; unique within the
                                profiler */
    const char* description; /* one line, e.g. "level-1 data cache read misses" */
    const char* unit;        /* plural noun, e.g. "misses" */
} vp_event_t;

/* A figure computed from event totals. */
typedef struct vp_derived {
    const char* name;    /* one line, unique within the profiler, e.g. "D1 miss rate" */
    const char* formula; /* event names, numbers, + - * / and parentheses */
    const char* unit;    /* one line; "%" shows the quotient times 100, "" as it is */
} vp_derived_t;

enum vp_option_type {
    VP_OPTION_TEXT = 0,
    VP_OPTION_YES_NO = 1,      /* arrives as "yes" or "no" */
    VP_OPTION_UNSIGNED = 2,    /* arrives as decimal digits; checked to fit 64 bits */
    VP_OPTION_OUTPUT_FILE = 3, /* %p, %n and %q{VAR} are replaced before it arrives */
    VP_OPTION_PROFILER = 4,    /* arrives as "yes" or "no". With yes, the profiler whose name is the
                                  option's `argument` runs beside this one, as if --plugin named it
                                  too */
    VP_OPTION_COUNT = 5        /* as VP_OPTION_UNSIGNED; the user may end it in k, M or G, for
                                  thousands, millions and billions */
};

/* A command-line option of the profiler, --name=VALUE. */
typedef struct vp_option {
    const char* name;          /* without dashes */
    const char* argument;      /* shown in the help, e.g. "SIZE,WAYS,LINE"; of
                                  VP_OPTION_PROFILER: a name */
    const char* default_value; /* NULL if there is none; not passed to vp_options, but for that of
                                  VP_OPTION_OUTPUT_FILE, which is passed as if it were given */
    const char* help;          /* one sentence */
    uint32_t type;             /* enum vp_option_type */
    uint32_t reserved;         /* 0 */
} vp_option_t;

/* An axis of a series: that of x, or what one of its columns says. */
typedef struct vp_axis {
    const char* name; /* a few words, e.g. "cache size" */
    const char* unit; /* plural noun, e.g. "bytes" */
} vp_axis_t;

enum vp_series_flag {
    VP_SERIES_LOG_X = 1, /* x is to be shown on a logarithmic scale, as sizes of caches are */
    VP_SERIES_ADDS = 2   /* of several processes the numbers at the same x add up, as counts do;
                            behind its last point a curve stays what it is there. Else series of
                            several processes stand side by side */
};
enum { VP_SERIES_MAX = 256, VP_SERIES_COLUMNS_MAX = 8, VP_SERIES_POINTS_MAX = 1024 };

/* Numbers over a common axis, such as the misses of caches by their size, or what is in use as a
 * run goes on. Names, units and phases have at most 256 bytes, descriptions 4096. */
typedef struct vp_series {
    uint32_t size;           /* sizeof(vp_series_t) as the profiler was built */
    uint32_t flags;          /* of enum vp_series_flag */
    const char* name;        /* a few words, e.g. "miss curve" */
    const char* description; /* one line; NULL: none */
    const char* phase;       /* of the program (assay/client.h), that the series is of; NULL: all */
    uint32_t thread;         /* that it is of: trace_parser_get_thread() and one more; 0: all */
    uint32_t column_count;   /* 1 to VP_SERIES_COLUMNS_MAX */
    vp_axis_t x;
    const vp_axis_t* columns; /* column_count of them */
    /* By point its x, then a number for each column. x grows from each point to the next. Of more
     * than VP_SERIES_POINTS_MAX points assay makes one of each 2, 4, 8 ... neighbours: at the x of
     * the first, with the largest number of each column. */
    const uint64_t* numbers;
    uint64_t point_count; /* at most 2^32 */
} vp_series_t;

/* What assay offers to a profiler; passed to vp_init, valid until vp_release returned. */
typedef struct vp_host {
    uint32_t size;        /* of this struct, as assay was built */
    uint32_t abi_version; /* of assay: the highest version that it supports */
    const char* version;  /* assay's own, e.g. "0.1.0" */
    const char* command;  /* the profiled command line; "" in the tools */
    /* Says why a function is about to fail. One line, without the final newline; copied. */
    void (*error)(const struct vp_host* host, const char* message);
    /* A remark to the user, shown as one line on stderr. */
    void (*warning)(const struct vp_host* host, const char* message);
    /* Adds a desc: line to the events file, "name: text". Of either, what is behind the first 4096
     * bytes is left out. From vp_prof_init on. */
    void (*describe)(const struct vp_host* host, const char* name, const char* text);
    void* reserved;
    /* The number of a part of the profile, 1 or higher, for context1 of samples: an events file of
     * its own beside the profile's, whose name has `name` appended. Samples with a part are in that
     * file only; give the same counts without a part if they shall be in the profile too. The same
     * name is the same part. 0 if there are too many, 1000. A name above 256 bytes loses the
     * profiler. From vp_prof_init on. */
    uint32_t (*part)(const struct vp_host* host, const char* name);
    /* Event `event` of the profiler is not counted with these options: its column, and derived
     * figures with it, are left out of the events file. From vp_options to vp_prof_init. */
    void (*leave_out)(const struct vp_host* host, uint32_t event);
    /* With --sample, counts of that event are not multiplied as others are: they do not grow with
     * the number of instructions, as numbers of different addresses. From vp_options to
     * vp_prof_init. */
    void (*unscaled)(const struct vp_host* host, uint32_t event);
    /* 1 with --sample, else 0. */
    uint32_t samples;
    uint32_t reserved1;
    /* With --sample, how far the estimate of event `event` may be off does not follow from how
     * bursts differ, as where they lack what came before them: a few words why, which stand in
     * place of the error. From vp_options to vp_prof_init. */
    void (*no_error)(const struct vp_host* host, uint32_t event, const char* why);
    /* Adds a series to the events file, for tools to plot; copied. Returns 1, or 0 if there are too
     * many, VP_SERIES_MAX. One that is not as said above loses the profiler. From vp_prof_init to
     * the end of vp_finish. The profiler needs columns, or there is no file; series are of the
     * profile, not of its parts, and are not multiplied with --sample. */
    uint32_t (*series)(const struct vp_host* host, const vp_series_t* series);
    /* Call this before you load (dlopen) a library that the user names. Returns 1: load it; a
     * failure of the profiler then names it. 0: do not load it in this process, and let vp_options
     * fail; assay calls the profiler again in a process that it has to itself. Only assay's own
     * profilers get 0. Call it from vp_options. */
    uint32_t (*library)(const struct vp_host* host, const char* path);
} vp_host_t;

/* An option that the user gave. */
typedef struct vp_setting {
    const char* name;  /* of the option table */
    const char* value; /* checked against the option's type */
} vp_setting_t;

typedef struct vp_dispatch {
    uint32_t size;        /* sizeof(vp_dispatch_t) as the profiler was built */
    uint32_t abi_version; /* VP_ABI_VERSION as the profiler was built */

    /* The profiler's name, the same at every call; letters, digits, _ and -, a letter first.
     * Required. */
    const char* (*vp_name)(void);
    /* One sentence: what the profiler tells about a program. */
    const char* (*vp_description)(void);

    /* After loading, and again for another run after vp_release: nothing of the run before may be
     * left. Returns 0, or negative. */
    int (*vp_init)(const vp_host_t* host);
    /* Before unloading. */
    void (*vp_release)(void);

    /* Tables, each with its length in *count. */
    const vp_event_t* (*vp_events)(uint32_t* count);
    const vp_derived_t* (*vp_derived)(uint32_t* count);
    const vp_option_t* (*vp_option_table)(uint32_t* count);
    /* Receives the options that the user gave, and the defaults of VP_OPTION_OUTPUT_FILE, once,
     * before vp_prof_init; also when there are none. Returns 0, or negative if a value is unusable:
     * the run does not start. */
    int (*vp_options)(const vp_setting_t* settings, uint32_t count);

    /* What to capture. NULL means failure. Required. */
    trace_vlist_table_t* (*vp_prof_init)(void);
    /* After the run. */
    void (*vp_prof_release)(void);

    /* Processes one trace buffer of one thread. Stores in *samples an array that stays valid
     * until the next call into the profiler, and returns its length, or negative. Buffers of
     * one thread arrive in order, and all at the end of the run at the latest. */
    int (*vp_prof_process)(uint32_t pid, trace_parser_t* parser, const vsample_t** samples);
    /* At the end of the run, when counts are exact: called again and again, with samples as
     * above, until it returns 0 (no more samples) or negative. */
    int (*vp_finish)(uint32_t pid, trace_parser_t* parser, const vsample_t** samples);
    /* After vp_finish: the end-of-run summary, for people. `totals` has one element per event
     * of the profiler. Returns the text, lines ended by newlines, or NULL for none. */
    const char* (*vp_summary)(const uint64_t* totals, uint32_t count);

    /* For tools that print value hotlists: what stands before the list of the instruction's
     * values; NULL leaves the list out. Valid until the next call. */
    const char* (*vp_preface)(const trace_instr_t* instr);
    /* A value as people want to read it. Called only after vp_preface for that instruction. */
    const char* (*vp_format)(const trace_instr_t* instr, uint64_t value);

    /* The names of the hotlists that the profiler keeps for an instruction, if it keeps several: at
     * most VP_VALUE_LISTS_MAX, each of letters, digits, _ and -, and no two the same. In the events
     * file they stand as PROFILER.NAME. */
    const char* const* (*vp_value_lists)(uint32_t* count);
    /* As vp_preface, which is then not called, for the list with that index. */
    const char* (*vp_list_preface)(const trace_instr_t* instr, uint32_t list);

    /* With --sample, at the end of some bursts: stores how much has been counted so far of each of
     * the profiler's `count` events, which is what all its samples would add up to if vp_finish
     * were called now. From how that grows assay computes the error of its estimates; without
     * vp_totals, only of events whose samples vp_prof_process returns. trace_parser_count and
     * trace_parser_mispredictions are exact. Events for which unscaled or no_error was called are
     * not looked at. Returns 0, or negative. */
    int (*vp_totals)(uint32_t pid, trace_parser_t* parser, uint64_t* totals, uint32_t count);
} vp_dispatch_t;

#ifdef __cplusplus
}
#endif
#endif
