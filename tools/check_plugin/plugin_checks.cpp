#include "tools/check_plugin/plugin_checks.h"

#include "framework/collector/profilers/loaded_profiler.h"
#include "framework/support/error.h"
#include "tools/check_plugin/subject.h"
#include "tools/check_plugin/synthetic_trace.h"
#include "tools/check_plugin/trial_run.h"
#include "tools/check_plugin/trial_trace.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace assay::check {
namespace {

constexpr std::uint64_t kCode = 0x401000;
constexpr std::size_t kBufferRecords = trace::kRecordsPerBuffer;

// --- Loading

// Runs the checks of the collector: table, names, formulas, types of options.
void check_loading(const Trial& trial, Report& report) {
    collector::CrashGuard guard;
    try {
        report.calling("(loading, vp_init or a table)");
        collector::LoadedProfiler profiler(trial.path, "", guard);
    } catch (const Error& error) {
        std::string_view text = error.what();
        const std::string known = fmt::format("cannot use the profiler {}: ", trial.path);
        if (text.starts_with(known)) text.remove_prefix(known.size());
        report.broken(VP_DISPATCH_SYMBOL, text);
    }
    report.calling("");
}

void check_tables_of(const Trial& trial, Report& report) {
    check_tables(trial.path, report);
}

// --- Specifications

// Profilers must not write files before the program runs.
void check_no_files(Report& report) {
    if (!std::filesystem::is_empty("."))
        report.broken("vp_prof_init",
                      "or a function before it creates a file: tools call them without a program; "
                      "wait until vp_prof_process or vp_finish");
}

void check_specification(const Trial& trial, Report& report) {
    Subject subject(trial.path, report);
    if (!subject.init() || !subject.options({})) return;
    const auto wanted = start(subject);
    check_no_files(report);
    if (wanted) subject.prof_release();
    subject.release();
    if (wanted && wanted->spec.captures == 0)
        report.advice("vp_prof_init", "captures nothing without options: nothing will be counted");
}

// --- Runs

using Files = std::map<std::string, std::string>;  // contents by name

// The files that the profiler has written.
Files files_here() {
    Files files;
    for (const auto& entry : std::filesystem::directory_iterator(".")) {
        if (!entry.is_regular_file()) continue;
        std::ifstream file(entry.path(), std::ios::binary);
        files[entry.path().string()] = std::string(std::istreambuf_iterator<char>(file), {});
    }
    return files;
}

std::string difference(const TrialRun::Told& a, const TrialRun::Told& b) {
    if (a.totals != b.totals) return "totals";
    if (a.by_instr == b.by_instr) return "lines of its summary";
    const auto [one, other] =
        std::mismatch(a.by_instr.begin(), a.by_instr.end(), b.by_instr.begin(), b.by_instr.end());
    const auto& [at, weight] = one == a.by_instr.end() ? *other : *one;
    return fmt::format("samples of the instruction at {:#x}", at.first);
}

// Runs two threads in turns and adds code meanwhile. Returns false if the profiler refuses to
// start.
bool made_up_run(TrialRun& run, SyntheticTrace& trace, const Settings& settings) {
    if (!run.begin(settings)) return false;
    for (std::uint32_t i = 0; i < 4; ++i) {
        run.process(trace.ordinary(i % 2, i == 2 ? 1 : kBufferRecords));
        trace.add_code(kCode + 0x1000 * (i + 1));
    }
    run.process(trace.ordinary(0, kBufferRecords));
    return true;
}

// Requests everything that a recording has, with few filters.
Wanted all_of(const recording::TraceContent& content) {
    return {{.captures = trace::kCaptureFetches | trace::kCaptureBranches |
                         trace::captures_of_recording(content.captures),
             .fetch = {64, 1},
             .branches = TRACE_CONDITIONAL_BRANCHES | TRACE_INDIRECT_BRANCHES | TRACE_DIRECT_CALLS |
                         TRACE_RETURNS},
            recording::recorded_values(content)};
}

// `others` is captured also, for other profilers. Returns false if the profiler refuses to start.
bool recorded_run(TrialRun& run, RecordedTrace& trace, const Settings& settings,
                  const Wanted& others) {
    if (!run.begin(settings)) return false;
    const auto values = std::make_unique<trace::ValueLists>();
    try {
        for (const Wanted* each : {&run.wanted(), &others})
            if (each->values) trace::add(*values, *each->values);
        trace.replay(combine(run.wanted().spec, others.spec), *values, run.captures_calls(),
                     [&](const TrialTrace::Buffer& buffer) { run.process(buffer); });
    } catch (const Error& error) {
        run.report().impossible(error.what());
        return false;
    }
    return true;
}

// Returns the results of the run, or no value on failure.
std::optional<TrialRun::Told> end_run(TrialRun& run, const Settings& settings) {
    run.finish(1000);
    run.end();
    if (settings.empty()) run.report_loss();
    return run.is_lost() ? std::nullopt : std::optional(run.told());
}

std::optional<TrialRun::Told> ordinary_run(Subject& subject, const Trial& trial,
                                           const Settings& settings, std::size_t image = 0,
                                           bool beside_others = false) {
    if (!trial.trace) {
        SyntheticTrace trace;
        trace.add_code(kCode);
        TrialRun run(subject, trace);
        if (!made_up_run(run, trace, settings)) return std::nullopt;
        return end_run(run, settings);
    }
    const replay::ImageTrace recorded = trial.trace->image(image);
    RecordedTrace trace(recorded);
    TrialRun run(subject, trace);
    const Wanted others = beside_others ? all_of(recorded.content()) : Wanted{};
    if (!recorded_run(run, trace, settings, others)) return std::nullopt;
    return end_run(run, settings);
}

// Checks the run of each process in the trace.
void check_ordinary_run(const Trial& trial, Report& report) {
    Subject subject(trial.path, report);
    const std::size_t images = trial.trace ? trial.trace->images() : 1;
    for (std::size_t image = 0; image < images; ++image) ordinary_run(subject, trial, {}, image);
}

void check_second_run(const Trial& trial, Report& report) {
    Subject subject(trial.path, report);
    if (subject.init()) subject.release();
    if (subject.init() && subject.options({}) && subject.prof_init()) subject.prof_release();
    subject.release();
    const auto first = ordinary_run(subject, trial, {});
    const auto files = files_here();
    if (!first) return;
    const auto second = ordinary_run(subject, trial, {});
    if (!second) return;
    if (*first != *second)
        report.broken("vp_init",
                      fmt::format("does not start from scratch: after vp_release, the same run has "
                                  "different {}; set all variables in vp_init",
                                  difference(*first, *second)));
    else if (trial.trace && files_here() != files)
        report.broken("vp_finish",
                      "writes a different file when the same trace is replayed again: leave out "
                      "times, its own addresses, and the order of hash tables");
}

void check_run_beside_others(const Trial& trial, Report& report) {
    Subject subject(trial.path, report);
    const auto alone = ordinary_run(subject, trial, {});
    const auto beside = ordinary_run(subject, trial, {}, 0, true);
    // Summaries are not compared: they may contain the number of captured records.
    if (alone && beside && (alone->totals != beside->totals || alone->by_instr != beside->by_instr))
        report.broken("vp_prof_process",
                      fmt::format("counts records that it has not requested: beside another "
                                  "profiler, the same trace has different {}; look at the kind of "
                                  "each record's site, and do not rely on a filter",
                                  difference(*alone, *beside)));
}

void check_empty_run(const Trial& trial, Report& report) {
    Subject subject(trial.path, report);
    SyntheticTrace trace;
    TrialRun run(subject, trace);
    if (!run.begin({})) return;
    run.finish(0);
    run.end();
}

void check_strange_run(const Trial& trial, Report& report) {
    Subject subject(trial.path, report);
    SyntheticTrace trace;
    trace.add_code(kCode);
    trace.add_code(0xffff'ffff'ff60'0000);  // the vsyscall page
    TrialRun run(subject, trace);
    if (!run.begin({})) return;
    for (const std::uint32_t thread : {0U, 5U, 1'000'000U, UINT32_MAX, 0U})
        run.process(trace.strange(thread, kBufferRecords));
    run.finish(std::uint64_t{1} << 50);
    run.end();
}

void check_many_threads(const Trial& trial, Report& report) {
    Subject subject(trial.path, report);
    SyntheticTrace trace;
    trace.add_code(kCode);
    TrialRun run(subject, trace);
    if (!run.begin({})) return;
    for (std::uint32_t thread = 0; thread < 500; ++thread) run.process(trace.ordinary(thread, 32));
    run.finish(1);
    run.end();
}

// Runs bursts of two threads. Asks for totals at the end of each burst, first before any buffer.
void check_sampled_run(const Trial& trial, Report& report) {
    Subject subject(trial.path, report);
    subject.set_sampling();
    SyntheticTrace trace;
    trace.add_code(kCode);
    TrialRun run(subject, trace);
    if (!run.begin({})) return;
    for (std::uint32_t burst = 0; burst < 4; ++burst) {
        run.look_at_totals(burst);
        run.process(trace.ordinary(burst % 2, kBufferRecords / 4));
        trace.add_code(kCode + 0x1000 * (burst + 1));
    }
    run.look_at_totals(1000);
    run.finish(1000);
    run.end();
}

// --- Printing values

void check_format(Subject& subject, const trace_instr_t& instr) {
    constexpr std::array<std::uint64_t, 9> kValues{0,
                                                   1,
                                                   0x80,
                                                   UINT64_MAX,
                                                   std::uint64_t{1} << 63,
                                                   0x3ff0'0000'0000'0000,
                                                   0x7ff0'0000'0000'0000,
                                                   0x7ff8'0000'0000'0001,
                                                   0x7fff'ffff'ffff};
    for (const std::uint64_t value : kValues)
        subject.call("vp_format", [&] {
            const char* const text = subject.table().vp_format(&instr, value);
            if (!text)
                subject.report().broken(
                    "vp_format",
                    "returns NULL for a value: return its text; vp_preface leaves out "
                    "whole lists");
            else
                subject.check_text("vp_format", text);
        });
}

void check_preface(Subject& subject, const trace_instr_t& instr, std::uint32_t list) {
    const vp_dispatch_t& table = subject.table();
    const std::string_view name = table.vp_list_preface ? "vp_list_preface" : "vp_preface";
    const char* text = nullptr;
    subject.call(name, [&] {
        text =
            table.vp_list_preface ? table.vp_list_preface(&instr, list) : table.vp_preface(&instr);
    });
    if (!text) return;
    subject.check_text(name, text);
    if (table.vp_format) check_format(subject, instr);
}

std::vector<trace_instr_t> instructions_of(const Trial& trial) {
    if (trial.trace) return trial.trace->image(0).instrs();
    SyntheticTrace trace;
    trace.add_code(kCode);
    return trace.instrs();
}

void check_printing(const Trial& trial, Report& report) {
    Subject subject(trial.path, report);
    const vp_dispatch_t& table = subject.table();
    if (table.vp_format && !table.vp_preface && !table.vp_list_preface)
        report.advice("vp_preface", "is missing: values are printed after the profiler's name");
    if ((!table.vp_preface && !table.vp_list_preface) || !subject.init()) return;
    const GuardedCopy instrs(instructions_of(trial));
    const std::size_t lists = std::max<std::size_t>(subject.value_lists().size(), 1);
    for (const trace_instr_t& instr : instrs.span())
        for (std::uint32_t list = 0; list < lists; ++list) check_preface(subject, instr, list);
    subject.release();
}

constexpr Check kLoading{"while it is being loaded", check_loading};
constexpr Check kTables{"when its tables are read", check_tables_of};
constexpr Check kSpecification{"when its specification is built", check_specification};
constexpr Check kPrinting{"when values are printed", check_printing};
constexpr std::array kChecks{
    kLoading,
    kTables,
    kSpecification,
    Check{"in a run", check_ordinary_run},
    Check{"in a second run", check_second_run},
    Check{"in a run in which nothing happens", check_empty_run},
    Check{"in a run with extreme addresses, counts, kinds and thread numbers", check_strange_run},
    Check{"in a run of many threads", check_many_threads},
    Check{"in a run with --sample", check_sampled_run},
    kPrinting,
};
constexpr std::array kChecksWithTrace{
    kLoading,
    kTables,
    kSpecification,
    Check{"in a replay of the trace", check_ordinary_run},
    Check{"in a second replay of the trace", check_second_run},
    Check{"in a replay of the trace beside another profiler", check_run_beside_others},
    kPrinting,
};

}  // namespace

std::span<const Check> checks(const Trial& trial) {
    if (trial.trace) return kChecksWithTrace;
    return kChecks;
}

std::span<const std::string_view> values_of_type(unsigned type) {
    static constexpr std::array<std::string_view, 2> kYesNo{"yes", "no"};
    static constexpr std::array<std::string_view, 5> kNumbers{"0", "1", "7", "4096",
                                                              "18446744073709551615"};
    static constexpr std::array<std::string_view, 1> kFiles{"check-plugin.out"};
    static constexpr std::array<std::string_view, 3> kAssignments{"x=", "a.b=1", "\xff=%s"};
    static constexpr std::array<std::string_view, 8> kTexts{
        "", "x", ",,,", "-1", "1,2,3", "99999999999999999999,1,1", "%n%s%s", "\xff\xfe\x01"};
    switch (type) {
        case VP_OPTION_YES_NO:
        case VP_OPTION_PROFILER:
            return kYesNo;
        case VP_OPTION_UNSIGNED:
        case VP_OPTION_COUNT:
            return kNumbers;
        case VP_OPTION_OUTPUT_FILE:
            return kFiles;
        case VP_OPTION_ASSIGNMENT:
            return kAssignments;
        default:
            return kTexts;
    }
}

// A profiler may refuse a value, but must give a reason.
void check_option(const Trial& trial, const std::string& name, const std::string& value,
                  Report& report) {
    Subject subject(trial.path, report);
    ordinary_run(subject, trial, {{name, value}});
}

}  // namespace assay::check
