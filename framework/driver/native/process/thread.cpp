#include "framework/driver/native/process/thread.h"

#include "framework/driver/native/machine/saved_state.h"
#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/memory/address_space.h"
#include "framework/driver/native/process/code_faults.h"
#include "framework/driver/native/process/process.h"
#include "framework/driver/native/processor/shown_processor.h"

#include <asm/prctl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <array>
#include <cstdio>
#include <cstring>
#include <string>

namespace assay::native {

namespace {

constexpr std::size_t kHandlerStackBytes = 128 * 1024, kThreadStackBytes = 256 * 1024;

// Ends the process by a signal that is not sent but caused by a fault. The first process of a PID
// namespace cannot be killed by a sent signal (SIGNAL_UNKILLABLE), but a fault ends it.
void cause(int number) {
    switch (number) {
        case SIGILL:
            __asm__ volatile("ud2");
            break;
        case SIGTRAP:
            __asm__ volatile("int3");
            break;
        case SIGFPE:
            __asm__ volatile("xor %%ecx, %%ecx; div %%ecx" : : : "eax", "ecx", "edx", "cc");
            break;
        case SIGBUS: {
            const int empty = memfd_create("", MFD_CLOEXEC);
            const void* page = mmap(nullptr, 1, PROT_READ, MAP_SHARED, empty, 0);
            if (page != MAP_FAILED) __asm__ volatile("movb (%0), %%al" : : "r"(page) : "eax");
            break;
        }
        case SIGSYS: {
            sock_filter kill[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
            const sock_fprog all{1, kill};
            prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all);
            break;
        }
        case SIGSEGV:
            __asm__ volatile("hlt");
            break;
        default:
            break;
    }
}

// The kernel keeps this flag in signal handlers (arch/x86/kernel/signal.c, handle_signal).
// Unaligned accesses of the driver would fault.
void clear_alignment_check() {
    constexpr std::uint64_t kInterruptsOnly = 0x202;
    __builtin_ia32_writeeflags_u64(kInterruptsOnly);
}

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
      allocations(owner, owner.trace, trace),
      stepper(owner.cache, owner.lock, trace),
      faults({owner.lock, owner.cache, owner.watch, owner.translator, owner.regions, owner.trace},
             owner.program, trace, intervals),
      signals(owner.cache, stepper, faults, owner.waited_signals),
      relations{.actions = &owner.actions} {}

bool Thread::map(std::uint32_t slot, std::uint32_t buffers) {
    context = trace.map(process.trace, slot, buffers);
    stacks_ = reserve_outside_arena(kHandlerStackBytes + kThreadStackBytes);
    if (context == nullptr || stacks_ == nullptr ||
        mprotect(stacks_, kHandlerStackBytes + kThreadStackBytes, PROT_READ | PROT_WRITE) != 0)
        return false;
    if (context->call_tree != nullptr) context->call_tree->follow_lines(process.interpreter);
    context->exit_glue = reinterpret_cast<std::uint64_t>(&assay_exit);
    context->stub_sp = reinterpret_cast<std::uint64_t>(std::end(context->stub_stack));
    const ShownProcessor& processor = shown_processor();
    context->saving = processor.saving();
    context->vector_mask = processor.saved_components();
    context->frame_components = processor.frame_components();
    context->frame_bytes = processor.frame_bytes();
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
    relations.tracer = kNoTracer;
    forget_references();
    set_gs();
    trace.begin(number);
    pages_seen = 0;
    process.regions.begin(*context, number == 0);
    intervals.begin(*context);
    bursts.begin(*context, number);
    stack_t handlers{};
    handlers.ss_sp = stacks_;
    handlers.ss_size = kHandlerStackBytes;
    signals.initialise(*context, signal_mask, handlers);
    // A seccomp filter of the program may forbid timers.
    if (!process.filters_calls) process.stress.begin_thread();
}

// A seccomp filter of the program may forbid arch_prctl(2), because no libc calls it later:
// Chromium's filter ends a process that calls it.
void Thread::set_gs() const {
    const auto base = reinterpret_cast<std::uint64_t>(context);
    if (process.filters_calls && shown_processor().allows_base_instructions())
        return reinterpret_cast<void (*)(std::uint64_t)>(process.cache.gs_setter())(base);
    if (syscall(SYS_arch_prctl, ARCH_SET_GS, base) != 0)
        refuse(
            "a thread cannot start: a seccomp filter of the program refuses arch_prctl(2), which "
            "the driver needs because the kernel does not allow FSGSBASE");
}

// A new thread or process starts with empty caches and predictors.
void Thread::forget_references() {
    std::memset(context->data_filter, 0, sizeof context->data_filter);
    std::memset(context->fetch_filter, 0, sizeof context->fetch_filter);
    if (context->first_level != nullptr) context->first_level->clear();
    if (process.trace.captures(trace::kCapturePredictions)) context->predictor.reset();
}

// Other threads that share caches with this one may have evicted the lines.
void Thread::forget_recent_lines() {
    trace.forget_recent_lines();
    std::memset(context->fetch_filter, 0, sizeof context->fetch_filter);
}

bool Thread::move_to_new_image() {
    constexpr std::uint32_t kFirst = 0;
    if (!trace.map_slot(kFirst)) return false;
    process.trace.object_runs().begin_image();
    tid_ = gettid();
    pid_ = getpid();
    forget_references();
    trace.begin(kFirst);
    intervals.begin_image(*context);
    bursts.begin(*context, kFirst);
    if (process.captures_mappings()) {
        process.page_kinds.tell_anew();
        process.tell_pages(*this);
    }
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

// Releases the lock for processes that share the memory and continue.
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
    leave_lock();
    // The first process of a PID namespace cannot send SIGKILL to itself.
    if (getpid() == 1) prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    for (;;) ::kill(getpid(), SIGKILL);
}

// --- Signals.

// QEMU's user mode (7.2) does not align the stack of handlers as the psABI (3.2.2) requires.
[[gnu::force_align_arg_pointer]] void Thread::handle_signal(int number, siginfo_t* info,
                                                            void* ucontext) {
    clear_alignment_check();
    Thread& thread = this_thread();
    ucontext_t* interrupted = thread.signals.interrupted_by(static_cast<ucontext_t*>(ucontext));
    if (!thread.signals.arrive(number, *info, interrupted))
        thread.refuse_fault(number, *info, interrupted);
    if (thread.process.filters_calls) assay_resume(interrupted);
}

int Thread::deliver_signal() {
    Signals::Delivery delivery;
    do {
        if (!stop_for_tracer(*this)) return 0;
        delivery = signals.deliver(*relations.actions);
    } while (delivery.result == Signals::Delivery::kOtherSignal);
    if (delivery.result == Signals::Delivery::kDeath) die_of(delivery.number);
    return delivery.number;
}

void Thread::die_of(int number) const {
    leave_lock();
    SignalActions::set_default_in_kernel(number);
    const std::uint64_t mask = ~mask_of(number);
    syscall(SYS_tgkill, getpid(), gettid(), number);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, 8);
    cause(number);
    // Signals whose default action is to stop or to ignore never get here.
    _exit(128 + number);
}

void Thread::refuse_fault(int number, const siginfo_t& info, const ucontext_t* interrupted) const {
    std::array<char, 160> text{};
    std::snprintf(text.data(), text.size(),
                  "internal error: signal %d in the driver itself, at 0x%llx for address 0x%llx, "
                  "target pc 0x%llx",
                  number, static_cast<unsigned long long>(pc_of(interrupted)),
                  static_cast<unsigned long long>(reinterpret_cast<std::uint64_t>(info.si_addr)),
                  static_cast<unsigned long long>(context->pc));
    refuse(text.data());
}

// --- Versions of translated code, and leaving it.

Version Thread::version() const {
    Version version = process.regions.version_of(*context);
    if (version == kCollecting && bursts.wanted()) version = bursts.version();
    return version == kCollecting && intervals.near_end() ? kExact : version;
}

void Thread::hand_to_caller() {
    tid_ = gettid();
    pid_ = getpid();
}

// held_ keeps the thread out of translated code. Otherwise the thread could take the lock and enter
// again before the caller sees that it has left.
bool Thread::hold() {
    held_.store(1, std::memory_order_relaxed);
    if (running() == 0) return true;
    ask_to_leave();
    return false;
}

void Thread::let_go() {
    held_.store(0, std::memory_order_relaxed);
    trace::futex_wake(held_);
}

bool Thread::wait_while_held() {
    if (held_.load(std::memory_order_relaxed) == 0) return false;
    process.schedule.go_away(*this);
    while (held_.load(std::memory_order_relaxed) != 0) {
        process.lock.unlock();
        trace::futex_wait(held_, 1, nullptr);
        process.lock.lock();
    }
    process.schedule.come_back(*this);
    return true;
}

bool Thread::captures_calls() const {
    return collects(version()) && process.trace.captures(trace::kCaptureCalls);
}

// A profiler that follows blocks also has to know why another block comes next.
bool Thread::tells_handlers() const {
    return captures_calls() ||
           (collects(version()) && process.trace.captures(trace::kCaptureBlocks));
}

// There is no site outside of bursts. record_stack() may run in a burst although stack_site() ran
// before it: a child that shares the memory has executed instructions in between.
constexpr std::uint32_t kNoSite = UINT32_MAX;

std::uint32_t Thread::stack_site() {
    if (!captures_calls()) return kNoSite;
    const Block& block = process.cache.block_of(static_cast<std::uint32_t>(context->exit_id));
    return process.trace.driver_site(block.first_instr + block.instr_count - 1U, TRACE_SITE_STACK);
}

void Thread::record_stack(std::uint32_t site) {
    if (captures_calls() && site != kNoSite) trace.append(context->gpr[RSP], site);
    if (context->call_tree != nullptr && collects(version()))
        context->call_tree->arrive(context->pc, context->gpr[RSP], true);
}

namespace {

// The executable of a process, to compare it; all zeros if there is no such process.
struct stat executable_of(long pid) {
    struct stat status {};
    const std::string link = "/proc/" + std::to_string(pid) + "/exe";
    stat(link.c_str(), &status);
    return status;
}

}  // namespace

bool runs_in_driver(long pid) {
    const struct stat own = executable_of(getpid()), other = executable_of(pid);
    return own.st_ino != 0 && own.st_ino == other.st_ino && own.st_dev == other.st_dev;
}

bool begin_stop_for_tracer(Thread& thread) {
    // If the tracer has ended, tracing has also ended.
    if (getppid() != thread.relations.tracer) return thread.relations.tracer = kNoTracer, false;
    if (!runs_in_driver(thread.relations.tracer) ||
        syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0) != 0)
        thread.refuse(
            "ptrace(PTRACE_TRACEME): a program that runs under assay cannot be traced; "
            "run the debugger or tracer without assay");
    return true;
}

void end_stop_for_tracer(Thread& thread, long result) {
    if (result == kLetGo) thread.relations.tracer = kNoTracer;
}

bool stop_for_tracer(Thread& thread) {
    if (thread.relations.tracer == kNoTracer) return true;
    Signals::block_sent();
    if (!begin_stop_for_tracer(thread)) return true;
    long result = 0;
    thread.process.schedule.go_away(thread);
    const bool pending = thread.signals.stop_for_tracer(thread.process.lock, result);
    thread.process.schedule.come_back(thread);
    end_stop_for_tracer(thread, result);
    return pending;
}

}  // namespace assay::native
