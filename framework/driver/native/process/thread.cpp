#include "framework/driver/native/process/thread.h"

#include "framework/driver/native/machine/saved_state.h"
#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/memory/address_space.h"
#include "framework/driver/native/process/process.h"
#include "framework/driver/native/processor/cpu_levels.h"

#include <asm/prctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cstring>

namespace assay::native {
namespace {

constexpr std::size_t kHandlerStackBytes = 128 * 1024, kThreadStackBytes = 256 * 1024;

}  // namespace

Thread& this_thread() {
    Thread* thread;
    __asm__("mov %%gs:%c1, %0" : "=r"(thread) : "i"(offsetof(Context, thread)));
    return *thread;
}

Thread::Thread(Process& owner)
    : process(owner),
      intervals(owner.trace, trace),
      bursts(owner.trace, trace),
      signals(*this),
      relations{.actions = &owner.actions} {}

bool Thread::map(std::uint32_t slot, std::uint32_t buffers) {
    context = trace.map(process.trace, slot, buffers);
    stacks_ = reserve_outside_arena(kHandlerStackBytes + kThreadStackBytes);
    if (context == nullptr || stacks_ == nullptr ||
        mprotect(stacks_, kHandlerStackBytes + kThreadStackBytes, PROT_READ | PROT_WRITE) != 0)
        return false;
    context->exit_glue = reinterpret_cast<std::uint64_t>(&assay_exit);
    context->stub_sp = reinterpret_cast<std::uint64_t>(std::end(context->stub_stack));
    context->saving = process.saving();
    context->vector_mask = process.vector_components();
    const trace::CpuLevel level = process.trace.spec().cpu_level;
    context->frame_components = (context->vector_mask | usable_pkru()) & level_xcr0(level);
    const bool has_xsave = level == trace::CpuLevel::kHost ? process.saving() != kSavedByFxsave
                                                           : level >= trace::CpuLevel::kV3;
    context->frame_bytes =
        has_xsave ? state_area_bytes(level, context->frame_components) : kLegacyBytes;
    context->initial_pkru = process.initial_pkru();
    context->thread = this;
    return true;
}

stack_t Thread::driver_stack() const {
    stack_t stack{};
    stack.ss_sp = stacks_ + kHandlerStackBytes;
    stack.ss_size = kThreadStackBytes;
    return stack;
}

void Thread::begin(std::uint32_t number, std::uint64_t signal_mask) {
    tid_ = gettid();
    pid_ = getpid();
    ended_ = false;
    relations.strict = relations.shares_descriptors = false;
    relations.tracer = 0;
    forget_references();
    set_gs();
    trace.begin(number);
    process.regions.begin(*context, number == 0);
    intervals.begin(*context);
    bursts.begin(*context, number);
    stack_t handlers{};
    handlers.ss_sp = stacks_;
    handlers.ss_size = kHandlerStackBytes;
    signals.initialise(signal_mask, handlers);
    // A filter that the program has installed need not know timers.
    if (!process.filters_calls) process.stress.begin_thread();
}

// Filters of seccomp(2) that a program installs need not permit arch_prctl(2): no libc needs it
// behind them, and Chromium's ends a process that calls it.
void Thread::set_gs() const {
    const auto base = reinterpret_cast<std::uint64_t>(context);
    if (process.filters_calls && allows_base_instructions())
        return reinterpret_cast<void (*)(std::uint64_t)>(process.cache.gs_setter())(base);
    if (syscall(SYS_arch_prctl, ARCH_SET_GS, base) != 0)
        refuse(
            "a thread cannot begin: a seccomp filter of the program refuses arch_prctl(2), which "
            "the driver needs where the kernel does not allow FSGSBASE");
}

// The caches and predictors of a new thread or process are empty.
void Thread::forget_references() {
    std::memset(context->data_filter, 0, sizeof context->data_filter);
    std::memset(context->fetch_filter, 0, sizeof context->fetch_filter);
    if (process.trace.captures(trace::kCapturePredictions)) context->predictor.reset();
}

bool Thread::move_to_new_image() {
    constexpr std::uint32_t kFirst = 0;
    if (!trace.map_slot(kFirst)) return false;
    tid_ = gettid();
    pid_ = getpid();
    forget_references();
    trace.begin(kFirst);
    intervals.begin_image(*context);
    bursts.begin(*context, kFirst);
    return true;
}

void Thread::refuse(const std::string& reason, int exit_status) const {
    if (relations.shares_trace)
        process.trace.problem(reason);
    else
        process.trace.refuse(reason);
    leave_lock();
    _exit(exit_status);
}

// To the processes that share the memory and go on.
void Thread::leave_lock() const {
    if (relations.shares_trace) return process.lock.unlock();
    if (!process.shares_memory()) return;
    std::uint64_t cleared = 0;
    if (prctl(PR_GET_TID_ADDRESS, &cleared) == 0 && cleared != 0) {
        const int none = 0;
        if (write_target(cleared, &none, sizeof none))
            syscall(SYS_futex, cleared, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    }
    process.lock.unlock_at_end();
}

void Thread::process_ends() const {
    if (!relations.shares_trace) process.ends();
    leave_lock();
}

void Thread::finish(int exit_status) const {
    process_ends();
    _exit(exit_status);
}

void Thread::kill() const {
    process_is_killed();
    for (;;) ::kill(getpid(), SIGKILL);
}

Version Thread::version() const {
    Version version = process.regions.version_of(*context);
    if (bursts.wanted() && !bursts.in_burst()) version = kPlain;
    return version == kCollecting && intervals.near_end() ? kExact : version;
}

void Thread::hand_to_caller() {
    tid_ = gettid();
    pid_ = getpid();
}

// Without held_, it could have the lock once more, and be in translated code again, before anybody
// sees that it has left.
bool Thread::hold() {
    held_.store(1, std::memory_order_relaxed);
    if (running() == 0) return true;
    signals.ask_to_leave();
    return false;
}

void Thread::let_go() {
    held_.store(0, std::memory_order_relaxed);
    trace::futex_wake(held_);
}

bool Thread::wait_while_held() {
    bool waited = false;
    while (held_.load(std::memory_order_relaxed) != 0) {
        waited = true;
        process.lock.unlock();
        trace::futex_wait(held_, 1, nullptr);
        process.lock.lock();
    }
    return waited;
}

bool Thread::captures_calls() const {
    return version() != kPlain && process.trace.captures(trace::kCaptureCalls);
}

std::uint32_t Thread::stack_site() {
    if (!captures_calls()) return 0;
    const Block& block = process.cache.block_of(static_cast<std::uint32_t>(context->exit_id));
    return process.trace.driver_site(block.first_instr + block.instr_count - 1U, TRACE_SITE_STACK);
}

void Thread::record_stack(std::uint32_t site) {
    if (captures_calls()) trace.append(context->gpr[RSP], site);
}

}  // namespace assay::native
