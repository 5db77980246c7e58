// Runs points on this machine.
#pragma once

#include "framework/support/log.h"
#include "tools/sweep/folder.h"
#include "tools/sweep/plan.h"
#include "tools/sweep/point_run.h"

#include <chrono>
#include <csignal>
#include <cstddef>
#include <span>
#include <string>

namespace assay::sweep {

// The progress of a sweep as a line on the terminal.
class Progress {
  public:
    // `finished` is the number of points that were finished before this call. Shows nothing with
    // --quiet or if standard error is no terminal.
    Progress(std::size_t points, std::size_t finished);

    // `ended` is the number of points that have finished or failed, `left` the number of points
    // still to run here. `waiting` is appended unless it is "".
    void show(std::size_t ended, std::size_t left, const std::string& waiting = "");

  private:
    using Clock = std::chrono::steady_clock;

    const std::size_t points_, finished_;
    StatusLine line_;
    const Clock::time_point start_ = Clock::now();
};

// A remaining time for people: "about 3 min", "less than a minute".
std::string time_left(std::chrono::duration<double> time);

// Runs the points, at most `jobs` at a time (0: a suitable number). Returns 0, or the signal that
// asked this process to end, after ending all running points. The calling process must have no
// other children. Throws Error.
int run_points(const Plan& plan, const Folder& folder, std::span<const std::size_t> points,
               unsigned jobs, int accepted_status, Progress& progress, const PointEnd& ended);

// Collects signals that ask the process to end, except ignored ones, until wait() returns them.
class EndSignals {
  public:
    EndSignals();
    ~EndSignals();
    EndSignals(const EndSignals&) = delete;
    EndSignals& operator=(const EndSignals&) = delete;

    // Waits for one of them, or for the end of a child if `children`, at most this long. Returns 0
    // without a signal.
    int wait(std::chrono::milliseconds at_most, bool children) const;

  private:
    sigset_t set_, before_;
};

}  // namespace assay::sweep
