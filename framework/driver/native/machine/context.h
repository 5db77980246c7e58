// A thread's context: the data that translated code reaches through gs.
//
//   gs + 0                  Context, at kContextInPage from the start of a page
//   gs + kSlotOffset        the thread's slot of the trace segment: write position, block
//                           counters (shared with the collector)
//
// Offsets that glue.S uses are repeated there and checked here.
#pragma once

#include "framework/driver/native/processor/features.h"
#include "framework/driver/shared/call_tree.h"
#include "framework/driver/shared/first_level.h"
#include "framework/driver/shared/predictor.h"
#include "framework/trace/segment_layout.h"
#include "framework/x86/instruction.h"

#include <ucontext.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace assay::native {

using namespace driver;  // the parts shared with the replay

using driver::FirstLevel;

// Code is translated in up to four versions: without instrumentation, with the instrumentation
// that the specification asks for, and two that a thread leaves at an exact block. kExact is like
// kCollecting up to the end of an interval: Intervals. kApproach is like kPlain up to the start of
// a burst: Bursts.
enum Version : std::uint8_t { kPlain, kCollecting, kExact, kApproach };
inline constexpr std::size_t kVersions = 4;
inline constexpr bool collects(Version version) {
    return version == kCollecting || version == kExact;
}

inline constexpr std::size_t kIndirectEntries = 65536;  // in each version
// A table of most recent lines covers at most 4096 bytes of address space per filter: see
// record_stubs.cpp.
inline constexpr std::uint32_t kFilterSpan = 4096;
// The part of an address that selects an entry of Context::data_filter. The table takes at most a
// page, so it may have fewer sets than the simulation.
inline std::int32_t data_set_mask(const trace::Filter& filter) {
    const std::uint32_t span = std::min(kFilterSpan, filter.sets * filter.line_bytes);
    return static_cast<std::int32_t>(span - std::min(span, filter.line_bytes));
}

// With Filter::kFirstWrites an entry of the data filter has two words: the most recent line and the
// most recent written line. Entries are as far apart as lines, and at least 16 bytes.
inline constexpr std::size_t kWrittenInEntry = 8;

// An entry of the data filter lies as far into its page as its line, plus this number. The number
// is not 0 because some processors compare only the low 12 bits of a load's address with those of
// earlier stores. They would take a load from the line for a load of the entry that was just stored
// (Intel 64 and IA-32 Optimization Reference Manual, "4-KByte aliasing").
inline constexpr std::size_t kContextInPage = 2048;
inline constexpr std::size_t kIndirectTableOffset = 0x5000 - kContextInPage;

class Thread;

