#include "framework/support/log.h"

#include "framework/support/text.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
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

// Made at the first line: most runs are silent until their end. Never destroyed, so that handlers
// of exit(3) can say something too, whenever it was made.
spdlog::logger& logger() {
    static spdlog::logger* const instance = [] {
        auto made = std::make_unique<spdlog::logger>(
            "assay", std::make_shared<spdlog::sinks::stderr_sink_mt>());
        made->set_pattern("assay: %v");
        return made.release();
    }();
    return *instance;
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
    logger().info("{}", printable(text));
}

void problem(std::string_view text) {
    if (receiver) return receiver(true, text);
    if (said_before(text)) return;
    if (before_line) before_line();
    logger().error("{}", printable(text));
}

}  // namespace assay::log
