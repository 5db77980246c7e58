// As the kernel emulates it: arch/x86/entry/vsyscall/vsyscall_64.c.
#include "framework/driver/native/syscalls/vsyscall.h"

#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/memory/proc_maps.h"
#include "framework/driver/native/syscalls/syscalls.h"

#include <sys/syscall.h>
#include <cerrno>

namespace assay::native {
namespace {

constexpr std::uint64_t kVsyscallPage = 0xffffffffff600000;
constexpr std::uint64_t kFunctionBytes = 1024;

long number_at(std::uint64_t pc) {
    constexpr long kNumbers[] = {SYS_gettimeofday, SYS_time, SYS_getcpu};
    const std::uint64_t function = (pc - kVsyscallPage) / kFunctionBytes;
    return pc % kFunctionBytes == 0 && function < std::size(kNumbers) ? kNumbers[function] : -1;
}

// It can be switched off: vsyscall=none.
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
