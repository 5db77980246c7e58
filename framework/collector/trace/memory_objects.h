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
#include "framework/collector/trace/segment.h"
#include "framework/collector/trace/timed_blocks.h"
#include "framework/symbols/data_symbols.h"
#include "framework/symbols/frame_variables.h"
#include "framework/trace/allocation_log.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
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

    // The object at `address` for the thread. It is the same for all of [start, end), as long as
    // *version equals valid_version.
    struct Found {
        std::uint64_t start, end;
        std::uint32_t object;
        const std::uint32_t* version;
        std::uint32_t valid_version;
        std::uint32_t block = HeapBlocks::kNone;  // for touch()
    };
    Found find(std::uint32_t thread, std::uint64_t address);

    // Finds the variable at `offset` from the canonical frame address (CFA) of a function, while
    // the instruction at `pc` is executed there. [start, end) are offsets from the CFA. If there is
    // no variable, the object is the stack.
    struct InFrame {
        std::int64_t start, end;
        std::uint32_t object;
    };
    InFrame find_in_frame(std::uint32_t stack, std::uint64_t pc, std::int64_t offset);
    // False if no image has variables of functions: then a stack is one object.
    bool has_frame_variables();
    // Finds the object that is at an address, or was there last. `start` is the start of the
    // variable or block, and otherwise the address.
    struct Last {
        std::uint32_t object;
        std::uint64_t start;
    };
    Last last_at(std::uint64_t address);
    // Finds the types of variables, and the names that debuggers show. Called at the end.
    void read_debug_information();

    // The objects by number. A reference to a block whose allocating context is not known yet gets
    // a provisional number. final_number() returns the number of the object to which it belongs.
    const std::vector<DataObject>& objects() const { return objects_.all(); }
    std::uint32_t final_number(std::uint32_t object) const { return objects_.final_number(object); }
    const std::string& path(std::uint32_t file) const { return paths_[file]; }
    // The blocks of the heap over time, by object.
    const HeapCurve& heap() const { return heap_; }

  private:
    static constexpr std::uint32_t kNoObject = UINT32_MAX;
    static constexpr std::size_t kFirstMost = 4096;

    // Memory from a system call.
    struct Area {
        std::uint64_t end = 0;
        DataObject::Kind kind = DataObject::Kind::kMapping;
        std::uint32_t object = kNoObject;
        std::uint32_t file = 0;
        std::uint64_t born = 0;
    };
    // An ELF file with code.
    struct Image {
        std::uint64_t end = 0;
        std::uint32_t file = 0;
        std::uint64_t offset = 0;
        bool executable = false;
        // Both are null if there are none, or until has_symbols.
        const symbols::DataSymbols* symbols = nullptr;
        symbols::FrameVariables* variables = nullptr;
        bool has_symbols = false;
    };
    struct Thread {
        std::uint64_t now = 0;  // number of entries that it has seen
        std::uint32_t context = 0;
    };

    Thread& thread(std::uint32_t number);
    const trace::AllocationEntry& entry(std::uint64_t number) const;
    void inherit();
    void advance(std::uint64_t to);
    void apply(std::uint64_t number);
    void set_area(std::uint64_t start, const Area& area);
    void clear_areas(std::uint64_t start, std::uint64_t end);
    void map_file(const trace::AllocationEntry& mapped, std::uint64_t number);
    void move_area(const trace::AllocationEntry& moved);
    void name_stack(const trace::AllocationEntry& begun);
    void place_thread_locals(std::uint64_t thread_pointer, std::uint64_t number);
    void resolve(const trace::AllocationEntry& own, std::uint64_t number, std::uint32_t context);
    void end_block(std::uint32_t block, std::uint64_t died);
    void add_life(std::uint32_t block, std::uint64_t time);
    std::uint32_t object_of_block(const HeapBlocks::Block& block);
    Found find_in_image(std::uint64_t address, std::uint64_t start, Image& image);
    std::optional<Found> find_in_areas(std::uint64_t address, const HeapBlocks::Place& gap);
    std::optional<Found> find_thread_local(std::uint64_t address, std::uint64_t start,
                                           const Area& area);
    std::optional<Found> find_past(const Thread& thread, std::uint64_t address);
    std::optional<Found> find_coming(std::uint64_t address);
    void forget_past();
    void read_symbols(Image& image);
    const symbols::DataSymbols* symbols_of(std::uint32_t file);
    symbols::FrameVariables* frame_variables_of(std::uint32_t file);
    static InFrame between_variables(std::uint32_t stack, std::int64_t offset,
                                     std::span<const symbols::FrameVariable> variables);

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
    RecordTimes times_;
    std::unordered_map<std::uint32_t, std::uint64_t> touched_until_;  // by block
    std::map<std::uint64_t, Area> areas_;
    std::map<std::uint64_t, Image> images_;
    std::vector<std::uint32_t> images_in_order_;  // files in the order of mapping
    std::optional<std::vector<ThreadLocalBlock>> thread_local_blocks_;  // empty at first
    bool has_threads_ = false;  // true if there has been more than one thread
    TimedBlocks past_;          // blocks that were given back
    std::size_t most_past_ = kFirstMost;
    TimedBlocks coming_;  // blocks that other threads allocate later; each dies when it is born
    std::size_t most_coming_ = kFirstMost;
    std::uint32_t areas_version_ = 0;  // changes with each change of the areas
    bool has_frame_variables_ = false;
    std::uint32_t has_frame_variables_version_ = UINT32_MAX;  // the areas_version_ of this
    std::map<std::uint32_t, std::unique_ptr<symbols::DataSymbols>> symbols_;
    std::map<std::uint32_t, std::unique_ptr<symbols::FrameVariables>> frame_variables_;
    // By stack, function and name.
    std::map<std::tuple<std::uint32_t, std::string_view, std::string_view>, std::uint32_t>
        frame_objects_;
};

}  // namespace assay::collector
