// The memory that a driver and the collector share: one sparse memory file for each profiled
// process. All offsets are fixed, so that neither side ever sends a pointer.
//
//   control | value lists | event log | block table | instruction table | site table |
//   words of blocks | thread slot 0, 1, ... | nodes of slot 0, 1, ... | allocation log
//
// The driver appends to the tables. It publishes a new length with release order before a record or
// a counter refers to a new element. The tables are the arrays that profilers see
// (include/assay/trace_types.h); profilers read them in place. The content survives the driver's
// death at any instruction: translated code increments counters in the file itself, and each slot
// has its thread's write position.
#pragma once

#include "assay/trace_types.h"
#include "framework/trace/allocation_log.h"
#include "framework/trace/context_nodes.h"
#include "framework/trace/launch.h"
#include "framework/trace/object_sites.h"
#include "framework/trace/value_lists.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace assay::trace {

inline constexpr std::uint64_t kMagic = 0x3130'7961'7373'61ULL;  // "assay01"
inline constexpr std::uint32_t kLayoutVersion = 2;

// Bits of the captures. captures.h has a row for each.
enum Capture : std::uint32_t {
    kCaptureBlockCounts = 1,
    kCaptureReferences = 2,
    kCaptureFetches = 4,
    kCaptureValues = 8,  // see ValueLists
    kCaptureCalls = 16,
    kCaptureRepeats = 32,
    kCaptureFacts = 64,  // nothing for drivers to do
    kCaptureBranches = 0x100,
    kCapturePredictions = 0x200,
    kCaptureCode = 0x400,
    kCaptureContexts = 0x800,  // with block counts: also by calling context, see ContextNode
    kCaptureSystemCalls = 0x1000,
    kCaptureSystemCallTimes = 0x2000,  // with system calls
    kCaptureBlocks = 0x4000,           // each execution of a block: TRACE_SITE_BLOCK
    kCaptureMappings = 0x8000,         // TRACE_MARKER_PAGES_*
    kCaptureIntervals = 0x10000,       // of Spec::interval instructions, with block counts
};

// See trace_capture_predictions.
struct PredictorShape {
    std::uint32_t history_bits, address_bits, target_bits;

    friend bool operator==(const PredictorShape&, const PredictorShape&) = default;
};
inline constexpr std::uint32_t kMaxHistoryBits = 8;
inline constexpr std::uint32_t kMaxCounterBits = 14;  // history and address together
inline constexpr std::uint32_t kMaxTargetBits = 9;

// The references or fetches that the driver leaves out: nothing if `sets` and `kind` are 0.
struct Filter {
    enum Kind : std::uint32_t {
        kRecentLines,  // references to the most recent line of a set: trace_capture_references
        kFirstWrites,  // the same, except the first write to that line
        kFootprints,   // the same, with footprints: lines of 64 bytes
        kRuns          // references that continue a run: see Run
    };

    std::uint32_t line_bytes;
    std::uint32_t sets;
    Kind kind;
    // Not 0: leaves out hits of a cache of each thread with such lines, sets and ways.
    std::uint32_t ways;

    bool first_writes() const { return kind == kFirstWrites; }
    bool footprints() const { return kind == kFootprints; }
    bool runs() const { return kind == kRuns; }
    friend bool operator==(const Filter&, const Filter&) = default;
};

// When to capture. All zeros: always.
inline constexpr std::uint32_t kMostNames = 1024;
struct Regions {
    std::uint32_t off_at_start;  // not 0: off until a marker of assay/client.h
    std::uint32_t points;        // not 0: captures only so many SimulationPoints, in thread 0
    // Instructions of the first thread, counted from 1; 0: no boundary.
    std::uint64_t from_instruction, to_instruction;
    // In instructions of each thread: `sample_burst` of every `sample_period` are captured, or all
    // if both are 0. Bursts exclude the boundaries above, and `sample_interval` replaces
    // Spec::interval. Before a burst or a point, `sample_warm_up` instructions are captured only to
    // fill caches.
    std::uint64_t sample_burst, sample_period, sample_interval, sample_warm_up;
    // In a replay of one point: the instructions that the point stands for; 0: only its own.
    std::uint64_t stands_for;
    std::uint32_t recorded;      // not 0: a recording determines the bursts, see EndOf
    char functions[kMostNames];  // patterns, separated by newlines; "": everywhere
};

// True if the run is sampled in bursts, everywhere or in parts.
inline constexpr bool has_bursts(const Regions& regions) {
    return regions.sample_period != 0 || regions.points != 0;
}

