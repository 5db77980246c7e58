// The shared memory between a driver and the collector: one sparse memory file per profiled
// process, laid out at fixed offsets, so that neither side ever sends a pointer.
//
//   control | value lists | event log | block table | instruction table | site table |
//   words of blocks | thread slot 0, 1, ... | nodes of slot 0, 1, ... | allocation log
//
// The driver appends to the tables and publishes a new length with release order; whatever a
// record or a counter refers to has been published before it. The tables are the arrays that
// profilers see (include/assay/trace_types.h), read in place. Everything here survives the
// driver's death at any instruction: counters are incremented in the file itself, and each
// thread's write position stands in its slot.
#pragma once

#include "assay/trace_types.h"
#include "framework/trace/allocation_log.h"
#include "framework/trace/context_nodes.h"
#include "framework/trace/launch.h"
#include "framework/trace/value_lists.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace assay::trace {

inline constexpr std::uint64_t kMagic = 0x3130'7961'7373'61ULL;  // "assay01"
inline constexpr std::uint32_t kLayoutVersion = 1;

// What to capture: a bit set. captures.h has a row for each.
enum Capture : std::uint32_t {
    kCaptureBlockCounts = 1,
    kCaptureReferences = 2,
    kCaptureFetches = 4,
    kCaptureValues = 8,  // see ValueLists
    kCaptureCalls = 16,
    kCaptureRepeats = 32,
    kCaptureBranches = 0x100,
    kCapturePredictions = 0x200,
    kCaptureCode = 0x400,
    kCaptureContexts = 0x800,  // with block counts: also by calling context, see ContextNode
    kCaptureSystemCalls = 0x1000,
    kCaptureSystemCallTimes = 0x2000,  // with system calls
    kCaptureBlocks = 0x4000,           // each execution of one: TRACE_SITE_BLOCK
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

// Which references or fetches are left out. With 0 sets and no kind: none.
struct Filter {
    enum Kind : std::uint32_t {
        kRecentLines,  // those to the most recent line of a set: trace_capture_references
        kFirstWrites,  // the same, but not the first write to that line
        kFootprints,   // the same, and what they touch is told: with lines of 64 bytes
        kRuns          // those that continue a run: see Run
    };

    std::uint32_t line_bytes;
    std::uint32_t sets;
    Kind kind;
    // Not 0: those that hit a cache of each thread with such lines and sets, and so many ways.
    std::uint32_t ways;

