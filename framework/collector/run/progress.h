// A line on the terminal that says that the run is going on.
#pragma once

#include "framework/collector/run/settings.h"
#include "framework/trace/terminal_use.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace assay::collector {

// "N million instructions"; `all`: how many there will be, or 0 if that is not known.
std::string in_millions(std::uint64_t instructions, std::uint64_t all);

// Before the driver starts: whether there is a terminal for the line, which the program has not
// used yet.
void offer_terminal(const CoreSettings& settings, trace::Terminal& terminal);

class Progress {
  public:
    // `reached` says how far it is, about once per second, less often if that takes long. The
    // terminal is the one that was offered.
    Progress(ShowProgress wanted, trace::Terminal& terminal, std::function<std::string()> reached);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void update();

  private:
    using Clock = std::chrono::steady_clock;

    void hide();
    void show();
    void show_where_harmless();

    const ShowProgress wanted_;
    const bool on_terminal_;
    trace::Terminal& terminal_;
    const std::function<std::string()> reached_;
    const Clock::time_point start_ = Clock::now();
    Clock::time_point next_;
    bool shown_ = false;  // with kAlways
};

}  // namespace assay::collector
