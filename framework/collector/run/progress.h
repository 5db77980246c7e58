// Says that the run is going on: in a line on the terminal, or in lines of a file.
#pragma once

#include "framework/collector/run/settings.h"
#include "framework/support/log.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace assay::collector {

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
