#include "framework/collector/profilers/crash_guard.h"

#include "framework/support/error.h"

#include <cxxabi.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <vector>

namespace assay::collector {
namespace {

constexpr std::array kFatalSignals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
// Enough for the handler below on processors with a large vector state (AMX: 8 KB saved).
constexpr std::size_t kStackBytes = 65'536;

thread_local sigjmp_buf* jump_target = nullptr;
CallState* calling = nullptr;       // the state of the guard that made the last call
std::atomic<bool> given_up{false};  // the call was given up, and its signal is on the way

// The limit of a call is divided into this many ticks. All ticks that are due while assay is
// stopped (by ^Z, or in a debugger) count as one.
constexpr int kTicks = 8;
constexpr int kTickSignal = SIGVTALRM;
// In nanoseconds: a tick, the time of the call that counts, and at the last tick the time and the
// result of queued_time().
std::atomic<std::int64_t> tick_length{0}, spent{0}, last_tick{0}, queued_before{0};

std::int64_t monotonic_time() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

// Used in place of a signal number.
constexpr int kExited = -1;
constexpr int kQuickExited = -2;

void leave_call(int how) {
    if (sigjmp_buf* target = jump_target) {
        jump_target = nullptr;
        siglongjmp(*target, how);
    }
}

void on_fatal_signal(int signal) {
    leave_call(signal);
    if (given_up.exchange(false)) return;  // the call has returned in the meantime
    std::signal(signal, SIG_DFL);
    raise(signal);
}

void on_tick(int signal) {
    const int error = errno;
    const std::int64_t queued = queued_time("/proc/thread-self/schedstat").count();
    errno = error;
    const std::int64_t time = monotonic_time();
    const std::int64_t passed = time - last_tick.exchange(time);
    const std::int64_t before = queued_before.exchange(queued);
    const std::int64_t waited = before != 0 && queued > before ? queued - before : 0;
    spent += std::clamp(passed - waited, std::int64_t{0}, tick_length.load());
    if (spent >= kTicks * tick_length) leave_call(signal);
}

// exit(3) calls its handlers in reverse order of registration. The destructors of static objects of
// assay and of all profilers are among them. Each call therefore registers the guard's handler
// last. The jump out of it leaves the others for the real end. After the call the handler is
// removed, so that handlers do not pile up.
void on_exit_called(void*) {
    leave_call(kExited);
}
char exit_handle;

void catch_exit() {
    abi::__cxa_atexit(on_exit_called, nullptr, &exit_handle);
}
void stop_catching_exit() {
    abi::__cxa_finalize(&exit_handle);  // also calls the handler, which then has no call to leave
}

// quick_exit(3) runs no destructors, so the order of handlers does not matter.
void on_quick_exit() {
    leave_call(kQuickExited);
}

// The real end of assay after a call was left. Destructors of that profiler may crash and are not
// guarded then, so they do not run.
void end_without_destructors(int status, void*) {
    std::fflush(nullptr);
    _exit(status);
}

// exit(3) on a profiler's own thread would end the process as if the run had succeeded. `guarded`:
// the thread that may end the process.
void refuse_end_by_other_thread(int, void* guarded) {
    if (pthread_equal(pthread_self(), reinterpret_cast<pthread_t>(guarded))) return;
    if (calling) calling->give_reason("it has called exit on a thread of its own");
    _exit(kExitFailure);
}

// Undoes what a profiler does that ignores SIGCHLD: assay would not learn how the program ends.
void stop_ignoring_children() {
    struct sigaction action {};
    sigaction(SIGCHLD, nullptr, &action);
    if (action.sa_handler != SIG_IGN && !(action.sa_flags & SA_NOCLDWAIT)) return;
    action = {};
    action.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &action, nullptr);
}

std::string call_and_catch(void (*function)(void*), void* argument) {
    try {
        function(argument);
        jump_target = nullptr;
        return {};
    } catch (const std::exception& e) {
        jump_target = nullptr;
        return fmt::format("threw an exception: {}", e.what());
    } catch (...) {
        jump_target = nullptr;
        return "threw an exception";
    }
}

}  // namespace

std::string seconds(std::chrono::milliseconds time) {
    return fmt::format("{} s", std::chrono::duration<double>(time).count());
}

// The second number of the file.
std::chrono::nanoseconds queued_time(const char* schedstat) {
    const int file = open(schedstat, O_RDONLY | O_CLOEXEC);
    if (file < 0) return {};
    std::array<char, 64> text{};
    const ssize_t length = read(file, text.data(), text.size() - 1);
    close(file);
    const char* at = text.data();
    while (length > 0 && *at != 0 && *at != ' ') ++at;
    std::int64_t time = 0;
    for (at += *at == ' '; *at >= '0' && *at <= '9'; ++at) time = time * 10 + (*at - '0');
    return std::chrono::nanoseconds(time);
}

std::string CallState::function_name() const {
    return {function.data(), strnlen(function.data(), function.size())};
}

std::string CallState::reason_text() const {
    return {reason.data(), strnlen(reason.data(), reason.size())};
}

void CallState::give_reason(const std::string& why) {
    const std::size_t length = why.copy(reason.data(), reason.size() - 1);
    reason.at(length) = 0;
}

