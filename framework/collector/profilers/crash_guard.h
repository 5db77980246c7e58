// Survives crashes of profilers.
//
// A profiler's function runs between sigsetjmp and siglongjmp: a fatal signal on this thread jumps
// out of it. The function's work stays half done: it may hold locks, and the heap may be
// inconsistent. This is acceptable because
//   - assay never calls or unloads the crashed profiler again;
//   - the abandoned frames belong to the profiler: assay calls nothing through them that owns a
//     resource;
//   - profilers that do not belong to assay have their own process (hosted/), and a crash costs
//     only this process;
//   - the alternative is to lose the columns of all other profilers, and a run that may have taken
//     hours. If the crash damaged something else and assay crashes later, the loss is the same.
//
// A call that does not return is left in the same way: by SIGVTALRM when it exceeds its time limit,
// by SIGABRT at the end of a run that has a time limit. The guard also catches C++ exceptions,
// exit(3) and quick_exit(3). Nothing can catch _exit(2). A crash on another thread of the profiler
// cannot be attributed to it and ends the collector. exit(3) on another thread ends the collector
// with a line that says so.
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
// The text for a call that took too long: "did not return within 60 s". kMoreTime gives the remedy.
inline constexpr std::string_view kTooLong = "did not return within ";
inline constexpr std::string_view kMoreTime = "; --profiler-timeout=SECONDS gives it more time";

// How long a thread has been ready to run and waited for a processor; 0 if unknown. `schedstat`:
// the file of the thread in /proc. May be called by a signal handler.
std::chrono::nanoseconds queued_time(const char* schedstat);

// The state of a guard. Other threads read it, and also other processes if it is in shared memory.
struct CallState {
    static constexpr std::uint64_t kNoCall = 0;

    // The number of the current call, or kNoCall. Also kNoCall while assay does work inside the
    // call that must be completed.
    std::uint64_t current_call() const { return in_call && !suspended ? calls.load() : kNoCall; }
    // The name of the current or last called function.
    std::string function_name() const;
    // Why the process is about to end; "" if it has given no reason.
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
    // Installs the signal handlers, and an alternate stack for the calling thread. Only this thread
    // may call run(). `state`: given in a process that another one watches; must outlive the guard.
    explicit CrashGuard(CallState* state = nullptr);
    ~CrashGuard();
    CrashGuard(const CrashGuard&) = delete;
    CrashGuard& operator=(const CrashGuard&) = delete;

    // The longest time of a call; 0: no limit. Time in which assay is stopped counts at most a
    // small part. Time in which the thread waits for a processor does not count.
    void set_limit(std::chrono::milliseconds limit) { limit_ = limit; }
    std::chrono::milliseconds limit() const { return limit_; }

    // Calls `function()`. Returns "", or how it crashed. `name`: for CallState::function_name().
    template <typename Function>
    std::string run(Function&& function, std::string_view name = {}) {
        using Callable = std::remove_reference_t<Function>;
        set_name(name);
        return call([](void* callable) { (*static_cast<Callable*>(callable))(); },
                    const_cast<void*>(static_cast<const void*>(std::addressof(function))));
    }

    // Call these from other threads.
    std::uint64_t current_call() const { return state_.current_call(); }
    // Jumps out of the current call, as if it had crashed.
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
    const pthread_t thread_;  // the thread that may call run()
    std::chrono::milliseconds limit_{0};
    timer_t timer_{};
    pid_t timer_owner_ = 0;  // the process that created it: a child does not inherit it
};

// Lives while a profiler has called back and assay does work that must be completed. Meanwhile
// nothing leaves the call, and time does not count.
class CallSuspended {
  public:
    CallSuspended();
    ~CallSuspended();
    CallSuspended(const CallSuspended&) = delete;
    CallSuspended& operator=(const CallSuspended&) = delete;

  private:
    void* target_;
    std::int64_t spent_;
    CallState* state_;
};

}  // namespace assay::collector
