// A run of the profiler that is being checked, with a made-up trace.
#pragma once

#include "framework/collector/profilers/source_places.h"
#include "framework/collector/profilers/trace_spec.h"
#include "framework/symbols/symbolizer.h"
#include "tools/check_plugin/subject.h"
#include "tools/check_plugin/synthetic_trace.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace assay::check {

// What a profiler wants to have captured.
struct Wanted {
    trace::Spec spec{};
    std::unique_ptr<trace::ValueLists> values;  // null: none
};

// Asks the profiler for its specification. None if it fails.
std::optional<Wanted> start(Subject& subject);

class TrialRun {
  public:
    TrialRun(Subject& subject, SyntheticTrace& trace);

    // In this order. False: the profiler refuses; nothing else is to be called then.
    bool begin(const Settings& settings);
    void process(const SyntheticTrace::Buffer& buffer);
    // At the end of a burst. Each instruction was executed `times` times so far.
    void look_at_totals(std::uint64_t times);
    // Until there are no more samples. Each instruction was executed `times` times or so.
    void finish(std::uint64_t times);
    void end();
    // A function has failed: none is called any more.
    bool is_lost() const { return !lost_in_.empty(); }
    // Says so in the report: for a run in which nothing is a reason to fail.
    void report_loss() const;

    // By event.
    const std::vector<std::uint64_t>& totals() const { return totals_; }

  private:
    class Tables;

    bool captures_calls() const { return wanted_.spec.captures & trace::kCaptureCalls; }
    void lose(std::string_view function);
    // Checks what a call has returned.
    void take(std::string_view function, const vsample_t* samples, int count);
    void check(std::string_view function, const vsample_t& sample);
    void check_event(std::string_view function, const vsample_t& sample);
    void check_place(std::string_view function, const vsample_t& sample);
    // VP_VALUE_OF or VP_VALUE_REST of one of its lists.
    bool is_value(const vsample_t& sample) const;
    bool is_instruction(std::uint64_t pc);

    Subject& subject_;
    SyntheticTrace& trace_;
    symbols::Symbolizer symbolizer_;
    mutable collector::SourcePlaces places_{trace_.addresses(), symbolizer_};
    Wanted wanted_;
    std::vector<std::uint64_t> totals_;
    std::size_t lists_ = 0;  // of values
    std::uint64_t samples_ = 0;
    std::unordered_set<std::uint64_t> pcs_;
    std::string lost_in_, why_lost_;  // "": it is not, or gives no reason
};

}  // namespace assay::check
