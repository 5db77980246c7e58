// Calls by which the target uses the terminal on which the collector shows its progress: the
// line is erased before them, and does not come back.
#include "framework/driver/native/syscalls/syscalls.h"
#include "framework/trace/terminal_use.h"

#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <optional>

namespace assay::native {
namespace {

constexpr std::array<unsigned, 12> kChanges{TCSETS,  TCSETSW,  TCSETSF,  TCSETA,  TCSETAW, TCSETAF,
                                            TCSETS2, TCSETSW2, TCSETSF2, TIOCSTI, TCXONC,  TCFLSH};

bool changes_terminal(unsigned request) {
    return std::find(kChanges.begin(), kChanges.end(), request) != kChanges.end();
}

// The descriptor that is written to, or read: what is typed then is shown. Nothing for other calls.
std::optional<long> used_descriptor(const Call& call) {
    switch (call.number) {
        case SYS_write:
        case SYS_writev:
        case SYS_pwrite64:
        case SYS_pwritev:
        case SYS_pwritev2:
        case SYS_read:
        case SYS_readv:
        case SYS_sendfile:
            return call.arguments[0];
        case SYS_splice:
            return call.arguments[2];
        case SYS_ioctl:
            if (changes_terminal(static_cast<unsigned>(call.arguments[1])))
                return call.arguments[0];
            return {};
        default:
            return {};
    }
}

// Descriptors can be used without calls from there on; or a filter can end a process that looks at
// one of them by fstat(2).
bool ends_watching(const Call& call) {
    return call.number == SYS_io_uring_setup || call.number == SYS_seccomp ||
           (call.number == SYS_prctl && call.arguments[0] == PR_SET_SECCOMP);
}

void erase_line(const trace::Terminal& terminal) {
    for (const int descriptor : {STDERR_FILENO, STDOUT_FILENO, STDIN_FILENO}) {
        if (!trace::is_terminal(terminal, descriptor)) continue;
        if (write(descriptor, trace::kEraseLine.data(), trace::kEraseLine.size()) > 0) return;
    }
}

bool is_taken(const trace::Terminal& terminal) {
    return terminal.use.load(std::memory_order_relaxed) ==
           static_cast<std::uint32_t>(trace::TerminalUse::kProgram);
}

}  // namespace

void leave_terminal(Process& process) {
    trace::Terminal& terminal = process.trace.terminal();
    if (!is_taken(terminal) && trace::take_for_program(terminal)) erase_line(terminal);
}

void leave_terminal_if_used(const Call& call) {
    const trace::Terminal& terminal = call.process().trace.terminal();
    if (is_taken(terminal)) return;
    if (ends_watching(call)) return leave_terminal(call.process());
    const std::optional<long> used = used_descriptor(call);
    if (used && trace::is_terminal(terminal, static_cast<int>(*used)))
        leave_terminal(call.process());
}

}  // namespace assay::native
