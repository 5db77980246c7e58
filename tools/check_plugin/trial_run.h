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

// What a profiler wants to have captured.
struct Wanted {
    trace::Spec spec{};
    std::unique_ptr<trace::ValueLists> values;  // null: none
};

// Asks the profiler for its specification. None if it fails.
std::optional<Wanted> start(Subject& subject);

class TrialRun {
  public:
    TrialRun(Subject& subject, TrialTrace& trace);

    // In this order. False: the profiler refuses; nothing else is to be called then.
    bool begin(const Settings& settings);
    void process(const TrialTrace::Buffer& buffer);
    // At the end of a burst. Each instruction was executed `times` times so far.
    void look_at_totals(std::uint64_t times);
    // Until there are no more samples. Each instruction was executed `times` times or so.
    void finish(std::uint64_t times);
    void end();
    // A function has failed: none is called any more.
    bool is_lost() const { return !lost_in_.empty(); }
    // Says so in the report: for a run in which nothing is a reason to fail.
    void report_loss() const;

    Report& report() { return subject_.report(); }
    // What the profiler wants, from begin() on.
    const Wanted& wanted() const { return wanted_; }
    bool captures_calls() const { return wanted_.spec.captures & trace::kCaptureCalls; }

    // What two runs of the same trace must have in common.
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
    // Checks what a call has returned.
    void take(std::string_view function, const vsample_t* samples, int count);
    void check(std::string_view function, const vsample_t& sample);
    void check_event(std::string_view function, const vsample_t& sample);
    void check_place(std::string_view function, const vsample_t& sample);
    // VP_VALUE_OF or VP_VALUE_REST of one of its lists.
    bool is_value(const vsample_t& sample) const;
    void learn_instructions();

    Subject& subject_;
    TrialTrace& trace_;
    symbols::Symbolizer symbolizer_;
    mutable collector::SourcePlaces places_{trace_.addresses(), symbolizer_};
    Wanted wanted_;
    Told told_;
    std::size_t lists_ = 0;             // of values
    std::size_t contexts_in_call_ = 0;  // that there are when samples are taken
    std::uint64_t samples_ = 0;
    std::unordered_set<std::uint64_t> pcs_;  // of the instructions that are known
    std::size_t known_instrs_ = 0;
    std::string lost_in_, why_lost_;  // "": it is not, or gives no reason
};

}  // namespace assay::check
