// One process image, from its trace segment to its events file. The way of a record:
//
//     collect()                       while the program runs:
//         TraceReader::consume()      takes a full buffer of the segment, and checks it
//         Feed::process()             finds contexts and objects, and calls the profilers
//         ImageProfile::take()        adds up the samples that a profiler returns
//     finish()                        when it has ended:
//         TraceReader::consume_rest() takes the last, partial buffers
//         Feed::finish()              lets profilers return their remaining samples
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
        bool refused = false;  // the driver could not continue
        bool failed = false;   // the profile is not as requested, for another reason
        bool lost = false;     // the file is missing, or is not where it was requested
    };

    // For one of several collections that read the same segment.
    struct Shared {
        // Returns the specification of the driver, for all collections. `wanted` is the one that
        // this collection wants, `values` its lists if it captures values. Throws Error.
        std::function<trace::Spec(const trace::Spec& wanted, const trace::ValueLists& values)>
            agree;
        trace::Readers& readers;
        std::uint32_t number;            // of this collection
        std::uint64_t instructions = 0;  // the total that the image will execute; 0: unknown
    };
    // Starts the profilers for the image. Throws Error, also if the image's files cannot be
    // written. `shared` is null if no other collection reads the segment.
    Collection(Session& session, const Image& image, Segment& segment, const Lifeline& lifeline,
               const Shared* shared = nullptr);
    Collection(const Collection&) = delete;
    Collection& operator=(const Collection&) = delete;

    // The captures that all profilers together ask for.
    const trace::Spec& spec() const { return spec_; }
    const trace::ValueLists& value_lists() const { return *value_lists_; }
    // Takes the driver's buffers until the image has ended. Throws Error.
    void collect();
    // Marks the profile as incomplete. The profile states the reason, and only the first reason is
    // kept.
    void incomplete(const std::string& why);
    // True if another image of the process follows.
    bool replaced() const;
    // Takes the last records, lets the profilers finish, and writes the events file. `ending` is
    // that of the process, if it is known. An unwritable file is reported, not thrown.
    Outcome finish(const std::optional<Ending>& ending);

    // --- For one of several simulation points.

    // Sets the text about the points in the file.
    void describe_points(const std::string& description) {
        feed_.sampling().describe_point(description);
    }
    // Replaces finish(): lets the profilers finish. take_counts() then returns the counts of this
    // point.
    Outcome finish_point();
    Counts take_counts() { return profile_.take_counts(); }
    // Passes the counts of other points, which finish() adds.
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
    // For profilers in other processes.
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
    // Reports a problem of this image.
    void problem(const std::string& what) const;
    void finish_profilers();
    void write();
    void log();
    void check_bursts();

    trace::DriverState state() const;

    Session& session_;
    const Image image_;
    const bool replays_;
    const std::uint64_t instructions_;  // the total that the image will execute; 0: unknown
    Segment& segment_;
    const Lifeline& lifeline_;
    trace::Spec spec_{};
    std::uint64_t interval_ = 0;  // of trace_capture_intervals, in instructions; 0: no intervals
    ImageProfile profile_;
    std::vector<Counts> others_;  // of the other simulation points
    const int parent_;
    // Lists of the values that all profilers ask for.
    const std::unique_ptr<trace::ValueLists> value_lists_ = std::make_unique<trace::ValueLists>();
    std::vector<std::size_t> fed_;         // numbers of the profilers in this process
    std::vector<HostedProfiler*> hosted_;  // by number; null for profilers in this process
    Feed feed_;
    std::optional<ImageRecorder> recorder_;
    std::uint64_t missing_warm_up_ = 0;  // wanted warm-up if the trace has a shorter one, or 0
    std::size_t opened_ = 0;             // mappings whose debug information is open
    bool damaged_ = false;               // true if the trace or its counts are damaged
    std::string incomplete_;             // why the profile is incomplete, or ""
    Outcome outcome_;
};

}  // namespace assay::collector
