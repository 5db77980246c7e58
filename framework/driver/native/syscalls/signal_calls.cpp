// The program's calls about signals. The driver keeps the state of signals itself.
#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/syscalls/syscalls.h"

#include <cerrno>
#include <csignal>

namespace assay::native {
namespace {

// Reads the value at the argument's address. `pointer` is nullptr for 0. False if unreadable.
template <typename T>
bool read_optional(const Call& call, unsigned argument, T& value, const T*& pointer) {
    pointer = call.arguments[argument] == 0 ? nullptr : &value;
    return !pointer || read_target(call.unsigned_argument(argument), &value, sizeof value);
}

template <typename T>
long write_optional(const Call& call, unsigned argument, const T& value, long result) {
    if (result != 0 || call.arguments[argument] == 0) return result;
    return write_target(call.unsigned_argument(argument), &value, sizeof value) ? 0 : -EFAULT;
}

constexpr long kMaskBytes = 8;

// Makes a call that waits with a temporary signal mask. The kernel reports wrong arguments.
long wait_with_mask(const Call& call, std::uint64_t address) {
    std::uint64_t mask = 0;
    if (address == 0 || !read_target(address, &mask, sizeof mask)) return pass_on(call);
    call.thread.signals.begin_wait(mask);
    return pass_on(call);
}

}  // namespace

long do_signal_action(const Call& call) {
    if (call.arguments[3] != kMaskBytes) return -EINVAL;
    KernelAction action, old;
    const KernelAction* wanted = nullptr;
    if (!read_optional(call, 1, action, wanted)) return -EFAULT;
    const long result =
        call.thread.relations.actions->set(static_cast<int>(call.arguments[0]), wanted, &old);
    return write_optional(call, 2, old, result);
}

long do_signal_mask(const Call& call) {
    if (call.arguments[3] != kMaskBytes) return -EINVAL;
    std::uint64_t mask = 0, old = 0;
    const std::uint64_t* wanted = nullptr;
    if (!read_optional(call, 1, mask, wanted)) return -EFAULT;
    const long result =
        call.thread.signals.set_mask(static_cast<int>(call.arguments[0]), wanted, &old);
    return write_optional(call, 2, old, result);
}

long do_signal_stack(const Call& call) {
    stack_t stack, old;
    const stack_t* wanted = nullptr;
    if (!read_optional(call, 0, stack, wanted)) return -EFAULT;
    return write_optional(call, 1, old, call.thread.signals.set_stack(wanted, &old));
}

long do_suspend(const Call& call) {
    return wait_with_mask(call, call.unsigned_argument(0));
}

long do_poll_with_mask(const Call& call) {
    return wait_with_mask(call, call.unsigned_argument(3));
}

long do_wait_for_events_with_mask(const Call& call) {
    return wait_with_mask(call, call.unsigned_argument(4));
}

// pselect6(2) and io_pgetevents(2): the argument is the address of the mask's address and size.
long do_wait_with_sized_mask(const Call& call) {
    std::uint64_t mask = 0;
    if (!read_target(call.unsigned_argument(5), &mask, sizeof mask)) return pass_on(call);
    return wait_with_mask(call, mask);
}

long do_wait_for_signal(const Call& call) {
    std::uint64_t set = 0;
    if (read_target(call.unsigned_argument(0), &set, sizeof set)) call.thread.signals.wait_for(set);
    return pass_on(call);
}

}  // namespace assay::native
