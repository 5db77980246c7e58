// A run of the profiler that is being checked.
#pragma once

#include "framework/collector/profilers/source_places.h"
#include "framework/symbols/symbolizer.h"
#include "framework/trace/captures.h"
#include "tools/check_plugin/subject.h"
#include "tools/check_plugin/trial_trace.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace assay::check {

// The capture that a profiler requests.
struct Wanted {
    trace::Spec spec{};
    std::unique_ptr<trace::ValueLists> values;  // null if the profiler requests no values
};

// Asks the profiler for its specification. No value on failure.
std::optional<Wanted> start(Subject& subject);

class TrialRun {
  public:
    TrialRun(Subject& subject, TrialTrace& trace);

    // Call the following functions in this order. begin() returns false if the profiler refuses to
    // start; then call no other function.
    bool begin(const Settings& settings);
    void process(const TrialTrace::Buffer& buffer);
    // Checks the totals at the end of a burst. Each instruction was executed `times` times so far.
    void look_at_totals(std::uint64_t times);
    // Takes samples until there are no more. Each instruction was executed about `times` times.
    void finish(std::uint64_t times);
    void end();
    // True after a function has failed. No more functions are called then.
    bool is_lost() const { return !lost_in_.empty(); }
    // Reports a failure, for a run that gives the profiler no reason to fail.
    void report_loss() const;

    Report& report() { return subject_.report(); }
    // The requested capture; valid after begin().
    const Wanted& wanted() const { return wanted_; }
    bool captures_calls() const { return wanted_.spec.captures & trace::kCaptureCalls; }

    // Results of a run. Two runs of the same trace must have equal results.
    struct Told {
        std::vector<std::uint64_t> totals;                                          // by event
        std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> by_instr;  // pc, event
        std::string summary;
        bool operator==(const Told&) const = default;
    };
    const Told& told() const { return told_; }

  private:
    class Tables;

    void lose(std::string_view function);
    // Checks the samples that a call has returned.
    void take(std::string_view function, const vsample_t* samples, int count);
    void check(std::string_view function, const vsample_t& sample);
    void check_event(std::string_view function, const vsample_t& sample);
    void check_place(std::string_view function, const vsample_t& sample);
    // True if the event is VP_VALUE_OF or VP_VALUE_REST of a list of the profiler.
    bool is_value(const vsample_t& sample) const;
    void learn_instructions();

    Subject& subject_;
    TrialTrace& trace_;
    symbols::Symbolizer symbolizer_;
    mutable collector::SourcePlaces places_{trace_.addresses(), symbolizer_};
    Wanted wanted_;
    Told told_;
    std::size_t lists_ = 0;             // number of lists of values
    std::size_t contexts_in_call_ = 0;  // number of contexts when samples are taken
    std::uint64_t samples_ = 0;
    std::unordered_set<std::uint64_t> pcs_;  // addresses of known instructions
    std::size_t known_instrs_ = 0;
    std::string lost_in_, why_lost_;  // name of the failed function and its reason; "" if none
};

}  // namespace assay::check
