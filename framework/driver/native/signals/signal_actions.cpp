#include "framework/driver/native/signals/signal_actions.h"

#include "framework/driver/native/machine/context.h"

#include <sys/syscall.h>
#include <unistd.h>
#include <bit>
#include <cerrno>
#include <utility>

namespace assay::native {
namespace {

constexpr std::uint64_t kSaSigInfo = 4, kSaRestorer = 0x04000000, kSaOnStack = 0x08000000;
// Flags that the kernel gets as the program set them. SA_RESTART is among them because the kernel
// decides which system calls continue after a handler, and when: signal(7).
constexpr std::uint64_t kPassedOn = SA_NOCLDSTOP | SA_NOCLDWAIT | SA_RESTART;
// UAPI_SA_FLAGS. The kernel drops other flags; programs use this to find out which flags it knows.
constexpr std::uint64_t kSaExposeTagBits = 0x800, kSaResetHand = 0x80000000;
constexpr std::uint64_t kKnownFlags = kSaSigInfo | kSaExposeTagBits | kSaRestorer | kSaOnStack |
                                      SA_NOCLDSTOP | SA_NOCLDWAIT | SA_RESTART | SA_NODEFER |
                                      kSaResetHand;

long kernel_action(int number, const KernelAction* action, KernelAction* old) {
    return syscall(SYS_rt_sigaction, number, action, old, 8) == 0 ? 0 : -errno;
}

}  // namespace

void SignalActions::initialise(Handler handler) {
    handler_ = handler;
    for (int number = 1; number <= 64; ++number) kernel_action(number, nullptr, &actions_[number]);
    make_all_due_arrive();
}

bool SignalActions::arrives_anyway(int number) const {
    return kSynchronousSignals & mask_of(number) ||
           (all_arrive_ && !(kUnblockable & mask_of(number)));
}

// The driver's handler runs with all signals blocked.
KernelAction SignalActions::own_action(std::uint64_t flags) const {
    return {reinterpret_cast<std::uint64_t>(handler_),
            kSaSigInfo | kSaOnStack | kSaRestorer | flags,
            reinterpret_cast<std::uint64_t>(&assay_signal_return), kAllSignals};
}

// A signal that the program leaves to the kernel must not interrupt system calls: SA_RESTART.
KernelAction SignalActions::in_kernel(int number) const {
    const KernelAction& action = actions_[number];
    if (action.handler > 1) return own_action(action.flags & kPassedOn);
    if (!arrives_anyway(number)) return action;
    return own_action((action.flags & kPassedOn) | (all_arrive_ ? SA_RESTART : 0));
}

void SignalActions::make_all_due_arrive() const {
    for (int number = 1; number <= 64; ++number)
        if (arrives_anyway(number)) {
            const KernelAction own = in_kernel(number);
            kernel_action(number, &own, nullptr);
        }
}

void SignalActions::let_all_arrive(bool all) {
    if (std::exchange(all_arrive_, all) == all) return;
    for (int number = 1; number <= 64; ++number) put_back_in_kernel(number);
}

void SignalActions::let_kernel_ignore() const {
    for (int number = 1; number <= 64; ++number)
        if (arrives_anyway(number) &&
            actions_[number].handler == reinterpret_cast<std::uint64_t>(SIG_IGN))
            kernel_action(number, &actions_[number], nullptr);
}

long SignalActions::set(int number, const KernelAction* action, KernelAction* old) {
    if (number < 1 || number > 64) return -EINVAL;
    if (action && (kUnblockable & mask_of(number))) return -EINVAL;
    const KernelAction before = actions_[number];
    if (action) {
        actions_[number] = *action;
        const KernelAction kernel = in_kernel(number);
        if (const long error = kernel_action(number, &kernel, nullptr)) {
            actions_[number] = before;
            return error;
        }
        actions_[number].flags &= kKnownFlags;
        actions_[number].mask &= ~kUnblockable;
    }
    if (old) *old = before;
    return 0;
}

void SignalActions::reset_handler(int number) {
    KernelAction action = actions_[number];
    action.handler = 0;
    set(number, &action, nullptr);
}

void SignalActions::clear_handlers() {
    const KernelAction standard{};
    for (int number = 1; number <= 64; ++number)
        if (actions_[number].handler > 1) set(number, &standard, nullptr);
}

void SignalActions::put_back_in_kernel(int number) {
    const KernelAction action = actions_[number];
    set(number, &action, nullptr);
}

void SignalActions::set_default_in_kernel(int number) {
    const KernelAction standard{};
    kernel_action(number, &standard, nullptr);
}

namespace {

// Sends the signal to the whole process again, with the same sender. False if that is impossible:
// only the first thread may name another process as the sender (do_rt_sigqueueinfo()).
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
