// The points of a replay, in groups. One driver serves several groups, and the points of a group
// read the same segment.
#pragma once

#include "framework/collector/launch/child.h"
#include "framework/collector/run/output_files.h"
#include "framework/collector/run/profile_log.h"
#include "framework/collector/run/run.h"
#include "framework/collector/run/settings.h"
#include "framework/collector/trace/segment.h"
#include "framework/driver/replay/mixed_programs.h"
#include "framework/support/shared_object.h"
#include "framework/trace/readers.h"

#include <sys/types.h>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace assay::collector {

// A reader is a process that profiles one image of a trace for one point of a replay. The parent
// fills the segment that several readers share.

// Runs `work` in a new process. Its output goes to the descriptor `log`, unless that is -1. Returns
// the process id. Throws Error.
pid_t start_in_child(int log, const std::function<int()>& work);
// Waits for the end of the child, or of any child. Returns the exit status, or kExitFailure if the
// child was killed.
constexpr pid_t kAnyChild = -1;
int exit_status_of(pid_t child);

// Returns how the image's process ended. Returns nothing if that is not known, for example for a
// killed child of the program.
std::optional<Ending> ending_of(const replay::ImageTrace& trace);

class ReplayReader {
  public:
    // Data that all readers of the image share. It must live longer.
    struct Source {
        const replay::ImageTrace& trace;
        Segment& segment;
        Lifeline& lifeline;
        trace::Readers& readers;
    };
    struct Point {
        const CoreSettings& settings;
        int log;
        std::shared_ptr<const ProfileLog> profiles;
        Image image;
    };

    // Starts the process of reader `number`. The calling process must have no other thread. Throws
    // Error.
    ReplayReader(const Source& source, const Point& point, std::uint32_t number);
    ~ReplayReader();
    ReplayReader(const ReplayReader&) = delete;
    ReplayReader& operator=(const ReplayReader&) = delete;

    // Waits for the specification that the reader wants. Returns nothing if the reader has ended,
    // after its own message.
    std::optional<trace::Spec> wanted() const;
    // The lists of values that the reader wants. Valid after wanted().
    const trace::ValueLists& wanted_values() const { return *values_; }
    // Tells the reader the specification that is in the segment.
    void agree(const trace::Spec& given) const;
    // Tells the reader to report `why` and to end.
    void refuse(const std::string& why) const;
    // Tells the reader to end without a message, because its specification does not fit those of
    // the others.
    void send_away() const;
    // Tells the reader that the replay is complete, except for `problem`.
    void finish(const std::string& problem) const;

    // This descriptor hangs up when the process ends.
    int channel() const { return channel_; }
    // Waits for the end of the process.
    int exit_status();

  private:
    const std::shared_ptr<trace::ValueLists> values_;  // shared with the process
    int channel_ = -1;
    pid_t pid_ = -1;
};

struct ReplayedPoint {
    CoreSettings settings;
    int log;
    std::shared_ptr<const ProfileLog> profiles;
    int status = 0;
};

// Points that read the same segment.
struct ReplayGroup {
    std::optional<trace::Spec> spec;  // empty if it is not known in advance
    std::vector<ReplayedPoint*> points;
};
// Groups that one driver serves.
using ReplayPass = std::vector<ReplayGroup>;

// Puts a point that wants `spec` into a group with compatible points.
void add(ReplayedPoint& point, const trace::Spec& spec, std::vector<ReplayPass>& passes);

// A group that replays an image.
struct Readership {
    // Starts the readers of the group. `images`: one for each point, or one for all. The other
    // arguments must live longer. Throws Error.
    Readership(const replay::ImageTrace& trace_of_image, std::span<const Image> images,
               const ReplayGroup& group, Lifeline& lifeline);

    // Returns the specification for all readers; nothing if no reader is left. Adds the values that
    // they want to `values`.
    std::optional<trace::Spec> agree(trace::ValueLists& values) const;

    const ReplayGroup& group;
    const replay::ImageTrace& trace;
    const bool mixed;  // several programs
    Segment segment;
    const std::shared_ptr<trace::Readers> shared = shared_object<trace::Readers>("a replay");
    std::vector<std::unique_ptr<ReplayReader>> readers;
};

// Replays the image for all groups. Returns the problem, or "".
// `mixed`: as for ReplayDriver.
std::string fill(const replay::ImageTrace& trace,
                 std::span<const std::unique_ptr<Readership>> groups,
                 replay::MixedPrograms* mixed = nullptr);
// Ends the readers of groups that have been filled, with the problem or "", and notes the status of
// their points.
void finish(std::span<const std::unique_ptr<Readership>> groups, Lifeline& lifeline,
            const std::string& problem);

// Replays a trace of simulation points (assay record --simpoints). New profilers process each
// point, and the weighted counts of all points are added.

// Writes the events file of the image. Returns false if the profile is not as requested. Throws
// Error if nothing could be replayed, or if an option does not work with simulation points.
bool replay_points(const CoreSettings& settings, const replay::ImageTrace& trace,
                   const Image& image, const std::shared_ptr<const ProfileLog>& profiles);

}  // namespace assay::collector
