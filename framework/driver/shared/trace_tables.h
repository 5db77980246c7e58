// The parts of the trace segment that all threads of the driver share: the tables of translated
// code, the event log, and the list of slots (thread_trace.h). Callers must hold the driver's lock,
// except for methods that only read.
#pragma once

#include "framework/driver/shared/context_words.h"
#include "framework/driver/shared/new_image.h"
#include "framework/driver/shared/object_runs.h"
#include "framework/trace/launch.h"
#include "framework/trace/segment_layout.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace assay::driver {

// Numbers the data operands that have runs in each thread: trace::Run.

class RunNumbers {
  public:
    // All sites with these values belong to one operand. An instruction can be in several blocks.
    struct Operand {
        std::uint64_t pc;
        std::uint32_t bytes;
        std::uint8_t kind, number;  // as in trace_site_t

        friend bool operator==(const Operand&, const Operand&) = default;
    };

    // kMaxRuns if there are too many.
    std::uint32_t of(const Operand& operand) {
        const auto known = numbers_.find(operand);
        if (known != numbers_.end()) return known->second;
        if (count() == trace::kMaxRuns) return trace::kMaxRuns;
        return numbers_.emplace(operand, count()).first->second;
    }
    std::uint32_t count() const { return static_cast<std::uint32_t>(numbers_.size()); }

  private:
    struct Hash {
        std::size_t operator()(const Operand& operand) const {
            const std::uint64_t which = std::uint64_t{operand.bytes} << 16 |
                                        std::uint64_t{operand.kind} << 8 | operand.number;
            return std::hash<std::uint64_t>()(operand.pc ^ which << 40);
        }
    };

    std::unordered_map<Operand, std::uint32_t, Hash> numbers_;
};

// The first rows of a unit of translation in the tables. The rows of a unit follow one another.
struct TableRows {
    std::uint32_t block, instr, site;

    friend bool operator==(const TableRows&, const TableRows&) = default;
};

// What a driver does with descriptors that the program must not use. Each function returns the
// descriptor's new number.
struct DescriptorCare {
    int (*own)(int);           // of a new descriptor
    int (*adopt)(int);         // of one that another driver has handed down
    int (*adopt_common)(int);  // the same, for one that the children of a fork also need
};

class TraceTables {
  public:
    explicit TraceTables(const DescriptorCare& descriptors) : descriptors_(descriptors) {}

    // Maps the segment, and takes over the descriptors of `launch`. False on failure.
    bool attach(const trace::Launch& launch);
    // For the child of a fork: announces the new image and continues in its segment. Keeps the
    // tables, because inherited translations refer to them, but no slots. False if this is
    // impossible.
    bool move_to(NewImage& image);
    // For the child of a fork that is not followed: stops writing to the parent's segment.
    void detach();
    // True if no collector reads what this process writes. Async-signal-safe.
    bool detached() const { return detached_.load(std::memory_order_relaxed); }
    // Sets detached() if the collector is gone. Async-signal-safe.
    void look_for_collector();
    // The channel that announces new images (framework/trace/launch.h); -1: children are not
    // followed.
    int channel() const { return channel_; }

    const trace::Spec& spec() const { return control_->spec; }
    // The image's process, and the image's number in it.
    std::int32_t pid() const { return control_->pid; }
    std::uint32_t image() const { return control_->image; }
    const trace::InstructionSet& instruction_set() const { return control_->instruction_set; }
    bool captures(trace::Capture capture) const { return control_->spec.captures & capture; }
    // The simulation points of the specification.
    std::span<const trace::SimulationPoint> points() const {
        return {points_, std::min(spec().regions.points, trace::kMostPoints)};
    }
    // nullptr if no values are captured.
    const trace::ValueLists* value_lists() const {
        return captures(trace::kCaptureValues) ? value_lists_ : nullptr;
    }
    // The values that are captured of instructions with this opcode and these TRACE_INSTR_*;
    // nullptr if they are not selected.
    const trace::ValueList* value_list(std::uint16_t opcode, std::uint8_t flags) const {
        const trace::ValueLists* lists = value_lists();
        return lists ? lists->find(opcode, flags) : nullptr;
    }

