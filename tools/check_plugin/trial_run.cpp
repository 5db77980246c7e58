#include "tools/check_plugin/trial_run.h"

#include "framework/support/error.h"
#include "tools/check_plugin/trial_trace.h"

#include <fmt/core.h>
#include <algorithm>

namespace assay::check {
namespace {

constexpr std::uint32_t kPid = 4711;
// Limits of samples: for a run, and in addition for each instruction.
constexpr std::uint64_t kMostSamples = 100'000, kMostOfInstruction = 1000;

}  // namespace

std::optional<Wanted> start(Subject& subject) {
    const trace_vlist_table_t* const table = subject.prof_init();
    if (!table) return std::nullopt;
    Wanted wanted{table->spec, nullptr};
    try {
        trace::check(table->spec);
        if (table->spec.captures & trace::kCaptureValues)
            wanted.values = trace::value_lists(*table);
    } catch (const Error& error) {
        subject.report().broken("vp_prof_init",
                                fmt::format("requests an impossible capture: {}", error.what()));
    }
    return wanted;
}

// Guarded copies of the tables for one call.
class TrialRun::Tables {
  public:
    explicit Tables(const TrialRun& run)
        : run_(run),
          blocks_(run.trace_.blocks()),
          instrs_(run.trace_.instrs()),
          sites_(run.trace_.sites()),
          contexts_(run.captures_calls() ? run.trace_.contexts() : std::vector<trace_context_t>()) {
    }
    trace_parser parser(std::uint32_t thread) const {
        trace_parser parser{};
        parser.pid = kPid;
        parser.thread = thread;
        parser.code = {blocks_.span(), instrs_.span(), sites_.span()};
        parser.addresses = &run_.trace_.addresses();
        parser.places = &run_.places_;
        parser.context_table = contexts_.span();
        return parser;
    }

