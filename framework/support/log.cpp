#include "framework/support/log.h"

#include "framework/support/text.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <array>
#include <atomic>
#include <cstdio>
#include <functional>
#include <new>

namespace assay::log {
namespace {

bool is_quiet = false;
std::function<void(bool problem, std::string_view text)> receiver;

std::function<void()> before_line;

// Hashes of the lines that have been said, in memory that processes share; 0 is a free place.
using Said = std::array<std::atomic<std::size_t>, 4096>;
Said* said = nullptr;

// True if the line has been said before. When the table is full, all is said.
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

// One write for a whole line, so that lines of several processes do not mix.
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
