// A line on the terminal that says how far a sweep has come.
#pragma once

#include "framework/support/status_line.h"

#include <chrono>
#include <cstddef>
#include <string>

namespace assay::sweep {

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

}  // namespace assay::sweep
