// Consumes what a driver writes to the trace segment.
//
// A program can scribble over the segment, which its driver has mapped. Therefore lengths,
// indexes and sizes are checked here before anything follows them; profilers may rely on them.
// The checks throw Error, after which only discard() may be called: it keeps the program going.
#pragma once

#include "framework/collector/trace/address_map.h"
#include "framework/collector/trace/segment.h"
#include "framework/collector/trace/timed_blocks.h"
#include "framework/trace/readers.h"

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace assay::collector {

class TraceReader {
  public:
    // The thread that made the records of a buffer, whose number can be any if the program has
    // written over it, and the slot that it used.
    struct Source {
        std::uint32_t thread, slot;
    };
    // Receives the records of one buffer, and what the program said among them; the tables are
    // those at that time. There is at least a record or a marker.
    using Sink = std::function<void(Source source, std::span<const trace_record_t> records,
                                    std::span<const trace_marker_t> markers)>;

    // Of several readers of a segment one gives buffers back; the others follow it, and say nothing
    // to the user.
    enum class Role { kFirst, kFollower };
    TraceReader(Segment& segment, Sink sink, Role role = Role::kFirst);
    // Of a segment with several first readers, each of which may have followers: this is `number`.
    // `readers` must live longer.
    void read_as_one_of(trace::Readers& readers, std::uint32_t number) {
        readers_ = &readers;
        reader_ = number;
    }

    // Passes completed buffers on and gives them back, in turn one of each thread, so that none
    // waits for another's whole ring; with Spec::slice in the order in which they were completed,
    // and where mappings are captured the oldest of those that are there first. Stops after about
    // as many as a ring has, to leave time for other things. Returns whether there were any.
    bool consume();
    // After the driver's end, when consume() finds nothing any more and none is kept: passes on
    // each thread's last, partial buffer.
    void consume_rest();

    // In the first reader, if others follow it. `announce` is told the slot of each buffer before
    // it is passed on. Buffers are given back once release() has been told how many of them, in
    // that order, the others have done with; consume() finds none while too many are kept.
    void keep_buffers(std::function<void(std::uint32_t slot)> announce) {
        announce_ = std::move(announce);
    }
    void release(std::uint64_t buffers);
    bool keeps_any() const { return !kept_.empty(); }
    // In the others: passes on the next buffer of the slot.
    void follow(std::uint32_t slot);
    // Buffers are not passed on, nor looked at, since nobody here needs them.
    void pass_over_records() { passes_over_ = true; }

    // Looks at what has been added to the tables and to the event log. consume() does so itself if
    // there are buffers.
    void refresh();
    // Gives completed buffers back unread. Returns whether there were any.
    bool discard();

    const CodeTables& code() const { return code_; }
    const AddressMap& addresses() const { return addresses_; }
    std::uint64_t records() const { return records_; }
    // Of the event log, as far as it has been read.
    std::uint64_t event_bytes() const { return event_bytes_; }
    // Of Spec::objects: the paths of files, by their numbers; and during a call of the sink how
    // many entries the allocation log had when the buffer was complete.
    const std::deque<std::string>& mapped_files() const { return mapped_files_; }
    std::uint64_t allocations() const { return allocations_; }
    // Likewise when the last of what the sink is given was recorded, in instructions of the
    // process; 0 if it is not the last of a buffer.
    std::uint64_t time() const { return time_; }
    // During a call of the sink: trace_parser_footprints().
    std::span<const std::uint64_t> footprints() const { return footprints_; }
    // Why the driver refused to go on; "" if it did not.
    const std::string& refusal() const { return refusal_; }

    // What the process is about to run without its driver; "" if nothing.
    const std::string& leaves_for() const { return leaves_for_; }

    // After the driver's end, if block counts were captured: what threads cannot have executed in
    // that time, for people; "" if all is possible. What is impossible counts as 0 from then on.
    std::string impossible_counts(std::chrono::duration<double> time);

    // Executions by instruction, from the block counters and the blocks left early. Exact once the
    // driver has ended; block counts must have been captured.
    std::vector<std::uint64_t> instruction_counts() const;
    // The executions of blocks that a fault ended early. Exact once the driver has ended.
    std::vector<trace::PartialEvent> left_early() const;
    // Slots that threads have used, and how often the one that uses it, and those before it, have
    // entered each block.
    std::uint32_t slots() const;
    std::vector<std::uint64_t> block_counts(std::uint32_t slot) const;
    // The thread that uses the slot, or did.
    std::uint32_t thread_of(std::uint32_t slot) const;
    // How many threads there have been.
    std::uint32_t threads() const;
    // With Spec::threads, by thread, as far as they are known.
    const std::map<std::uint32_t, std::string>& thread_names() const { return thread_names_; }
    // With sampling: what that thread has executed.
    std::uint64_t executed(std::uint32_t slot) const;
    // Mispredictions by block, likewise; empty if they are not captured.
    std::vector<std::uint64_t> mispredictions() const;
    std::vector<std::uint64_t> mispredictions(std::uint32_t slot) const;
    // Executed instructions so far, roughly. Reads all counters of all threads.
    std::uint64_t instructions() const;

  private:
    // A thread slot. Where its number of buffers is needed, it is the one that has been checked.
    struct Ring {
        std::uint32_t number;
        trace::ThreadSlot* slot;
        const trace_record_t* records;
        std::uint32_t buffer_count;
        std::uint32_t consumed;  // buffers given back

        // With Spec::slice or captured mappings, of the next buffer.
        std::uint64_t place_of_next() const { return slot->place_in_order[index()].load(); }
        // Where the next buffer stands.
        std::uint32_t index() const { return consumed & (buffer_count - 1); }
        std::span<const trace_record_t> buffer() const {
            return {records + index() * trace::kRecordsPerBuffer, trace::kRecordsPerBuffer};
        }
    };

    // That a driver still waits for.
    struct Kept {
        std::uint32_t slot, number;
    };
    static constexpr std::size_t kMostKept = 64;

    void open_rings();
    bool consume_in_order();
    Ring* next_in_order();
    bool consume_oldest_first();
    Ring* oldest();
    bool consume_one(Ring& ring);
    bool has_next(const Ring& ring) const;
    void pass_on_next(Ring& ring);
    void give_back(const Kept& kept);
    void set_consumed(std::uint32_t slot, std::uint32_t consumed, std::uint32_t buffer_count);
    void consume_last(const Ring& ring);
    void end_runs(const Ring& ring);
    struct Complete {  // a buffer
        std::uint32_t thread;
        std::uint64_t records;
        const std::uint64_t* touched;
        std::uint64_t time;
    };
    static Complete complete(const Ring& ring);
    void pass_on(const Ring& ring, const Complete& buffer);
    void pass_on_parts(Source source, std::uint64_t time, std::span<const trace_record_t> records,
                       std::span<const trace_marker_t> markers);
    std::size_t part_length(std::span<const trace_record_t> records) const;
    void check_sites(std::span<const trace_record_t> records) const;
    void refresh_tables();
    void check_block(std::size_t index, std::uint32_t instrs) const;
    void refresh_events();
    void take_event(const trace::EventHeader& header, const std::byte* body);
    std::vector<std::uint64_t> counters() const;
    std::vector<std::uint64_t> counters(std::uint32_t slot) const;
    std::vector<std::uint64_t> mispredictions_by_block(const std::vector<std::uint64_t>& all) const;
    std::size_t counters_per_block() const;
    std::vector<std::uint64_t> sums_by_block(std::vector<std::uint64_t> all) const;
    std::vector<std::uint64_t> block_counts() const;
    std::string impossible_counters(std::uint32_t slot, double seconds) const;
    std::string impossible_partials() const;

    Segment& segment_;
    Sink sink_;
    const Role role_;
    trace::Readers* readers_ = nullptr;
    std::uint32_t reader_ = 0;  // among them
    CodeTables code_;
    AddressMap addresses_;
    std::uint64_t event_bytes_ = 0;           // of the event log, taken
    std::vector<const std::byte*> partials_;  // events in the log, of which the driver counts more
    MarkerQueues markers_;
    std::deque<std::string> mapped_files_;
    std::map<std::uint32_t, std::string> thread_names_;
    std::uint64_t allocations_ = 0;
    std::uint64_t time_ = 0;
    std::string refusal_, leaves_for_;
    std::uint64_t records_ = 0;
    std::uint64_t most_executions_ = UINT64_MAX;  // of a block by a thread, once that is known
    std::uint64_t most_instrs_ = UINT64_MAX;      // likewise
    std::span<const std::uint64_t> footprints_;
    std::vector<Ring> rings_;  // by slot
    // With Spec::slice: buffers that have been taken, and since when none that there are is next.
    std::uint64_t taken_in_order_ = 0;
    std::optional<std::chrono::steady_clock::time_point> in_vain_since_;
    std::function<void(std::uint32_t slot)> announce_;
    std::deque<Kept> kept_;
    std::uint64_t released_ = 0;
    bool passes_over_ = false;
};

}  // namespace assay::collector
