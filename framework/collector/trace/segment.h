// The collector's mapping of the trace segment (framework/trace/segment_layout.h).
#pragma once

#include "assay/trace_types.h"
#include "framework/trace/command_event.h"
#include "framework/trace/segment_layout.h"

#include <cstddef>
#include <span>
#include <vector>

namespace assay::collector {

// A shared mapping of a part of a file.
class SharedMemory {
  public:
    enum class Access { kReadAndWrite, kRead };
    // Throws Error.
    SharedMemory(int fd, std::uint64_t offset, std::uint64_t bytes, Access access);
    ~SharedMemory();
    SharedMemory(SharedMemory&& other) noexcept;
    SharedMemory& operator=(SharedMemory&&) = delete;

    template <typename T>
    T& at(std::uint64_t offset) const {
        return *reinterpret_cast<T*>(base_ + offset);
    }

  private:
    std::byte* base_;
    std::uint64_t bytes_;
};

class Segment {
  public:
    // Creates a segment for the first image of a process. It is zeroed, except the data that the
    // driver needs. Throws Error.
    explicit Segment(const trace::Command& command = {});
    // Maps a segment that a driver has made. Takes the descriptor. With kRead, the segment cannot
    // be changed. Throws Error.
    using Access = SharedMemory::Access;
    explicit Segment(int fd, Access access = Access::kReadAndWrite)
        : access_(access), file_(fd), tables_(fd, 0, trace::kThreadsOffset, access) {}

    // Closed on exec.
    int fd() const { return file_.fd; }

    // Reads the command from the event log. Throws Error if the segment has another version.
    trace::Command command() const;

    trace::Control& control() const { return tables_.at<trace::Control>(trace::kControlOffset); }
    trace::ValueLists& value_lists() const {
        return tables_.at<trace::ValueLists>(trace::kValueListsOffset);
    }
    // Regions::points has the number of valid points.
    std::span<trace::SimulationPoint, trace::kMostPoints> points() const {
        return std::span<trace::SimulationPoint, trace::kMostPoints>(
            &tables_.at<trace::SimulationPoint>(trace::kPointsOffset), trace::kMostPoints);
    }
    const std::byte* event_log() const {
        return &tables_.at<const std::byte>(trace::kEventLogOffset);
    }
    const trace_block_t* blocks() const { return &tables_.at<trace_block_t>(trace::kBlocksOffset); }
    const trace_instr_t* instrs() const { return &tables_.at<trace_instr_t>(trace::kInstrsOffset); }
    const trace_site_t* sites() const { return &tables_.at<trace_site_t>(trace::kSitesOffset); }

    // By block: see trace::ContextNode.
    std::span<const std::uint16_t> context_words() const {
        return {&tables_.at<const std::uint16_t>(trace::kContextWordsOffset), trace::kMaxBlocks};
    }

    // Maps the first `count` thread slots, if they are not mapped yet. Mapped slots stay where they
    // are. Throws Error.
    void map_slots(std::uint32_t count);
    std::uint32_t mapped_slots() const { return static_cast<std::uint32_t>(slots_.size()); }
    // The slot must be mapped.
    trace::ThreadSlot& slot(std::uint32_t index) const {
        return slots_[index].header.at<trace::ThreadSlot>(0);
    }
    const trace_record_t* ring(std::uint32_t index) const {
        return &slots_[index].ring.at<trace_record_t>(0);
    }

    // Adds a slot's counters of the first blocks to `sums`, except those above `most`. The slot
    // need not be mapped. The counters are read and not mapped, because a page fault would allocate
    // memory for counters that the thread has never touched (mm/shmem.c: shmem_fault does,
    // shmem_file_read_iter does not).
    void add_counters(std::uint32_t index, std::span<std::uint64_t> sums,
                      std::uint64_t most = UINT64_MAX) const;
    // Returns the first `count` runs of a slot, which need not be mapped: trace::Run or
    // trace::ObjectRun.
    template <typename Run>
    std::vector<Run> runs(std::uint32_t index, std::uint32_t count) const {
        std::vector<Run> runs(count);
        read(runs.data(), count * sizeof(Run), trace::thread_offset(index) + trace::kRunsOffset);
        return runs;
    }

    // The nodes of calling contexts of a slot: their number, and a layer of those from `first` on.
    // `nodes` has room for trace::kLayerWords of each.
    std::uint32_t context_node_count(std::uint32_t index) const;
    void read_context_nodes(std::uint32_t index, std::uint32_t first, std::uint32_t layer,
                            std::span<std::uint64_t> nodes) const;
    // Gives back memory of the chunks of nodes before `end`, which nobody needs any more.
    void release_context_nodes(std::uint32_t index, std::uint32_t end) const;

  private:
    void read(void* into, std::size_t bytes, std::uint64_t offset) const;

    struct MemoryFile {
        MemoryFile();
        explicit MemoryFile(int descriptor) : fd(descriptor) {}
        ~MemoryFile();
        MemoryFile(const MemoryFile&) = delete;
        MemoryFile& operator=(const MemoryFile&) = delete;

        int fd;
    };
    struct Slot {
        SharedMemory header, ring;
    };

    const Access access_ = Access::kReadAndWrite;
    MemoryFile file_;
    SharedMemory tables_;
    std::vector<Slot> slots_;
};

// The translated code, as far as it has been checked.

struct CodeTables {
    std::span<const trace_block_t> blocks;
    std::span<const trace_instr_t> instrs;
    std::span<const trace_site_t> sites;
};

}  // namespace assay::collector
