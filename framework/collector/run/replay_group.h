// The points of a replay in groups: those that one driver serves together, and of these those that
// read the same segment.
#pragma once

#include "framework/collector/launch/lifeline.h"
#include "framework/collector/run/output_files.h"
#include "framework/collector/run/profile_log.h"
#include "framework/collector/run/replay_reader.h"
#include "framework/collector/run/settings.h"
#include "framework/collector/trace/segment.h"
#include "framework/driver/replay/image_trace.h"
#include "framework/trace/readers.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace assay::collector {

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

// trace::Readers, shared with the processes that are forked from now on.
class SharedReaders {
  public:
    // Throws Error.
    SharedReaders();
    ~SharedReaders();
    SharedReaders(const SharedReaders&) = delete;
    SharedReaders& operator=(const SharedReaders&) = delete;

    trace::Readers& operator*() const { return *static_cast<trace::Readers*>(memory_); }
    trace::Readers* operator->() const { return &**this; }

  private:
    void* memory_;
};

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
    SharedReaders shared;
    std::vector<std::unique_ptr<ReplayReader>> readers;
};

// Replays the image for all of them. Returns what was wrong; "" if nothing was.
std::string fill(const replay::ImageTrace& trace,
                 std::span<const std::unique_ptr<Readership>> groups);

}  // namespace assay::collector
