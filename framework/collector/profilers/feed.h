// What the profilers of this process are given of one process image: its trace, read in order, with
// what they have asked for made of it.
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
    // Of a profiler: its samples, each with the mapping that its pc is in now.
    using Sink = std::function<void(const vsample_t& sample, std::uint32_t mapping)>;

    // All must live longer.
    Feed(Segment& segment, TraceReader::Role role, int pid, const trace::Regions& regions,
         symbols::Symbolizer& symbolizer);
    Feed(const Feed&) = delete;
    Feed& operator=(const Feed&) = delete;

    void add(LoadedProfiler& profiler, Sink sink) { fed_.push_back({&profiler, std::move(sink)}); }
    // After all have been added, before anything is read.
    struct Wanted {
        const trace::Spec& spec;  // what is captured
        // Of trace_capture_intervals, in instructions; 0 if nobody has asked for them.
        std::uint64_t interval;
        bool contexts;  // by all, not only by those that capture calls
    };
    void begin(const Wanted& wanted);
    // Who gets all that is read, before the profilers do.
    TraceReader::Sink at_records;
    // Called with --sample, where totals_so_far() shall be told to sampling().
    std::function<void()> at_totals;

    TraceReader& reader() { return reader_; }
    Sampling& sampling() { return sampling_; }
    const ContextTree& contexts() const { return stacks_.contexts(); }
    // Null without --objects.
    ReferencedObjects* objects() { return objects_ ? &*objects_ : nullptr; }
    // False if something was executed in contexts that nobody knows.
    bool knows_contexts() const { return executed_contexts_.complete(); }
    // Of one of those that were added, by number, at the end of a burst.
    std::vector<std::uint64_t> totals_so_far(std::size_t profiler);

    // When all has been read: TraceReader::impossible_counts(), where blocks are counted.
    std::string impossible_counts(std::chrono::duration<double> time);
    // Then: what was executed, and how much of it was captured.
    void end();
    // By instruction, from end() on; empty if block counts are not captured.
    std::span<const std::uint64_t> executions() const { return executions_; }
    // Likewise by block; empty if predictions are not captured.
    std::span<const std::uint64_t> mispredictions() const { return mispredictions_; }
    // Then: what was executed in contexts, in as many parts as it likes; empty without them.
    using TakeExecutions = std::function<void(std::span<const ContextExecutions>)>;
    std::function<void(const TakeExecutions& take)> executions_by_context();
    // The same by ThreadContexts::number() instead of the context; empty without --threads.
    std::function<void(const TakeExecutions& take)> executions_by_thread();
    // Lets the profilers finish.
    void finish();

  private:
    struct Fed {
        LoadedProfiler* profiler;
        Sink sink;
    };

    void process(TraceReader::Source source, std::span<const trace_record_t> records,
                 std::span<const trace_marker_t> markers);
    // A parser's view of records, with the tables as they are now.
    trace_parser parser(std::uint32_t thread, std::span<const trace_record_t> records);
    bool has_contexts(const LoadedProfiler& profiler) const {
        if (spec_.threads != 0) return true;
        return (follows_calls_ || tells_contexts_) &&
               (contexts_of_all_ || objects_ || profiler.captures_calls());
    }
    std::span<const trace_context_t> context_table(bool given) const;
    // Calls `call(profiler, sink)` for each, with a sink for its samples.
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
    std::vector<std::uint64_t> executions_;      // by instruction, at the end
    std::vector<std::uint64_t> mispredictions_;  // by block, at the end
};

}  // namespace assay::collector