std::vector<std::string> CallState::library_paths() const {
    std::vector<std::string> paths;
    const char* const end = libraries.data() + libraries.size();
    for (const char* at = libraries.data(); at != end && *at != 0;) {
        paths.emplace_back(at, strnlen(at, static_cast<std::size_t>(end - at)));
        at += paths.back().size() + (at + paths.back().size() != end ? 1 : 0);
    }
    return paths;
}

// Leaves out a path that does not fit.
void CallState::add_library(const std::string& path) {
    std::size_t end = 0;
    for (const std::string& known : library_paths()) {
        if (known == path) return;
        end += known.size() + 1;
    }
    if (end + path.size() + 1 < libraries.size()) path.copy(libraries.data() + end, path.size());
}

struct CrashGuard::Saved {
    std::array<struct sigaction, kFatalSignals.size()> actions;
    struct sigaction tick_action;
    stack_t stack;
    std::vector<char> stack_memory = std::vector<char>(kStackBytes);
};

CrashGuard::CrashGuard(CallState* state)
    : saved_(std::make_unique<Saved>()),
      state_(state ? *state : own_state_),
      thread_(pthread_self()) {
    stack_t stack{};
    stack.ss_sp = saved_->stack_memory.data();
    stack.ss_size = saved_->stack_memory.size();
    sigaltstack(&stack, &saved_->stack);
    struct sigaction action {};
    action.sa_handler = on_fatal_signal;
    action.sa_flags = SA_ONSTACK;
    for (std::size_t i = 0; i < kFatalSignals.size(); ++i)
        sigaction(kFatalSignals[i], &action, &saved_->actions[i]);
    action.sa_handler = on_tick;
    action.sa_flags = SA_ONSTACK | SA_RESTART;
    sigaction(kTickSignal, &action, &saved_->tick_action);
    std::at_quick_exit(on_quick_exit);
    ::on_exit(refuse_end_by_other_thread, reinterpret_cast<void*>(thread_));
}

CrashGuard::~CrashGuard() {
    if (calling == &own_state_) calling = nullptr;
    if (timer_owner_ == getpid()) timer_delete(timer_);
    sigaction(kTickSignal, &saved_->tick_action, nullptr);
    for (std::size_t i = 0; i < kFatalSignals.size(); ++i)
        sigaction(kFatalSignals[i], &saved_->actions[i], nullptr);
    sigaltstack(&saved_->stack, nullptr);
}

void CrashGuard::set_name(std::string_view name) {
    const std::size_t length = name.copy(state_.function.data(), state_.function.size() - 1);
    state_.function.at(length) = '\0';
}

std::string CrashGuard::call(void (*function)(void*), void* argument) {
    // The frames that the jump leaves must contain nothing with a destructor.
    sigjmp_buf here;
    const pid_t caller = getpid();
    if (const int how = sigsetjmp(here, 1)) {
        if (getpid() != caller) _exit(0);
        state_.in_call = false;
        stop_timer();
        stop_catching_exit();
        stop_ignoring_children();
        ::on_exit(end_without_destructors, nullptr);
        return reason(how);
    }
    calling = &state_;
    catch_exit();
    jump_target = &here;
    ++state_.calls;
    state_.in_call = true;
    start_timer();
    std::string how = call_and_catch(function, argument);
    if (getpid() != caller) _exit(0);
    state_.in_call = false;
    stop_timer();
    stop_catching_exit();
    stop_ignoring_children();
    return how;
}

std::string CrashGuard::reason(int how) const {
    if (how == kExited) return "called exit";
    if (how == kQuickExited) {
        std::at_quick_exit(on_quick_exit);  // the earlier handler has been used up
        return "called quick_exit";
    }
    if (how == kTickSignal) return std::string(kTooLong) + seconds(limit_);
    if (given_up.exchange(false)) return "did not return";
    return fmt::format("crashed with signal {} ({})", how, strsignal(how));
}

// Costs two system calls for each call, and one call handles thousands of records.
void CrashGuard::start_timer() {
    if (limit_.count() == 0) return;
    if (timer_owner_ != getpid()) {
        sigevent event{};
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = kTickSignal;
        event._sigev_un._tid = gettid();  // glibc 2.36 has no sigev_notify_thread_id yet
        if (timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0) return;
        timer_owner_ = getpid();
    }
    const auto tick = std::chrono::nanoseconds(limit_) / kTicks;
    tick_length = tick.count();
    spent = queued_before = 0;
    last_tick = monotonic_time();
    const timespec period{tick.count() / 1'000'000'000, tick.count() % 1'000'000'000};
    const itimerspec times{period, period};
    timer_settime(timer_, 0, &times, nullptr);
}

void CrashGuard::stop_timer() {
    if (limit_.count() == 0 || timer_owner_ != getpid()) return;
    const itimerspec never{};
    timer_settime(timer_, 0, &never, nullptr);
}

void CrashGuard::give_up_call() {
    given_up = true;
    pthread_kill(thread_, SIGABRT);
}

CallSuspended::CallSuspended() : target_(jump_target), spent_(spent), state_(calling) {
    jump_target = nullptr;
    if (state_) state_->suspended = true;
}

CallSuspended::~CallSuspended() {
    if (state_) state_->suspended = false;
    spent = spent_;
    jump_target = static_cast<sigjmp_buf*>(target_);
}

}  // namespace assay::collector
