#include "framework/collector/run/progress.h"

#include "framework/support/log.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

namespace assay::collector {
namespace {

using trace::TerminalUse;

void put(std::string_view text) {
    [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

bool change(trace::Terminal& terminal, TerminalUse from, TerminalUse to) {
    auto expected = static_cast<std::uint32_t>(from);
    const bool done = terminal.use.compare_exchange_strong(expected, static_cast<std::uint32_t>(to),
                                                           std::memory_order_acq_rel);
    trace::futex_wake(terminal.use);
    return done;
}

// What reads the output through a pipe may write to the terminal, unknown to the driver.
bool output_is_a_pipe() {
    struct stat status {};
    return fstat(STDOUT_FILENO, &status) == 0 &&
           (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

// Whether lines can be shown: no other job has it, and no program draws on it.
bool shows_lines() {
    termios settings{};
    if (tcgetattr(STDERR_FILENO, &settings) != 0) return false;
    if (!(settings.c_lflag & ICANON) || !(settings.c_lflag & ECHO)) return false;
    const pid_t foreground = tcgetpgrp(STDERR_FILENO);  // -1: nobody's, as in tests
    return foreground < 0 || foreground == getpgrp();
}

// A line that is broken into two cannot be erased.
bool fits(std::size_t columns) {
    winsize size{};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 ||
           columns < size.ws_col;
}

}  // namespace

std::string in_millions(std::uint64_t instructions, std::uint64_t all) {
    constexpr std::uint64_t kMillion = 1'000'000;
    return fmt::format("{}{} million instructions", with_thousands(instructions / kMillion),
                       all == 0 ? "" : fmt::format(" of {}", with_thousands(all / kMillion)));
}

void offer_terminal(const CoreSettings& settings, trace::Terminal& terminal) {
    struct stat status {};
    if (settings.progress != ShowProgress::kWhereHarmless || settings.quiet ||
        !isatty(STDERR_FILENO) || output_is_a_pipe() || fstat(STDERR_FILENO, &status) != 0)
        return;
    terminal.device = status.st_rdev;
    terminal.use = static_cast<std::uint32_t>(TerminalUse::kFree);
}

Progress::Progress(ShowProgress wanted, trace::Terminal& terminal,
                   std::function<std::string()> reached)
    : wanted_(wanted),
      on_terminal_(isatty(STDERR_FILENO) != 0),
      terminal_(terminal),
      reached_(std::move(reached)),
      next_(start_ + std::chrono::seconds(1)) {
    if (wanted_ != ShowProgress::kNever) log::call_before_line([this] { hide(); });
}

Progress::~Progress() {
    if (wanted_ != ShowProgress::kNever) log::call_before_line({});
    const bool there = shown_ ? on_terminal_ : trace::take_for_program(terminal_) && shows_lines();
    if (there) put(trace::kEraseLine);
}

// Until the next update.
void Progress::hide() {
    const bool there = wanted_ == ShowProgress::kAlways
                           ? shown_ && on_terminal_
                           : change(terminal_, TerminalUse::kShown, TerminalUse::kFree);
    if (there) put(trace::kEraseLine);
}

void Progress::show() {
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - start_).count();
    const std::string line = fmt::format("assay: {} s, {}", seconds, reached_());
    if (!on_terminal_)
        put(line + "\n");
    else if (fits(line.size()))
        put(std::string(trace::kEraseLine) + line);
}

void Progress::show_where_harmless() {
    if (!shows_lines()) return;
    if (!change(terminal_, TerminalUse::kFree, TerminalUse::kBeingWritten) &&
        !change(terminal_, TerminalUse::kShown, TerminalUse::kBeingWritten))
        return;
    show();
    // The program may not have waited any longer.
    if (!change(terminal_, TerminalUse::kBeingWritten, TerminalUse::kShown)) put(trace::kEraseLine);
}

void Progress::update() {
    if (wanted_ == ShowProgress::kNever) return;
    const Clock::time_point now = Clock::now();
    if (now < next_) return;
    if (wanted_ == ShowProgress::kWhereHarmless) {
        show_where_harmless();
    } else {
        shown_ = true;
        show();
    }
    // The counters of many threads take long to add up: no more than 2 % of the time.
    const Clock::duration took = Clock::now() - now;
    const std::chrono::seconds usual(on_terminal_ ? 1 : 10);
    next_ = now + std::max<Clock::duration>(usual, 50 * took);
}

}  // namespace assay::collector