  private:
    const TrialRun& run_;
    GuardedCopy<trace_block_t> blocks_;
    GuardedCopy<trace_instr_t> instrs_;
    GuardedCopy<trace_site_t> sites_;
    GuardedCopy<trace_context_t> contexts_;
};

TrialRun::TrialRun(Subject& subject, TrialTrace& trace) : subject_(subject), trace_(trace) {
    told_.totals.resize(subject.events().size());
    lists_ = subject.value_lists().size();
}

bool TrialRun::begin(const Settings& settings) {
    if (!subject_.init()) return false;
    if (!subject_.options(settings)) {
        subject_.release();
        return false;
    }
    auto wanted = start(subject_);
    if (!wanted) {
        subject_.release();
        return false;
    }
    wanted_ = std::move(*wanted);
    if (wanted_.spec.data.runs()) trace_.leave_out();
    return true;
}

void TrialRun::process(const TrialTrace::Buffer& buffer) {
    auto* const function = subject_.table().vp_prof_process;
    if (!function || is_lost()) return;
    // Each call gets its data at new addresses, so that stale pointers fault.
    const GuardedCopy records(buffer.records);
    const GuardedCopy contexts(captures_calls() ? buffer.contexts : std::vector<std::uint32_t>());
    std::vector<trace_marker_t> said = buffer.markers;
    for (trace_marker_t& marker : said)
        marker.record = std::min<std::uint64_t>(marker.record, buffer.records.size());
    const GuardedCopy markers(said);
    const Tables tables(*this);
    trace_parser parser = tables.parser(buffer.thread);
    parser.records = records.span();
    parser.contexts = contexts.span();
    parser.markers = markers.span();
    parser.intervals = buffer.intervals;
    parser.misses = buffer.misses;
    parser.wanted = wanted_.values.get();
    const vsample_t* samples = nullptr;
    int count = 0;
    if (!subject_.try_call("vp_prof_process",
                           [&] { return count = function(kPid, &parser, &samples); }))
        return lose("vp_prof_process");
    take("vp_prof_process", samples, count);
}

void TrialRun::look_at_totals(std::uint64_t times) {
    auto* const function = subject_.table().vp_totals;
    if (!function || is_lost()) return;
    const GuardedCopy counts(trace_.counts(times));
    const GuardedCopy mispredictions(std::vector<std::uint64_t>(trace_.blocks().size(), 0));
    const GuardedRoom<std::uint64_t> totals(told_.totals.size());
    const Tables tables(*this);
    trace_parser parser = tables.parser(0);
    parser.counts = counts.span();
    parser.mispredictions = mispredictions.span();
    subject_.call("vp_totals", [&] {
        if (function(kPid, &parser, totals.data(),
                     static_cast<std::uint32_t>(told_.totals.size())) < 0)
            subject_.report().broken("vp_totals",
                                     "fails: a run then loses the profiler; leave this function "
                                     "out of the table if totals are not known before the end");
    });
    if (!totals.untouched_before())
        subject_.report().broken("vp_totals",
                                 "writes before the beginning of `totals`: it has room for "
                                 "`count` numbers");
}

void TrialRun::finish(std::uint64_t times) {
    const GuardedCopy counts(wanted_.spec.captures & trace::kCaptureBlockCounts
                                 ? trace_.counts(times)
                                 : std::vector<std::uint64_t>());
    const GuardedCopy mispredictions(trace_.mispredictions());
    const std::span<const collector::Interval> rests = trace_.rests();
    const Tables tables(*this);
    const std::uint64_t most = kMostSamples + kMostOfInstruction * trace_.instrs().size();
    for (auto* function = subject_.table().vp_finish; function && !is_lost();) {
        trace_parser parser = tables.parser(0);
        parser.counts = counts.span();
        parser.mispredictions = mispredictions.span();
        parser.intervals = rests;
        const vsample_t* samples = nullptr;
        int count = 0;
        if (!subject_.try_call("vp_finish",
                               [&] { return count = function(kPid, &parser, &samples); }))
            return lose("vp_finish");
        if (count == 0) return;
        take("vp_finish", samples, count);
        if (samples_ > most)
            return subject_.report().broken(
                "vp_finish", fmt::format("has returned {} samples of {} instructions and goes on: "
                                         "return 0 after the last sample",
                                         samples_, trace_.instrs().size()));
    }
}

void TrialRun::end() {
    if (is_lost()) return;
    if (subject_.table().vp_summary)
        subject_.call("vp_summary", [&] {
            const char* const text = subject_.table().vp_summary(
                told_.totals.data(), static_cast<std::uint32_t>(told_.totals.size()));
            if (text) subject_.check_utf8("vp_summary", text);
            if (text) told_.summary = text;
            if (text && *text && !std::string_view(text).ends_with('\n'))
                subject_.report().broken("vp_summary", "does not end its last line: add a newline");
        });
    subject_.prof_release();
    subject_.release();
}

void TrialRun::lose(std::string_view function) {
    lost_in_ = function;
    why_lost_ = subject_.error();
}

// A failure without a reason has been reported before.
void TrialRun::report_loss() const {
    if (is_lost() && !why_lost_.empty())
        subject_.report().broken(lost_in_,
                                 fmt::format("fails in an ordinary run without options: {}; a run "
                                             "then loses the profiler and its columns",
                                             why_lost_));
}

void TrialRun::take(std::string_view function, const vsample_t* samples, int count) {
    Report& report = subject_.report();
    if (count != 0 && !samples)
        return report.broken(function,
                             fmt::format("returns {} and stores NULL in *samples: store where "
                                         "the samples are, or return 0",
                                         count));
    contexts_in_call_ = trace_.contexts().size();
    learn_instructions();
    report.calling(fmt::format("{} (reading its {} samples)", function, count));
    for (int i = 0; i < count; ++i) {
        check(function, samples[i]);
        told_.by_instr[{samples[i].pc, samples[i].event}] += samples[i].weight;
    }
    report.calling("");
    samples_ += static_cast<std::uint64_t>(count);
}

void TrialRun::check_event(std::string_view function, const vsample_t& sample) {
    Report& report = subject_.report();
    if (sample.event < told_.totals.size()) {
        if (__builtin_add_overflow(told_.totals[sample.event], sample.weight,
                                   &told_.totals[sample.event]))
            report.broken(function, "returns counts whose sum exceeds 64 bits");
    } else if (!is_value(sample)) {
        report.broken(function,
                      fmt::format("returns a sample of event {}, but vp_events declares {}: "
                                  "events are numbered from 0",
                                  sample.event, told_.totals.size()));
    } else if (sample.weight == 0) {
        report.broken(function, "returns a value with a weight of 0: it was seen at least once");
    }
}

void TrialRun::check_place(std::string_view function, const vsample_t& sample) {
    Report& report = subject_.report();
    if (!pcs_.contains(sample.pc))
        report.broken(
            function,
            fmt::format("returns a sample at pc {:#x}, which is not the address of an instruction: "
                        "take trace_instr_t.pc or the pc of trace_parser_next",
                        sample.pc));
    const bool in_context = sample.context0 != 0 && sample.context0 != VP_NO_CONTEXT;
    if (in_context && sample.context0 >= contexts_in_call_)
        report.broken(function, fmt::format("returns a sample of context {}, and there are {}: "
                                            "take numbers of trace_parser_contexts",
                                            sample.context0, contexts_in_call_));
    if (sample.context1 > subject_.parts())
        report.broken(function, fmt::format("returns a sample of part {}, and has named {}: take "
                                            "numbers that host->part has given, or 0",
                                            sample.context1, subject_.parts()));
    if (in_context && !captures_calls())
        report.broken(function,
                      "returns a context without having asked for calls: leave "
                      "context0 at 0, or call trace_capture_calls");
}

void TrialRun::check(std::string_view function, const vsample_t& sample) {
    if (sample.reserved != 0)
        subject_.report().broken(function, fmt::format("returns a sample whose `reserved` is {}: "
                                                       "set it to 0, because it may get a meaning",
                                                       sample.reserved));
    check_event(function, sample);
    check_place(function, sample);
}

bool TrialRun::is_value(const vsample_t& sample) const {
    return (VP_VALUE - sample.event) / 2 < std::max<std::size_t>(lists_, 1);
}

void TrialRun::learn_instructions() {
    const std::vector<trace_instr_t> instrs = trace_.instrs();
    for (; known_instrs_ < instrs.size(); ++known_instrs_) pcs_.insert(instrs[known_instrs_].pc);
}

}  // namespace assay::check
