#include "framework/collector/run/progress.h"

#include "framework/support/text.h"

#include <fmt/core.h>
#include <unistd.h>
#include <algorithm>
#include <cstdio>

namespace assay::collector {
namespace {

constexpr const char* kEraseLine = "\r\033[K";  // ECMA-48: to the line's start, erase in line

}  // namespace

Progress::Progress(bool wanted, std::function<std::uint64_t()> instructions)
    : wanted_(wanted && isatty(STDERR_FILENO)), instructions_(std::move(instructions)) {}

Progress::~Progress() {
    if (shown_) std::fputs(kEraseLine, stderr);
}

void Progress::update() {
    if (!wanted_) return;
    const Clock::time_point now = Clock::now();
    if (now < next_) return;
    shown_ = true;
    constexpr std::uint64_t kMillion = 1'000'000;
    fmt::print(stderr, "{}assay: {} s, {} million instructions", kEraseLine,
               std::chrono::duration_cast<std::chrono::seconds>(now - start_).count(),
               with_thousands(instructions_() / kMillion));
    // The counters of many threads take long to add up: no more than 2 % of the time.
    const Clock::duration took = Clock::now() - now;
    next_ = now + std::max<Clock::duration>(std::chrono::seconds(1), 50 * took);
}

}  // namespace assay::collector