    bool first_writes() const { return kind == kFirstWrites; }
    bool footprints() const { return kind == kFootprints; }
    bool runs() const { return kind == kRuns; }
    friend bool operator==(const Filter&, const Filter&) = default;
};

// When to capture. Zeros: always.
inline constexpr std::uint32_t kMostNames = 1024;
struct Regions {
    std::uint32_t off_at_start;  // until a marker of assay/client.h
    std::uint32_t points;        // not 0: only so many SimulationPoints, of the first thread
    // Of the first thread's instructions, counted from 1: 0 is no boundary.
    std::uint64_t from_instruction, to_instruction;
    // Of each thread's instructions, bursts of so many out of every so many; 0 and 0: all. Not with
    // the boundaries above, and instead of Spec::interval: so many instructions are an interval.
    // Before a burst, or such a point, so many are captured to fill caches only.
    std::uint64_t sample_burst, sample_period, sample_interval, sample_warm_up;
    // In a replay of one of the points: how many instructions of the program it stands for; 0: for
    // itself.
    std::uint64_t stands_for;
    std::uint32_t recorded;      // not 0: the bursts are those of a recording, see EndOf
    char functions[kMostNames];  // patterns, separated by newlines; "": everywhere
};

// Whether there are bursts, anywhere or where they were asked for.
inline constexpr bool has_bursts(const Regions& regions) {
    return regions.sample_period != 0 || regions.points != 0;
}

// An interval that stands for others: how many instructions the thread has executed before it, and
// at its end. They stand at kPointsOffset, one behind the other.
struct SimulationPoint {
    std::uint64_t begin, end;
};
inline constexpr std::uint32_t kMostPoints = 2048;
// It is in the warm-up that a point's begin is found to the basic block: up to there, instructions
// are counted unit by unit, which may be too late by as many as a unit has.
inline constexpr std::uint64_t kShortestWarmUp = 1000;

// What ends with a record of a TRACE_SITE_BURST: its `aux`. Recordings tell also where what lies
// between two bursts or points ends; and before a burst or its warm-up ends, that the thread goes
// on at the address `value`, so that what its last branch did is known.
enum EndOf : std::uint32_t { kBurstEnds, kThreadEnds, kWarmUpEnds, kRestEnds, kGoesOnAt };

struct Spec {
    std::uint32_t captures;  // Capture bits
    Filter data;
    Filter fetch;
    std::uint64_t interval;  // instructions; 0: none
    std::uint64_t warm_up;   // instructions, with sampling; see trace_capture_warm_up
    CpuLevel cpu_level;      // what CPUID says
    std::uint32_t stress;    // not 0: for tests of the driver, rare things happen often
    Regions regions;
    std::uint32_t branches;  // TRACE_*_BRANCHES, TRACE_CALLS, TRACE_RETURNS
    PredictorShape predictor;
    std::uint32_t code_line;  // bytes: with kCaptureCode, at the ends of such lines fetches are cut
    std::uint32_t random_addresses;  // not 0: the kernel chooses them
    // With the allocation log: records have an object, and a calling context only if that is wanted
    // by itself. Besides those that are known, functions that allocate memory, as --alloc-functions
    // has them.
    enum Objects : std::uint32_t { kNoObjects, kObjectsOnly, kObjectsAndContexts };
    std::uint32_t objects;
    std::uint32_t threads;  // not 0: the first kOwnSlots have slots of their own, and names
    // Calls of a function within one another that have contexts of their own: at least 1.
    std::uint32_t recursion;
    // Not 0: one thread of a process runs at a time, for so many instructions (--schedule=fair),
    // and the order of the buffers of all threads is that of the program.
    std::uint32_t slice;
    char allocation_functions[kMostNames];
    char hidden_features[kMostNames];  // for tests of the driver: --hide, as it was given
};

// Lines of the cache of a Filter.
inline constexpr std::uint32_t kMostFirstLevelLines = 4096, kMostFirstLevelWays = 64;

// What the driver is doing; written by the driver only.
enum class DriverState : std::uint32_t {
    kStarting = 0,
    kRunning = 1,
    kFinished = 2,   // the program ended in an orderly way: exit, or a signal that it died of
    kRefused = 3,    // the driver cannot run the program further; the event log says why
    kReplaced = 4,   // the process is about to become another image, with a segment of its own
    kCancelled = 5,  // announced for an execve(2) that has failed: nothing will ever run
};

struct Control {
    std::uint64_t magic;
    std::uint32_t layout_version;
    std::int32_t pid;     // of the profiled process
    std::int32_t parent;  // likewise, of the process that had started it; 0: it is asked for
    Spec spec;            // written by the collector before the driver starts
    std::atomic<DriverState> state;
    // Incremented, and woken as a futex, whenever the collector has something to do.
    std::atomic<std::uint32_t> doorbell;
    // Collectors that sleep on the doorbell: without any the driver skips the wake. There is one,
    // or, of a replay, each of its readers.
    std::atomic<std::uint32_t> collector_sleeps;
    std::atomic<std::uint32_t> thread_count;  // slots in use
    // Published lengths: bytes of the event log, elements of the tables.
    std::atomic<std::uint64_t> event_log_bytes;
    std::atomic<std::uint32_t> block_count;
    std::atomic<std::uint32_t> instr_count;
    std::atomic<std::uint32_t> site_count;
    // Which image of its process this is, from 1: written before the driver starts.
    std::uint32_t image;
    std::atomic<std::uint32_t> run_count;  // of each slot's runs
    std::atomic<std::uint64_t> allocation_count;
    std::uint64_t inherited_allocations;           // so many of those are of before a fork
    std::atomic<std::uint64_t> completed_buffers;  // of all slots, see ThreadSlot::place_in_order
};
static_assert(sizeof(Control) <= 4096);

// --- Event log: rare events, in order. Each is an EventHeader and its body, padded to 8 bytes.

enum class EventType : std::uint32_t {
    kMapped = 1,       // MappedEvent, then the path without a final zero byte
    kPartial = 2,      // PartialEvent
    kMessage = 3,      // text for the user
    kRefused = 4,      // text: why the driver stops; its exit status is 125
    kUnmapped = 5,     // UnmappedEvent
    kCommand = 6,      // the name of the executed file, then the arguments; a zero byte behind each
    kLeaves = 7,       // text: what the process runs natively from now on; "": that has failed
    kMarker = 8,       // MarkerEvent, then the text
    kProblem = 9,      // text for the user, however quiet assay is to be
    kMappedFile = 10,  // the path of a file that is mapped, numbered from 0: MemoryUse::kFile
    kThreadName = 11,  // ThreadNameEvent, then the name, once the thread has it for good
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

// What the program says by a marker of assay/client.h, but for the collecting itself. The text is
// that of its string arguments, a zero byte behind each.
struct MarkerEvent {
    std::uint64_t operation;  // ASSAY_* of client.h
    std::uint64_t arguments[5];
    // When: before that record of that buffer of the slot.
    std::uint32_t thread, slot, buffer, record;
};

struct ThreadNameEvent {
    std::uint32_t thread;  // ThreadSlot::thread
    std::uint32_t reserved;
};

struct UnmappedEvent {
    std::uint64_t start, end;
};

// Executions of a block ended early, by faults: only `executed` of its instructions ran (the
// faulting one included, as hardware and Cachegrind count it), although the block's counter says
// (counted = 1) that all did, or (counted = 0) that none did. With contexts, the counter in the
// node says that all did, except where counted = 0 and executed = 0. There is one event for all
// executions of one kind: the driver goes on counting in it.
struct PartialEvent {
    std::uint32_t block;
    std::uint32_t executed;
    std::uint32_t counted;
    std::uint32_t slot;  // of the thread
    std::uint64_t times;
    std::uint32_t node;  // ContextNode::number with contexts, else 0
    std::uint32_t reserved;

