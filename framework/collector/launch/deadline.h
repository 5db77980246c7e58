// Ends a run that takes too long (--timeout). The program gets SIGTERM first, and SIGKILL if it has
// not ended some seconds later. The next step gives up calls of profilers that do not return. The
// last step ends assay at once.
//
//   timeout          + grace           + 2 grace              + 3 grace
//   SIGTERM          SIGKILL           calls are looked at    give up the same call ...
#pragma once

#include "framework/collector/profilers/crash_guard.h"

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace assay::collector {

// Threads that are started in the scope of this object get no signals. Signals are for the thread
// that collects.

class SignalsBlocked {
  public:
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

  private:
    sigset_t before_{};
};

class Deadline {
  public:
    using Clock = std::chrono::steady_clock;
    static constexpr int kExitStatus = 124;  // the same as timeout(1)
    static constexpr std::chrono::seconds kGrace{5};

    // Watches the run from now on. Another thread calls `send`, which sends the program a signal if
    // it is still running. `name` is the name of the limit, for messages.
    Deadline(Clock::time_point end, const std::string& name, CrashGuard& guard,
             std::function<void(int signal)> send);
    // Called when the run has ended.
    ~Deadline();
    Deadline(const Deadline&) = delete;
    Deadline& operator=(const Deadline&) = delete;

    // Why the program was ended; "" if it was not.
    std::string reason() const;

  private:
    void watch();
    // Returns false if the run ends before `time`.
    bool sleep_until(Clock::time_point time);

    const Clock::time_point end_;
    const std::string name_;
    CrashGuard& guard_;
    const std::function<void(int signal)> send_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool run_ended_ = false;
    std::string reason_;
    std::thread watcher_;  // last, because it uses the others
};

}  // namespace assay::collector
