#include "framework/driver/native/run/execution.h"

#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/processor/shown_processor.h"
#include "framework/driver/native/run/interpreter_markers.h"
#include "framework/driver/native/run/special_instructions.h"
#include "framework/driver/native/syscalls/syscalls.h"

#include <sys/mman.h>
#include <array>
#include <cstdio>
#include <cstring>

namespace assay::native {
namespace {

bool is_mapped(std::uint64_t address) {
    unsigned char resident = 0;
    return mincore(reinterpret_cast<void*>(address & ~(kPage - 1)), kPage, &resident) == 0;
}

std::string hexadecimal(std::uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

}  // namespace

void Execution::run() {
    process_.lock.lock();
    process_.schedule.come_back(thread_);
    thread_.allocations.begin(context_);
    while (!thread_.ended()) {
        thread_.signals.has_left();
        if (thread_.wait_while_held()) next_ = nullptr;  // other threads may have forgotten it
        if (thread_.signals.pending()) deliver_signal();
        if (process_.stress.disturb(process_.cache)) process_.flush();
        if (process_.stress.enabled()) next_ = nullptr;
        const Block* block = next_ ? next_ : block_for(context_.pc);
        next_ = nullptr;
        if (block == nullptr) continue;
        context_.entry = block->entry;
        const bool follows_calls = context_.call_tree != nullptr && collects(block->version);
        if (follows_calls) look_at_stack(*block);
        thread_.bursts.enters(context_, *block, process_.regions.version_of(context_) == kPlain);
        enter();
        sp_left_with_ = follows_calls ? context_.gpr[RSP] : 0;
        count_exit();
        thread_.bursts.has_left(context_);
        handle_exit();
    }
    process_.lock.unlock();
}

// Translated code follows the stack pointer itself. So the context of an instruction does not
// depend on when its code was translated.
void Execution::look_at_stack(const Block& block) {
    const std::uint64_t sp = context_.gpr[RSP];
    if (sp == sp_left_with_ && context_.calls.top != nullptr)
        context_.call_tree->jump(block.pc, 0);
    else
        context_.call_tree->arrive(block.pc, sp, true);
}

void Execution::deliver_signal() {
    const std::uint64_t interrupted = context_.pc;
    const int handled = thread_.deliver_signal();
    next_ = nullptr;
    thread_.intervals.send_corrections();
    if (handled != 0) thread_.allocations.interrupt(context_);
    if (handled != 0 && context_.call_tree != nullptr)
        context_.call_tree->enter_handler(context_.gpr[RSP] + 8, interrupted, context_.pc);
    if (handled != 0 && thread_.tells_handlers()) record_handler(handled, interrupted);
}

// The handler's frame starts with the return address, like a function's frame. There may be no
// instruction at the interrupted address.
void Execution::record_handler(int signal, std::uint64_t interrupted) {
    const Block* handler = block_for(context_.pc);
    if (handler == nullptr) return;
    const std::uint32_t instr = handler->first_instr;
    thread_.trace.append(context_.gpr[RSP] + 8,
                         process_.trace.driver_site(instr, TRACE_SITE_SIGNAL),
                         static_cast<std::uint32_t>(signal));
    thread_.trace.append(interrupted, process_.trace.driver_site(instr, TRACE_SITE_INTERRUPTED));
}

// Runs translated code from Context::entry until the driver has to do more than handle_inside().
void Execution::enter() {
    thread_.set_running(process_.cache.generation());
    do {
        process_.lock.unlock();
        thread_.signals.entering();
        assay_enter(&context_);
        thread_.signals.left();
        process_.lock.lock();
    } while (handle_inside());
    thread_.set_running(0);
}

// Handles the exits after which translated code continues where it left, even if its translation
// was forgotten meanwhile. False for other exits.
bool Execution::handle_inside() {
    const auto id = static_cast<std::uint32_t>(context_.exit_id);
    if (id < kFirstExit) return false;
    const Exit exit = process_.cache.exit(id);
    context_.entry = exit.stub;
    if (exit.kind >= ExitKind::kSpecial && exit.kind <= ExitKind::kStateBehind) {
        record_at(exit, id);
        return true;
    }
    if (exit.kind != ExitKind::kCheck) return false;
    const Block& block = process_.cache.block_of(id);
    if (is_unchanged(block)) return true;
    context_.countdown -= exit.uncounted();
    process_.code_changed(block.pc, block.end_pc());
    context_.pc = block.pc;
    context_.exit_id = kInterrupted;
    return false;
}

void Execution::record_at(const Exit& exit, std::uint32_t id) {
    const Instruction instruction = process_.cache.special(id);
    context_.pc = exit.target;
    if (exit.kind == ExitKind::kSpecial &&
        instruction.form->processor_use == ProcessorUse::kIdentify)
        identify_processor(instruction);
    const std::uint32_t site = exit.first_site;
    if (trace::tells_contexts(process_.trace.spec()))
        thread_.trace.append(context_.calls.node->number,
                             process_.trace.driver_site(0, TRACE_SITE_CONTEXT));
    process_.lock.unlock();
    if (exit.kind == ExitKind::kValuesBefore)
        values_.read(instruction);
    else if (exit.kind == ExitKind::kValuesBehind)
        values_.record(instruction, site);
    else if (exit.kind == ExitKind::kStateBefore || exit.kind == ExitKind::kStateBehind)
        values_.read_saved(instruction, exit.kind == ExitKind::kStateBefore);
    else
        references_.record(instruction, site);
    process_.lock.lock();
}

void Execution::identify_processor(const Instruction& instruction) {
    if (identify(context_, instruction, shown_processor())) return;
    const auto wanted = static_cast<std::uint32_t>(context_.gpr[RCX]);
    thread_.refuse("xgetbv with ecx " + std::to_string(wanted) + ": no such register");
}

bool Execution::is_unchanged(const Block& block) const {
    for (std::uint32_t i = 0; i < block.instr_count; ++i) {
        const trace_instr_t& instr = process_.trace.instr(block.first_instr + i);
        std::uint8_t now[sizeof instr.bytes];
        if (!read_target(instr.pc, now, instr.length) ||
            std::memcmp(now, instr.bytes, instr.length) != 0)
            return false;
    }
    return true;
}

// Counts down the instructions that translated code has not counted itself; see Bursts.
void Execution::count_exit() {
    const auto id = static_cast<std::uint32_t>(context_.exit_id);
    if (thread_.bursts.wanted() && id >= kFirstExit)
        context_.countdown -= process_.cache.exit(id).uncounted();
}

void Execution::change_burst_if_due() {
    if (thread_.bursts.wanted() && thread_.bursts.is_due(context_)) thread_.bursts.change(context_);
}

void Execution::handle_exit() {
    const auto id = static_cast<std::uint32_t>(context_.exit_id);
    if (id == kInterrupted) return;
    if (id == kCountedOut) {
        process_.regions.leave_functions(context_);
        return change_burst_if_due();
    }
    if (id == kIndirectMiss) return indirect_miss();
    if (id == kLeft) {
        thread_.allocations.leave(context_);
        return process_.regions.leave_functions(context_);
    }
    const Exit exit = process_.cache.exit(id);
    switch (exit.kind) {
        case ExitKind::kSyscall:
            return do_syscall(thread_, exit.target);
        case ExitKind::kInterruptReturn:
            return do_interrupt_return(exit.target);
        case ExitKind::kUnsupported:
            context_.pc = exit.target;
            return do_unsupported();
        case ExitKind::kDirect:
            return follow(exit, id);
        case ExitKind::kEnters:
            context_.pc = exit.target;
            return process_.regions.enter(context_);
        case ExitKind::kAllocates:
            context_.pc = exit.target;
            if (const auto* function = process_.allocation_functions.find(context_.pc))
                return thread_.allocations.enter(context_, *function);
            // The function was unmapped, and other code is there now.
            context_.allocates_above = context_.gpr[RSP];
            return context_.set_leaves_above();
        case ExitKind::kCountdown:
            return reach(process_.cache.block_of(id));
        case ExitKind::kInterval:
            return reach_interval(process_.cache.block_of(id));
        case ExitKind::kSliceEnd:
            return end_slice(process_.cache.block_of(id));
        case ExitKind::kMarker:
            context_.pc = exit.target + kMarkerBytes;
            if (do_interpreter_marker(context_, process_)) return;
            if (do_marker(context_, thread_.trace, process_.regions))
                process_.switch_others(thread_);
            return;
        case ExitKind::kSpecial:
        case ExitKind::kValuesBefore:
        case ExitKind::kValuesBehind:
        case ExitKind::kStateBefore:
        case ExitKind::kStateBehind:
        case ExitKind::kCheck:
            return;  // handle_inside() has handled it
    }
}

void Execution::follow(const Exit& exit, std::uint32_t id) {
    context_.pc = exit.target;
    change_burst_if_due();
    const std::uint32_t generation = process_.cache.generation();
    const bool current = process_.cache.is_current(id);
    next_ = block_for(exit.target);
    if (next_ && current && generation == process_.cache.generation() &&
        next_->version == process_.cache.block_of(id).version)
        process_.cache.link(process_.cache.index_of_exit(id), *next_);
}

void Execution::refuse_instruction() const {
    thread_.refuse("unsupported instruction at " + hexadecimal(context_.pc) + ": " +
                   process_.translator.describe(context_.pc));
}

void Execution::do_unsupported() {
    const std::uint64_t pc = context_.pc;
    Instruction instruction;
    if (!process_.translator.decoder().decode(process_.memory.code_at(pc), pc, instruction) ||
        shown_processor().executes(*instruction.form))
        refuse_instruction();
    thread_.signals.raise_fault(SIGILL, ILL_ILLOPN, pc);
}

void Execution::do_interrupt_return(std::uint64_t pc) {
    context_.pc = pc;
    const std::uint32_t site = thread_.stack_site();
    if (!return_from_interrupt(context_)) refuse_instruction();
    thread_.record_stack(site);
    process_.regions.leave_functions(context_);
}

// The block has already counted itself down.
void Execution::reach(const Block& block) {
    context_.pc = block.pc;
    context_.countdown += block.instr_count;
    if (thread_.bursts.wanted()) return thread_.bursts.change(context_);
    process_.regions.reach(context_);
    process_.switch_others(thread_);
    if (!process_.regions.counts()) process_.flush();
}

void Execution::reach_interval(const Block& block) {
    context_.pc = block.pc;
    if (process_.regions.counts()) context_.countdown += block.instr_count;  // counts again
    thread_.intervals.reach(context_, block);
}

void Execution::end_slice(const Block& block) {
    context_.pc = block.pc;
    process_.schedule.pass(thread_);
}

void Execution::indirect_miss() {
    Planner& planner = process_.translator.planner();
    const std::uint64_t target = context_.pc;
    if (!planner.flags_cross_calls() && process_.memory.find(target) != nullptr &&
        planner.reads_flags(target, 128)) {
        // The flags may come from before the branch. From now on they are also kept across calls.
        planner.set_flags_cross_calls();
        process_.flush();
    }
    next_ = block_for(target, true);
    if (next_) process_.cache.add_landing(*next_);
}

Block* Execution::block_for(std::uint64_t pc, bool by_indirect_branch) {
    if (Block* block =
            thread_.faults.runs_alone() ? nullptr : process_.cache.find(pc, thread_.version()))
        return block;
    if (process_.trace.tables_full() || process_.cache.line_numbers_full())
        thread_.refuse("the program has more code than the trace segment can hold");
    const Region* region = process_.memory.find(pc);
    if (region == nullptr || !region->executable) {
        thread_.faults.has_run_alone();
        if (call_vsyscall(thread_, pc)) return nullptr;
        thread_.signals.raise_fault(SIGSEGV, is_mapped(pc) ? SEGV_ACCERR : SEGV_MAPERR, pc);
        return nullptr;
    }
    if (needs_flush(*region, pc)) {
        process_.flush();
        // Another thread may have translated the block while this one waited. With two
        // translations, nobody would forget the first one.
        if (Block* known =
                thread_.faults.runs_alone() ? nullptr : process_.cache.find(pc, thread_.version()))
            return known;
    }
    Block* block = thread_.faults.runs_alone()
                       ? process_.translator.translate_alone(pc, thread_.version())
                       : process_.translator.translate(pc, thread_.version(), by_indirect_branch);
    thread_.faults.has_run_alone();
    for (const trace_record_t& record : process_.trace.object_runs().take_ended())
        thread_.trace.append({&record, 1});
    if (block == nullptr) raise_fetch_fault(pc);
    return block;
}

// Raises the fault for an invalid instruction, or for one that cannot be fetched as a whole.
void Execution::raise_fetch_fault(std::uint64_t pc) {
    const auto code = process_.memory.code_at(pc);
    std::array<std::uint8_t, 15> bytes{};
    if (code.empty() || !read_target(pc, bytes.data(), code.size()))
        return thread_.signals.raise_fault(SIGBUS, BUS_ADRERR, pc);
    Instruction instruction;
    const std::uint64_t end = pc + code.size();
    if (code.size() == bytes.size() ||
        !process_.translator.decoder().decode(bytes, pc, instruction)) {
        if (shown_processor().newer_instruction(code) == nullptr)
            return thread_.signals.raise_fault(SIGILL, ILL_ILLOPN, pc);
        context_.pc = pc;
        refuse_instruction();
    }
    const Region* const next = process_.memory.find(end);
    if (next != nullptr && next->executable)
        return thread_.signals.raise_fault(SIGBUS, BUS_ADRERR, end);
    thread_.signals.raise_fault(SIGSEGV, is_mapped(end) ? SEGV_ACCERR : SEGV_MAPERR, end);
}

// Generated code may ignore the psABI's rules for flags. From the first such code on, flags are
// also kept across calls.
bool Execution::needs_flush(const Region& region, std::uint64_t pc) {
    Planner& planner = process_.translator.planner();
    if (region.changeable && !planner.flags_cross_calls()) {
        planner.set_flags_cross_calls();
        return true;
    }
    return process_.translator.must_flush_for(pc);
}

namespace {

// SDM volume 2, IRET, in 64-bit mode.
struct InterruptFrame {
    std::uint64_t rip, cs, rflags, rsp, ss;
};

// arch/x86/include/asm/segment.h: __USER_CS and __USER_DS.
constexpr std::uint64_t kUserCode = 0x33, kUserData = 0x2b, kSelector = 0xffff;

// ID, AC, and all flags from OF down to CF except the interrupt flag.
constexpr std::uint64_t kChangeable = 0x240dd5;

}  // namespace

bool return_from_interrupt(Context& context) {
    InterruptFrame frame;
    if (!read_target(context.gpr[RSP], &frame, sizeof frame)) return false;
    if ((frame.cs & kSelector) != kUserCode || (frame.ss & kSelector) != kUserData) return false;
    context.pc = frame.rip;
    context.gpr[RSP] = frame.rsp;
    context.rflags = (context.rflags & ~kChangeable) | (frame.rflags & kChangeable);
    return true;
}

}  // namespace assay::native
