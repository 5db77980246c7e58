// Gives back garbage, or nothing: what the environment variable ASSAY_GARBAGE names, from
// vp_prof_process, or from vp_finish if it begins with "finish-".
#include "assay/vprofiler.h"

#include <sys/mman.h>
#include <unistd.h>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace {

trace_vlist_table_t* spec;
std::vector<vsample_t> samples;

struct ThrowsEarly {
    ThrowsEarly() {
        const char* what = std::getenv("ASSAY_GARBAGE");
        if (what && std::string_view(what) == "throw-early") throw std::runtime_error("too early");
    }
} throws_early;

void throws() {
    throw std::runtime_error("something is wrong");
}
void promises_not_to_throw() noexcept {
    throws();
}

// A copy right before a page that cannot be read, so that what follows it is known.
const vsample_t* at_end_of_memory(const std::vector<vsample_t>& copied) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t bytes = copied.size() * sizeof copied[0];
    const std::size_t room = (bytes + page - 1) / page * page;
    void* const memory = mmap(nullptr, room + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory, room, PROT_READ | PROT_WRITE);
    return static_cast<const vsample_t*>(
        std::memcpy(static_cast<char*>(memory) + room - bytes, copied.data(), bytes));
}

int garbage(std::string_view what, const vsample_t** out) {
    samples.assign(100, {.pc = 0x1000, .event = 0, .weight = 1});
    *out = samples.data();
    if (what == "throw") throws();
    if (what == "throw-number") throw 42;
    if (what == "terminate") promises_not_to_throw();
    if (what == "exit") std::exit(0);
    if (what == "ignore-children") std::signal(SIGCHLD, SIG_IGN);
    if (what == "sleep")
        for (;;) sleep(1000);
    if (what == "loop")
        for (volatile bool for_ever = true; for_ever;) continue;
    if (what == "null") *out = nullptr;
    if (what == "dangling") *out = reinterpret_cast<const vsample_t*>(0x123456789000);
    if (what == "huge") {
        *out = at_end_of_memory(samples);
        return INT32_MAX;
    }
    if (what == "event") samples[50].event = 7;
    if (what == "overflow")
        for (vsample_t& sample : samples) sample.weight = UINT64_MAX / 2;
    if (what == "negative") return INT32_MIN;
    if (what == "places")  // not wrong: code that no file holds, contexts that do not exist
        for (vsample_t& sample : samples) sample.pc = sample.context0 = 0 - sample.weight;
    return static_cast<int>(samples.size());
}

int garbage_in(std::string_view function, const vsample_t** out) {
    const char* const given = std::getenv("ASSAY_GARBAGE");
    std::string_view what = given ? given : "";
    const bool finish = what.starts_with("finish-");
    if (finish) what.remove_prefix(std::string_view("finish-").size());
    *out = nullptr;
    return finish == (function == "vp_finish") ? garbage(what, out) : 0;
}

const vp_event_t* events(uint32_t* count) {
    static const vp_event_t table[] = {{"Garbage", "what was returned", "pieces"}};
    *count = 1;
    return table;
}

trace_vlist_table_t* prof_init() {
    spec = trace_vlist_table_alloc();
    trace_capture_references(spec, 64, 0);
    return spec;
}

int process(uint32_t, trace_parser_t*, const vsample_t** out) {
    return garbage_in("vp_prof_process", out);
}

int finish(uint32_t, trace_parser_t*, const vsample_t** out) {
    return garbage_in("vp_finish", out);
}

int totals(std::uint32_t, trace_parser_t*, std::uint64_t*, std::uint32_t) {
    const char* const what = std::getenv("ASSAY_GARBAGE");
    if (what && std::string_view(what) == "totals-throw") throws();
    return 0;
}

constexpr vp_dispatch_t kTable = [] {
    vp_dispatch_t table{};
    table.size = sizeof table;
    table.abi_version = VP_ABI_VERSION;
    table.vp_name = [] { return "garbage"; };
    table.vp_events = events;
    table.vp_prof_init = prof_init;
    table.vp_prof_process = process;
    table.vp_finish = finish;
    table.vp_totals = totals;
    return table;
}();

}  // namespace

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch = kTable;
