// What happens in the kernel's handler: signals arrive, and translated code is left. The rest:
// signal_delivery.cpp.
#include "framework/driver/native/process/signals.h"

#include "framework/driver/native/code_cache/stress.h"
#include "framework/driver/native/process/interrupted_state.h"

#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace assay::native {
namespace {

constexpr greg_t kWriteFault = 2;  // in the error code of a page fault

bool is_synchronous(int number) {
    return kSynchronousSignals & mask_of(number);
}

}  // namespace

ucontext_t* Signals::interrupted_by(ucontext_t* found) const {
    const bool resumes = is_between(pc_of(found), address_of(assay_resume), assay_resume_end);
    return resumes ? resumed_ : found;
}

bool Signals::arrive(int number, const siginfo_t& info, ucontext_t* interrupted) {
    resumed_ = interrupted;
    if (stopped_by_tracer_) {
        set_mask_of(interrupted, kAllSignals);
        note(number, info);
    } else if (is_fault(number, info, pc_of(interrupted))) {
        return on_fault(number, info, interrupted);
    } else {
        on_sent(number, info, interrupted);
    }
    return true;
}

void Signals::on_sent(int number, const siginfo_t& info, ucontext_t* interrupted) {
    if (Stress::is_interruption(number, info)) return stepper_.interrupt(*context_, interrupted);
    if (number == SIGTRAP && info.si_code == SI_QUEUE && info.si_ptr == this) {
        asked_ = true;
        if (!stepper_.is_stepping()) come_back(interrupted);
        return;
    }
    if (is_refusal(number, info)) {
        // What the driver's code finds where it waits for a result: of brk(2) it is no error
        // number.
        interrupted->uc_mcontext.gregs[REG_RAX] = info.si_syscall == SYS_brk ? 0 : -ENOSYS;
        if (info.si_syscall != calling_) return;
    }
    if (is_synchronous(number) && blocks(number)) {
        held_.hold(number, info);
        // A system call that is about to begin has not lent it.
        if (is_between(pc_of(interrupted), assay_syscall_begin, assay_syscall_end))
            set_pc(interrupted, reinterpret_cast<std::uint64_t>(assay_syscall_interrupted));
        return;
    }
    if (pending_) return requeue(number, info, interrupted);
    set_mask_of(interrupted, ~kSynchronousSignals);
    note(number, info);
    come_back(interrupted);
}

// A process may send itself what looks like a fault: rt_tgsigqueueinfo(2). That arrives behind a
// system call of the driver's, where no fault is.
bool Signals::is_fault(int number, const siginfo_t& info, std::uint64_t host_pc) const {
    if (!is_synchronous(number) || info.si_code <= 0) return false;
    const auto* before = reinterpret_cast<const std::uint8_t*>(host_pc) - 2;
    return cache_.contains(host_pc) || before[0] != 0x0f || before[1] != 0x05;
}

// Translated code comes back at the end of a basic block, and a system call does not begin.
void Signals::come_back(ucontext_t* interrupted) {
    if (stepper_.come_back(*context_, interrupted)) return;
    if (is_between(pc_of(interrupted), assay_syscall_begin, assay_syscall_end))
        set_pc(interrupted, reinterpret_cast<std::uint64_t>(assay_syscall_interrupted));
}

// One that was sent, not a fault: the kernel keeps it until there is a place for it. What is back
// in the kernel stays there: two of them would take turns forever.
void Signals::requeue(int number, siginfo_t info, ucontext_t* interrupted) const {
    std::uint64_t before = 0;
    std::memcpy(&before, &interrupted->uc_sigmask, sizeof before);
    set_mask_of(interrupted, before | ~kSynchronousSignals | mask_of(number));
    syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), number, &info);
}

bool Signals::on_fault(int number, const siginfo_t& info, ucontext_t* interrupted) {
    const std::uint64_t host_pc = pc_of(interrupted);
    if (number == SIGTRAP && stepper_.is_step(info)) {
        stepper_.on_step(*context_, interrupted);
        return true;
    }
    const bool copying =
        is_between(host_pc, reinterpret_cast<const void*>(&assay_copy), assay_copy_end);
    const bool translated = cache_.contains(host_pc);
    if (translated && faults_.continue_in_next_buffer(info, pending_ == 0, interrupted))
        return true;
    // Copies that only read are made without the lock, too.
    const bool writes = interrupted->uc_mcontext.gregs[REG_ERR] & kWriteFault;
    if (number == SIGSEGV && info.si_code == SEGV_ACCERR && writes && (translated || copying) &&
        faults_.let_write(*context_, info, interrupted))
        return true;
    if (copying) {
        set_pc(interrupted, reinterpret_cast<std::uint64_t>(assay_copy_end));
        return true;
    }
    if (is_between(host_pc, reinterpret_cast<const void*>(&assay_touch), assay_touch_end)) {
        set_pc(interrupted, reinterpret_cast<std::uint64_t>(assay_touch_end));
        return true;
    }
    return translated && note_fault(number, info, interrupted);
}

bool Signals::note_fault(int number, siginfo_t info, ucontext_t* interrupted) {
    const std::uint64_t host_pc = stepper_.end_at_fault(pc_of(interrupted));
    // Behind a signal that waits, the instruction will be executed again.
    const bool again = pending_ != 0;
    if (!faults_.leave_at_fault(*context_, number, host_pc, again, info, interrupted)) return false;
    if (!again) {
        note(number, info);
        signal_.fault = true;
        const auto& gregs = interrupted->uc_mcontext.gregs;
        signal_.error = static_cast<std::uint64_t>(gregs[REG_ERR]);
        signal_.trap = static_cast<std::uint64_t>(gregs[REG_TRAPNO]);
    }
    set_mask_of(interrupted, kAllSignals);
    return true;
}

void Signals::note(int number, const siginfo_t& info) {
    signal_ = PendingSignal{number, false, info};
    pending_ = number;
}

void Signals::entering() {
    stepper_.entering();
    if (pending_ || asked_) stepper_.step_from_entry(*context_);
}

}  // namespace assay::native
