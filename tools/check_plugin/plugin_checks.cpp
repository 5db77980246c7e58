#include "tools/check_plugin/plugin_checks.h"

#include "framework/collector/profilers/loaded_profiler.h"
#include "framework/support/error.h"
#include "tools/check_plugin/guarded_memory.h"
#include "tools/check_plugin/subject.h"
#include "tools/check_plugin/synthetic_trace.h"
#include "tools/check_plugin/table_checks.h"
#include "tools/check_plugin/trial_run.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <vector>

namespace assay::check {
namespace {

constexpr std::uint64_t kCode = 0x401000;
constexpr std::size_t kBufferRecords = trace::kRecordsPerBuffer;

// --- Loading

// The collector's own checks: the table, names, formulas, types of options.
void check_loading(const std::string& path, Report& report) {
    collector::CrashGuard guard;
    try {
        report.calling("(loading, vp_init or a table)");
        collector::LoadedProfiler profiler(path, "", guard);
    } catch (const Error& error) {
        std::string_view text = error.what();
        const std::string known = fmt::format("cannot use the profiler {}: ", path);
        if (text.starts_with(known)) text.remove_prefix(known.size());
        report.broken(VP_DISPATCH_SYMBOL, text);
    }
    report.calling("");
}

// --- Specifications

// Nothing else may be in the folder before the program runs.
void check_no_files(Report& report) {
    if (!std::filesystem::is_empty("."))
        report.broken("vp_prof_init",
                      "or a function before it creates a file: tools call them without a program; "
                      "wait until vp_prof_process or vp_finish");
}

void check_specification(const std::string& path, Report& report) {
    Subject subject(path, report);
    if (!subject.init() || !subject.options({})) return;
    const auto wanted = start(subject);
    check_no_files(report);
    if (wanted) subject.prof_release();
    subject.release();
    if (wanted && wanted->spec.captures == 0)
        report.advice("vp_prof_init", "captures nothing without options: nothing will be counted");
}

// --- Runs

// Two threads in turns, while code is being added. Returns the totals; none if the profiler fails.
std::optional<std::vector<std::uint64_t>> ordinary_run(Subject& subject, const Settings& settings) {
    SyntheticTrace trace;
    trace.add_code(kCode);
    TrialRun run(subject, trace);
    if (!run.begin(settings)) return std::nullopt;
    for (std::uint32_t i = 0; i < 4; ++i) {
        run.process(trace.ordinary(i % 2, i == 2 ? 1 : kBufferRecords));
        trace.add_code(kCode + 0x1000 * (i + 1));
    }
    run.process(trace.ordinary(0, kBufferRecords));
    run.finish(1000);
    run.end();
    if (settings.empty()) run.report_loss();
    return run.is_lost() ? std::nullopt : std::optional(run.totals());
}

void check_ordinary_run(const std::string& path, Report& report) {
    Subject subject(path, report);
    ordinary_run(subject, {});
}

void check_second_run(const std::string& path, Report& report) {
    Subject subject(path, report);
    if (subject.init()) subject.release();
    if (subject.init() && subject.options({}) && subject.prof_init()) subject.prof_release();
    subject.release();
    const auto first = ordinary_run(subject, {});
    if (first && ordinary_run(subject, {}) != first)
        report.broken("vp_init",
                      "does not begin anew: after vp_release, the same run again has "
                      "other totals; set all variables in vp_init");
}

void check_empty_run(const std::string& path, Report& report) {
    Subject subject(path, report);
    SyntheticTrace trace;
    TrialRun run(subject, trace);
    if (!run.begin({})) return;
    run.finish(0);
    run.end();
}

void check_strange_run(const std::string& path, Report& report) {
    Subject subject(path, report);
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

void check_many_threads(const std::string& path, Report& report) {
    Subject subject(path, report);
    SyntheticTrace trace;
    trace.add_code(kCode);
    TrialRun run(subject, trace);
    if (!run.begin({})) return;
    for (std::uint32_t thread = 0; thread < 500; ++thread) run.process(trace.ordinary(thread, 32));
    run.finish(1);
    run.end();
}

// Bursts of two threads, with totals at their ends, the first before any buffer.
void check_sampled_run(const std::string& path, Report& report) {
    Subject subject(path, report);
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

void check_printing(const std::string& path, Report& report) {
    Subject subject(path, report);
    const vp_dispatch_t& table = subject.table();
    if (table.vp_format && !table.vp_preface && !table.vp_list_preface)
        report.advice("vp_preface", "is missing: values are printed behind the profiler's name");
    if ((!table.vp_preface && !table.vp_list_preface) || !subject.init()) return;
    SyntheticTrace trace;
    trace.add_code(kCode);
    const GuardedCopy instrs(trace.instrs());
    const std::size_t lists = std::max<std::size_t>(subject.value_lists().size(), 1);
    for (const trace_instr_t& instr : instrs.span())
        for (std::uint32_t list = 0; list < lists; ++list) check_preface(subject, instr, list);
    subject.release();
}

constexpr std::array kChecks{
    Check{"while it is being loaded", check_loading},
    Check{"when its tables are read", check_tables},
    Check{"when its specification is built", check_specification},
    Check{"in a run", check_ordinary_run},
    Check{"in a second run", check_second_run},
    Check{"in a run in which nothing happens", check_empty_run},
    Check{"in a run with extreme addresses, counts, kinds and thread numbers", check_strange_run},
    Check{"in a run of many threads", check_many_threads},
    Check{"in a run with --sample", check_sampled_run},
    Check{"when values are printed", check_printing},
};

}  // namespace

std::span<const Check> checks() {
    return kChecks;
}

std::span<const std::string_view> values_of_type(unsigned type) {
    static constexpr std::array<std::string_view, 2> kYesNo{"yes", "no"};
    static constexpr std::array<std::string_view, 5> kNumbers{"0", "1", "7", "4096",
                                                              "18446744073709551615"};
    static constexpr std::array<std::string_view, 1> kFiles{"check-plugin.out"};
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
        default:
            return kTexts;
    }
}

// A value that the profiler refuses is no error; but it must say so.
void check_option(const std::string& path, const std::string& name, const std::string& value,
                  Report& report) {
    Subject subject(path, report);
    ordinary_run(subject, {{name, value}});
}

}  // namespace assay::check