// An interval that stands for others: the instructions that the thread has executed before it, and
// at its end. An array of these stands at kPointsOffset.
struct SimulationPoint {
    std::uint64_t begin, end;
};
inline constexpr std::uint32_t kMostPoints = 2048;
// Shorter warm-ups and intervals of points are refused.
inline constexpr std::uint64_t kShortestWarmUp = 1000;

// The part that a record of kind TRACE_SITE_BURST ends: its `aux`. Recordings have two further
// kinds. kRestEnds ends the part between two bursts or points. kGoesOnAt comes before the end of a
// burst or warm-up: the thread goes on at the address `value`, which shows the direction of its
// last branch.
enum EndOf : std::uint32_t { kBurstEnds, kThreadEnds, kWarmUpEnds, kRestEnds, kGoesOnAt };

struct Spec {
    std::uint32_t captures;  // Capture bits
    Filter data;
    Filter fetch;
    std::uint64_t interval;  // instructions; 0: none
    std::uint64_t warm_up;   // instructions, with sampling; see trace_capture_warm_up
    CpuLevel cpu_level;      // what CPUID says
    std::uint32_t stress;    // not 0: rare events happen often, for tests of the driver
    Regions regions;
    std::uint32_t branches;  // TRACE_*_BRANCHES, TRACE_CALLS, TRACE_RETURNS
    PredictorShape predictor;
    std::uint32_t code_line;         // bytes: kCaptureCode cuts fetches at the ends of such lines
    std::uint32_t random_addresses;  // not 0: the kernel chooses the program's addresses
    // Not kNoObjects: there is an allocation log, and records have an object. Records have a
    // calling context only with kObjectsAndContexts.
    enum Objects : std::uint32_t { kNoObjects, kObjectsOnly, kObjectsAndContexts };
    std::uint32_t objects;
    std::uint32_t threads;  // not 0: the first kOwnSlots threads have slots of their own, and names
    // At least 1: the nested calls of a function that have contexts of their own.
    std::uint32_t recursion;
    // Not 0: one thread of a process runs at a time, for so many instructions (--schedule=fair).
    // The buffers of all threads then have the order of the program.
    std::uint32_t slice;
    std::uint32_t short_blocks;  // not 0: blocks are as short as in an emulated machine
    char allocation_functions[kMostNames];
    char hidden_features[kMostNames];  // the value of --hide, for tests of the driver
};

// Limits of the cache of a Filter.
inline constexpr std::uint32_t kMostFirstLevelLines = 4096, kMostFirstLevelWays = 64;

// The state of the driver, which alone writes it.
enum class DriverState : std::uint32_t {
    kStarting = 0,
    kRunning = 1,
    kFinished = 2,   // the program ended by an exit or a signal
    kRefused = 3,    // the driver cannot run the program further; the event log has the reason
    kReplaced = 4,   // the process becomes another image, which has its own segment
    kCancelled = 5,  // an execve(2) failed after its announcement: this image never runs
};

// As trace_image_t has it. All zeros: x86-64, executed natively.
struct InstructionSet {
    std::uint32_t emulated;     // TRACE_EMULATED_*
    std::uint16_t elf_machine;  // as in the program's ELF header: e_machine, EI_CLASS, EI_DATA
    std::uint8_t elf_class, elf_data;
};

struct Control {
    std::uint64_t magic;
    std::uint32_t layout_version;
    std::int32_t pid;     // of the profiled process
    std::int32_t parent;  // the process that started it; 0: the collector asks the system
    Spec spec;            // written by the collector before the driver starts
    std::atomic<DriverState> state;
    // A futex. The driver increments it when the collector has something to do.
    std::atomic<std::uint32_t> doorbell;
    // The number of collectors that sleep on the doorbell. At 0 the driver skips the wake. Only a
    // replay has several collectors.
    std::atomic<std::uint32_t> collector_sleeps;
    std::atomic<std::uint32_t> thread_count;  // slots in use
    // Published lengths: bytes of the event log, elements of the tables.
    std::atomic<std::uint64_t> event_log_bytes;
    std::atomic<std::uint32_t> block_count;
    std::atomic<std::uint32_t> instr_count;
    std::atomic<std::uint32_t> site_count;
    // The number of this image in its process, from 1. Written before the driver starts.
    std::uint32_t image;
    std::atomic<std::uint32_t> run_count;  // runs in use, the same number in each slot
    std::atomic<std::uint64_t> allocation_count;
    std::uint64_t inherited_allocations;           // the number of entries from before a fork
    std::atomic<std::uint64_t> completed_buffers;  // of all slots, see ThreadSlot::place_in_order
    InstructionSet instruction_set;                // of the program
};
static_assert(sizeof(Control) <= 4096);

