#include "tools/sweep/progress.h"

#include "framework/support/log.h"

#include <fmt/core.h>
#include <unistd.h>
#include <cmath>

namespace assay::sweep {

Progress::Progress(std::size_t points, std::size_t finished)
    : points_(points), finished_(finished), line_(isatty(STDERR_FILENO) != 0 && !log::quiet()) {}

void Progress::show(std::size_t ended, std::size_t left, const std::string& waiting) {
    std::string line = fmt::format("assay: {} of {} points", finished_ + ended, points_);
    if (!waiting.empty()) line += ", " + waiting;
    // As long as those before, as many at a time.
    if (ended > 0 && left > 0)
        line += ", " +
                time_left((Clock::now() - start_) *
                          (static_cast<double>(left) / static_cast<double>(ended))) +
                " left";
    line_.show(line);
}

std::string time_left(std::chrono::duration<double> time) {
    constexpr double kMinute = 60, kHour = 3600, kDay = 86400;
    const double seconds = time.count();
    if (seconds < kMinute) return "less than a minute";
    if (seconds < 2 * kHour) return fmt::format("about {:.0f} min", std::ceil(seconds / kMinute));
    if (seconds < 2 * kDay) return fmt::format("about {:.0f} h", seconds / kHour);
    return fmt::format("about {:.0f} days", seconds / kDay);
}

}  // namespace assay::sweep
