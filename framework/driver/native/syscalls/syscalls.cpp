// The program's system calls. Most go to the kernel unchanged. The driver emulates or watches calls
// that affect its own state: executable memory, the program break, signals, fs, new processes.
#include "framework/driver/native/syscalls/syscalls.h"

#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/memory/proc_maps.h"
#include "framework/driver/native/syscalls/call_records.h"

#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

namespace assay::native {

namespace {

// True if a held signal interrupted the call or came right before it.
bool is_to_be_repeated(const Signals& signals, long result) {
    return (result == -EINTR || result == kNotCalled) && signals.holds();
}

long make_call(const Call& call) {
    Process& process = call.process();
    Signals& signals = call.thread.signals;
    if (process.schedule.wanted() && row_of(call.number).may_wait(call))
        process.schedule.go_away(call.thread);
    else
        process.schedule.begin_call(call.thread);
    process.lock.unlock();
    long result = 0;
    do {
        signals.lend_held();
        result =
            assay_interruptible_syscall(signals.pending_flag(), call.number, call.arguments.data());
    } while (!signals.pending() && (is_to_be_repeated(signals, result) ||
                                    (result == -EINTR && process.stress.enabled())));
    process.lock.lock();
    process.schedule.come_back(call.thread);
    return result;
}

// Makes the buffer's pages writable before the call. Otherwise the kernel would store only the data
// before the first protected page, or would lose a message.
void end_protection_of_buffer(const Call& call) {
    constexpr std::uint64_t kMost = 0x7ffff000;  // MAX_RW_COUNT
    Process& process = call.process();
    if (process.watch.empty() || !(row_of(call.number).traits & kFillsBuffer)) return;
    const std::uint64_t start = call.unsigned_argument(1);
    const std::uint64_t end = start + std::min(call.unsigned_argument(2), kMost);
    if (!process.memory.overlaps(start, end)) return;
    for (std::uint64_t page = start & ~(kPage - 1); page < end; page += kPage)
        if (process.watch.guards(page) && process.watch.let_write(page))
            process.code_changed(page, page + kPage);
}

// False if no page was protected.
bool end_protection_of_code(Process& process) {
    if (process.watch.empty()) return false;
    const std::vector<std::uint64_t> pages = process.watch.let_write_everywhere();
    for (const std::uint64_t page : pages) process.code_changed(page * kPage, (page + 1) * kPage);
    return !pages.empty();
}

}  // namespace

long pass_on(const Call& call) {
    Signals& signals = call.thread.signals;
    end_protection_of_buffer(call);
    long result = make_call(call);
    // The driver's protection may have caused the error.
    if (result == -EFAULT && end_protection_of_code(call.process())) result = make_call(call);
    signals.end_wait(result);
    signals.take_back_held();
    return result;
}

long pass_on_locked(const Call& call) {
    const auto& a = call.arguments;
    const long result = syscall(call.number, a[0], a[1], a[2], a[3], a[4], a[5]);
    return result == -1 ? -errno : result;
}

namespace {

long dispatch(const Call& call) {
    const CallRow& row = row_of(call.number);
    if (call.thread.relations.strict && !(row.traits & kInStrictMode)) {
        do_call_in_strict_mode(call);
        return 0;
    }
    if (is_on_own_descriptor(call)) return -EBADF;
    return row.handler(call);
}

// True if the call has to start again: only another thread has interrupted it.
bool is_only_asked_to_leave(const Signals& signals) {
    return !signals.pending() && signals.asked_to_leave();
}

}  // namespace

void do_syscall(Thread& thread, std::uint64_t syscall_pc) {
    constexpr std::uint64_t kSyscallBytes = 2;
    Context& context = *thread.context;
    const Call call{thread,
                    static_cast<long>(context.gpr[RAX]),
                    {static_cast<long>(context.gpr[RDI]), static_cast<long>(context.gpr[RSI]),
                     static_cast<long>(context.gpr[RDX]), static_cast<long>(context.gpr[R10]),
                     static_cast<long>(context.gpr[R8]), static_cast<long>(context.gpr[R9])}};
    context.pc = syscall_pc + kSyscallBytes;
    CallRecords records(thread, call.number);
    if (call.number == SYS_rt_sigreturn) {
        const std::uint32_t site = thread.stack_site();
        if (!goes_on_in_64_bits(context))
            thread.refuse(
                "a signal handler returns to another code segment; assay runs 64-bit code only");
        thread.signals.return_from_handler();
        thread.record_stack(site);
        thread.allocations.leave(context);
        thread.allocations.resume(context);
        return thread.process.regions.leave_functions(context);
    }
    context.gpr[RCX] = context.pc;
    context.gpr[R11] = context.rflags;
    thread.signals.begin_call(call.number);
    const long result = dispatch(call);
    // The thread has ended, and another one may use its slot.
    if (call.number == SYS_exit) return thread.signals.end_call();
    thread.allocations.look_at_others();
    thread.process.look_at_pages(thread);
    thread.signals.end_call();
    // The handler finds the registers from before the call: kernel/seccomp.c, syscall_rollback().
    if (thread.signals.call_refused()) return records.has_no_result();
    if (result == kNotCalled || (result == -EINTR && is_only_asked_to_leave(thread.signals))) {
        context.pc = syscall_pc;
        return records.was_not_made();
    }
    records.has_result(result);
    context.gpr[RAX] = static_cast<std::uint64_t>(result);
}

// Follows the kernel's emulation: arch/x86/entry/vsyscall/vsyscall_64.c.

namespace {

constexpr std::uint64_t kVsyscallPage = 0xffffffffff600000;
constexpr std::uint64_t kFunctionBytes = 1024;

long number_at(std::uint64_t pc) {
    constexpr long kNumbers[] = {SYS_gettimeofday, SYS_time, SYS_getcpu};
    const std::uint64_t function = (pc - kVsyscallPage) / kFunctionBytes;
    return pc % kFunctionBytes == 0 && function < std::size(kNumbers) ? kNumbers[function] : -1;
}

// The boot option vsyscall=none removes the page.
bool kernel_has_page() {
    static const bool has = read_file("/proc/self/maps").find("[vsyscall]") != std::string::npos;
    return has;
}

}  // namespace

bool call_vsyscall(Thread& thread, std::uint64_t pc) {
    Context& context = *thread.context;
    const long number = number_at(pc);
    std::uint64_t back = 0;
    if (number < 0 || !kernel_has_page() || !read_target(context.gpr[RSP], &back, sizeof back))
        return false;
    const Call call{thread,
                    number,
                    {static_cast<long>(context.gpr[RDI]), static_cast<long>(context.gpr[RSI]),
                     static_cast<long>(context.gpr[RDX]), 0, 0, 0}};
    const long result = pass_on_locked(call);
    if (result == -EFAULT) return false;
    context.gpr[RAX] = static_cast<std::uint64_t>(result);
    context.gpr[RSP] += sizeof back;
    context.pc = back;
    return true;
}

}  // namespace assay::native
