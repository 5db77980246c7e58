#include "framework/collector/launch/deadline.h"

#include "framework/support/log.h"

#include <fmt/core.h>
#include <csignal>
#include <cstdlib>
#include <utility>

namespace assay::collector {

Deadline::Deadline(Clock::time_point end, const std::string& name, CrashGuard& guard,
                   std::function<void(int signal)> send)
    : end_(end), name_(name), guard_(guard), send_(std::move(send)) {
    const SignalsBlocked blocked;
    watcher_ = std::thread([this] { watch(); });
}

Deadline::~Deadline() {
    {
        const std::lock_guard lock(mutex_);
        run_ended_ = true;
    }
    changed_.notify_all();
    watcher_.join();
}

std::string Deadline::reason() const {
    const std::lock_guard lock(mutex_);
    return reason_;
}

bool Deadline::sleep_until(Clock::time_point time) {
    std::unique_lock lock(mutex_);
    return !changed_.wait_until(lock, time, [this] { return run_ended_; });
}

void Deadline::watch() {
    if (!sleep_until(end_)) return;
    {
        const std::lock_guard lock(mutex_);
        reason_ = fmt::format("the program was ended after {}", name_);
        log::problem(reason_);
    }
    send_(SIGTERM);
    if (!sleep_until(end_ + kGrace)) return;
    send_(SIGKILL);
    std::uint64_t call = CallState::kNoCall;
    bool given_up = false;
    for (int times = 2; sleep_until(end_ + times * kGrace); ++times) {
        const std::uint64_t before = std::exchange(call, guard_.current_call());
        if (call == CallState::kNoCall || call != before) continue;
        if (given_up) {
            log::problem(
                fmt::format("a profiler does not end after {}: the profile is lost", name_));
            std::_Exit(kExitStatus);
        }
        guard_.give_up_call();
        given_up = true;
    }
}

}  // namespace assay::collector
