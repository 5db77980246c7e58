// Output at the end of a run: the summaries of a single program, or an overview of several, and the
// index that names their profiles.
//
// This file also has the line that shows the progress.
#pragma once

#include "framework/collector/run/output_files.h"
#include "framework/collector/run/profile_log.h"
#include "framework/collector/run/settings.h"
#include "framework/support/log.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace assay::collector {

// Returns the processes as a tree with their counts of the first event, and the totals by program.
// Each line begins with the process id of the first process.
std::string overview(std::span<const ProfileLog::Entry> entries, bool all);

// Prints to stderr, and writes the index if there are several profiles. `image` is the first image
// of the run. Returns the profile or the index to read, or "" if there is none. No value, after a
// message, if the index cannot be written.
std::optional<std::string> tell_of_profiles(std::span<const ProfileLog::Entry> entries,
                                            const CoreSettings& settings, const Image& image);

// Shows the progress of a run: in a line on the terminal, or in lines of a file.

// Returns "N million instructions". `all` is the final number, or 0 if it is not known.
std::string in_millions(std::uint64_t instructions, std::uint64_t all);

// `replays`: true if no program runs that may need the terminal.
bool shows_progress(const CoreSettings& settings, bool replays);

class Progress {
  public:
    // Calls `reached` for the text about once per second, and less often if the call takes long.
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
