// A thread's context: what translated code reaches through gs.
//
//   gs + 0                  Context, at kContextInPage from the start of a page
//   gs + kSlotOffset        the thread's slot of the trace segment: write position, block
//                           counters (shared with the collector)
//
// Offsets that glue.S uses are repeated there and checked here.
#pragma once

#include "framework/driver/native/machine/first_level.h"
#include "framework/driver/native/processor/features.h"
#include "framework/driver/shared/call_tree.h"
#include "framework/driver/shared/predictor.h"
#include "framework/trace/segment_layout.h"
#include "framework/x86/instruction.h"

#include <ucontext.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace assay::native {

using namespace driver;  // what is shared with the replay

// What is translated more than once: as the program is, and with the instrumentation that the
// specification asks for.
// kExact is like kCollecting, and left exactly where an interval ends: Intervals.
enum Version : std::uint8_t { kPlain, kCollecting, kExact };
inline constexpr std::size_t kVersions = 3;

inline constexpr std::size_t kIndirectEntries = 65536;  // of each version
// A most-recent-line table: at most 4096 bytes of address space per filter, see record_stubs.cpp.
inline constexpr std::uint32_t kFilterSpan = 4096;
// The part of an address that selects an entry of Context::data_filter. There may be fewer sets
// than the simulation has: a table of at most a page.
inline std::int32_t data_set_mask(const trace::Filter& filter) {
    const std::uint32_t span = std::min(kFilterSpan, filter.sets * filter.line_bytes);
    return static_cast<std::int32_t>(span - std::min(span, filter.line_bytes));
}

// With Filter::kFirstWrites an entry of the data filter is two words, the most recent line and the
// one that was written. Entries are as far apart as lines, 16 bytes at least.
inline constexpr std::size_t kWrittenInEntry = 8;

// An entry of the data filter lies as far in its page as the line that it is for, plus this. With
// 0 there, processors that compare only the low 12 bits of a load's address with those of earlier
// stores would take a load from the line for one of what was just stored to the entry
// (Intel 64 and IA-32 Optimization Reference Manual, "4-KByte aliasing").
inline constexpr std::size_t kContextInPage = 2048;
inline constexpr std::size_t kIndirectTableOffset = 0x5000 - kContextInPage;

class Thread;

struct Context {
    // First, because instructions that reach it through gs with an index alone are the shortest.
    alignas(64) unsigned char data_filter[kFilterSpan];
    // The target's registers while the driver's C++ code runs. While translated code runs,
    // gpr[r] holds the value of a register that instrumentation has borrowed.
    std::uint64_t gpr[16];
    std::uint64_t rflags;
    std::uint64_t pc;     // where the target goes on
    std::uint64_t entry;  // translated address to enter
    std::uint64_t host_sp;
    Saving saving;
    std::uint64_t target_fs;     // the base of fs, for the target
    std::uint64_t indirect_rax;  // of the target, during an indirect branch
    std::uint64_t indirect_rcx;
    std::uint64_t exit_id;      // why translated code came back: ExitReason or an exit's index
    std::uint64_t exit_glue;    // address of assay_exit
    std::uint64_t flags_rax;    // rax while instrumentation keeps the flags in it
    std::uint64_t vector_mask;  // state components to save, XCR0 bits
    std::uint64_t stub_gpr[3];  // rax, rcx and rdx while a stub of CodeCache uses them
    Thread* thread;
    alignas(64) std::uint32_t fetch_filter[1024];
    alignas(64) unsigned char vector_state[8192];  // XSAVE area, standard format; or FXSAVE's
    // Of the state, in frames of signals; kLegacyBytes without XSAVE.
    std::uint64_t frame_components, frame_bytes;
    std::uint32_t initial_pkru;  // what handlers of signals begin with
    std::uint64_t target_gs;
    // See Regions. Compared with the stack pointer: where a function is entered that switches
    // collecting on, and at returns and indirect jumps.
    std::uint64_t enters_above, leaves_above;
    std::uint64_t allocates_above;  // likewise, of AllocationFunctions; 0 outside of all
    std::int64_t countdown;         // of instructions
    std::int64_t countdown_begin;   // what that was before the thread's first one
    std::int64_t interval_countdown;
    std::int64_t slice_countdown;  // see Schedule
    // What value_records.cpp and special_references.cpp read before an instruction, by its place in
    // the list; with `values_present` where only the execution tells which there are. Those of more
    // than 8 bytes are in `wide_values`.
    std::uint64_t values[trace::kMostValues];
    std::uint64_t values_present;
    std::uint64_t latency[2];      // the time before and behind the instruction
    std::uint64_t latency_gpr[2];  // rax and rdx while the time is read
    // Stubs of CodeCache have a stack of their own: what is below the target's stack pointer may be
    // in use, or not be there. While one runs, `target_sp` is the target's.
    std::uint64_t target_sp, stub_sp;
    std::uint64_t stub_stack[64];
    FirstLevel* first_level;  // that of the thread, if there is one: kFirstLevelInContext
    CallState calls;
    CallTree* call_tree;     // nullptr without contexts
    std::uint64_t call_rax;  // rax, for a moment: contexts.cpp
    unsigned char unused[kIndirectTableOffset - 0x4140 - (trace::kMostValues + 81) * 8];
    // Whole pages, because threads share it: CodeCache::share_indirect_table().
    std::uint64_t indirect_table[kVersions][kIndirectEntries];
    Predictor predictor;
    // Each where a whole vector register can be stored.
    alignas(trace::kMostValueBytes) std::uint64_t
        wide_values[trace::kMostValues][trace::kMostValueBytes / sizeof(std::uint64_t)];

