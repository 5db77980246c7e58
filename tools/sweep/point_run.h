// A run of points, as a process of its own: of a program there is one for each point, of a trace
// one for many, which replays it once for all of them.
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

// What another command prints.

struct CommandOutput {
    int status = 0;       // its exit status; 128 and the signal's number if that has ended it
    std::string text;     // of standard output
    std::string problem;  // of standard error, on one line
};

// Runs a command, which is looked for on PATH, to its end. Throws Error if it cannot be run.
CommandOutput output_of(const std::vector<std::string>& words);

// A point has ended; with "" it is finished, else this is why it has failed.
using PointEnd = std::function<void(std::size_t point, const std::string& failure)>;

class PointRun {
  public:
    // Starts it. It ends with this process, however that ends. Throws Error.
    PointRun(const Plan& plan, const Folder& folder, std::span<const std::size_t> points);
    PointRun(const PointRun&) = delete;
    PointRun& operator=(const PointRun&) = delete;

    pid_t pid() const { return pid_; }
    // To the run, which passes it on to the program; or with SIGKILL to all its processes.
    void send(int signal) const;
    // It has ended with this status of waitpid(2). `accepted_status`: of a program.
    void finish(int status, int accepted_status, const PointEnd& ended) const;
    // It has been ended before its time.
    void discard() const;

  private:
    struct Point {
        std::size_t number;
        std::string name;
        std::filesystem::path place;  // where it works
        std::vector<std::string> command;
        std::unique_ptr<Descriptor> log;
    };

    [[noreturn]] void replay(const std::string& trace) const;
    std::string keep(const Point& point) const;

    const Folder& folder_;
    std::vector<Point> points_;
    Descriptor statuses_;  // of a replay's points, a byte each
    pid_t pid_ = -1;
};

}  // namespace assay::sweep