    // Appends to the tables. publish() makes the new rows visible to the collector.
    std::uint32_t next_block() const { return next_.block; }
    std::uint32_t next_site() const { return next_.site; }
    const TableRows& next() const { return next_; }
    // Fills in the row's block.
    void add_instr(trace_instr_t row);
    void add_site(std::uint32_t instr, unsigned bytes, unsigned kind, unsigned operand);
    // A site for events that translations do not contain: one for each instruction and kind. It is
    // published at once.
    std::uint32_t driver_site(std::uint32_t instr, unsigned kind);
    // The first of them of a kind, for records that belong to no instruction. Takes no lock, so
    // driver_site(0, kind) must have been called before.
    std::uint32_t known_site(unsigned kind) const { return driver_sites_.at(kind); }
    // The block consists of the instructions added since the last block.
    void add_block(std::uint64_t pc);
    void publish();
    // With contexts: the words of nodes for the blocks and calls of translated code.
    ContextWords& context_words() { return words_; }
    std::uint32_t context_word(std::uint32_t block) const { return context_words_[block]; }
    void set_context_word(std::uint32_t block, std::uint32_t word) {
        if (context_words_[block] == 0) context_words_[block] = static_cast<std::uint16_t>(word);
    }
    // Until end_comparison(), rows are compared with the existing ones from `first` on, and not
    // appended. end_comparison() returns true if they are equal and end at `end`.
    void begin_comparison(const TableRows& first);
    bool end_comparison(const TableRows& end);
    bool tables_full() const;
    // From now on madvise(2) may be forbidden. Rows then get their pages by faults.
    void stop_populating() { populates_ = false; }
    // With Filter::kRuns: the number of the operand's run in each thread; kMaxRuns: no run.
    std::uint32_t run_of(const RunNumbers::Operand& operand) { return run_numbers_.of(operand); }
    void note_run(std::uint32_t site, std::uint32_t run) {
        if (runs_of_sites_.size() <= site) runs_of_sites_.resize(site + 1, trace::kMaxRuns);
        runs_of_sites_[site] = run;
    }
    // run_count() or more if the site has no run.
    std::uint32_t run_of_site(std::uint32_t site) const {
        return std::min(site < runs_of_sites_.size() ? runs_of_sites_[site] : trace::kMaxRuns,
                        run_count());
    }
    std::uint32_t run_count() const { return run_numbers_.count(); }
    // With Spec::objects.
    ObjectRuns& object_runs() { return object_runs_; }
    const ObjectRuns& object_runs() const { return object_runs_; }
    const trace_block_t& block(std::uint32_t index) const { return blocks_[index]; }
    const trace_instr_t& instr(std::uint32_t index) const { return instrs_[index]; }
    std::uint32_t block_of(std::uint32_t site) const { return instrs_[sites_[site].instr].block; }
    bool is_fetch(std::uint32_t site) const { return sites_[site].kind == TRACE_SITE_FETCH; }
    bool is_data(std::uint32_t site) const {
        const unsigned kind = sites_[site].kind;
        return kind == TRACE_SITE_READ || kind == TRACE_SITE_WRITE || kind == TRACE_SITE_MODIFY;
    }
    // True for references that translated code checks, and that it could also always record. Misses
    // of a cache say little about the filter before it.
    bool is_checked(std::uint32_t site) const {
        return is_data(site) ? spec().data.ways == 0
                             : object_runs_.known_run_of(site) != ObjectRuns::kNone;
    }
    // How often all threads have executed the site's block, if block counts are captured.
    std::uint64_t executions(std::uint32_t site) const;

    void mapped(std::uint64_t start, std::uint64_t end, std::uint64_t offset,
                std::string_view path);
    void unmapped(std::uint64_t start, std::uint64_t end);
    void partial(trace::PartialEvent partial);
    void marker(const trace::MarkerEvent& marker, std::string_view text);
    // The number of a file for MemoryUse::kFile; nothing if there is no room for its name.
    std::optional<std::uint32_t> mapped_file(std::string_view path);
    // With Spec::objects. False if there is no room.
    bool add_allocation(const trace::AllocationEntry& entry);
    // Async-signal-safe. Any thread may call it.
    std::uint64_t allocations() const {
        return control_->allocation_count.load(std::memory_order_acquire);
    }
    void thread_name(std::uint32_t thread, std::string_view name);
    void message(std::string_view text);
    void problem(std::string_view text);
    void refuse(std::string_view text);
    // The program that runs natively after this image; "": this image goes on.
    void leaves_for(std::string_view text);
    void set_state(trace::DriverState state);
    void set_pid(std::int32_t pid);
    // For ThreadSlot::place_in_order: the place of the next buffer among those of all threads.
    // Async-signal-safe.
    std::uint64_t next_place_in_order() {
        return control_->completed_buffers.fetch_add(1, std::memory_order_relaxed);
    }
    // Tells the collector that it has something to do. Async-signal-safe.
    void ring_doorbell();

    // --- Slots.

    int fd() const { return fd_; }
    // The number of a slot that was never used, or kMaxThreads if all were used.
    std::uint32_t new_slot();
    // Makes the slot that is mapped at `slot` known to the collector.
    void publish_slot(trace::ThreadSlot* slot);
    // Gives the slot's current buffer, with so many records, to the collector. Waits until the next
    // buffer, which begins at `next`, is free. Async-signal-safe, and needs no lock.
    void hand_over(trace::ThreadSlot& slot, std::uint32_t records, std::uint64_t next);

  private:
    void log(trace::EventType type, const void* body, std::size_t bytes, std::string_view tail);
    bool map(void* where);
    bool map_allocations();
    template <typename Row>
    void add(Row* rows, std::uint32_t& next, const Row& row);
    std::string lasting_events() const;

    const DescriptorCare descriptors_;
    int fd_ = -1, lifeline_ = -1, channel_ = -1;
    trace::Control* control_ = nullptr;
    unsigned char* log_ = nullptr;
    const trace::ValueLists* value_lists_ = nullptr;
    const trace::SimulationPoint* points_ = nullptr;
    trace_block_t* blocks_ = nullptr;
    trace_instr_t* instrs_ = nullptr;
    trace_site_t* sites_ = nullptr;
    std::uint16_t* context_words_ = nullptr;
    ContextWords words_;
    trace::AllocationEntry* allocations_ = nullptr;
    std::uint64_t allocation_count_ = 0;
    std::map<std::string, std::uint32_t, std::less<>> mapped_files_;  // their numbers
    std::vector<trace::ThreadSlot*> slots_;
    RunNumbers run_numbers_;
    ObjectRuns object_runs_;
    std::vector<std::uint32_t> runs_of_sites_;
    std::unordered_map<std::uint64_t, std::uint32_t> driver_sites_;  // by instruction and kind
    // The offset of the event's body in the log, by all members except `times`.
    std::map<std::array<std::uint32_t, 5>, std::uint64_t> partials_;
    std::uint64_t log_used_ = 0;
    TableRows next_{};
    TableRows end_{};  // after all rows, during a comparison
    bool compares_ = false, same_ = false;
    bool populates_ = true;
    std::uint32_t block_begin_ = 0;  // the first instruction of the next block
    bool markers_lost_ = false, allocations_lost_ = false;
    std::atomic<bool> detached_{false};
};

}  // namespace assay::driver
