#include "framework/driver/native/signals/held_signals.h"

#include <sys/syscall.h>
#include <unistd.h>
#include <bit>

namespace assay::native {

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

void HeldSignals::give_to_kernel() {
    for (std::uint64_t left = numbers_; left != 0; left &= left - 1) {
        const int number = std::countr_zero(left) + 1;
        siginfo_t info = take(number);
        if (syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), number, &info) != 0)
            hold(number, info);
    }
}

}  // namespace assay::native
