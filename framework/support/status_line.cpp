#include "framework/support/status_line.h"

#include "framework/support/log.h"

#include <sys/ioctl.h>
#include <unistd.h>
#include <string_view>

namespace assay {
namespace {

constexpr std::string_view kEraseLine = "\r\033[K";  // ECMA-48: to the line's start, erase in line

void put_on_terminal(std::string_view text) {
    [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

bool is_in_foreground() {
    const pid_t foreground = tcgetpgrp(STDERR_FILENO);  // -1: nobody's, as in tests
    return foreground < 0 || foreground == getpgrp();
}

}  // namespace

StatusLine::StatusLine(bool wanted) : wanted_(wanted) {
    if (wanted_) log::call_before_line([this] { erase(); });
}

StatusLine::~StatusLine() {
    erase();
    if (wanted_) log::call_before_line({});
}

void StatusLine::erase() {
    if (shown_) put_on_terminal(kEraseLine);
    shown_ = false;
}

void StatusLine::show(std::string text) {
    if (!wanted_ || !is_in_foreground()) return;
    // A line that is broken into two cannot be erased.
    winsize size{};
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 &&
        text.size() >= size.ws_col)
        text.resize(size.ws_col - 1u);
    put_on_terminal(std::string(kEraseLine) + text);
    shown_ = true;
}

}  // namespace assay
