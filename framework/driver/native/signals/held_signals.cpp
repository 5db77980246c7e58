#include "framework/driver/native/signals/held_signals.h"

#include <sys/syscall.h>
#include <unistd.h>
#include <bit>

namespace assay::native {

namespace {

// Only the first thread may say who has sent a signal to the process: do_rt_sigqueueinfo().
bool give_to_process(int number, siginfo_t& info) {
    if (info.si_code != SI_USER) return false;
    if (gettid() == getpid()) return syscall(SYS_rt_sigqueueinfo, getpid(), number, &info) == 0;
    return info.si_pid == getpid() && kill(getpid(), number) == 0;
}

}  // namespace

void HeldSignals::hold(int number, const siginfo_t& info) {
    if (numbers_ & mask_of(number)) return;
    numbers_ |= mask_of(number);
    infos_[static_cast<unsigned>(number)] = info;
}

int HeldSignals::due(std::uint64_t mask) const {
    const std::uint64_t numbers = numbers_ & ~mask;
    return numbers == 0 ? 0 : std::countr_zero(numbers) + 1;
}

siginfo_t HeldSignals::take(int number) {
    numbers_ &= ~mask_of(number);
    return infos_[static_cast<unsigned>(number)];
}

void HeldSignals::give_to_kernel(std::uint64_t for_others) {
    for (std::uint64_t left = numbers_; left != 0; left &= left - 1) {
        const int number = std::countr_zero(left) + 1;
        siginfo_t info = take(number);
        if (for_others & mask_of(number) && give_to_process(number, info)) continue;
        if (syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), number, &info) != 0)
            hold(number, info);
    }
}

}  // namespace assay::native