// --- Event log: rare events, in order. Each is an EventHeader and its body, padded to 8 bytes.

enum class EventType : std::uint32_t {
    kMapped = 1,    // MappedEvent, then the path without a final zero byte
    kPartial = 2,   // PartialEvent
    kMessage = 3,   // text for the user
    kRefused = 4,   // text: the reason why the driver stops; its exit status is 125
    kUnmapped = 5,  // UnmappedEvent
    kCommand = 6,   // the name of the executed file, then the arguments; each ends in a zero byte
    kLeaves = 7,    // text: the program that the process now runs natively; "": this has failed
    kMarker = 8,    // MarkerEvent, then the text
    kProblem = 9,   // text for the user, shown also with --quiet
    kMappedFile = 10,  // the path of a mapped file; files have numbers from 0: MemoryUse::kFile
    kThreadName = 11,  // ThreadNameEvent, then the name; written when the name is final
};

struct EventHeader {
    EventType type;
    std::uint32_t bytes;  // of the body, without padding
};

// An executable file mapping. Blocks with an index of `first_block` or higher belong to it.
struct MappedEvent {
    std::uint64_t start, end, offset;
    std::uint32_t first_block;
    std::uint32_t reserved;
};

// A marker of assay/client.h, except those that switch collecting. The text holds the string
// arguments, each with a zero byte at its end.
struct MarkerEvent {
    std::uint64_t operation;  // ASSAY_* of client.h
    std::uint64_t arguments[5];
    // The time: before this record of this buffer of the slot.
    std::uint32_t thread, slot, buffer, record;
};

struct ThreadNameEvent {
    std::uint32_t thread;  // ThreadSlot::thread
    std::uint32_t reserved;
};

struct UnmappedEvent {
    std::uint64_t start, end;
};

// Executions of a block that a fault ended early. Only `executed` of the block's instructions ran.
// This number includes the faulting one, as hardware and Cachegrind count. The block's counter
// includes these executions if `counted` is 1. The counter in the node includes them unless both
// `counted` and `executed` are 0. There is one event for all executions of one kind: the driver
// increments `times`.
struct PartialEvent {
    std::uint32_t block;
    std::uint32_t executed;
    std::uint32_t counted;
    std::uint32_t slot;  // of the thread
    std::uint64_t times;
    std::uint32_t node;  // ContextNode::number with contexts, otherwise 0
    std::uint32_t reserved;

    // The value of `node` if the log has no room left for an event of each node.
    static constexpr std::uint32_t kAnyNode = UINT32_MAX;
};

// --- A thread's slot: header page, block counters, ring of trace buffers.

inline constexpr std::uint32_t kBufferBytes = 512 * 1024;
inline constexpr std::uint32_t kBufferCount = 8;  // the most that a ring has; a power of two
inline constexpr std::uint32_t kRecordsPerBuffer = kBufferBytes / sizeof(trace_record_t);

// Threads that do not run at the same time may use the same slot. A thread that ends completes its
// last buffer early, so that each buffer has the records of one thread.
//
// With Filter::kFootprints each set of the data filter has a word with a bit for each byte of its
// most recent line: the bytes that unrecorded references have touched. A completed buffer keeps a
// copy of these words.
inline constexpr std::uint32_t kMostSets = 64;  // 4096 bytes in lines of 64
struct ThreadSlot {
    // The driver counts the buffers that it has completed, and the collector those that it has
    // given back. Both numbers only grow. Buffer n has index n % buffer_count. The driver owns the
    // buffers `produced` to `consumed + buffer_count - 1`.
    std::atomic<std::uint32_t> produced;
    std::atomic<std::uint32_t> consumed;        // a futex; a driver with a full ring waits on it
    std::atomic<std::uint32_t> producer_waits;  // 1 while the driver waits
    // A power of two, at most kBufferCount. Written before Control::thread_count publishes the
    // slot, and never changed.
    std::uint32_t buffer_count;
    // The number of the thread that uses the slot. The first thread has 0, and later ones follow in
    // the order of creation.
    std::atomic<std::uint32_t> thread;
    std::uint32_t reserved;
    // The driver's write position in buffer `produced`, and the begin of this buffer. Both are
    // addresses in the driver, and their difference is the number of valid bytes. Both lag by at
    // most the basic block that is being executed.
    std::atomic<std::uint64_t> cursor;
    std::atomic<std::uint64_t> buffer_start;
    // Records of each completed buffer: kRecordsPerBuffer, or fewer if completed early.
    std::atomic<std::uint32_t> filled[kBufferCount];
    // The thread that has written each completed buffer. Stored before `filled`.
    std::atomic<std::uint32_t> owner[kBufferCount];
    // With Spec::objects: the length of the allocation log when each buffer was completed.
    std::atomic<std::uint64_t> allocations_at_end[kBufferCount];
    // With Spec::objects: the number of instructions that the process had executed, as far as the
    // thread knew. `time_at_end`: when each buffer was completed. `time`: at the thread's last
    // entry to the driver because of memory, or at its end.
    std::atomic<std::uint64_t> time_at_end[kBufferCount];
    std::atomic<std::uint64_t> time;
    // With sampling: all instructions of the thread until it last was in the driver.
    std::atomic<std::uint64_t> executed;
    // With Spec::slice or kCaptureMappings: how many buffers of all slots were completed before.
    std::atomic<std::uint64_t> place_in_order[kBufferCount];
    struct alignas(64) Footprint {
        std::atomic<std::uint64_t> touched;
    };
    alignas(1024) Footprint footprints[kMostSets];
    std::uint64_t touched_at_end[kBufferCount][kMostSets];
};

