// What is said at the end of a run: the profilers' summaries of the one program that was run, or an
// overview of several; and the index that names their profiles.
//
// Also the line that says how far it is.
#pragma once

#include "framework/collector/run/output_files.h"
#include "framework/collector/run/profile_log.h"
#include "framework/collector/run/settings.h"
#include "framework/support/log.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace assay::collector {

// The processes as a tree, with what they count of the first event, and the totals by program. In
// lines that begin with the process id of the first.
std::string overview(std::span<const ProfileLog::Entry> entries, bool all);

// Prints to stderr, and writes the index if there are several profiles. `image`: the first of the
// run. False if the index cannot be written, which has been said.
bool tell_of_profiles(std::span<const ProfileLog::Entry> entries, const CoreSettings& settings,
                      const Image& image);

// Says that the run is going on: in a line on the terminal, or in lines of a file.

// "N million instructions"; `all`: how many there will be, or 0 if that is not known.
std::string in_millions(std::uint64_t instructions, std::uint64_t all);

// `replays`: no program runs, to which the terminal would belong.
bool shows_progress(const CoreSettings& settings, bool replays);

class Progress {
  public:
    // `reached` says how far it is, about once per second, less often if that takes long.
    Progress(bool wanted, std::function<std::string()> reached);

    void update();

  private:
    using Clock = std::chrono::steady_clock;

    const bool wanted_, on_terminal_;
    StatusLine line_;
    const std::function<std::string()> reached_;
    const Clock::time_point start_ = Clock::now();
    Clock::time_point next_;
};

}  // namespace assay::collector
