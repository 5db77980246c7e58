// Feeds the profilers of this process with the trace of one process image. It reads the trace in
// order and derives the data that the profilers ask for.
#pragma once

#include "framework/collector/profilers/loaded_profiler.h"
#include "framework/collector/profilers/source_places.h"
#include "framework/collector/profilers/trace_parser.h"
#include "framework/collector/results/sampling.h"
#include "framework/collector/results/shares.h"
#include "framework/collector/trace/contexts.h"
#include "framework/collector/trace/executed_contexts.h"
#include "framework/collector/trace/interval_reader.h"
#include "framework/collector/trace/referenced_objects.h"
#include "framework/collector/trace/trace_reader.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace assay::collector {

class Feed {
  public:
    // Takes the samples of a profiler, each with the mapping that its pc is in now.
    using Sink = std::function<void(const vsample_t& sample, std::uint32_t mapping)>;

    // The references must outlive this object.
    Feed(Segment& segment, TraceReader::Role role, int pid, const trace::Regions& regions,
         symbols::Symbolizer& symbolizer);
    Feed(const Feed&) = delete;
    Feed& operator=(const Feed&) = delete;

    void add(LoadedProfiler& profiler, Sink sink) { fed_.push_back({&profiler, std::move(sink)}); }
    // Call after the last add(), and before reading.
    struct Wanted {
        const trace::Spec& spec;  // the captured data
        // The interval of trace_capture_intervals, in instructions; 0 if no profiler asked for it.
        std::uint64_t interval;
        bool contexts;  // for all profilers, not only those that capture calls
    };
    void begin(const Wanted& wanted);
    // Gets all records before the profilers do.
    TraceReader::Sink at_records;
    // Called with --sample, when sampling() needs totals_so_far().
    std::function<void()> at_totals;

    TraceReader& reader() { return reader_; }
    Sampling& sampling() { return sampling_; }
    const ContextTree& contexts() const { return stacks_.contexts(); }
    // Null without --objects.
    ReferencedObjects* objects() { return objects_ ? &*objects_ : nullptr; }
    // False if the context of something that was executed is unknown.
    bool knows_contexts() const { return executed_contexts_.complete(); }
    // The totals at the end of a burst. `profiler`: its number in the order of add().
    std::vector<std::uint64_t> totals_so_far(std::size_t profiler);

    // Call after the end of the trace. Returns TraceReader::impossible_counts() if blocks are
    // counted.
    std::string impossible_counts(std::chrono::duration<double> time);
    // Call next. Computes the executions, and the captured part of them.
    void end();
    // By instruction; empty if block counts are not captured. Valid after end().
    std::span<const std::uint64_t> executions() const { return executions_; }
    // By block; empty if predictions are not captured. Valid after end().
    std::span<const std::uint64_t> mispredictions() const { return mispredictions_; }
    // Call after end(). The function passes on the executions by context in any number of parts;
    // empty without contexts.
    using TakeExecutions = std::function<void(std::span<const ContextExecutions>)>;
    std::function<void(const TakeExecutions& take)> executions_by_context();
    // The same by ThreadContexts::number() instead of the context; empty without --threads.
    std::function<void(const TakeExecutions& take)> executions_by_thread();
    // Call after end(); see ExecutedContexts::calls(). Empty without contexts.
    std::vector<ContextCalls> calls();
    // Lets the profilers finish.
    void finish();

    // True if a profiler has asked for facts of instructions that assay does not have.
    bool lacks_facts() const { return lacks_facts_; }

  private:
    struct Fed {
        LoadedProfiler* profiler;
        Sink sink;
    };

    void process(TraceReader::Source source, std::span<const trace_record_t> records,
                 std::span<const trace_marker_t> markers);
    // A parser's view of records, with the current tables.
    trace_parser parser(std::uint32_t thread, std::span<const trace_record_t> records);
    bool has_contexts(const LoadedProfiler& profiler) const {
        if (spec_.threads != 0) return true;
        return (follows_calls_ || tells_contexts_) &&
               (contexts_of_all_ || objects_ || profiler.captures_calls());
    }
    std::span<const trace_context_t> context_table(bool given) const;
    // Calls `call(profiler, sink)` for each profiler, with a sink for its samples.
    template <typename Call>
    void for_each(const Call& call);

    const Segment& segment_;
    const int pid_;
    const TraceReader::Role role_;
    std::vector<Fed> fed_;
    trace::Spec spec_{};
    std::uint64_t interval_ = 0;
    bool contexts_of_all_ = false, follows_calls_ = false, tells_contexts_ = false;
    ShadowStacks stacks_;
    ExecutedContexts executed_contexts_;
    ThreadContexts thread_contexts_;
    IntervalReader intervals_;
    Sampling sampling_;
    TraceReader reader_;
    std::optional<ReferencedObjects> objects_;
    SourcePlaces places_;
    ReferenceTypes types_;
    bool lacks_facts_ = false;
    std::vector<std::uint64_t> executions_;      // by instruction, at the end
    std::vector<std::uint64_t> mispredictions_;  // by block, at the end
};

}  // namespace assay::collector
