// A line on the terminal that says that the run is going on; nothing if stderr is no terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace assay::collector {

class Progress {
  public:
    // `instructions` is called about once per second, less often if it takes long.
    Progress(bool wanted, std::function<std::uint64_t()> instructions);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void update();

  private:
    using Clock = std::chrono::steady_clock;

    const bool wanted_;
    const std::function<std::uint64_t()> instructions_;
    const Clock::time_point start_ = Clock::now();
    Clock::time_point next_ = start_ + std::chrono::seconds(1);
    bool shown_ = false;
};

}  // namespace assay::collector