struct Context {
    // The first member, because gs with only an index makes the shortest instructions.
    alignas(64) unsigned char data_filter[kFilterSpan];
    // The target's registers while the driver's C++ code runs. While translated code runs, gpr[r]
    // keeps the target's value of a register that instrumentation uses.
    std::uint64_t gpr[16];
    std::uint64_t rflags;
    std::uint64_t pc;     // where the target continues
    std::uint64_t entry;  // translated address to enter
    std::uint64_t host_sp;
    Saving saving;
    std::uint64_t target_fs;     // the base of fs, for the target
    std::uint64_t indirect_rax;  // the target's rax during an indirect branch; rcx likewise
    std::uint64_t indirect_rcx;
    std::uint64_t exit_id;      // why translated code returned: ExitReason or the index of an exit
    std::uint64_t exit_glue;    // address of assay_exit
    std::uint64_t flags_rax;    // rax while instrumentation keeps the flags in it
    std::uint64_t vector_mask;  // state components to save, XCR0 bits
    std::uint64_t stub_gpr[3];  // rax, rcx and rdx while a stub of CodeCache uses them
    Thread* thread;
    alignas(64) std::uint32_t fetch_filter[1024];
    alignas(64) unsigned char vector_state[8192];  // XSAVE area, standard format; or FXSAVE's
    // The components and size of the state in signal frames. The size is kLegacyBytes without
    // XSAVE.
    std::uint64_t frame_components, frame_bytes;
    std::uint32_t initial_pkru;  // PKRU at the start of signal handlers
    std::uint64_t target_gs;
    // See Regions. Compared with the stack pointer at the entries of functions that switch
    // collecting on, and at returns and indirect jumps.
    std::uint64_t enters_above, leaves_above;
    std::uint64_t allocates_above;  // the same for AllocationFunctions; 0: outside
    std::int64_t countdown;         // instructions until the next boundary
    std::int64_t countdown_begin;   // its value before the thread's first instruction
    std::int64_t interval_countdown;
    std::int64_t slice_countdown;  // see Schedule
    // The values that value_records.cpp and special_references.cpp read before an instruction, in
    // the order of the list. `values_present` has a bit for each value that exists, if only the
    // execution tells that. Values of more than 8 bytes are in `wide_values`.
    std::uint64_t values[trace::kMostValues];
    std::uint64_t values_present;
    std::uint64_t latency[2];      // the time before and after the instruction
    std::uint64_t latency_gpr[2];  // rax and rdx while the time is read
    // Stubs of CodeCache have their own stack, because the memory below the target's stack pointer
    // may be in use or unmapped. While a stub runs, `target_sp` holds the target's stack pointer.
    std::uint64_t target_sp, stub_sp;
    std::uint64_t stub_stack[128];
    FirstLevel* first_level;  // the thread's, or nullptr: kFirstLevelInContext
    CallState calls;
    CallTree* call_tree;     // nullptr without contexts
    std::uint64_t call_rax;  // holds rax for a few instructions: contexts.cpp
    unsigned char unused[kIndirectTableOffset - 0x4140 - (trace::kMostValues + 146) * 8];
    // Whole pages, because threads share it: CodeCache::share_indirect_table().
    std::uint64_t indirect_table[kVersions][kIndirectEntries];
    Predictor predictor;
    // Each element has room for a whole vector register.
    alignas(trace::kMostValueBytes) std::uint64_t
        wide_values[trace::kMostValues][trace::kMostValueBytes / sizeof(std::uint64_t)];

    // Returns and indirect jumps leave at the lower of the two boundaries.
    void set_leaves_above() {
        leaves_above = std::min(enters_above - 1, allocates_above - 1) + 1;
        if (leaves_above == 0) leaves_above = UINT64_MAX;
    }

    // Returns 0 for kFlat.
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
    kInterrupted = 1,   // a signal is pending; the target continues at ctx.pc
    kLeft = 2,          // the stack pointer is above leaves_above; the target continues at ctx.pc
    kCountedOut = 3,    // Context::countdown became negative; the target continues at ctx.pc
    kFirstExit = 16,    // CodeCache::exit()
};

// Result of assay_interruptible_syscall(). No system call returns this value.
inline constexpr long kNotCalled = -4096;

}  // namespace assay::native

extern "C" {
// Runs translated code at context->entry until it exits; gs must point at the context.
void assay_enter(assay::native::Context* context);
// The address to which translated code jumps to leave. Nothing calls it.
void assay_exit();
extern const char assay_enter_end[];
// Like syscall(2), with the raw result. If *pending is already non-zero, it returns kNotCalled
// without entering the kernel. A signal handler that interrupts between that test and the syscall
// instruction must move the program counter from [assay_syscall_begin, assay_syscall_end) to
// assay_syscall_interrupted.
long assay_interruptible_syscall(const volatile int* pending, long number, const long* arguments);
extern const char assay_syscall_begin[];
extern const char assay_syscall_end[];
extern const char assay_syscall_interrupted[];
// Copies memory. Returns the number of bytes that it could not copy because `from` or `to` is
// inaccessible. A handler of SIGSEGV or SIGBUS that interrupts in [assay_copy, assay_copy_end) must
// move the program counter to assay_copy_end.
std::size_t assay_copy(void* to, const void* from, std::size_t bytes);
extern const char assay_copy_end[];
// Writes a byte's own value to it. Returns 0, or 1 if the byte is not writable. In that case the
// handler must move the program counter from [assay_touch, assay_touch_end) to assay_touch_end.
std::size_t assay_touch(void* byte);
extern const char assay_touch_end[];
// The address to which the driver's own signal handlers return.
void assay_signal_return();
// Replaces rt_sigreturn(2) in the handler, because system call filters may forbid it. A handler
// that interrupts it, in [assay_resume, assay_resume_end), must resume the same context.
[[noreturn]] void assay_resume(ucontext_t* interrupted);
extern const char assay_resume_end[];
}
