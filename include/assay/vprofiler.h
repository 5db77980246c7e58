/* assay/vprofiler.h - the interface that a value profiler implements.
 *
 * assay's C ABI, version 1, modelled on the value profilers of HP's DCPI (dcpivprofiler(1)).
 * A profiler is a shared library that exports one constant table:
 *
 *     const vp_dispatch_t assay_vp_dispatch = { .size = sizeof(vp_dispatch_t),
 *         .abi_version = VP_ABI_VERSION, .vp_name = name, .vp_prof_init = ..., ... };
 *
 * It runs in its own process beside the profiled program, so it may use any library and any
 * amount of time. The program waits only while its trace buffers are full.
 *
 * Order of calls, all on one thread, for one run of one program:
 *     vp_init, vp_options, vp_prof_init, vp_prof_process any number of times,
 *     vp_finish until it returns 0, vp_summary, vp_prof_release, vp_release.
 * vp_name, vp_description, vp_events, vp_derived, vp_value_lists and vp_option_table may be called
 * at any time after vp_init. The tables of events and figures may depend on the options, and
 * must not change after vp_options.
 *
 * Tools call some of these functions without a program: vp_init, the functions for names and
 * tables, and vp_release. To show captures, they also call vp_options without options,
 * vp_prof_init and vp_prof_release; to print values, vp_preface and vp_format. Therefore create
 * no files before vp_prof_process or vp_finish.
 *
 * Each followed child of the program is a run of its own, with a new process that loads the
 * profiler again. (assay's own profilers run in the child's collector, which is forked after
 * vp_init.)
 *
 * A pointer may be NULL unless its comment says "required". Strings are UTF-8, owned by the
 * profiler, and must stay valid until vp_release. Names have at most 256 bytes, other strings of
 * the tables 4096, or the profiler is refused. A function that fails returns a negative number;
 * the user sees the reason that it gave to vp_host_t.error. A profiler that fails, crashes or
 * ends its process loses its own columns; the run goes on.
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

/* A result of a profiler: DCPI's (pc, context, value), with an event and a weight. If `event` is
 * VP_VALUE, the sample is a value seen `weight` times, for the instruction's hotlist of most
 * frequent values (docs/reference/events-file.md). Otherwise `event` is an index in the
 * profiler's event table, `weight` is added to that count of the instruction, and `value` is
 * ignored. 48 bytes. */
typedef struct vsample {
    uint64_t pc;
    uint64_t context0; /* the context of the count, VP_NO_CONTEXT, or 0: not stated */
    uint64_t context1; /* the part of the profile (vp_host_t.part), or 0 */
    uint64_t value;
    uint32_t event;
    uint32_t reserved; /* 0 */
    uint64_t weight;
} vsample_t;
/* As context0: the count is outside of all contexts, or its context is unknown. In a run with
 * --contexts, assay divides counts with context0 0 of a profiler that does not capture calls: by
 * the instruction's executions if the count is a multiple of these, or by its mispredictions. */
#define VP_NO_CONTEXT UINT64_MAX
#define VP_VALUE UINT32_MAX
/* The event for one of several lists of an instruction (vp_value_lists). The first list is
 * VP_VALUE. */
#define VP_VALUE_OF(list) (VP_VALUE - 2u * (list))
/* `weight` values of that list that the profiler has seen and dropped. A single one occurs at
 * most `value` times among them. They add to the total and to the error of the list. */
#define VP_VALUE_REST(list) (VP_VALUE - 2u * (list)-1u)
enum { VP_VALUE_LISTS_MAX = 16 };

/* A column of the events file. */
typedef struct vp_event {
    const char* name;        /* letters, digits, _ and -, beginning with a letter; unique within the
                                profiler */
    const char* description; /* one line, e.g. "level-1 data cache read misses" */
    const char* unit;        /* plural noun, e.g. "misses" */
} vp_event_t;

/* A figure computed from event totals. The figure "Cy" estimates cycles: a sum of events times
 * whole numbers, such as "Ir + 10 * D1mr". Tools calculate it for every line, function and object,
 * and sort by it. If several profilers of a run have one, their formulas add up. */
typedef struct vp_derived {
    const char* name;    /* one line, unique within the profiler, e.g. "D1 miss rate" */
    const char* formula; /* event names, numbers, + - * / and parentheses */
    const char* unit;    /* one line; "%" shows the result times 100, "" shows it unchanged */
} vp_derived_t;

