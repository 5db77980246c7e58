// The effective-address profiler: which addresses each instruction touches, and in what pattern.
#include "plugins/common/profiler.h"
#include "plugins/effective_address/report.h"
#include "plugins/effective_address/tracker.h"

#include "assay/vprofiler.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace effective_address {
namespace {

enum Event : uint32_t {
    kReferences,
    kConstant,
    kFew,
    kIrregular,
    kLines,
    kPages,
    kMisaligned,
    kLineCrossing,
    kPageCrossing,
    kFalselyShared,
    kTrulyShared,
    kPageShared,
    kEvents
};
using Counts = std::array<uint64_t, kEvents>;

struct Profiler {
    plugins::TraceSpec spec;
    const vp_host_t* host = nullptr;
    std::string report_file;
    std::size_t hottest = 8;
    Tracker tracker;
    bool alone = true;  // the first thread has not created another one yet
    bool finished = false;
    SharingResult sharing;
    std::size_t next_operand = 0;  // of vp_finish
    std::vector<Counts> counted;   // by operand: its part of `totals`
    Counts totals{};               // of vp_totals
    plugins::Samples samples;
    std::string summary;
};
std::unique_ptr<Profiler> profiler;

constexpr std::array<vp_event_t, kEvents> kEventTable{{
    {"Refs", "data references", "references"},
    {"StrC", "references at the instruction's most frequent stride", "references"},
    {"StrF", "references at its next three strides", "references"},
    {"StrI", "references at other strides", "references"},
    {"Lines", "different lines of 64 bytes that the instruction touched", "lines"},
    {"Pages", "different pages of 4096 bytes that the instruction touched", "pages"},
    {"Misal", "misaligned references", "references"},
    {"LineX", "references across two lines", "references"},
    {"PageX", "references across two pages", "references"},
    {"FShr", "references to lines that another thread uses at other bytes, one of them writing",
     "references"},
    {"TShr", "references to lines that another thread uses at the same bytes, one of them writing",
     "references"},
    {"PShr", "references to pages that another thread uses, one of them writing", "references"},
}};

constexpr std::array<vp_derived_t, 6> kDerivedTable{{
    {"constant stride", "StrC / Refs", "%"},
    {"few strides", "StrF / Refs", "%"},
    {"irregular", "StrI / Refs", "%"},
    {"misaligned", "Misal / Refs", "%"},
    {"across lines", "LineX / Refs", "%"},
    {"falsely shared", "FShr / Refs", "%"},
}};

constexpr std::array<vp_option_t, 2> kOptionTable{{
    {"address-report", "FILE", nullptr,
     "Writes strides, footprint, alignment and sharing of every instruction as text.",
     VP_OPTION_OUTPUT_FILE, 0},
    {"hottest", "N", "8", "How many of an instruction's most frequent addresses are kept.",
     VP_OPTION_UNSIGNED, 0},
}};

const char* name() {
    return "effective_address";
}
const char* description() {
    return "tells which addresses each instruction touches: strides, footprint, alignment, sharing";
}

int initialise(const vp_host_t* host) {
    profiler = std::make_unique<Profiler>();
    profiler->host = host;
    return 0;
}

void release() {
    profiler.reset();
}

int fail(const std::string& why) {
    return plugins::fail(profiler->host, why);
}

bool apply(Profiler& into, std::string_view option, std::string_view value, std::string& why) {
    constexpr unsigned long kMostHottest = Operand::kMostAddresses;
    if (option == "address-report") {
        into.report_file = value;
        return true;
    }
    into.hottest = std::strtoull(std::string(value).c_str(), nullptr, 10);
    why = "at most " + std::to_string(kMostHottest);
    return into.hottest <= kMostHottest || plugins::unusable(option, value, why);
}

int receive_options(const vp_setting_t* settings, uint32_t count) {
    return plugins::receive(profiler->host, {settings, count}, *profiler, apply);
}

trace_vlist_table_t* begin() {
    profiler->spec.reset(trace_vlist_table_alloc());
    trace_capture_runs(profiler->spec.get());
    if (plugins::samples_bursts(profiler->host)) {
        profiler->tracker.note_changes();
        for (const uint32_t event : {kLines, kPages})
            profiler->host->unscaled(profiler->host, event);
        for (const uint32_t event : {kFalselyShared, kTrulyShared, kPageShared})
            profiler->host->no_error(profiler->host, event,
                                     "bursts show part of what threads share");
    }
    return profiler->spec.get();
}

void end() {
    const vp_host_t* host = profiler->host;
    profiler = std::make_unique<Profiler>();
    profiler->host = host;
}

int process(uint32_t /*pid*/, trace_parser_t* parser, const vsample_t** samples) {
    *samples = nullptr;
    std::size_t site_count = 0, instr_count = 0, record_count = 0, marker_count = 0;
    const trace_site_t* sites = trace_parser_sites(parser, &site_count);
    const trace_instr_t* instrs = trace_parser_instrs(parser, &instr_count);
    const trace_record_t* first = trace_parser_records(parser, &record_count);
    std::span<const trace_record_t> records{first, record_count};
    const trace_marker_t* markers = trace_parser_markers(parser, &marker_count);
    const uint32_t thread = trace_parser_get_thread(parser);
    try {
        profiler->tracker.learn({sites, site_count}, instrs);
        // The first thread is alone until it creates another one.
        for (std::size_t i = 0; i < marker_count && thread == 0 && profiler->alone; ++i) {
            if (markers[i].operation != TRACE_MARKER_THREAD) continue;
            profiler->tracker.process(thread, true, records.first(markers[i].record));
            records = records.subspan(markers[i].record);
            profiler->alone = false;
        }
        profiler->tracker.process(thread, thread == 0 && profiler->alone, records);
        if (const trace_marker_t* const ending = plugins::thread_end(parser))
            profiler->tracker.end(thread, ending->address);
    } catch (const std::bad_alloc&) {
        return fail("no memory for the addresses of thread " + std::to_string(thread));
    }
    return 0;
}

void add(uint64_t pc, uint32_t event, uint64_t weight, uint64_t value = 0) {
    profiler->samples.add(pc, event, weight, value);
}

// As "walk.c:12 (by_rows)".
std::string place_of(trace_parser_t* parser, uint64_t pc) {
    std::size_t count = 0;
    const trace_frame_t& frame = trace_parser_frames(parser, pc, &count)[0];
    const std::string file = frame.file;
    return file.substr(file.rfind('/') + 1) + ":" + std::to_string(frame.line) + " (" +
           frame.function + ")";
}

void evaluate_all(trace_parser_t* parser) {
    Tracker& tracker = profiler->tracker;
    tracker.finish();
    const std::vector<Touch> touches = tracker.sharing().touches();
    profiler->sharing = evaluate(
        touches, tracker.sharing().scale(), tracker.operands().size() + 1,
        [&](uint32_t number) { return tracker.operand(number).writes(); }, tracker.ends());
    const Results results{tracker, profiler->sharing,
                          [&](uint64_t pc) { return place_of(parser, pc); },
                          trace_parser_scale(parser)};
    const std::vector<uint64_t> asked = profiler->report_file.empty()
                                            ? instructions_of_summary(results)
                                            : instructions_of_report(results);
    trace_parser_prepare_frames(parser, asked.data(), asked.size());
    profiler->summary = summarise(results);
    if (!profiler->report_file.empty() && !write_report(results, profiler->report_file))
        profiler->host->warning(profiler->host, ("--address-report: " + profiler->report_file +
                                                 " cannot be written: " + std::strerror(errno))
                                                    .c_str());
    profiler->sharing.lines.clear();  // they refer to `touches`
    if (tracker.sharing().scale() != 1)
        profiler->host->describe(
            profiler->host, "Sharing",
            ("of one of " + std::to_string(tracker.sharing().scale()) + " pages, scaled").c_str());
}

// Calls `count(event, number)` for what does not depend on other operands.
template <typename Count>
void count_operand(const Operand& operand, const Count& count) {
    const Pattern pattern = operand.pattern();
    count(kReferences, operand.references());
    count(kConstant, pattern.constant);
    count(kFew, pattern.few);
    count(kIrregular, operand.references() - pattern.constant - pattern.few);
    count(kLines, operand.footprint().lines());
    count(kPages, operand.footprint().pages());
    count(kMisaligned, operand.alignment().misaligned);
    count(kLineCrossing, operand.alignment().line_crossing);
    count(kPageCrossing, operand.alignment().page_crossing);
}

void add_operand(const Operand& operand, const Shared& shared) {
    const uint64_t pc = operand.pc();
    count_operand(operand, [&](Event event, uint64_t number) { add(pc, event, number); });
    add(pc, kFalselyShared, shared.falsely);
    add(pc, kTrulyShared, shared.truly);
    add(pc, kPageShared, shared.pages);
    // What is not in the list is told as one, so that shares are those of all references.
    uint64_t others = operand.references(), least = operand.references();
    for (const Item& item : operand.addresses(profiler->hottest)) {
        add(pc, VP_VALUE, item.count, item.value);
        others -= std::min(others, item.count);
        least = item.count;
    }
    add(pc, VP_VALUE_REST(0), others, std::min(others, least));
}

int finish(uint32_t /*pid*/, trace_parser_t* parser, const vsample_t** samples) {
    constexpr std::size_t kChunk = 8192;
    profiler->samples.clear();
    if (!profiler->finished) evaluate_all(parser);
    profiler->finished = true;
    const std::span<const Operand> operands = profiler->tracker.operands();
    std::size_t& next = profiler->next_operand;
    for (; next < operands.size() && profiler->samples.size() < kChunk; ++next)
        add_operand(operands[next], profiler->sharing.by_operand[next + 1]);
    return profiler->samples.give(samples);
}

// Of which the error is estimated, behind each burst, beyond which no run lasts. Where there are
// none, nobody asks.
int totals(uint32_t /*pid*/, trace_parser_t* /*parser*/, uint64_t* by_event, uint32_t /*count*/) {
    Tracker& tracker = profiler->tracker;
    profiler->counted.resize(tracker.operands().size() + 1);
    for (const uint32_t number : tracker.take_changed()) {
        Counts& counted = profiler->counted[number];
        count_operand(tracker.operand(number), [&](Event event, uint64_t now) {
            profiler->totals[event] += now - std::exchange(counted[event], now);
        });
    }
    std::copy(profiler->totals.begin(), profiler->totals.end(), by_event);
    return 0;
}

const char* summary(const uint64_t* /*totals*/, uint32_t /*count*/) {
    return profiler->summary.c_str();
}

const char* preface(const trace_instr_t* instr) {
    return instr->flags & (TRACE_INSTR_LOAD | TRACE_INSTR_STORE) ? "addresses" : nullptr;
}

const char* format(const trace_instr_t* /*instr*/, uint64_t value) {
    static char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

}  // namespace
}  // namespace effective_address

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch;
const vp_dispatch_t assay_vp_dispatch = {
    .size = sizeof(vp_dispatch_t),
    .abi_version = VP_ABI_VERSION,
    .vp_name = effective_address::name,
    .vp_description = effective_address::description,
    .vp_init = effective_address::initialise,
    .vp_release = effective_address::release,
    .vp_events = plugins::table<effective_address::kEventTable>,
    .vp_derived = plugins::table<effective_address::kDerivedTable>,
    .vp_option_table = plugins::table<effective_address::kOptionTable>,
    .vp_options = effective_address::receive_options,
    .vp_prof_init = effective_address::begin,
    .vp_prof_release = effective_address::end,
    .vp_prof_process = effective_address::process,
    .vp_finish = effective_address::finish,
    .vp_summary = effective_address::summary,
    .vp_preface = effective_address::preface,
    .vp_format = effective_address::format,
    .vp_totals = effective_address::totals,
};
