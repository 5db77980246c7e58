// Whose the terminal is on which the collector shows a line about its progress: the line is there
// only until the program, or any other that it starts, uses the terminal. From then on the terminal
// is the program's.
#pragma once

#include "framework/trace/futex.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace assay::trace {

enum class TerminalUse : std::uint32_t {
    kProgram = 0,       // for good
    kFree = 1,          // nothing is shown; the collector may
    kBeingWritten = 2,  // by the collector, which wakes those that wait on the word behind that
    kShown = 3,         // the line is there: it is to be erased by the one that takes the terminal
};

struct Terminal {
    std::uint64_t device;            // st_rdev; 0: there is none
    std::atomic<std::uint32_t> use;  // TerminalUse, and a futex
};

// ECMA-48: to the line's start, erase in line.
inline constexpr std::string_view kEraseLine = "\r\033[K";

// Also by the name of whichever terminal a process has (/dev/tty).
inline bool is_terminal(const Terminal& terminal, int descriptor) {
    struct stat status {};
    if (terminal.device == 0 || fstat(descriptor, &status) != 0 || !S_ISCHR(status.st_mode))
        return false;
    return status.st_rdev == terminal.device || status.st_rdev == makedev(5, 0);
}

// Takes the terminal for the program. True if a line is shown, which the caller is to erase. Waits
// while one is being written, but not for a collector that does not come to that.
inline bool take_for_program(Terminal& terminal) {
    constexpr timespec kRound{0, 10'000'000};
    for (int rounds = 0;;) {
        std::uint32_t use = terminal.use.load(std::memory_order_acquire);
        if (use == static_cast<std::uint32_t>(TerminalUse::kProgram)) return false;
        if (use == static_cast<std::uint32_t>(TerminalUse::kBeingWritten) && rounds < 100) {
            ++rounds;
            futex_wait(terminal.use, use, &kRound);
            continue;
        }
        if (terminal.use.compare_exchange_strong(
                use, static_cast<std::uint32_t>(TerminalUse::kProgram), std::memory_order_acq_rel))
            return use == static_cast<std::uint32_t>(TerminalUse::kShown);
    }
}

}  // namespace assay::trace