// With Filter::kRuns: the present run of a data operand in the thread that uses the slot
// (trace_capture_runs). All sites of the operand share it. All zeros before the first reference.
struct Run {
    std::uint64_t expected;  // address of the next reference, if it continues the run
    std::uint32_t left_out;  // references since the operand's last record: below 2^31
    std::uint32_t site;      // of that record
    std::uint64_t stride;    // of the run
    // Address of the record that tells `left_out`. It is set before the cursor passes the record,
    // and is 0 again after `left_out` is.
    std::uint64_t record;
};
static_assert(sizeof(Run) == 32 && sizeof(ObjectRun) == sizeof(Run), "they have the same place");
// In the higher half of Run::expected, where no address of the program is: leaves out no more.
inline constexpr std::uint32_t kNoneExpected = 0x7fffffff;

// A record of the last reference that was left out, for the end of a run.
inline trace_record_t last_of(const Run& run) {
    return {run.expected - run.stride, run.site, run.left_out - 1};
}
// True if a record before the cursor already tells `left_out`.
inline bool is_told(const Run& run, std::uint64_t cursor) {
    return run.record != 0 && cursor == run.record + sizeof(trace_record_t);
}

// --- Offsets and capacities.

inline constexpr std::uint64_t kMiB = std::uint64_t{1024} * 1024;
inline constexpr std::uint32_t kMaxBlocks = 16 * 1024 * 1024;
inline constexpr std::uint32_t kMaxInstrs = 64 * 1024 * 1024;
inline constexpr std::uint32_t kMaxSites = 64 * 1024 * 1024;
inline constexpr std::uint32_t kMaxThreads = 4096;  // slots: the most threads at the same time
// With Spec::threads the first kOwnSlots threads have the slots of their numbers. Later threads
// share the other slots.
inline constexpr std::uint32_t kOwnSlots = 256;

inline constexpr std::uint64_t kControlOffset = 0;
inline constexpr std::uint64_t kPointsOffset = 4096;  // after Control
inline constexpr std::uint64_t kValueListsOffset = 64 * 1024;
inline constexpr std::uint64_t kEventLogOffset = 1 * kMiB;
static_assert(kPointsOffset + kMostPoints * sizeof(SimulationPoint) <= kValueListsOffset);
static_assert(kValueListsOffset + sizeof(ValueLists) <= kEventLogOffset);
inline constexpr std::uint64_t kEventLogBytes = 63 * kMiB;
inline constexpr std::uint64_t kBlocksOffset = kEventLogOffset + kEventLogBytes;
inline constexpr std::uint64_t kInstrsOffset =
    kBlocksOffset + std::uint64_t{kMaxBlocks} * sizeof(trace_block_t);
inline constexpr std::uint64_t kSitesOffset =
    kInstrsOffset + std::uint64_t{kMaxInstrs} * sizeof(trace_instr_t);
// std::uint16_t, by block: the word of a ContextNode that counts the block.
inline constexpr std::uint64_t kContextWordsOffset =
    kSitesOffset + std::uint64_t{kMaxSites} * sizeof(trace_site_t);
inline constexpr std::uint64_t kThreadsOffset =
    kContextWordsOffset + std::uint64_t{kMaxBlocks} * sizeof(std::uint16_t);

