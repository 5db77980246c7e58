#include "framework/collector/crash_guard.h"

#include <fmt/format.h>
#include <array>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <exception>
#include <vector>

namespace assay::collector {
namespace {

constexpr std::array kFatalSignals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
// Enough for the handler below on processors with a large vector state (AMX: 8 KB saved).
constexpr std::size_t kStackBytes = 65'536;

thread_local sigjmp_buf* jump_target = nullptr;
std::atomic<bool> given_up{false};  // the call, and the signal is on its way

void on_fatal_signal(int signal) {
    if (sigjmp_buf* target = jump_target) {
        jump_target = nullptr;
        siglongjmp(*target, signal);
    }
    if (given_up.exchange(false)) return;  // it has returned meanwhile
    std::signal(signal, SIG_DFL);
    raise(signal);
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

struct CrashGuard::Saved {
    std::array<struct sigaction, kFatalSignals.size()> actions;
    stack_t stack;
    std::vector<char> stack_memory = std::vector<char>(kStackBytes);
};

CrashGuard::CrashGuard() : saved_(std::make_unique<Saved>()), thread_(pthread_self()) {
    stack_t stack{};
    stack.ss_sp = saved_->stack_memory.data();
    stack.ss_size = saved_->stack_memory.size();
    sigaltstack(&stack, &saved_->stack);
    struct sigaction action {};
    action.sa_handler = on_fatal_signal;
    action.sa_flags = SA_ONSTACK;
    for (std::size_t i = 0; i < kFatalSignals.size(); ++i)
        sigaction(kFatalSignals[i], &action, &saved_->actions[i]);
}

CrashGuard::~CrashGuard() {
    for (std::size_t i = 0; i < kFatalSignals.size(); ++i)
        sigaction(kFatalSignals[i], &saved_->actions[i], nullptr);
    sigaltstack(&saved_->stack, nullptr);
}

std::string CrashGuard::call(void (*function)(void*), void* argument) {
    // Nothing with a destructor may live in the frames that the jump leaves.
    sigjmp_buf here;
    if (const int signal = sigsetjmp(here, 1)) {
        in_call_ = false;
        if (given_up.exchange(false)) return "did not return";
        return fmt::format("crashed with signal {} ({})", signal, strsignal(signal));
    }
    jump_target = &here;
    ++calls_;
    in_call_ = true;
    std::string how = call_and_catch(function, argument);
    in_call_ = false;
    return how;
}

void CrashGuard::give_up_call() {
    given_up = true;
    pthread_kill(thread_, SIGABRT);
}

}  // namespace assay::collector
