// How control goes from block to block of a thread: branches, calls, exceptions and interrupts.
#include "framework/driver/qemu/guest_thread.h"

#include <algorithm>
#include <utility>

namespace assay::qemu {
namespace {

constexpr std::uint64_t kNoReturn = UINT64_MAX;  // in place of a handler's return address
constexpr unsigned kUnknownTarget = TRACE_INSTR_INDIRECT | TRACE_INSTR_RETURN;

bool is_inside(const GuestBlock& block, std::uint64_t pc) {
    return pc >= block.pc && pc < block.end;
}

}  // namespace

// After a handler, the interrupted block ends as if there had been no interrupt.
void GuestThread::leave(const GuestBlock& from, const GuestBlock& to) {
    if (!resumes_) {
        if (is_interrupt(from, to)) return enter_handler(from, to);
        end_branch(from, to);
    }
    while (std::exchange(resumes_, false)) {
        const Interrupted interrupted = interrupted_.back();
        interrupted_.pop_back();
        in_node_ = interrupted.in_node;
        is_profiled_ = interrupted.is_profiled;
        leave_calls(interrupted.depth, to);
        if (to.is_handler()) return enter_handler(*interrupted.block, to);
        // A fault can have interrupted the block before its branch.
        if (!is_inside(*interrupted.block, to.pc) || to.pc == interrupted.block->last.target)
            end_branch(*interrupted.block, to);
    }
}

// The target of an indirect branch can be anything, so only known handlers count there. QEMU begins
// an instruction again if it cannot complete it at once. All handlers of a program are known. They
// call each other through pointers.
bool GuestThread::is_interrupt(const GuestBlock& from, const GuestBlock& to) const {
    const bool to_handler = to.is_handler();
    if (to.is_user || (!is_machine_ && !to_handler)) return false;
    const GuestBlock::Last& last = from.last;
    const std::uint64_t target = to.pc;
    if (last.flags & kUnknownTarget) {
        if (!is_machine_) return interrupted_.empty() || last.flags & TRACE_INSTR_RETURN;
        if (from.is_user) return to_handler;
        const bool returns = std::find(return_addresses_.begin(), return_addresses_.end(),
                                       target) != return_addresses_.end();
        return !returns && to_handler && (interrupted_.empty() || !may_end_handler(from));
    }
    const bool goes_on = last.target == 0 || last.flags & TRACE_INSTR_CONDITIONAL;
    if ((goes_on && target == from.end) || (last.target != 0 && target == last.target))
        return false;
    return !is_inside(from, target) || to_handler;
}

// True if a handler of a machine can return with the block.
bool GuestThread::may_end_handler(const GuestBlock& block) const {
    return code_.handlers_end() ? block.last.ends_handler
                                : (block.last.flags & TRACE_INSTR_RETURN) != 0;
}

// As if the handler had been called in the interrupted block.
void GuestThread::enter_handler(const GuestBlock& interrupted, const GuestBlock& handler) {
    if (interrupted_.size() == kMostInterrupted) {  // these handlers do not come back
        interrupted_.clear();
        keep_calls(0);
        if (contexts_) contexts_->begin_thread();
    }
    const std::uint64_t address = stack_pointer();
    interrupted_.push_back({&interrupted, in_node_, return_addresses_.size(), is_profiled_});
    return_addresses_.push_back(kNoReturn);
    if (contexts_ && is_profiled_)
        contexts_->enter_handler(
            address, interrupted.is_user ? code_.user_pc() : interrupted.last.pc, handler.pc);
    const bool records =
        is_profiled_ && tables_->spec().captures & (trace::kCaptureCalls | trace::kCaptureBlocks);
    if (handler.is_handler() && !records) return;
    const std::lock_guard locked(lock_);
    code_.note_handler(handler.pc);
    if (!records) return;
    const std::uint32_t instr = tables_->block(handler.index).first_instr;
    append(address, tables_->driver_site(instr, TRACE_SITE_SIGNAL));
    append(interrupted.last.pc, tables_->driver_site(instr, TRACE_SITE_INTERRUPTED));
}

// A handler ends. That of a program has mostly returned before, to code that makes a system call.
void GuestThread::leave_calls(std::size_t depth, const GuestBlock& to) {
    keep_calls(depth);
    if (contexts_) contexts_->go_on_elsewhere(stack_pointer());
    if (!tables_->captures(trace::kCaptureCalls) || !is_profiled_) return;
    const std::lock_guard locked(lock_);
    append(stack_pointer(),
           tables_->driver_site(tables_->block(to.index).first_instr, TRACE_SITE_STACK));
}

// If a signal arrives, the thread goes on elsewhere. For a direct branch that shows: it has no
// outcome then.
void GuestThread::end_branch(const GuestBlock& from, const GuestBlock& to) {
    const GuestBlock::Last& last = from.last;
    const std::uint64_t target = to.pc;
    const bool is_conditional = last.flags & TRACE_INSTR_CONDITIONAL;
    if (is_conditional && target != from.end && target != last.target &&
        !(last.flags & kUnknownTarget))
        return;
    const bool taken = !is_conditional || target != from.end;
    if (follows_calls_ && taken &&
        last.flags & (TRACE_INSTR_CALL | TRACE_INSTR_RETURN | TRACE_INSTR_INDIRECT))
        follow_call(from, to);
    if (!is_profiled_) return;
    if (last.site != GuestBlock::kNoSite) append(target, last.site, taken ? 1 : 0);
    if (!predictor_) return;
    const trace::PredictorShape& shape = tables_->spec().predictor;
    bool missed = false;
    if (is_conditional)
        missed = predictor_->conditional(shape, last.pc, taken);
    else if (last.flags & TRACE_INSTR_INDIRECT)
        missed = std::exchange(predictor_->targets[driver::target_entry(shape, last.pc)], target) !=
                 target;
    if (!missed) return;
    // See trace::counters().
    std::uint64_t* const counters = counters_ + from.index * trace::counters(tables_->spec());
    --counters[0];
    ++counters[1];
    if (in_node_ == nullptr) return;
    --in_node_[0];
    ++in_node_[1];
}

void GuestThread::follow_call(const GuestBlock& from, const GuestBlock& to) {
    const GuestBlock::Last& last = from.last;
    if (from.is_user && !last.ends_handler) return;
    if (last.flags & TRACE_INSTR_CALL) {
        if (last.target != 0 && to.pc != last.target) return;  // a signal
        const std::uint64_t address = stack_pointer();
        if (is_profiled_ && last.call_site != GuestBlock::kNoSite) {
            append(address, last.call_site);
            append(to.pc, last.target_site);
        }
        if (contexts_ && is_profiled_) contexts_->call(last.pc, from.end, address);
        past_call(from.end) = {from.end, return_addresses_.size()};
        return_addresses_.push_back(from.end);
        return;
    }
    const std::optional<std::size_t> depth =
        returned_to(to, is_machine_ ? may_end_handler(from) : last.flags & TRACE_INSTR_RETURN);
    if (!depth) return;
    resumes_ = is_machine_ && !interrupted_.empty() && *depth == interrupted_.back().depth;
    if (resumes_) return;
    keep_calls(*depth);
    if (!is_profiled_) return;
    if (last.return_site != GuestBlock::kNoSite) append(stack_pointer(), last.return_site);
    if (contexts_) contexts_->come_back(stack_pointer());
}

// A return finds its call below others if those were left in another way. An exception leaves the
// innermost call that the landing pad is for. longjmp(3) goes to the end of a call, of setjmp(3),
// that has already returned. A handler of a machine returns to where no call of its own was made.
std::optional<std::size_t> GuestThread::returned_to(const GuestBlock& to, bool is_return) {
    const std::size_t own =
        !is_machine_ || interrupted_.empty() ? 0 : interrupted_.back().depth + 1;
    const auto end = return_addresses_.rend() - static_cast<std::ptrdiff_t>(own);
    const auto lands = [&](std::uint64_t behind) {
        return std::any_of(to.lands.begin(), to.lands.end(), [&](const CodeRange& calls) {
            return behind > calls.begin && behind <= calls.end;
        });
    };
    if (own != 0 && is_return && code_.handlers_end()) return own - 1;
    const auto found = to.lands.empty() ? std::find(return_addresses_.rbegin(), end, to.pc)
                                        : std::find_if(return_addresses_.rbegin(), end, lands);
    if (found != end)
        return leave_handlers(static_cast<std::size_t>(return_addresses_.rend() - found) - 1);
    if (own != 0) return is_return ? std::optional(own - 1) : std::nullopt;
    const bool in_handler = is_return && !interrupted_.empty() &&
                            return_addresses_.size() == interrupted_.back().depth + 1;
    if (in_handler) {
        // The program has called the handler through a pointer, which looks like a signal.
        const GuestBlock& interrupted = *interrupted_.back().block;
        if (interrupted.last.flags & TRACE_INSTR_CALL && to.pc == interrupted.end)
            return leave_handlers(interrupted_.back().depth);
    }
    const PastCall& past = past_call(to.pc);
    if (past.behind == to.pc && past.depth <= return_addresses_.size())
        return leave_handlers(past.depth);
    // The code that calls sigreturn(2).
    return in_handler ? std::optional(interrupted_.back().depth) : std::nullopt;
}

// The thread goes on in a call of this depth. It leaves the handlers that have interrupted this
// call, or calls inside it. Those of a machine return.
std::size_t GuestThread::leave_handlers(std::size_t depth) {
    while (!is_machine_ && !interrupted_.empty() && interrupted_.back().depth >= depth)
        interrupted_.pop_back();
    return depth;
}

}  // namespace assay::qemu