// Parts that are mapped begin at such addresses. AArch64 has pages of up to this size.
inline constexpr std::uint64_t kLargestPage = 64 * 1024;
// Offsets inside a slot. The block counters are uint64_t: counters() for each block.
inline constexpr std::uint64_t kCountersOffset =
    (sizeof(ThreadSlot) + kLargestPage - 1) & ~(kLargestPage - 1);
inline constexpr std::uint64_t kCountersBytes = std::uint64_t{kMaxBlocks} * 8;
inline constexpr std::uint32_t kMaxRuns = 4 * 1024 * 1024;
inline constexpr std::uint64_t kRunsOffset = kCountersOffset + kCountersBytes;
inline constexpr std::uint64_t kRunsBytes = std::uint64_t{kMaxRuns} * sizeof(Run);
inline constexpr std::uint64_t kRingOffset = kRunsOffset + kRunsBytes;
inline constexpr std::uint64_t kRingBytes = std::uint64_t{kBufferBytes} * kBufferCount;
inline constexpr std::uint64_t kThreadStride = kRingOffset + kRingBytes;

// The counters of each block. The sum of the counters is the number of executions. With
// kCapturePredictions the second and the third count executions that mispredicted the block's
// branch, and there is room for fewer blocks.
inline constexpr std::uint32_t counters(const Spec& spec) {
    return spec.captures & kCapturePredictions ? 4 : 1;
}
inline constexpr std::uint32_t max_blocks(const Spec& spec) {
    return kMaxBlocks / counters(spec);
}

// How often the thread of a slot has executed a block. `slot` must be followed by the counters.
inline std::uint64_t executions(const ThreadSlot* slot, const Spec& spec, std::uint32_t block) {
    const auto* const counted = reinterpret_cast<const std::uint64_t*>(
        reinterpret_cast<const unsigned char*>(slot) + kCountersOffset);
    const std::size_t count = counters(spec);
    return std::accumulate(counted + block * count, counted + (block + 1) * count,
                           std::uint64_t{0});
}

inline constexpr std::uint64_t thread_offset(std::uint32_t thread) {
    return kThreadsOffset + thread * kThreadStride;
}

// --- With kCaptureContexts: the ContextNodes of each slot, after all slots.

// The words of a node, with those of its header: enough for blocks of 10 bytes on average.
inline constexpr std::uint32_t context_words(const Spec& spec) {
    if (spec.short_blocks != 0) return 320 * counters(spec);
    return counters(spec) == 1 ? 64 : 128;
}
// True if records tell their context. `aux` of a reference or a fetch is then the number of the
// node in the record's slot, and other records follow one of kind TRACE_SITE_CONTEXT. Misses tell
// it, because they are rare. With other records, the driver captures calls instead.
inline constexpr bool tells_contexts(const Spec& spec) {
    constexpr std::uint32_t kOthers =
        kCaptureValues | kCaptureCalls | kCaptureBranches | kCaptureCode | kCaptureBlocks;
    return (spec.captures & kCaptureContexts) != 0 && (spec.captures & kOthers) == 0 &&
           (!(spec.captures & kCaptureReferences) || spec.data.ways != 0) &&
           (!(spec.captures & kCaptureFetches) || spec.fetch.ways != 0);
}
// True if each reference has a record of its own for its object: TRACE_SITE_OBJECT. The other
// records of references are then those that pass the filter.
inline constexpr bool records_objects(const Spec& spec) {
    return spec.objects != Spec::kNoObjects && (spec.captures & kCaptureReferences) != 0 &&
           spec.data.sets != 0;
}
// True if a process with one thread leaves out references of a group to the object of its last
// record: ObjectRun. The runs are where those of Filter::kRuns would be. The executions of blocks
// tell which groups have long runs.
inline constexpr bool leaves_out_objects(const Spec& spec) {
    return records_objects(spec) && !spec.data.runs() && (spec.captures & kCaptureBlockCounts) &&
           !has_bursts(spec.regions) && spec.regions.from_instruction <= 1 &&
           spec.regions.to_instruction == 0;
}
inline constexpr std::uint64_t contexts_offset(std::uint32_t slot) {
    return thread_offset(kMaxThreads) + slot * kContextsBytes;
}
inline constexpr std::uint64_t kAllocationsOffset = contexts_offset(kMaxThreads);
inline constexpr std::uint64_t kSegmentBytes = kAllocationsOffset + kAllocationsBytes;
static_assert(kThreadsOffset % kLargestPage == 0 && kRingOffset % kLargestPage == 0 &&
              kThreadStride % kLargestPage == 0 && kContextsBytes % kLargestPage == 0);
static_assert(contexts_offset(0) % kHugePage == 0 && kContextsBytes % kHugePage == 0);

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace assay::trace
