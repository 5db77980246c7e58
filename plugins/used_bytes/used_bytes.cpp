// The used-bytes profiler: how much of what is fetched into a cache is used, behind assay's
// profiler interface.
#include "plugins/common/profiler.h"
#include "plugins/used_bytes/report.h"
#include "plugins/used_bytes/settings.h"
#include "plugins/used_bytes/simulator.h"

#include "assay/vprofiler.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace used_bytes {
namespace {

using plugins::rows;

struct Profiler {
    const vp_host_t* host = nullptr;
    Settings settings;
    plugins::TraceSpec spec;
    std::unique_ptr<Simulator> simulator;
    bool finished = false;
    plugins::Samples samples;
    std::string summary;
    std::string value_text;
};
Profiler profiler;

enum Event : std::uint32_t { kRead, kUsed, kWasted, kAgain, kColumns, kEvents = 2 * kColumns };

constexpr std::array<vp_event_t, kEvents> kEventTable{{
    {"ReadB", "bytes of the lines fetched into the cache", "bytes"},
    {"UsedB", "bytes of them that were read or written before the line left the cache", "bytes"},
    {"WastedB", "bytes of them that were not", "bytes"},
    {"AgainB", "bytes of lines that had been fetched before", "bytes"},
    {"CodeReadB", "of ReadB, those fetched for instructions", "bytes"},
    {"CodeUsedB", "of UsedB, those of lines fetched for instructions", "bytes"},
    {"CodeWastedB", "of WastedB, those of lines fetched for instructions", "bytes"},
    {"CodeAgainB", "of AgainB, those of lines fetched for instructions", "bytes"},
}};

constexpr std::array<vp_derived_t, 4> kDerivedTable{{
    {"wasted", "WastedB / ReadB", "%"},
    {"code wasted", "CodeWastedB / CodeReadB", "%"},
    {"unique bytes", "ReadB - AgainB", ""},
    {"double read overhead", "AgainB / (ReadB - AgainB)", "%"},
}};

// Of each instruction that fetches enough lines: offsets in a line, with the lines in which the
// bytes there were used; and numbers of bytes, with the lines of which so many were. The same of
// lines of code.
enum List : std::uint32_t { kOffsets, kBytes, kCodeLists };
constexpr std::array kListNames{"offsets", "bytes", "code_offsets", "code_bytes"};

const char* name() {
    return "used_bytes";
}
const char* description() {
    return "simulates one cache and counts how many bytes of what is fetched into it are used";
}

int initialise(const vp_host_t* host) {
    profiler = Profiler{};
    profiler.host = host;
    return 0;
}

void release() {
    profiler = Profiler{};
}

int fail(const std::string& why) {
    return plugins::fail(profiler.host, why);
}

int receive_options(const vp_setting_t* settings, uint32_t count) {
    if (const int status =
            plugins::receive(profiler.host, {settings, count}, profiler.settings, apply))
        return status;
    for (std::uint32_t event = kColumns; event < kEvents && !profiler.settings.instructions;
         ++event)
        profiler.host->leave_out(profiler.host, event);
    return 0;
}

// What bursts can tell: which lines are fetched, if the cache is as full as ever.
void sample(const cache::Geometry& geometry) {
    constexpr std::uint64_t kInstructionsPerLine = 20;  // as the cache profiler
    trace_capture_warm_up(profiler.spec.get(),
                          kInstructionsPerLine * geometry.size / geometry.line);
    for (const std::uint32_t first : {0U, std::uint32_t{kColumns}}) {
        for (const Event event : {kUsed, kWasted})
            profiler.host->no_error(profiler.host, first + event,
                                    "uses behind a burst are not seen");
        profiler.host->no_error(profiler.host, first + kAgain,
                                "fetches between bursts are not seen");
    }
}

trace_vlist_table_t* begin() {
    const Settings& settings = profiler.settings;
    profiler.spec.reset(trace_vlist_table_alloc());
    trace_vlist_table_init(profiler.spec.get());
    profiler.host->describe(profiler.host, "cache", describe(settings.geometry).c_str());
    try {
        profiler.simulator =
            std::make_unique<Simulator>(settings.geometry, settings.section, settings.separation);
    } catch (const std::bad_alloc&) {
        fail("no memory for the tables of the simulated cache; make it smaller with --cache");
        return nullptr;
    }
    trace_capture_footprints(profiler.spec.get(), settings.geometry.line,
                             static_cast<std::uint32_t>(settings.geometry.sets()));
    if (settings.instructions) trace_capture_code(profiler.spec.get(), settings.geometry.line);
    trace_capture_calls(profiler.spec.get());
    if (plugins::samples_bursts(profiler.host)) sample(settings.geometry);
    return profiler.spec.get();
}

void end() {
    profiler.simulator.reset();
    profiler.spec.reset();
}

int process(uint32_t /*pid*/, trace_parser_t* parser, const vsample_t** samples) {
    *samples = nullptr;
    try {
        profiler.simulator->process(rows(trace_parser_sites, parser),
                                    {.thread = trace_parser_get_thread(parser),
                                     .records = rows(trace_parser_records, parser),
                                     .contexts = rows(trace_parser_contexts, parser),
                                     .markers = rows(trace_parser_markers, parser),
                                     .footprints = rows(trace_parser_footprints, parser),
                                     .warms_up = trace_parser_is_warm_up(parser) != 0});
    } catch (const std::bad_alloc&) {
        return fail("no memory for what is known of the program's lines");
    }
    return 0;
}

struct Place {
    std::uint64_t pc;
    std::uint32_t context, part;
};

void add(const Place& at, std::uint32_t event, std::uint64_t weight) {
    profiler.samples.add({.pc = at.pc,
                          .context0 = at.context,
                          .context1 = at.part,
                          .value = 0,
                          .event = event,
                          .reserved = 0,
                          .weight = weight});
}

void add_usage(const Point& point, std::uint64_t pc, std::uint32_t part, const Usage& usage) {
    const Place at{pc, point.context, part};
    const std::uint64_t line = profiler.simulator->line_bytes();
    for (const std::uint32_t first : {0U, std::uint32_t{kColumns}}) {
        if (first != 0 && !point.by.code) return;
        add(at, first + kRead, usage.lines * line);
        add(at, first + kUsed, usage.used);
        add(at, first + kWasted, usage.lines * line - usage.used);
        add(at, first + kAgain, usage.again * line);
    }
}

void add_all(const trace_instr_t* instrs) {
    const Accounts& accounts = profiler.simulator->accounts();
    const auto& points = accounts.points();
    for (const Point& point : points) add_usage(point, instrs[point.by.instr].pc, 0, point.usage);
    for (const Accounts::Part& part : accounts.parts()) {
        const std::uint32_t number =
            profiler.host->part(profiler.host, part_name(part, accounts).c_str());
        if (number == 0) {
            profiler.host->warning(profiler.host,
                                   "there are too many sections, arenas and threads: not all have "
                                   "files of their own");
            return;
        }
        for (const auto& [point, usage] : part.points)
            add_usage(points[point], instrs[points[point].by.instr].pc, number, usage);
    }
}

void add_value(std::uint64_t pc, std::uint32_t list, std::uint64_t value, std::uint64_t weight) {
    if (weight == 0) return;
    profiler.samples.add({.pc = pc,
                          .context0 = 0,
                          .context1 = 0,
                          .value = value,
                          .event = VP_VALUE_OF(list),
                          .reserved = 0,
                          .weight = weight});
}

// Lists are long, so instructions that fetch less than a thousandth of all lines have none.
void add_patterns(const trace_instr_t* instrs) {
    constexpr std::uint64_t kLeast = 1000;
    const Accounts& accounts = profiler.simulator->accounts();
    const std::uint32_t part = std::max(profiler.simulator->line_bytes() / kParts, 1U);
    for (const auto& [by, number] : accounts.pattern_numbers()) {
        const Pattern& pattern = accounts.pattern(number);
        if (pattern.lines == 0 || pattern.lines * kLeast < accounts.total().lines) continue;
        const std::uint64_t pc = instrs[by.instr].pc;
        const std::uint32_t lists = std::uint32_t{by.code} * kCodeLists;
        for (std::uint32_t i = 0; i < kParts; ++i)
            add_value(pc, lists + kOffsets, std::uint64_t{i} * part, pattern.lines_with(i));
        for (std::uint32_t i = 1; i <= kParts; ++i)
            add_value(pc, lists + kBytes, std::uint64_t{i} * part, pattern.part_count[i]);
    }
}

const char* list_preface(const trace_instr_t* /*instr*/, uint32_t list) {
    constexpr std::array kPrefaces{
        "used in lines it fetched, by offset", "used bytes of such a line",
        "used in lines fetched for code, by offset", "used bytes of such a line of code"};
    return list < kPrefaces.size() ? kPrefaces[list] : nullptr;
}

const char* format_value(const trace_instr_t* /*instr*/, uint64_t value) {
    profiler.value_text = std::to_string(value);
    return profiler.value_text.c_str();
}

// The pcs of a point and of the calls that lead to it, innermost first.
std::vector<std::uint64_t> pcs_of(const trace_parser_t* parser, const Point& point) {
    constexpr std::size_t kMost = 40;
    std::size_t count = 0;
    const trace_context_t* contexts = trace_parser_context_table(parser, &count);
    std::vector<std::uint64_t> pcs{trace_parser_instrs(parser, &count)[point.by.instr].pc};
    for (std::uint32_t c = point.context; c != 0 && pcs.size() < kMost; c = contexts[c].parent)
        pcs.push_back(contexts[c].call);
    return pcs;
}

std::vector<std::string> stack_of(const trace_parser_t* parser, const Point& point) {
    std::vector<std::string> lines;
    for (const std::uint64_t pc : pcs_of(parser, point)) {
        std::size_t frames = 0;
        const trace_frame_t* const frame = trace_parser_frames(parser, pc, &frames);
        for (std::size_t i = 0; i < frames; ++i)
            lines.push_back(std::string(frame[i].function) + " (" + frame[i].file + ":" +
                            std::to_string(frame[i].line) + ")");
    }
    return lines;
}

void prepare_stacks(const trace_parser_t* parser) {
    const Accounts& accounts = profiler.simulator->accounts();
    std::vector<std::uint64_t> pcs;
    for (const PointNumber point : points_of_report(accounts))
        for (const std::uint64_t pc : pcs_of(parser, accounts.points()[point])) pcs.push_back(pc);
    trace_parser_prepare_frames(parser, pcs.data(), pcs.size());
}

bool write_file(const std::string& name, const std::string& text) {
    std::FILE* const file = std::fopen(name.c_str(), "w");
    if (!file) return false;
    const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    return std::fclose(file) == 0 && written;
}

void report(const trace_parser_t* parser) {
    const Accounts& accounts = profiler.simulator->accounts();
    const ReportInput input{
        accounts, describe(profiler.settings.geometry), profiler.simulator->line_bytes(),
        [&](PointNumber point) { return stack_of(parser, accounts.points()[point]); },
        trace_parser_scale(parser)};
    profiler.summary = short_report(input);
    if (const std::uint64_t stray = accounts.sections().stray_ends())
        profiler.host->warning(
            profiler.host,
            (std::to_string(stray) + " phases ended that had not begun in their thread").c_str());
    if (const std::uint64_t deep = accounts.sections().left_out())
        profiler.host->warning(
            profiler.host,
            (std::to_string(deep) + " phases began within " + std::to_string(Sections::kMostDepth) +
             " others that had not ended, and are not told apart; end each phase")
                .c_str());
    if (const std::string why = accounts.sections().why_nothing(); !why.empty())
        profiler.host->warning(
            profiler.host,
            ("--section=" + describe(*profiler.settings.section) + ": " + why).c_str());
    const std::string& file = profiler.settings.report;
    if (file.empty()) return;
    prepare_stacks(parser);
    if (!write_file(file, long_report(input)))
        profiler.host->warning(profiler.host,
                               ("cannot write " + file + ": " + std::strerror(errno)).c_str());
}

int finish(uint32_t /*pid*/, trace_parser_t* parser, const vsample_t** samples) {
    *samples = nullptr;
    if (std::exchange(profiler.finished, true)) return 0;
    profiler.simulator->finish();
    std::size_t count = 0;
    const trace_instr_t* const instrs = trace_parser_instrs(parser, &count);
    add_all(instrs);
    add_patterns(instrs);
    report(parser);
    return profiler.samples.give(samples);
}

// Of which the error is estimated.
int totals(uint32_t /*pid*/, trace_parser_t* /*parser*/, uint64_t* by_event, uint32_t /*count*/) {
    const Accounts& accounts = profiler.simulator->accounts();
    by_event[kRead] = accounts.total().lines * profiler.simulator->line_bytes();
    by_event[kColumns + kRead] = accounts.code().lines * profiler.simulator->line_bytes();
    return 0;
}

const char* summary(const uint64_t* /*totals*/, uint32_t /*count*/) {
    return profiler.summary.c_str();
}

}  // namespace
}  // namespace used_bytes

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch;
const vp_dispatch_t assay_vp_dispatch = {
    .size = sizeof(vp_dispatch_t),
    .abi_version = VP_ABI_VERSION,
    .vp_name = used_bytes::name,
    .vp_description = used_bytes::description,
    .vp_init = used_bytes::initialise,
    .vp_release = used_bytes::release,
    .vp_events = plugins::table<used_bytes::kEventTable>,
    .vp_derived = plugins::table<used_bytes::kDerivedTable>,
    .vp_option_table = plugins::table<used_bytes::kOptionTable>,
    .vp_options = used_bytes::receive_options,
    .vp_prof_init = used_bytes::begin,
    .vp_prof_release = used_bytes::end,
    .vp_prof_process = used_bytes::process,
    .vp_finish = used_bytes::finish,
    .vp_summary = used_bytes::summary,
    .vp_preface = nullptr,
    .vp_format = used_bytes::format_value,
    .vp_value_lists = plugins::table<used_bytes::kListNames>,
    .vp_list_preface = used_bytes::list_preface,
    .vp_totals = used_bytes::totals,
};
