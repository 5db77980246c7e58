// Signals of the kinds that processors cause, which somebody has sent while the thread blocks them.
// The kernel's mask lets these kinds through always, so the driver keeps what the kernel would: one
// of each kind, the first (signal(7)). The caller sees to it that none arrives meanwhile.
#pragma once

#include "framework/driver/native/signals/signal_actions.h"

#include <array>

namespace assay::native {

class HeldSignals {
  public:
    bool any() const { return numbers_ != 0; }
    void hold(int number, const siginfo_t& info);
    // The first of them that the mask does not block, or 0.
    int due(std::uint64_t mask) const;
    siginfo_t take(int number);
    // For the time of a system call that can see what is pending. They come back as soon as the
    // kernel's mask lets them through again. Those of `for_others` that kill(2) has sent go to the
    // process, so that any thread can have them, the others to this thread.
    void give_to_kernel(std::uint64_t for_others);
    void clear() { numbers_ = 0; }

  private:
    std::uint64_t numbers_ = 0;
    std::array<siginfo_t, SIGSEGV + 1> infos_;
};

static_assert(kSynchronousSignals >> SIGSEGV == 0, "SIGSEGV has the greatest number");

}  // namespace assay::native
