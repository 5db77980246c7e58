// One process image, from its trace segment to its events file.
#pragma once

#include "framework/collector/launch/child.h"
#include "framework/collector/launch/file_names.h"
#include "framework/collector/launch/lifeline.h"
#include "framework/collector/launch/session.h"
#include "framework/collector/profilers/source_places.h"
#include "framework/collector/results/early_positions.h"
#include "framework/collector/results/results.h"
#include "framework/collector/results/sampling.h"
#include "framework/collector/trace/interval_reader.h"
#include "framework/collector/trace/parser.h"
#include "framework/collector/trace/segment.h"
#include "framework/collector/trace/shadow_stack.h"
#include "framework/collector/trace/trace_reader.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace assay::collector {

class Collection {
  public:
    struct Outcome {
        bool refused = false;  // the driver could not go on
        bool failed = false;   // for another reason the profile is not what was asked for
        bool lost = false;     // it has not been written, or not where it was asked for
    };

    // Starts the profilers for the image. Throws Error, also if its files cannot be written.
    Collection(Session& session, const Image& image, Segment& segment, const Lifeline& lifeline);
    Collection(const Collection&) = delete;
    Collection& operator=(const Collection&) = delete;

    // What the profilers ask for, all together.
    const trace::Spec& spec() const { return spec_; }
    const trace::ValueLists& value_lists() const { return *value_lists_; }
    // Takes what the driver writes until the image has ended. Throws Error.
    void collect();
    // Whether another image of the process follows.
    bool replaced() const;
    // Takes the last records, lets the profilers finish, and writes the events file. `ending`: of
    // the process, where it is known. A file that cannot be written is told. Throws Error if a
    // profiler has closed files that are not its own.
    Outcome finish(const std::optional<Ending>& ending);

  private:
    void check_files() const;
    void start_profilers();
    void process(TraceReader::Source source, std::span<const trace_record_t> records,
                 std::span<const trace_marker_t> markers);
    bool take_buffers();
    void sample();
    void look_at_totals();
    void prepare_positions();
    void wait(std::uint32_t bell, std::chrono::milliseconds at_most);
    void damaged(const std::string& how);
    void find_outcome(const std::optional<Ending>& ending);
    // Says what is wrong with this image.
    void problem(const std::string& what) const;
    void finish_profilers();
    void write();
    void estimate();

    // A parser's view of records, with the tables as they are now.
    trace_parser parser(std::uint32_t thread, std::span<const trace_record_t> records);
    // Calls `call(profiler, sink)` for each, with a sink for its samples.
    template <typename Call>
    void for_each_profiler(const Call& call);
    // Only the first reason is kept.
    void incomplete(const std::string& why);
    trace::DriverState state() const;

    Session& session_;
    const Image image_;
    Segment& segment_;
    const Lifeline& lifeline_;
    OwnFiles own_files_;
    trace::Spec spec_{};
    Results results_;
    // What all profilers ask for.
    const std::unique_ptr<trace::ValueLists> value_lists_ = std::make_unique<trace::ValueLists>();
    ShadowStacks stacks_;
    IntervalReader intervals_;
    std::uint64_t interval_ = 0;  // instructions; 0: none
    Sampling sampling_;
    TraceReader reader_;
    SourcePlaces places_{reader_.addresses(), session_.symbolizer};
    std::size_t opened_ = 0;  // mappings
    EarlyPositions early_positions_{session_.symbolizer};
    std::vector<std::uint64_t> executions_;      // by instruction, at the end
    std::vector<std::uint64_t> mispredictions_;  // by block, at the end
    bool damaged_ = false;                       // the trace cannot be read any further
    std::string incomplete_;                     // why the profile is
    Outcome outcome_;
};

}  // namespace assay::collector