enum vp_option_type {
    VP_OPTION_TEXT = 0,
    VP_OPTION_YES_NO = 1,      /* arrives as "yes" or "no" */
    VP_OPTION_UNSIGNED = 2,    /* arrives as decimal digits; checked to fit 64 bits */
    VP_OPTION_OUTPUT_FILE = 3, /* %p, %n and %q{VAR} are replaced before it arrives */
    VP_OPTION_PROFILER = 4,    /* arrives as "yes" or "no". "yes" also runs the profiler named by
                                  the option's `argument`, as --plugin would */
    VP_OPTION_COUNT = 5, /* as VP_OPTION_UNSIGNED, but the user may write k, M or G for thousands,
                            millions and billions */
    VP_OPTION_ASSIGNMENT = 6 /* KEY=VALUE. Arrives once for each KEY; assay sweep varies each KEY */
};

/* A command-line option of the profiler, --name=VALUE. */
typedef struct vp_option {
    const char* name;          /* without dashes */
    const char* argument;      /* shown in the help, e.g. "SIZE,WAYS,LINE"; of
                                  VP_OPTION_PROFILER: a name */
    const char* default_value; /* NULL: no default. Not passed to vp_options, except for
                                  VP_OPTION_OUTPUT_FILE */
    const char* help;          /* one sentence */
    uint32_t type;             /* enum vp_option_type */
    uint32_t reserved;         /* 0 */
} vp_option_t;

/* An axis of a series: x, or one of its columns. */
typedef struct vp_axis {
    const char* name; /* a few words, e.g. "cache size" */
    const char* unit; /* plural noun, e.g. "bytes" */
} vp_axis_t;

enum vp_series_flag {
    VP_SERIES_LOG_X = 1, /* show x on a logarithmic scale */
    VP_SERIES_ADDS = 2   /* add up the numbers of several processes at the same x, as for counts;
                            after its last point a curve stays constant. Otherwise series of several
                            processes stay separate */
};
enum { VP_SERIES_MAX = 256, VP_SERIES_COLUMNS_MAX = 8, VP_SERIES_POINTS_MAX = 1024 };

/* Numbers over a common axis, such as cache misses by cache size, or the working set over time.
 * Names, units and phases have at most 256 bytes, descriptions 4096. */
typedef struct vp_series {
    uint32_t size;           /* sizeof(vp_series_t) as the profiler was built */
    uint32_t flags;          /* of enum vp_series_flag */
    const char* name;        /* a few words, e.g. "miss curve" */
    const char* description; /* one line; NULL: none */
    const char* phase;       /* the program's phase (assay/client.h); NULL: all */
    uint32_t thread;         /* trace_parser_get_thread() + 1; 0: all threads */
    uint32_t column_count;   /* 1 to VP_SERIES_COLUMNS_MAX */
    vp_axis_t x;
    const vp_axis_t* columns; /* column_count of them */
    /* For each point its x, then a number for each column. x grows from point to point. If there
     * are more than VP_SERIES_POINTS_MAX points, assay joins 2, 4, 8 ... neighbours: the first
     * x, and the largest number of each column. */
    const uint64_t* numbers;
    uint64_t point_count; /* at most 2^32 */
} vp_series_t;

