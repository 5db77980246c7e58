/* Does to its process what ends it or spoils it, in one of its functions: the file that the
 * environment variable ASSAY_HOSTILE names has a word for what, and one for where (vp_finish, say).
 * It goes on afterwards, if it is still there.
 */
#include "assay/vprofiler.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static trace_vlist_table_t* spec;
static uint64_t buffers;
static vsample_t samples[2];

static void end(void) {
    _exit(0);
}
static void end_by_library(void) {
    exit(0);
}
static void end_group(void) {
    syscall(SYS_exit_group, 0);
}
static void* end_here(void* unused) {
    (void)unused;
    _exit(0);
}
static void end_on_thread(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, end_here, NULL);
    pthread_join(thread, NULL);
}
static void kill_itself(void) {
    kill(getpid(), SIGKILL);
}
static void stop_itself(void) {
    kill(getpid(), SIGSTOP);
}
static void close_all(void) {
    closefrom(0); /* through /proc/self/fd where there is no close_range(2) */
}
static void replace_all(void) {
    const int null = open("/dev/null", O_RDWR);
    for (int descriptor = 0; descriptor < 4096; ++descriptor) dup2(null, descriptor);
}
static void block_signals(void) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
}
static void store_nowhere(void) {
    volatile char* volatile nowhere = NULL;
    *nowhere = 1;
}
static void store_blocked(void) {
    block_signals();
    store_nowhere();
}
static void loop(void) {
    for (;;) pause();
}
static void loop_blocked(void) {
    block_signals();
    loop();
}
static void fork_and_go_on(void) {
    fork();
}
static void go_on_in_child(void) {
    if (fork() != 0) _exit(0);
}
/* Any depth that no stack has room for. */
static int overflow(unsigned long depth) {
    volatile char room[4096];
    room[0] = (char)depth;
    return depth == 0 ? 0 : overflow(depth - 1) + room[0];
}
static void overflow_stack(void) {
    overflow(1000000000);
}
static void limit_memory(void) {
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_AS, &none);
}
static void limit_time(void) {
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CPU, &none);
    for (volatile unsigned i = 0;; ++i) continue;
}
static void change_folder(void) {
    if (chdir("/") != 0) abort();
}
static void change_mask(void) {
    umask(0777);
}
/* To every socket: the one to the collector is among them. */
static void send_to_collector(const void* bytes, size_t length) {
    for (int descriptor = 3; descriptor < 1024; ++descriptor)
        send(descriptor, bytes, length, MSG_NOSIGNAL);
}
/* The header of a message: its kind, and how many bytes follow. */
static void send_length(uint32_t bytes) {
    const uint32_t header[] = {0, bytes};
    send_to_collector(header, sizeof header);
}
static void send_endless(void) {
    send_length(UINT32_MAX);
}
static void send_beginning(void) {
    send_length(100 * 1000 * 1000);
}
static void send_part_of_length(void) {
    send_to_collector("abc", 3);
}
static void print(void) {
    printf("printed\n");
}

static const struct {
    const char* name;
    void (*act)(void);
} acts[] = {
    {"end", end},
    {"end-by-library", end_by_library},
    {"end-group", end_group},
    {"end-on-thread", end_on_thread},
    {"kill", kill_itself},
    {"stop", stop_itself},
    {"close", close_all},
    {"replace", replace_all},
    {"store", store_nowhere},
    {"store-blocked", store_blocked},
    {"loop", loop},
    {"loop-blocked", loop_blocked},
    {"fork", fork_and_go_on},
    {"go-on-in-child", go_on_in_child},
    {"abort", abort},
    {"overflow", overflow_stack},
    {"limit-memory", limit_memory},
    {"limit-time", limit_time},
    {"change-folder", change_folder},
    {"change-mask", change_mask},
    {"send-endless", send_endless},
    {"send-beginning", send_beginning},
    {"send-part-of-length", send_part_of_length},
    {"print", print},
};

static void perhaps(const char* function) {
    char what[32] = "", where[32] = "";
    const char* path = getenv("ASSAY_HOSTILE");
    FILE* told = path ? fopen(path, "r") : NULL;
    if (!told) return;
    const int words = fscanf(told, "%31s %31s", what, where);
    fclose(told);
    if (words != 2 || strcmp(where, function) != 0) return;
    for (unsigned i = 0; i < sizeof acts / sizeof acts[0]; ++i)
        if (strcmp(what, acts[i].name) == 0) acts[i].act();
}

__attribute__((constructor)) static void construct(void) {
    perhaps("constructor");
}

static const char* name(void) {
    return "hostile";
}
static int init(const vp_host_t* host) {
    (void)host;
    spec = NULL;
    buffers = 0;
    perhaps("vp_init");
    return 0;
}
static void release(void) {
    perhaps("vp_release");
}
static const vp_event_t* events(uint32_t* count) {
    static const vp_event_t table[] = {{"Buffers", "buffers seen", "buffers"}};
    *count = 1;
    return table;
}
static int options(const vp_setting_t* settings, uint32_t count) {
    (void)settings;
    (void)count;
    perhaps("vp_options");
    return 0;
}
static trace_vlist_table_t* prof_init(void) {
    spec = trace_vlist_table_alloc();
    trace_capture_references(spec, 64, 64);
    perhaps("vp_prof_init");
    return spec;
}
static void prof_release(void) {
    perhaps("vp_prof_release");
    free(spec);
}
static int process(uint32_t pid, trace_parser_t* parser, const vsample_t** out) {
    (void)pid;
    (void)parser;
    *out = NULL;
    if (buffers++ == 0) perhaps("vp_prof_process");
    return 0;
}
static int finish(uint32_t pid, trace_parser_t* parser, const vsample_t** out) {
    size_t count = 0;
    const trace_instr_t* instrs = trace_parser_instrs(parser, &count);
    (void)pid;
    perhaps("vp_finish");
    if (buffers == 0) return 0;
    samples[0] = (vsample_t){.pc = instrs[0].pc, .event = 0, .weight = buffers};
    samples[1] = (vsample_t){.pc = instrs[0].pc, .event = VP_VALUE, .value = 7, .weight = 1};
    buffers = 0;
    *out = samples;
    return 2;
}
static const char* summary(const uint64_t* totals, uint32_t count) {
    (void)totals;
    (void)count;
    perhaps("vp_summary");
    return NULL;
}
static const char* preface(const trace_instr_t* instr) {
    (void)instr;
    return "seen";
}
static const char* format(const trace_instr_t* instr, uint64_t value) {
    (void)instr;
    (void)value;
    perhaps("vp_format");
    return "seven";
}

VP_EXPORT const vp_dispatch_t assay_vp_dispatch = {
    .size = sizeof(vp_dispatch_t),
    .abi_version = VP_ABI_VERSION,
    .vp_name = name,
    .vp_init = init,
    .vp_release = release,
    .vp_events = events,
    .vp_options = options,
    .vp_prof_init = prof_init,
    .vp_prof_release = prof_release,
    .vp_prof_process = process,
    .vp_finish = finish,
    .vp_summary = summary,
    .vp_preface = preface,
    .vp_format = format,
};