    // Returns and indirect jumps leave for what is left first.
    void set_leaves_above() {
        leaves_above = std::min(enters_above - 1, allocates_above - 1) + 1;
        if (leaves_above == 0) leaves_above = UINT64_MAX;
    }

    // 0 of kFlat.
    std::uint64_t segment_base(Segment segment) const {
        if (segment == Segment::kFs) return target_fs;
        return segment == Segment::kGs ? target_gs : 0;
    }
};

inline constexpr std::size_t segment_base_offset(Segment segment) {
    return segment == Segment::kFs ? offsetof(Context, target_fs) : offsetof(Context, target_gs);
}

inline constexpr std::size_t kSlotOffset =
    ((kContextInPage + sizeof(Context) + 4095) & ~std::size_t{4095}) - kContextInPage;
inline constexpr std::size_t kCursorOffset = kSlotOffset + offsetof(trace::ThreadSlot, cursor);
inline constexpr std::size_t kFootprintsOffset =
    kSlotOffset + offsetof(trace::ThreadSlot, footprints);
static_assert(sizeof(trace::ThreadSlot::footprints) == kFilterSpan);
inline constexpr std::size_t kCountersInContext = kSlotOffset + trace::kCountersOffset;
inline constexpr std::size_t kRunsInContext = kSlotOffset + trace::kRunsOffset;
inline constexpr std::size_t kFirstLevelInContext = kRunsInContext + trace::kRunsBytes;
inline constexpr std::size_t kDataCacheInContext =
    kFirstLevelInContext + offsetof(FirstLevel, data);
inline constexpr std::size_t kCodeCacheInContext =
    kFirstLevelInContext + offsetof(FirstLevel, code);
inline constexpr std::size_t kDataPlacesInContext =
    kFirstLevelInContext + offsetof(FirstLevel, data_places);
inline constexpr std::size_t kCodePlacesInContext =
    kFirstLevelInContext + offsetof(FirstLevel, code_places);
inline constexpr std::size_t kContextSpan = kFirstLevelInContext + sizeof(FirstLevel);

static_assert(offsetof(Context, gpr) == 0x1000);
static_assert(offsetof(Context, rflags) == 0x1080);
static_assert(offsetof(Context, entry) == 0x1090);
static_assert(offsetof(Context, host_sp) == 0x1098);
static_assert(offsetof(Context, saving) == 0x10a0);
static_assert(kSavedPlainly == 1 && kSavedByFxsave == 2);
static_assert(offsetof(Context, vector_mask) == 0x10d8);
static_assert(offsetof(Context, vector_state) == 0x2100);
static_assert(offsetof(Context, indirect_table) == kIndirectTableOffset);
static_assert(kContextSpan < 0x7fffffff, "reached with 32-bit displacements");

// Values of exit_id below kFirstExit.
enum ExitReason : std::uint32_t {
    kIndirectMiss = 0,  // ctx.pc has no entry in the indirect table
    kInterrupted = 1,   // a signal is pending; the target goes on at ctx.pc
    kLeft = 2,          // the function that switched collecting on; the target goes on at ctx.pc
    kCountedOut = 3,    // Context::countdown has become negative; the target goes on at ctx.pc
    kFirstExit = 16,    // CodeCache::exit()
};

// See assay_interruptible_syscall: no system call returns that.
inline constexpr long kNotCalled = -4096;

}  // namespace assay::native

extern "C" {
// Runs translated code at context->entry until it exits; gs must point at the context.
void assay_enter(assay::native::Context* context);
// Where translated code goes to leave; not called.
void assay_exit();
extern const char assay_enter_end[];
// syscall(2) with the raw result. Returns kNotCalled without entering the kernel if *pending is
// already non-zero; a signal handler that interrupts between that test and the syscall
// instruction must move the program counter from [assay_syscall_begin, assay_syscall_end) to
// assay_syscall_interrupted.
long assay_interruptible_syscall(const volatile int* pending, long number, const long* arguments);
extern const char assay_syscall_begin[];
extern const char assay_syscall_end[];
extern const char assay_syscall_interrupted[];
// Copies memory; returns how many bytes could not be copied because `from` or `to` cannot be
// accessed. A handler of SIGSEGV or SIGBUS that interrupts in [assay_copy, assay_copy_end) must
// move the program counter to assay_copy_end.
std::size_t assay_copy(void* to, const void* from, std::size_t bytes);
extern const char assay_copy_end[];
// Writes to a byte what it is; returns 0, or 1 if it cannot be written: then the handler must move
// the program counter from [assay_touch, assay_touch_end) to assay_touch_end.
std::size_t assay_touch(void* byte);
extern const char assay_touch_end[];
// Return point of the driver's own signal handlers.
void assay_signal_return();
// Does from the handler what rt_sigreturn(2) does: filters of system calls need not permit that. A
// handler that interrupts it, in [assay_resume, assay_resume_end), must resume the same.
[[noreturn]] void assay_resume(ucontext_t* interrupted);
extern const char assay_resume_end[];
}
