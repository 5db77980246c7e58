// The points of a replay in groups: those that one driver serves together, and of these those that
// read the same segment.
#pragma once

#include "framework/collector/launch/child.h"
#include "framework/collector/run/output_files.h"
#include "framework/collector/run/profile_log.h"
#include "framework/collector/run/run.h"
#include "framework/collector/run/settings.h"
#include "framework/collector/trace/segment.h"
#include "framework/driver/replay/image_trace.h"
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

// The process that profiles one image of a trace as one point of a replay wants it, while its
// parent fills the segment that all such processes read.

// Lets `work` run in a process of its own, whose output goes to `log` if that is one. Returns the
// process. Throws Error.
pid_t start_in_child(int log, const std::function<int()>& work);
// Waits for its end, or for that of any child. Its exit status; kExitFailure if it was killed.
constexpr pid_t kAnyChild = -1;
int exit_status_of(pid_t child);

// How the image's process has ended; none if that is not known, as of a child that was killed.
std::optional<Ending> ending_of(const replay::ImageTrace& trace);

class ReplayReader {
  public:
    // What all readers of the image share. It must live longer.
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

    // Starts the process, which is reader `number`. This one must have no other thread. Throws
    // Error.
    ReplayReader(const Source& source, const Point& point, std::uint32_t number);
    ~ReplayReader();
    ReplayReader(const ReplayReader&) = delete;
    ReplayReader& operator=(const ReplayReader&) = delete;

    // What it wants; none if it has ended, which it has explained.
    std::optional<trace::Spec> wanted() const;
    // Of values, if that has them. Behind wanted().
    const trace::ValueLists& wanted_values() const { return *values_; }
    // It gets that, which is in the segment.
    void agree(const trace::Spec& given) const;
    // It ends.
    void refuse(const std::string& why) const;
    // It ends without a word: what it wants does not go together with what the others want.
    void send_away() const;
    // All has been replayed but for `problem`.
    void finish(const std::string& problem) const;

    // Hangs up when the process ends.
    int channel() const { return channel_; }
    // Waits for its end.
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
    std::optional<trace::Spec> spec;  // none if it is not known in advance
    std::vector<ReplayedPoint*> points;
};
// Groups that one driver serves.
using ReplayPass = std::vector<ReplayGroup>;

// Puts a point that wants `spec` with others that go together with it.
void add(ReplayedPoint& point, const trace::Spec& spec, std::vector<ReplayPass>& passes);

// A group at work on an image.
struct Readership {
    // Starts its readers. The others must live longer. Throws Error.
    Readership(const replay::ImageTrace& trace, const Image& image, const ReplayGroup& group,
               Lifeline& lifeline);

    // What all of its readers get; none if none is left. Adds the values that they want to
    // `values`.
    std::optional<trace::Spec> agree(trace::ValueLists& values) const;

    const ReplayGroup& group;
    const recording::TraceContent content;
    Segment segment;
    const std::shared_ptr<trace::Readers> shared = shared_object<trace::Readers>("a replay");
    std::vector<std::unique_ptr<ReplayReader>> readers;
};

// Replays the image for all of them. Returns what was wrong; "" if nothing was.
std::string fill(const replay::ImageTrace& trace,
                 std::span<const std::unique_ptr<Readership>> groups);

// Replays a trace of simulation points (assay record --simpoints): each by itself, with profilers
// that begin anew, and adds up what each of them stands for.

// Writes the events file of the image. False if its profile is not what was asked for. Throws Error
// if nothing could be replayed, or if points do not tell what is asked for.
bool replay_points(const CoreSettings& settings, const replay::ImageTrace& trace,
                   const Image& image, const std::shared_ptr<const ProfileLog>& profiles);

}  // namespace assay::collector
