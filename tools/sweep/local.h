// Points, run on this machine.
#pragma once

#include "tools/sweep/folder.h"
#include "tools/sweep/plan.h"
#include "tools/sweep/point_run.h"
#include "tools/sweep/progress.h"

#include <chrono>
#include <csignal>
#include <cstddef>
#include <span>

namespace assay::sweep {

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
