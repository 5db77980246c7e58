#include "framework/driver/native/thread.h"

#include "framework/driver/native/memory/address_space.h"
#include "framework/driver/native/memory/target_memory.h"
#include "framework/driver/native/process.h"
#include "framework/driver/native/processor/hidden_features.h"
#include "framework/driver/native/processor/interrupt_return.h"
#include "framework/driver/native/processor/saved_state.h"
#include "framework/driver/native/syscalls/vsyscall.h"

#include <asm/prctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <array>
#include <cstdio>
#include <cstring>

namespace assay::native {
namespace {

constexpr std::size_t kHandlerStackBytes = 128 * 1024, kThreadStackBytes = 256 * 1024;

bool is_mapped(std::uint64_t address) {
    constexpr std::uint64_t kPage = CodeWatch::kPage;
    unsigned char resident = 0;
    return mincore(reinterpret_cast<void*>(address & ~(kPage - 1)), kPage, &resident) == 0;
}

std::string hexadecimal(std::uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
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
      signals(*this),
      actions(&owner.actions) {}

bool Thread::map(std::uint32_t slot, std::uint32_t buffers) {
    slot_ = slot;
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
    strict = shares_descriptors = false;
    tracer = 0;
    next_ = nullptr;
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
    slot_ = kFirst;
    tid_ = gettid();
    pid_ = getpid();
    forget_references();
    trace.begin(kFirst);
    intervals.begin_image(*context);
    bursts.begin(*context, kFirst);
    return true;
}

void Thread::refuse(const std::string& reason, int exit_status) const {
    if (shares_trace)
        process.trace.problem(reason);
    else
        process.trace.refuse(reason);
    leave_lock();
    _exit(exit_status);
}

// To the processes that share the memory and go on.
void Thread::leave_lock() const {
    if (shares_trace) return process.lock.unlock();
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
    if (!shares_trace) process.ends();
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

void Thread::run() {
    process.lock.lock();
    while (!ended_) {
        signals.has_left();
        wait_while_held();
        if (signals.pending()) deliver_signal();
        if (process.stress.disturb(process.cache)) flush();
        if (process.stress.enabled()) next_ = nullptr;
        const Block* block = next_ ? next_ : block_for(context->pc);
        next_ = nullptr;
        if (block == nullptr) continue;
        context->entry = block->entry;
        bursts.enters(*context, *block, process.regions.version_of(*context) == kPlain);
        enter();
        count_exit();
        bursts.has_left(*context);
        handle_exit();
    }
    process.lock.unlock();
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

void Thread::wait_while_held() {
    while (held_.load(std::memory_order_relaxed) != 0) {
        next_ = nullptr;  // others may forget translations meanwhile
        process.lock.unlock();
        trace::futex_wait(held_, 1, nullptr);
        process.lock.lock();
    }
}

bool Thread::captures_calls() const {
    return version() != kPlain && process.trace.captures(trace::kCaptureCalls);
}

void Thread::deliver_signal() {
    const std::uint64_t interrupted = context->pc;
    const int handled = signals.deliver();
    next_ = nullptr;
    intervals.send_corrections();
    if (handled != 0 && captures_calls()) record_handler(handled, interrupted);
}

// The handler's frame begins with the address to return to, as a function's does. What was
// interrupted may be no instruction at all.
void Thread::record_handler(int signal, std::uint64_t interrupted) {
    const Block* handler = block_for(context->pc);
    if (handler == nullptr) return;
    const std::uint32_t instr = handler->first_instr;
    trace.append(context->gpr[RSP] + 8, process.trace.driver_site(instr, TRACE_SITE_SIGNAL),
                 static_cast<std::uint32_t>(signal));
    trace.append(interrupted, process.trace.driver_site(instr, TRACE_SITE_INTERRUPTED));
}

std::uint32_t Thread::stack_site() {
    if (!captures_calls()) return 0;
    const Block& block = process.cache.block_of(static_cast<std::uint32_t>(context->exit_id));
    return process.trace.driver_site(block.first_instr + block.instr_count - 1U, TRACE_SITE_STACK);
}

void Thread::record_stack(std::uint32_t site) {
    if (captures_calls()) trace.append(context->gpr[RSP], site);
}

// Runs translated code from context->entry until it needs more than a look by the driver.
void Thread::enter() {
    running_.store(process.cache.generation(), std::memory_order_release);
    do {
        process.lock.unlock();
        signals.entering();
        assay_enter(context);
        signals.left();
        process.lock.lock();
    } while (handle_inside());
    running_.store(0, std::memory_order_release);
}

// True if translated code goes on where it left, whatever has become of the translation meanwhile.
bool Thread::handle_inside() {
    const auto id = static_cast<std::uint32_t>(context->exit_id);
    if (id < kFirstExit) return false;
    const Exit exit = process.cache.exit(id);
    context->entry = exit.stub;
    if (exit.kind >= ExitKind::kSpecial && exit.kind <= ExitKind::kStateBehind) {
        record_at(exit, id);
        return true;
    }
    if (exit.kind != ExitKind::kCheck) return false;
    const Block& block = process.cache.block_of(id);
    if (is_unchanged(block)) return true;
    context->countdown -= exit.uncounted();
    process.code_changed(block.pc, block.end_pc());
    context->pc = block.pc;
    context->exit_id = kInterrupted;
    return false;
}

void Thread::record_at(const Exit& exit, std::uint32_t id) {
    const Instruction instruction = process.cache.special(id);
    context->pc = exit.target;
    if (exit.kind == ExitKind::kSpecial &&
        instruction.form->processor_use == ProcessorUse::kIdentify)
        identify(*this, instruction);
    const std::uint32_t site = exit.first_site;
    process.lock.unlock();
    if (exit.kind == ExitKind::kValuesBefore)
        read_special_values(*this, instruction);
    else if (exit.kind == ExitKind::kValuesBehind)
        record_special_values(*this, instruction, site);
    else if (exit.kind == ExitKind::kStateBefore || exit.kind == ExitKind::kStateBehind)
        read_saved_values(*this, instruction, exit.kind == ExitKind::kStateBefore);
    else
        record_special(*this, instruction, site);
    process.lock.lock();
}

bool Thread::is_unchanged(const Block& block) const {
    for (std::uint32_t i = 0; i < block.instr_count; ++i) {
        const trace_instr_t& instr = process.trace.instr(block.first_instr + i);
        std::uint8_t now[sizeof instr.bytes];
        if (!read_target(instr.pc, now, instr.length) ||
            std::memcmp(now, instr.bytes, instr.length) != 0)
            return false;
    }
    return true;
}

// What translated code has not counted down itself; see Bursts.
void Thread::count_exit() {
    const auto id = static_cast<std::uint32_t>(context->exit_id);
    if (bursts.wanted() && id >= kFirstExit)
        context->countdown -= process.cache.exit(id).uncounted();
}

void Thread::change_burst_if_due() {
    if (bursts.wanted() && bursts.is_due(*context)) bursts.change(*context);
}

void Thread::handle_exit() {
    const auto id = static_cast<std::uint32_t>(context->exit_id);
    if (id == kInterrupted) return;
    if (id == kCountedOut) {
        process.regions.leave_functions(*context);
        return change_burst_if_due();
    }
    if (id == kIndirectMiss) return indirect_miss();
    if (id == kLeft) return process.regions.leave_functions(*context);
    const Exit exit = process.cache.exit(id);
    switch (exit.kind) {
        case ExitKind::kSyscall:
            return do_syscall(*this, exit.target);
        case ExitKind::kInterruptReturn:
            return do_interrupt_return(exit.target);
        case ExitKind::kUnsupported:
            context->pc = exit.target;
            return do_unsupported();
        case ExitKind::kDirect:
            return follow(exit, id);
        case ExitKind::kEnters:
            context->pc = exit.target;
            return process.regions.enter(*context);
        case ExitKind::kCountdown:
            return reach(process.cache.block_of(id));
        case ExitKind::kInterval:
            return reach_interval(process.cache.block_of(id));
        case ExitKind::kMarker:
            context->pc = exit.target + kMarkerBytes;
            return do_marker(*this);
        case ExitKind::kSpecial:
        case ExitKind::kValuesBefore:
        case ExitKind::kValuesBehind:
        case ExitKind::kStateBefore:
        case ExitKind::kStateBehind:
        case ExitKind::kCheck:
            return;  // handle_inside() has seen to it
    }
}

void Thread::follow(const Exit& exit, std::uint32_t id) {
    context->pc = exit.target;
    change_burst_if_due();
    const std::uint32_t generation = process.cache.generation();
    const bool current = process.cache.is_current(id);
    next_ = block_for(exit.target);
    if (next_ && current && generation == process.cache.generation() &&
        next_->version == process.cache.block_of(id).version)
        process.cache.link(process.cache.index_of_exit(id), *next_);
}

void Thread::refuse_instruction() const {
    refuse("unsupported instruction at " + hexadecimal(context->pc) + ": " +
           process.translator.describe(context->pc));
}

// Those of transactional memory exist on some processors only.
void Thread::do_unsupported() {
    const std::uint64_t pc = context->pc;
    Instruction instruction;
    if (!process.translator.decoder().decode(process.memory.code_at(pc), pc, instruction) ||
        !instruction.form->transactional || has_transactions(process.trace.spec().cpu_level))
        refuse_instruction();
    signals.raise_fault(SIGILL, ILL_ILLOPN, pc);
}

void Thread::do_interrupt_return(std::uint64_t pc) {
    context->pc = pc;
    const std::uint32_t site = stack_site();
    if (!return_from_interrupt(*context)) refuse_instruction();
    record_stack(site);
    process.regions.leave_functions(*context);
}

// The block has counted itself down already.
void Thread::reach(const Block& block) {
    context->pc = block.pc;
    context->countdown += block.instr_count;
    if (bursts.wanted()) return bursts.change(*context);
    process.regions.reach(*context);
    process.switch_others(*this);
    if (!process.regions.counts()) flush();
}

void Thread::reach_interval(const Block& block) {
    context->pc = block.pc;
    if (process.regions.counts()) context->countdown += block.instr_count;  // will be again
    intervals.reach(*context, block);
}

void Thread::indirect_miss() {
    Planner& planner = process.translator.planner();
    const std::uint64_t target = context->pc;
    if (!planner.flags_cross_calls() && process.memory.find(target) != nullptr &&
        planner.reads_flags(target, 128)) {
        // Flags may come from before the branch: from now on they are kept across calls too.
        planner.set_flags_cross_calls();
        flush();
    }
    next_ = block_for(target, true);
    if (next_) process.cache.add_landing(*next_);
}

Block* Thread::block_for(std::uint64_t pc, bool by_indirect_branch) {
    if (Block* block = alone_ ? nullptr : process.cache.find(pc, version())) return block;
    if (process.trace.tables_full())
        refuse("the program has more code than the trace segment can hold");
    const Region* region = process.memory.find(pc);
    if (region == nullptr || !region->executable) {
        alone_ = false;
        if (call_vsyscall(*this, pc)) return nullptr;
        signals.raise_fault(SIGSEGV, is_mapped(pc) ? SEGV_ACCERR : SEGV_MAPERR, pc);
        return nullptr;
    }
    if (needs_flush(*region, pc)) {
        flush();
        // Others may have translated it while this thread waited. Nobody would forget the first of
        // two translations.
        if (Block* known = alone_ ? nullptr : process.cache.find(pc, version())) return known;
    }
    Block* block = alone_ ? process.translator.translate_alone(pc, version())
                          : process.translator.translate(pc, version(), by_indirect_branch);
    alone_ = false;
    if (block == nullptr) raise_fetch_fault(pc);
    return block;
}

// There is no valid instruction, or none that can be fetched whole.
void Thread::raise_fetch_fault(std::uint64_t pc) {
    const auto code = process.memory.code_at(pc);
    std::array<std::uint8_t, 15> bytes{};
    if (!read_target(pc, bytes.data(), code.size()))
        return signals.raise_fault(SIGBUS, BUS_ADRERR, pc);
    Instruction instruction;
    const std::uint64_t end = pc + code.size();
    if (code.size() == bytes.size() ||
        !process.translator.decoder().decode(bytes, pc, instruction)) {
        if (hidden_features() != Hidden::kInstructions)
            return signals.raise_fault(SIGILL, ILL_ILLOPN, pc);
        context->pc = pc;
        refuse_instruction();
    }
    signals.raise_fault(SIGSEGV, is_mapped(end) ? SEGV_ACCERR : SEGV_MAPERR, end);
}

// Generated code need not keep to the psABI's rules for flags: from the first of it on they are
// kept across calls.
bool Thread::needs_flush(const Region& region, std::uint64_t pc) {
    Planner& planner = process.translator.planner();
    if (region.changeable && !planner.flags_cross_calls()) {
        planner.set_flags_cross_calls();
        return true;
    }
    return process.translator.must_flush_for(pc);
}

void Thread::flush() {
    const std::uint32_t generation = process.cache.generation();
    process.wait_for_old_translations();
    if (process.cache.generation() == generation) process.translator.flush();
}

}  // namespace assay::native
