#include "tools/sweep/progress.h"

#include "framework/support/log.h"
#include "framework/trace/terminal_use.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <cmath>

namespace assay::sweep {
namespace {

void put(std::string_view text) {
    [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

// A line that is broken into two cannot be erased.
std::string cut_to_terminal(std::string line) {
    winsize size{};
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 &&
        line.size() >= size.ws_col)
        line.resize(size.ws_col - 1u);
    return line;
}

}  // namespace

Progress::Progress(std::size_t points, std::size_t finished)
    : points_(points), finished_(finished), wanted_(isatty(STDERR_FILENO) != 0 && !log::quiet()) {
    if (wanted_) log::call_before_line([this] { erase(); });
}

Progress::~Progress() {
    erase();
    if (wanted_) log::call_before_line({});
}

void Progress::erase() {
    if (shown_) put(trace::kEraseLine);
    shown_ = false;
}

void Progress::show(std::size_t ended, std::size_t left, const std::string& waiting) {
    if (!wanted_) return;
    std::string line = fmt::format("assay: {} of {} points", finished_ + ended, points_);
    if (!waiting.empty()) line += ", " + waiting;
    // As long as those before, as many at a time.
    if (ended > 0 && left > 0)
        line += ", " +
                time_left((Clock::now() - start_) *
                          (static_cast<double>(left) / static_cast<double>(ended))) +
                " left";
    put(std::string(trace::kEraseLine) + cut_to_terminal(line));
    shown_ = true;
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
