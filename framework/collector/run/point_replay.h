// Replays a trace of simulation points (assay record --simpoints): each by itself, with profilers
// that begin anew, and adds up what each of them stands for.
#pragma once

#include "framework/collector/run/collection.h"
#include "framework/collector/run/output_files.h"
#include "framework/collector/run/session.h"
#include "framework/driver/replay/image_trace.h"
#include "framework/support/descriptor.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay::collector {

// Has the profilers told that they see only a part, and refuses what cannot be estimated from it.
// Throws Error.
void set_points(CoreSettings& settings, const replay::ImageTrace& trace);

class PointReplay {
  public:
    // All must live longer. `settings`: those of the session, which change from point to point.
    // Throws Error if there is nothing that could be replayed, or a profiler's options cannot be
    // followed.
    PointReplay(Session& session, CoreSettings& settings, const replay::ImageTrace& trace,
                Image image);

    // Writes the events file. `ending`: of the program, where it is known. False if its profile is
    // not what was asked for.
    bool execute(const std::optional<Ending>& ending);

  private:
    struct Point {
        std::uint32_t number;  // in the trace, from 0
        std::uint64_t stands_for;
    };
    // What a process leaves of a point: a text with its length before it, and numbers.
    struct Counted {
        std::string problem;  // "" if there is none
        std::vector<std::uint64_t> counts;
    };

    void choose();
    void check_options() const;
    Counted replay_in_child(const Point& point);
    Counted replay_alone(const Point& point);
    bool replay_last(const std::vector<Counted>& others, const std::optional<Ending>& ending);
    // Returns what has gone wrong; "" if nothing has.
    std::string collect(const Point& point, const Image& image,
                        const std::function<void(Collection&, const std::string&)>& finish);
    std::string description() const;

    Session& session_;
    CoreSettings& settings_;
    const replay::ImageTrace& trace_;
    const Image image_;
    std::uint64_t instructions_ = 0;  // of the program
    std::vector<Point> points_;       // that are recorded as a whole
};

}  // namespace assay::collector
