#include "framework/collector/launch/lifeline.h"

#include "framework/support/error.h"
#include "framework/support/text.h"
#include "framework/trace/futex.h"
#include "framework/trace/launch.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <utility>

namespace assay::collector {
namespace {

// For the signal handler.
std::atomic<std::atomic<std::uint32_t>*> rung{nullptr};

void on_end(int) {
    const int error = errno;
    if (auto* doorbell = rung.load()) {
        doorbell->fetch_add(1);
        trace::futex_wake(*doorbell);
    }
    errno = error;
}

}  // namespace

Lifeline::Lifeline() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        throw Error(fmt::format("cannot create a pipe: {}", system_reason(errno)));
    reading_end_ = ends[0];
    writing_end_ = trace::move_high(ends[1]);
}

Lifeline::~Lifeline() {
    rung = nullptr;
    close(reading_end_);
    close_writing_end();
}

void Lifeline::close_writing_end() {
    if (writing_end_ >= 0) close(std::exchange(writing_end_, -1));
}

void Lifeline::ring_at_end(std::atomic<std::uint32_t>& doorbell) const {
    rung = &doorbell;
    struct sigaction action {};
    action.sa_handler = on_end;
    action.sa_flags = SA_RESTART;
    sigaction(SIGIO, &action, nullptr);
    fcntl(reading_end_, F_SETOWN, getpid());
    fcntl(reading_end_, F_SETFL, O_ASYNC);
}

bool Lifeline::ended() const {
    pollfd end{reading_end_, 0, 0};
    return poll(&end, 1, 0) > 0 && end.revents & (POLLHUP | POLLNVAL);
}

}  // namespace assay::collector
