// Handles faults in translated code. The trace buffer is full, or the program writes to translated
// code, or the program itself has caused the fault. In the last case the thread leaves translated
// code before the instruction, and restores the program's state (RecoveryPoint).
#pragma once

#include "framework/driver/native/code_cache/code_watch.h"
#include "framework/driver/native/load/elf_loader.h"
#include "framework/driver/native/machine/driver_lock.h"
#include "framework/driver/native/process/bursts.h"
#include "framework/driver/native/trace/regions.h"
#include "framework/driver/native/trace/thread_trace.h"
#include "framework/driver/native/translate/translator.h"

#include <ucontext.h>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace assay::native {

// Access to the registers that the kernel passes to a signal handler.

inline constexpr std::uint64_t kTrapFlag = 0x100;

// Register number in encodings -> index in ucontext's gregs.
inline constexpr int kGregs[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                   REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                   REG_R12, REG_R13, REG_R14, REG_R15};

inline std::uint64_t pc_of(const ucontext_t* interrupted) {
    return static_cast<std::uint64_t>(interrupted->uc_mcontext.gregs[REG_RIP]);
}

inline void set_pc(ucontext_t* interrupted, std::uint64_t pc) {
    interrupted->uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(pc);
}

inline void set_trap_flag(ucontext_t* interrupted, bool on) {
    auto& flags = interrupted->uc_mcontext.gregs[REG_EFL];
    flags = on ? flags | static_cast<greg_t>(kTrapFlag) : flags & ~static_cast<greg_t>(kTrapFlag);
}

inline void set_mask_of(ucontext_t* interrupted, std::uint64_t mask) {
    std::memcpy(&interrupted->uc_sigmask, &mask, sizeof mask);
}

inline bool is_between(std::uint64_t pc, const void* begin, const void* end) {
    return pc >= reinterpret_cast<std::uint64_t>(begin) &&
           pc < reinterpret_cast<std::uint64_t>(end);
}

template <typename Argument>
const void* address_of(void (*function)(Argument*)) {
    return reinterpret_cast<const void*>(function);
}

// The parts of a process that belong to its translated code.
struct TranslatedCode {
    DriverLock& lock;
    CodeCache& cache;
    CodeWatch& watch;
    Translator& translator;
    Regions& regions;
    TraceTables& trace;
};

// The faults of one thread. All functions run in signal handlers, without the lock.
class CodeFaults {
  public:
    CodeFaults(const TranslatedCode& code, const LoadedProgram& program, ThreadTrace& trace,
               Intervals& intervals)
        : code_(code), program_(program), trace_(trace), intervals_(intervals) {}

    // If a store has reached the end of the trace buffer, continues in the next buffer and returns
    // true. With `adapts`, and a free lock, adapts translations to the full buffer.
    bool continue_in_next_buffer(const siginfo_t& info, bool adapts, ucontext_t* interrupted);
    // If a write has hit the protection of code, forgets the code, continues and returns true.
    bool let_write(Context& context, const siginfo_t& info, ucontext_t* interrupted);
    // Leaves translated code at `host_pc`, where the program has caused a fault. Sets `info` to the
    // values for the program, unless the instruction will run `again`: then its counts are undone.
    // False if `host_pc` is no known instruction.
    bool leave_at_fault(Context& context, int number, std::uint64_t host_pc, bool again,
                        siginfo_t& info, ucontext_t* interrupted);

    // True if the next instruction has to run alone, because it changes code in its own page.
    bool runs_alone() const { return runs_alone_; }
    void has_run_alone() { runs_alone_ = false; }

  private:
    void count_left_block(const Context& context, std::uint32_t block, std::uint32_t executed,
                          bool counted);
    void leave_before(Context& context, const RecoveryPoint& point, std::uint64_t host_pc,
                      bool executed, ucontext_t* interrupted);

    TranslatedCode code_;
    const LoadedProgram& program_;
    ThreadTrace& trace_;
    Intervals& intervals_;
    bool runs_alone_ = false;
};

}  // namespace assay::native
