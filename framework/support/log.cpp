#include "framework/support/log.h"

#include "framework/support/text.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <cstdio>
#include <functional>
#include <new>
#include <string_view>

namespace assay::log {

namespace {

bool is_quiet = false;
std::function<void(bool problem, std::string_view text)> receiver;

std::function<void()> before_line;

// Hashes of the lines written so far, in memory that processes share. 0 is a free entry.
using Said = std::array<std::atomic<std::size_t>, 4096>;
Said* said = nullptr;

// True if the line has been written before. When the table is full, every line counts as new.
bool said_before(std::string_view text) {
    if (said == nullptr) return false;
    const std::size_t hash = std::hash<std::string_view>()(text) | 1;
    for (std::size_t i = 0; i < said->size(); ++i) {
        std::size_t there = 0;
        if ((*said)[(hash + i) % said->size()].compare_exchange_strong(there, hash)) return false;
        if (there == hash) return true;
    }
    return false;
}

// One write for a whole line, so that lines of different processes do not mix.
void write_line(std::string_view text) {
    const std::string line = fmt::format("assay: {}\n", printable(text));
    std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

void set_quiet(bool quiet) {
    is_quiet = quiet;
}

bool quiet() {
    return is_quiet;
}

void say_once_among_processes() {
    void* memory =
        mmap(nullptr, sizeof(Said), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) said = new (memory) Said{};
}

void send_to(std::function<void(bool problem, std::string_view text)> wanted) {
    receiver = std::move(wanted);
}

void call_before_line(std::function<void()> wanted) {
    before_line = std::move(wanted);
}

void remark(std::string_view text) {
    if (receiver) return receiver(false, text);
    if (is_quiet || said_before(text)) return;
    if (before_line) before_line();
    write_line(text);
}

void problem(std::string_view text) {
    if (receiver) return receiver(true, text);
    if (said_before(text)) return;
    if (before_line) before_line();
    write_line(text);
}

}  // namespace assay::log

namespace assay {

namespace {

constexpr std::string_view kEraseLine = "\r\033[K";  // ECMA-48: to the start of the line, erase the
                                                     // line

void put_on_terminal(std::string_view text) {
    [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

bool is_in_foreground() {
    const pid_t foreground = tcgetpgrp(STDERR_FILENO);  // -1 if the terminal belongs to no job, as
                                                        // in tests
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
    // A text that wraps onto a second line could not be erased.
    winsize size{};
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 &&
        text.size() >= size.ws_col)
        text.resize(size.ws_col - 1u);
    put_on_terminal(std::string(kEraseLine) + text);
    shown_ = true;
}

}  // namespace assay
