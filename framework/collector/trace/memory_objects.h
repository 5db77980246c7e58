// The memory of the program over time: variables, blocks of the heap, stacks and mapped files. The
// source is the allocation log (framework/trace/allocation_log.h).
//
// An entry of the log is applied at a record of its own thread that marks its place. A thread's
// references therefore see its own blocks exactly from the allocation to the end. For entries of
// other threads, the exact order is not known. A thread has seen at least the entries up to its
// last system call or own entry, and at most those up to the end of its buffer. Its references
// belong to blocks that existed in between. If an address belonged to two blocks in that time, the
// reference counts for the first.
#pragma once

#include "framework/collector/trace/data_objects.h"
#include "framework/collector/trace/heap_curve.h"
#include "framework/collector/trace/memory_areas.h"
#include "framework/collector/trace/segment.h"
#include "framework/collector/trace/timed_blocks.h"
#include "framework/trace/allocation_log.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace assay::collector {

class MemoryObjects {
  public:
    // `paths` are those of mapped files, by number. Both arguments must live longer.
    MemoryObjects(const Segment& segment, const std::deque<std::string>& paths);

    // Allows to read the first `entries` entries of the log.
    void available(std::uint64_t entries);
    // Takes a TRACE_SITE_ALLOCATION record of the thread. `context` is the calling context after
    // the record, `number` the number of the record in times().
    void mark(std::uint32_t thread, const trace_record_t& record, std::uint32_t context,
              std::uint64_t number);

    // Called when all records of the thread have been taken.
    void end_thread(std::uint32_t thread);
    // Number of threads that have not ended.
    std::size_t threads() const { return threads_.size(); }

    // The times of all records. They determine for how long blocks were in use.
    RecordTimes& times() { return times_; }
    // Called for a reference to a block. `record` is the number of the record.
    void touch(std::uint32_t block, std::uint64_t record) { blocks_.touch(block, record); }
    // Called for the last of some references to a block, at a time in instructions of the process.
    void touch_until(std::uint32_t block, std::uint64_t time) {
        std::uint64_t& known = touched_until_[block];
        known = std::max(known, time);
    }
    // Called at the end. Blocks that still exist have lived until now.
    void end();

    // The object at `address` for the thread.
    FoundObject find(std::uint32_t thread, std::uint64_t address);
    // The memory that is not of the heap, at the same time.
    MemoryAreas& areas() { return areas_; }
    // Finds the object that is at an address, or was there last. `start` is the start of the
    // variable or block, and otherwise the address.
    struct Last {
        std::uint32_t object;
        std::uint64_t start;
    };
    Last last_at(std::uint64_t address);

    // The objects by number. A reference to a block whose allocating context is not known yet gets
    // a provisional number. final_number() returns the number of the object to which it belongs.
    const std::vector<DataObject>& objects() const { return objects_.all(); }
    std::uint32_t final_number(std::uint32_t object) const { return objects_.final_number(object); }
    const std::string& path(std::uint32_t file) const { return paths_[file]; }
    // The blocks of the heap over time, by object.
    const HeapCurve& heap() const { return heap_; }

  private:
    static constexpr std::size_t kFirstMost = 4096;

    struct Thread {
        std::uint64_t now = 0;  // number of entries that it has seen
        std::uint32_t context = 0;
    };

    Thread& thread(std::uint32_t number);
    const trace::AllocationEntry& entry(std::uint64_t number) const;
    void inherit();
    void advance(std::uint64_t to);
    void apply(std::uint64_t number);
    void resolve(const trace::AllocationEntry& own, std::uint64_t number, std::uint32_t context);
    void end_block(std::uint32_t block, std::uint64_t died);
    void add_life(std::uint32_t block, std::uint64_t time);
    std::uint32_t object_of_block(const HeapBlocks::Block& block);
    std::optional<FoundObject> find_past(const Thread& thread, std::uint64_t address);
    std::optional<FoundObject> find_coming(std::uint64_t address);
    void forget_past();

    SharedMemory log_;
    const Segment& segment_;
    const std::deque<std::string>& paths_;
    std::uint64_t available_ = 0, applied_ = 0, indexed_ = 0;
    std::unordered_map<std::uint32_t, Thread> threads_;
    Thread* last_thread_ = nullptr;  // result of the last call of thread()
    std::uint32_t last_thread_number_ = 0;
    DataObjects objects_;
    HeapCurve heap_;
    HeapBlocks blocks_;
    MemoryAreas areas_;
    RecordTimes times_;
    std::unordered_map<std::uint32_t, std::uint64_t> touched_until_;  // by block
    bool has_threads_ = false;  // true if there has been more than one thread
    TimedBlocks past_;          // blocks that were given back
    std::size_t most_past_ = kFirstMost;
    TimedBlocks coming_;  // blocks that other threads allocate later; each dies when it is born
    std::size_t most_coming_ = kFirstMost;
};

}  // namespace assay::collector
