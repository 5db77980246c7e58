// One process image, from its trace segment to its events file. The way of a record:
//
//     collect()                       while the program runs:
//         TraceReader::consume()      takes a full buffer of the segment, and checks it
//         Feed::process()             finds contexts and objects, and calls the profilers
//         ImageProfile::take()        adds up the samples that a profiler returns
//     finish()                        when it has ended:
//         TraceReader::consume_rest() takes the last buffers, which are not full
//         Feed::finish()              lets profilers return what they have kept, as samples
//         ImageProfile::write()       divides counts among groups, finds sources, writes the file
#pragma once

#include "framework/collector/hosted/hosted_profiler.h"
#include "framework/collector/launch/child.h"
#include "framework/collector/profilers/feed.h"
#include "framework/collector/run/image_profile.h"
#include "framework/collector/run/image_recorder.h"
#include "framework/collector/run/output_files.h"
#include "framework/collector/run/session.h"
#include "framework/collector/trace/segment.h"

#include <chrono>
#include <cstdint>
#include <functional>
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

    // Of several collections that read one segment.
    struct Shared {
        // What the driver gives, to all of them, if this one wants `wanted`, and `values` if that
        // has values. Throws Error.
        std::function<trace::Spec(const trace::Spec& wanted, const trace::ValueLists& values)>
            agree;
        trace::Readers& readers;
        std::uint32_t number;            // among them
        std::uint64_t instructions = 0;  // that will come; 0: that is not known
    };
    // Starts the profilers for the image. Throws Error, also if its files cannot be written.
    // `shared`: null for the only one.
    Collection(Session& session, const Image& image, Segment& segment, const Lifeline& lifeline,
               const Shared* shared = nullptr);
    Collection(const Collection&) = delete;
    Collection& operator=(const Collection&) = delete;

    // What the profilers ask for, all together.
    const trace::Spec& spec() const { return spec_; }
    const trace::ValueLists& value_lists() const { return *value_lists_; }
    // Takes what the driver writes until the image has ended. Throws Error.
    void collect();
    // The profile is, which it will say. Only the first reason is kept.
    void incomplete(const std::string& why);
    // Whether another image of the process follows.
    bool replaced() const;
    // Takes the last records, lets the profilers finish, and writes the events file. `ending`: of
    // the process, where it is known. A file that cannot be written is told.
    Outcome finish(const std::optional<Ending>& ending);

    // --- Where it is of one simulation point of several.

    // What the file says of them.
    void describe_points(const std::string& description) {
        feed_.sampling().describe_point(description);
    }
    // In place of finish(): the profilers finish, and take_counts() is of the point only.
    Outcome finish_point();
    Counts take_counts() { return profile_.take_counts(); }
    // Of other points, which finish() adds.
    void add_before_writing(std::vector<Counts> counts) { others_ = std::move(counts); }

  private:
    void check_files() const;
    void start_recorder();
    void end_recorder(const std::optional<Ending>& ending);
    void start_profilers(const Shared* shared);
    void start_profiler(std::size_t index);
    void capture_objects();
    Feed::Sink sink(std::size_t profiler);
    HostedProfiler::Sink sink_of_other(std::size_t profiler);
    void begin();
    bool take_buffers();
    void take_rest();
    // Of profilers in other processes.
    void look_at_others();
    void wait_for_others();
    void release_taken();
    void sample();
    void take_to_end();
    void check_points();
    void check_recorded_bursts();
    void look_at_totals();
    void open_debug_information();
    void wait(std::uint32_t bell, std::chrono::milliseconds at_most);
    void damaged(const std::string& how);
    void check_counts();
    void find_outcome(const std::optional<Ending>& ending);
    // Says what is wrong with this image.
    void problem(const std::string& what) const;
    void finish_profilers();
    void write();
    void log();
    void check_bursts();

    trace::DriverState state() const;

    Session& session_;
    const Image image_;
    const bool replays_;
    const std::uint64_t instructions_;  // that will come; 0: that is not known
    Segment& segment_;
    const Lifeline& lifeline_;
    trace::Spec spec_{};
    std::uint64_t interval_ = 0;  // of trace_capture_intervals, in instructions; 0: none
    ImageProfile profile_;
    std::vector<Counts> others_;  // of other simulation points
    const int parent_;
    // What all profilers ask for.
    const std::unique_ptr<trace::ValueLists> value_lists_ = std::make_unique<trace::ValueLists>();
    std::vector<std::size_t> fed_;         // profilers of this process, by their numbers
    std::vector<HostedProfiler*> hosted_;  // by all numbers; null for those of this process
    Feed feed_;
    std::optional<ImageRecorder> recorder_;
    std::uint64_t missing_warm_up_ = 0;  // what is wanted where the trace has less; 0: it has that
    std::size_t opened_ = 0;             // mappings
    bool damaged_ = false;               // the trace, or its counts
    std::string incomplete_;             // why the profile is
    Outcome outcome_;
};

}  // namespace assay::collector