    // `node` if the log has no room left to tell the nodes of the slot apart.
    static constexpr std::uint32_t kAnyNode = UINT32_MAX;
};

// --- A thread's slot: header page, block counters, ring of trace buffers.

inline constexpr std::uint32_t kBufferBytes = 512 * 1024;
inline constexpr std::uint32_t kBufferCount = 8;  // at most, of one ring; a power of two
inline constexpr std::uint32_t kRecordsPerBuffer = kBufferBytes / sizeof(trace_record_t);

// Threads that do not run at the same time may use one slot after the other. A thread that ends
// completes its last buffer early, so that no buffer has records of two.
//
// With Filter::kFootprints each set of the data filter has an entry, as far from the next as the
// filter's are: the bytes of its most recent line that references have touched which were not
// recorded, a bit for each. A buffer that is completed takes them with it.
inline constexpr std::uint32_t kMostSets = 64;  // of 4096 bytes in lines of 64
struct ThreadSlot {
    // Buffers completed by the driver and given back by the collector, both ever increasing;
    // buffer n lives at index n % buffer_count. The driver owns buffers `produced` up to
    // `consumed + buffer_count - 1`.
    std::atomic<std::uint32_t> produced;
    std::atomic<std::uint32_t> consumed;        // futex that a driver with a full ring waits on
    std::atomic<std::uint32_t> producer_waits;  // 1 while it does
    // Of the ring: a power of two, at most kBufferCount. Written before the slot is published by
    // Control::thread_count, and never again.
    std::uint32_t buffer_count;
    // The number of the thread that uses the slot: 0 for the first of the process, then in the
    // order of creation.
    std::atomic<std::uint32_t> thread;
    std::uint32_t reserved;
    // The driver's write position in buffer `produced`, as an address in the driver, and the
    // address at which that buffer starts: their difference is how many bytes are valid. Both
    // lag at most by the basic block being executed.
    std::atomic<std::uint64_t> cursor;
    std::atomic<std::uint64_t> buffer_start;
    // Records valid in each completed buffer: kRecordsPerBuffer, or fewer if completed early.
    std::atomic<std::uint32_t> filled[kBufferCount];
    // The thread whose records each completed buffer has; written before `filled` is.
    std::atomic<std::uint32_t> owner[kBufferCount];
    // With Spec::objects: the length of the allocation log when each was completed.
    std::atomic<std::uint64_t> allocations_at_end[kBufferCount];
    // Likewise: instructions that the process had executed, as far as the thread knew; and when it
    // was in the driver last because of memory, or ended.
    std::atomic<std::uint64_t> time_at_end[kBufferCount];
    std::atomic<std::uint64_t> time;
    // With sampling: what the thread has executed since its begin, captured or not, as of when it
    // was in the driver last.
    std::atomic<std::uint64_t> executed;
    // With Spec::slice or kCaptureMappings: how many buffers of all slots were completed before.
    std::atomic<std::uint64_t> place_in_order[kBufferCount];
    struct alignas(64) Footprint {
        std::atomic<std::uint64_t> touched;
    };
    alignas(1024) Footprint footprints[kMostSets];
    std::uint64_t touched_at_end[kBufferCount][kMostSets];
};

// With Filter::kRuns, where a data operand is in the thread that uses the slot: see
// trace_capture_runs. All sites of the operand have the same one. Zeros before the first reference.
struct Run {
    std::uint64_t expected;  // address of the next reference, if it continues the run
    std::uint32_t left_out;  // references since the operand's last record: less than 2^31
    std::uint32_t site;      // of that record
    std::uint64_t stride;    // of the run
    std::uint64_t reserved;
};
static_assert(sizeof(Run) == 32);
// In the higher half of Run::expected, where no address of the program is: no reference is left
// out any more.
inline constexpr std::uint32_t kNoneExpected = 0x7fffffff;

// The last of the references that were left out, for whom no other record follows.
inline trace_record_t last_of(const Run& run) {
    return {run.expected - run.stride, run.site, run.left_out - 1};
}

// --- Offsets and capacities.

inline constexpr std::uint64_t kMiB = std::uint64_t{1024} * 1024;
inline constexpr std::uint32_t kMaxBlocks = 16 * 1024 * 1024;
inline constexpr std::uint32_t kMaxInstrs = 64 * 1024 * 1024;
inline constexpr std::uint32_t kMaxSites = 64 * 1024 * 1024;
inline constexpr std::uint32_t kMaxThreads = 4096;  // slots: threads at the same time
// With Spec::threads so many slots are used once, by the threads of their numbers; the others by
// any later threads.
inline constexpr std::uint32_t kOwnSlots = 256;

inline constexpr std::uint64_t kControlOffset = 0;
inline constexpr std::uint64_t kPointsOffset = 4096;  // behind Control
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
// std::uint16_t, by block: which word of a ContextNode counts it, see there.
inline constexpr std::uint64_t kContextWordsOffset =
    kSitesOffset + std::uint64_t{kMaxSites} * sizeof(trace_site_t);
inline constexpr std::uint64_t kThreadsOffset =
    kContextWordsOffset + std::uint64_t{kMaxBlocks} * sizeof(std::uint16_t);

// Inside a slot.
// uint64_t, by block index: see counters().
inline constexpr std::uint64_t kCountersOffset = (sizeof(ThreadSlot) + 4095) & ~std::uint64_t{4095};
inline constexpr std::uint64_t kCountersBytes = std::uint64_t{kMaxBlocks} * 8;
inline constexpr std::uint32_t kMaxRuns = 4 * 1024 * 1024;
inline constexpr std::uint64_t kRunsOffset = kCountersOffset + kCountersBytes;
inline constexpr std::uint64_t kRunsBytes = std::uint64_t{kMaxRuns} * sizeof(Run);
inline constexpr std::uint64_t kRingOffset = kRunsOffset + kRunsBytes;
inline constexpr std::uint64_t kRingBytes = std::uint64_t{kBufferBytes} * kBufferCount;
inline constexpr std::uint64_t kThreadStride = kRingOffset + kRingBytes;

// How many counters each block has; its executions are their sum. With kCapturePredictions the
// second and the third count executions of which the block's branch was mispredicted, and there is
// room for fewer blocks.
inline constexpr std::uint32_t counters(const Spec& spec) {
    return spec.captures & kCapturePredictions ? 4 : 1;
}
inline constexpr std::uint32_t max_blocks(const Spec& spec) {
    return kMaxBlocks / counters(spec);
}

// How often the thread of a slot has executed a block, where counters follow the slot's header.
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

// --- With kCaptureContexts, behind all slots: the ContextNodes of each.

// Of a node: with those of its header, which have no other use. A block has 20 bytes on average.
inline constexpr std::uint32_t context_words(const Spec& spec) {
    return counters(spec) == 1 ? 48 : 112;
}
// Whether records say in which context they are: `aux` of a reference or a fetch is the number of
// the node in the record's slot, and before others there is one of kind TRACE_SITE_CONTEXT. That is
// so if references and fetches are misses, of which there are few. Else calls are captured.
inline constexpr bool tells_contexts(const Spec& spec) {
    constexpr std::uint32_t kOthers =
        kCaptureValues | kCaptureCalls | kCaptureBranches | kCaptureCode | kCaptureBlocks;
    return (spec.captures & kCaptureContexts) != 0 && (spec.captures & kOthers) == 0 &&
           (!(spec.captures & kCaptureReferences) || spec.data.ways != 0) &&
           (!(spec.captures & kCaptureFetches) || spec.fetch.ways != 0);
}
inline constexpr std::uint64_t contexts_offset(std::uint32_t slot) {
    return thread_offset(kMaxThreads) + slot * kContextsBytes;
}
inline constexpr std::uint64_t kAllocationsOffset = contexts_offset(kMaxThreads);
inline constexpr std::uint64_t kSegmentBytes = kAllocationsOffset + kAllocationsBytes;

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace assay::trace
