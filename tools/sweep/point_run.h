// A process that runs points. A program has a process for each point. A trace has a process for
// many points, which replays the trace once for all of them.
#pragma once

#include "framework/support/descriptor.h"
#include "tools/sweep/folder.h"
#include "tools/sweep/plan.h"

#include <sys/types.h>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace assay::sweep {

// The output of another command.
struct CommandOutput {
    int status = 0;       // exit status, or 128 plus the signal that ended it
    std::string text;     // standard output
    std::string problem;  // standard error, on one line
};

// Runs a command, which is searched on PATH, to its end. Throws Error if it cannot be run.
CommandOutput output_of(const std::vector<std::string>& words);

// Called when a point has ended. `failure` is "" if the point is finished, otherwise the reason.
using PointEnd = std::function<void(std::size_t point, const std::string& failure)>;

class PointRun {
  public:
    // Starts the process. It ends when this process ends, for whatever reason. Throws Error.
    PointRun(const Plan& plan, const Folder& folder, std::span<const std::size_t> points);
    PointRun(const PointRun&) = delete;
    PointRun& operator=(const PointRun&) = delete;

    pid_t pid() const { return pid_; }
    // Sends a signal to the process, which passes it to the program. Sends SIGKILL to all its
    // processes.
    void send(int signal) const;
    // The process has ended with this status of waitpid(2). `accepted_status` is that of a
    // successful program.
    void finish(int status, int accepted_status, const PointEnd& ended) const;
    // The process was ended early: removes its unfinished points.
    void discard() const;

  private:
    struct Point {
        std::size_t number;
        std::string name;
        std::filesystem::path place;  // the folder where it works
        std::vector<std::string> command;
        std::unique_ptr<Descriptor> log;
    };

    [[noreturn]] void replay(const Plan& plan) const;
    std::string keep(const Point& point) const;

    const Folder& folder_;
    std::vector<Point> points_;
    Descriptor statuses_;  // of a replay's points, one byte each
    pid_t pid_ = -1;
};

}  // namespace assay::sweep
