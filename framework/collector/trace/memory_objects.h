// What the memory of the program is, over time: variables, blocks of the heap, stacks, mapped
// files; as the allocation log tells (framework/trace/allocation_log.h).
//
// Entries are applied as the records of their own thread are read, which tell where they belong. So
// the buffers of a single thread see each block from its allocation to its end, and no longer. Of
// another thread it is known what it has seen at least, by its last system call or entry, and at
// most, by the end of the buffer: what it refers to is what was there in between. Where an address
// was given to two blocks in that time, it counts for the first.
#pragma once

#include "framework/collector/trace/data_objects.h"
#include "framework/collector/trace/segment.h"
#include "framework/collector/trace/timed_blocks.h"
#include "framework/symbols/data_symbols.h"
#include "framework/symbols/frame_variables.h"
#include "framework/trace/allocation_log.h"

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
    // `paths`: of mapped files, by their numbers. Both must live longer.
    MemoryObjects(const Segment& segment, const std::deque<std::string>& paths);

    // The log can be read up to there.
    void available(std::uint64_t entries);
    // A TRACE_SITE_ALLOCATION record of the thread, with the calling context behind it. `number`:
    // as times() counts them.
    void mark(std::uint32_t thread, const trace_record_t& record, std::uint32_t context,
              std::uint64_t number);

    // All records of the thread have been taken.
    void end_thread(std::uint32_t thread);
    // That have not ended.
    std::size_t threads() const { return threads_.size(); }

    // Of all records, whatever they are, for how long blocks were in use.
    RecordTimes& times() { return times_; }
    // A reference to a block, by the record of that number.
    void touch(std::uint32_t block, std::uint64_t record) { blocks_.touch(block, record); }
    // At the end: blocks that are still there have lived until now.
    void end();

    // What is at `address` for the thread. The same is so for all of [start, end), as long as
    // *version has that value.
    struct Found {
        std::uint64_t start, end;
        std::uint32_t object;
        const std::uint32_t* version;
        std::uint32_t valid_version;
        std::uint32_t block = HeapBlocks::kNone;  // for touch()
    };
    Found find(std::uint32_t thread, std::uint64_t address);

    // What lies so far from the canonical frame address (CFA) of a function, on a stack, while the
    // instruction at `pc` is executed there: [start, end) from the CFA. The stack itself where that
    // is no variable.
    struct InFrame {
        std::int64_t start, end;
        std::uint32_t object;
    };
    InFrame find_in_frame(std::uint32_t stack, std::uint64_t pc, std::int64_t offset);
    // What lies at an address, or lay there last; from where on, if it is a variable or a block,
    // else the address itself.
    struct Last {
        std::uint32_t object;
        std::uint64_t start;
    };
    Last last_at(std::uint64_t address);
    // Variables get their types, and the names that debuggers show; for the end.
    void read_debug_information();

    // By number. What was referred to before it was known where it had been allocated has a number
    // of its own: `final_number` is that of the object that it belongs to.
    const std::vector<DataObject>& objects() const { return objects_.all(); }
    std::uint32_t final_number(std::uint32_t object) const { return objects_.final_number(object); }
    const std::string& path(std::uint32_t file) const { return paths_[file]; }

  private:
    static constexpr std::uint32_t kNoObject = UINT32_MAX;
    static constexpr std::size_t kFirstMost = 4096;

    // By a system call.
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
    };
    struct Thread {
        std::uint64_t now = 0;  // entries that it has seen
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
    Found find_in_image(std::uint64_t address, std::uint64_t start, const Image& image);
    std::optional<Found> find_in_areas(std::uint64_t address);
    std::optional<Found> find_thread_local(std::uint64_t address, std::uint64_t start,
                                           const Area& area);
    std::optional<Found> find_past(const Thread& thread, std::uint64_t address);
    std::optional<Found> find_coming(std::uint64_t address);
    void forget_past();
    const symbols::DataSymbols* symbols_of(std::uint32_t file);
    symbols::FrameVariables* frame_variables_of(std::uint32_t file);
    static InFrame between_variables(std::uint32_t stack, std::int64_t offset,
                                     std::span<const symbols::FrameVariable> variables);

    SharedMemory log_;
    const Segment& segment_;
    const std::deque<std::string>& paths_;
    std::uint64_t available_ = 0, applied_ = 0, indexed_ = 0;
    std::unordered_map<std::uint32_t, Thread> threads_;
    Thread* last_thread_ = nullptr;  // that was asked for
    std::uint32_t last_thread_number_ = 0;
    DataObjects objects_;
    HeapBlocks blocks_;
    RecordTimes times_;
    std::map<std::uint64_t, Area> areas_;
    std::map<std::uint64_t, Image> images_;
    std::vector<std::uint32_t> images_in_order_;  // files, as they were mapped
    std::optional<std::vector<ThreadLocalBlock>> thread_local_blocks_;  // once there are any
    bool has_threads_ = false;                                          // has had more than one
    TimedBlocks past_;                                                  // that were given back
    std::size_t most_past_ = kFirstMost;
    TimedBlocks coming_;  // that are not there yet; each is said to die when it is born
    std::size_t most_coming_ = kFirstMost;
    std::uint32_t areas_version_ = 0;  // changes whenever areas do
    std::map<std::uint32_t, std::unique_ptr<symbols::DataSymbols>> symbols_;
    std::map<std::uint32_t, std::unique_ptr<symbols::FrameVariables>> frame_variables_;
    // By stack, function and name.
    std::map<std::tuple<std::uint32_t, std::string_view, std::string_view>, std::uint32_t>
        frame_objects_;
};

}  // namespace assay::collector