/* The functions of assay for a profiler. Passed to vp_init, valid until vp_release has returned. */
typedef struct vp_host {
    uint32_t size;        /* of this struct, as assay was built */
    uint32_t abi_version; /* of assay: the highest version that it supports */
    const char* version;  /* assay's own, e.g. "0.1.0" */
    const char* command;  /* the profiled command line; "" in the tools */
    /* Tells the reason before a function fails. One line, without the final newline; copied. */
    void (*error)(const struct vp_host* host, const char* message);
    /* Shows a remark to the user, as one line on stderr. */
    void (*warning)(const struct vp_host* host, const char* message);
    /* Adds a line "desc: name: text" to the events file. Cuts both at 4096 bytes. Call from
     * vp_prof_init on. */
    void (*describe)(const struct vp_host* host, const char* name, const char* text);
    void* reserved;
    /* Returns the number of a part of the profile, 1 or higher, for context1 of samples. A part
     * is a separate events file: the profile's name with `name` appended. Samples of a part are
     * only in that file; return them again without a part to have them in the profile. The same
     * name is the same part. Returns 0 if there are 1000 parts already. A name of more than 256
     * bytes loses the profiler. Call from vp_prof_init on. */
    uint32_t (*part)(const struct vp_host* host, const char* name);
    /* Leaves out the column of event `event`, and figures derived from it, because these options
     * do not count it. Call from vp_options to vp_prof_init. */
    void (*leave_out)(const struct vp_host* host, uint32_t event);
    /* With --sample, leaves counts of `event` unscaled, because they do not grow with the number
     * of instructions: for example, the number of different addresses. Call from vp_options to
     * vp_prof_init. */
    void (*unscaled)(const struct vp_host* host, uint32_t event);
    /* 1 with --sample, else 0. */
    uint32_t samples;
    uint32_t reserved1;
    /* With --sample, shows the few words `why` in place of the error of `event`, because
     * differences between bursts do not tell this error. Call from vp_options to vp_prof_init. */
    void (*no_error)(const struct vp_host* host, uint32_t event, const char* why);
    /* Adds a series to the events file, for tools to plot. Copies it. Returns 1, or 0 if there
     * are VP_SERIES_MAX already. An invalid series loses the profiler. Call from vp_prof_init to
     * the end of vp_finish. Without columns there is no file. Series belong to the profile, not
     * to its parts, and are not scaled with --sample. */
    uint32_t (*series)(const struct vp_host* host, const vp_series_t* series);
    /* Call this in vp_options before you load (dlopen) a library that the user names. If it
     * returns 1, load the library; messages about a failure then name it. If it returns 0, do
     * not load it, and let vp_options fail: assay starts the profiler again in its own process.
     * Only assay's own profilers get 0. */
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

    /* The profiler's name, the same at every call; letters, digits, _ and -, beginning with a
     * letter. Required. */
    const char* (*vp_name)(void);
    /* Returns one sentence: what the profiler tells about a program. */
    const char* (*vp_description)(void);

    /* Called after loading, and again for another run after vp_release. Keep nothing of the
     * earlier run. Returns 0, or negative. */
    int (*vp_init)(const vp_host_t* host);
    /* Called before unloading. */
    void (*vp_release)(void);

    /* Tables, each with its length in *count. */
    const vp_event_t* (*vp_events)(uint32_t* count);
    const vp_derived_t* (*vp_derived)(uint32_t* count);
    const vp_option_t* (*vp_option_table)(uint32_t* count);
    /* Called once before vp_prof_init, with the options that the user gave and the defaults of
     * VP_OPTION_OUTPUT_FILE, or with none. Returns 0, or negative if a value is unusable; the
     * run then does not start. */
    int (*vp_options)(const vp_setting_t* settings, uint32_t count);

    /* Returns the specification of what to capture, or NULL on failure. Required. */
    trace_vlist_table_t* (*vp_prof_init)(void);
    /* Called after the run. */
    void (*vp_prof_release)(void);

    /* Processes one trace buffer of one thread. Stores in *samples an array that stays valid
     * until the next call into the profiler, and returns its length, or negative. Buffers of one
     * thread arrive in order, the last ones at the end of the run. */
    int (*vp_prof_process)(uint32_t pid, trace_parser_t* parser, const vsample_t** samples);
    /* Called at the end of the run, when counts are exact, until it returns 0 (no more samples)
     * or negative. Samples as above. */
    int (*vp_finish)(uint32_t pid, trace_parser_t* parser, const vsample_t** samples);
    /* Called after vp_finish. `totals` has one element for each event of the profiler. Returns
     * the summary for people, lines ended by newlines, or NULL for none. */
    const char* (*vp_summary)(const uint64_t* totals, uint32_t count);

    /* For tools that print value hotlists: returns the text before the list of the instruction's
     * values. NULL omits the list. Valid until the next call. */
    const char* (*vp_preface)(const trace_instr_t* instr);
    /* Returns a value as people read it. Called only after vp_preface for that instruction. */
    const char* (*vp_format)(const trace_instr_t* instr, uint64_t value);

    /* Returns the names of the hotlists for an instruction, if there are several: at most
     * VP_VALUE_LISTS_MAX different names of letters, digits, _ and -. The events file has
     * PROFILER.NAME. */
    const char* const* (*vp_value_lists)(uint32_t* count);
    /* As vp_preface, for the list with that index. vp_preface is then not called. */
    const char* (*vp_list_preface)(const trace_instr_t* instr, uint32_t list);

    /* Called with --sample at the end of some bursts. Stores the current count of each of the
     * profiler's `count` events: the sum of all samples if vp_finish were called now. assay
     * computes errors from these. Without vp_totals, only events from vp_prof_process have
     * errors. trace_parser_count and trace_parser_mispredictions are exact. Events with unscaled
     * or no_error are ignored. Returns 0, or negative. */
    int (*vp_totals)(uint32_t pid, trace_parser_t* parser, uint64_t* totals, uint32_t count);
} vp_dispatch_t;

#ifdef __cplusplus
}
#endif
#endif
