#include "framework/collector/run/progress.h"

#include "framework/support/text.h"

#include <fmt/core.h>
#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <utility>

namespace assay::collector {

std::string in_millions(std::uint64_t instructions, std::uint64_t all) {
    constexpr std::uint64_t kMillion = 1'000'000;
    return fmt::format("{}{} million instructions", with_thousands(instructions / kMillion),
                       all == 0 ? "" : fmt::format(" of {}", with_thousands(all / kMillion)));
}

bool shows_progress(const CoreSettings& settings, bool replays) {
    if (settings.progress != ShowProgress::kWhereHarmless)
        return settings.progress == ShowProgress::kAlways;
    return replays && !settings.quiet && isatty(STDERR_FILENO);
}

Progress::Progress(bool wanted, std::function<std::string()> reached)
    : wanted_(wanted),
      on_terminal_(isatty(STDERR_FILENO) != 0),
      line_(wanted && on_terminal_),
      reached_(std::move(reached)),
      next_(start_ + std::chrono::seconds(1)) {}

void Progress::update() {
    const Clock::time_point now = Clock::now();
    if (!wanted_ || now < next_) return;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - start_).count();
    const std::string text = fmt::format("assay: {} s, {}", seconds, reached_());
    if (on_terminal_)
        line_.show(text);
    else
        fmt::print(stderr, "{}\n", text);
    // The counters of many threads take long to add up: no more than 2 % of the time.
    const Clock::duration took = Clock::now() - now;
    const std::chrono::seconds usual(on_terminal_ ? 1 : 10);
    next_ = now + std::max<Clock::duration>(usual, 50 * took);
}

}  // namespace assay::collector
