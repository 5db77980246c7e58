// Points, run on this machine.
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

// A line on the terminal that says how far a sweep has come.

class Progress {
  public:
    // `finished`: of the points, before this sweep. Nothing is shown with --quiet, or if standard
    // error is no terminal.
    Progress(std::size_t points, std::size_t finished);

    // Of points that have ended, finished or failed; and of those still to be run, here. `waiting`
    // is said as it is, "" if there is nothing to say.
    void show(std::size_t ended, std::size_t left, const std::string& waiting = "");

  private:
    using Clock = std::chrono::steady_clock;

    const std::size_t points_, finished_;
    StatusLine line_;
    const Clock::time_point start_ = Clock::now();
};

// What is left of a time, for people: "about 3 min", "less than a minute".
std::string time_left(std::chrono::duration<double> time);

// Runs the points, `jobs` at a time (0: as many as are good), and returns 0; or the signal that
// asked this process to end, when those that were running have been ended, too. The calling process
// must have no other children. Throws Error.
int run_points(const Plan& plan, const Folder& folder, std::span<const std::size_t> points,
               unsigned jobs, int accepted_status, Progress& progress, const PointEnd& ended);

// Signals that ask a process to end, unless it ignores them, are kept until wait() returns them.
class EndSignals {
  public:
    EndSignals();
    ~EndSignals();
    EndSignals(const EndSignals&) = delete;
    EndSignals& operator=(const EndSignals&) = delete;

    // Waits for one of them, or for a child's end if `children`, at most so long. 0: for neither.
    int wait(std::chrono::milliseconds at_most, bool children) const;

  private:
    sigset_t set_, before_;
};

}  // namespace assay::sweep
