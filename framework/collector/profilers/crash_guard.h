// Survives crashes of profilers.
//
// A profiler's function runs between sigsetjmp and siglongjmp: a fatal signal on this thread
// jumps back out of it. That leaves whatever the function was doing half done (locks held, heap
// perhaps inconsistent), which is acceptable here because
//   - the profiler that crashed is never called again, nor unloaded;
//   - the frames left behind are the profiler's own: assay calls nothing through them that owns
//     a resource;
//   - profilers that are not assay's own have a process to themselves (hosted/), which their crash
//     costs, and nothing else;
//   - the alternative is to lose the columns of all other profilers, and with them a run that
//     may have taken hours. If something else was damaged and assay crashes later, nothing is worse
//     than it would have been.
// A call that does not return is left in the same way: by SIGVTALRM when it has taken longer than
// one call may, by SIGABRT at the end of a run that has a time limit. C++ exceptions that leave a
// profiler are caught too, and so are exit(3) and quick_exit(3); nothing can catch _exit(2). A
// crash on another thread of the profiler cannot be attributed and ends the collector as it always
// would, and exit(3) on one with a line that says so.
#pragma once

#include <pthread.h>
#include <sys/types.h>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace assay::collector {

// For messages: "60 s".
std::string seconds(std::chrono::milliseconds time);
// What a call did that took too long: "did not return within 60 s". kMoreTime says what to do.
inline constexpr std::string_view kTooLong = "did not return within ";
inline constexpr std::string_view kMoreTime = "; --profiler-timeout=SECONDS gives it more time";

// What a guard is doing; other threads look at it, and other processes if it lies in memory that
// they share.
struct CallState {
    static constexpr std::uint64_t kNoCall = 0;

    // The number of the call that is being made, or kNoCall: also while assay does something in it
    // that must come to its end.
    std::uint64_t current_call() const { return in_call && !suspended ? calls.load() : kNoCall; }
    // The name of the function that is called, or was last.
    std::string function_name() const;
    // Why the process is about to end; "" if it has not said so.
    std::string reason_text() const;
    void give_reason(const std::string& why);
    // The paths of the user's libraries that the profiler has loaded.
    std::vector<std::string> library_paths() const;
    void add_library(const std::string& path);

    std::atomic<std::uint64_t> calls{0};
    std::atomic<bool> in_call{false}, suspended{false};
    std::array<char, 32> function{};
    std::array<char, 1024> reason{};
    std::array<char, 65536> libraries{};  // each path ends with a zero
};

class CrashGuard {
  public:
    // Installs the signal handlers, and an alternate stack for the calling thread: the only one
    // that may call run(). `state`, which must live longer: of a process that another one watches.
    explicit CrashGuard(CallState* state = nullptr);
    ~CrashGuard();
    CrashGuard(const CrashGuard&) = delete;
    CrashGuard& operator=(const CrashGuard&) = delete;

    // How long a call may take; 0: as long as it likes. Time during which assay is stopped does not
    // count, or at least not much of it.
    void set_limit(std::chrono::milliseconds limit) { limit_ = limit; }
    std::chrono::milliseconds limit() const { return limit_; }

    // Calls `function()`. Returns "", or how it crashed. `name`: for those who look.
    template <typename Function>
    std::string run(Function&& function, std::string_view name = {}) {
        using Callable = std::remove_reference_t<Function>;
        set_name(name);
        return call([](void* callable) { (*static_cast<Callable*>(callable))(); },
                    const_cast<void*>(static_cast<const void*>(std::addressof(function))));
    }

    // From other threads.
    std::uint64_t current_call() const { return state_.current_call(); }
    // Jumps out of the call that is being made, as if it had crashed.
    void give_up_call();

  private:
    void set_name(std::string_view name);
    std::string call(void (*function)(void*), void* argument);
    std::string reason(int how) const;
    void start_timer();
    void stop_timer();

    struct Saved;
    std::unique_ptr<Saved> saved_;
    CallState own_state_;
    CallState& state_;
    const pthread_t thread_;  // the one that may call run()
    std::chrono::milliseconds limit_{0};
    timer_t timer_{};
    pid_t timer_owner_ = 0;  // the process that has made it: a child does not inherit it
};

// While it lives, a profiler has called back, and assay does something that must come to its end:
// the call is not left, and time does not count.
class CallSuspended {
  public:
    CallSuspended();
    ~CallSuspended();
    CallSuspended(const CallSuspended&) = delete;
    CallSuspended& operator=(const CallSuspended&) = delete;

  private:
    void* target_;
    int ticks_;
    CallState* state_;
};

}  // namespace assay::collector
