// Reads the data that a driver writes to the trace segment.
//
// A program can overwrite the segment, because its driver has mapped it. Lengths, indexes and sizes
// are therefore checked here before they are used. Profilers may rely on them. The checks throw
// Error. After that only discard() may be called, which keeps the program going.
#pragma once

#include "framework/collector/trace/address_map.h"
#include "framework/collector/trace/segment.h"
#include "framework/collector/trace/thread_counts.h"
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
    // The thread that made the records of a buffer, and the slot that it used. The thread can be
    // any number if the program has overwritten it.
    struct Source {
        std::uint32_t thread, slot;
    };
    // Receives the records of one buffer, and the markers among them: at least one record or
    // marker. code() has the tables of that time.
    using Sink = std::function<void(Source source, std::span<const trace_record_t> records,
                                    std::span<const trace_marker_t> markers)>;

    // A segment can have several readers. The first one gives buffers back. The others follow it,
    // and print no messages.
    enum class Role { kFirst, kFollower };
    TraceReader(Segment& segment, Sink sink, Role role = Role::kFirst);
    // A segment can also have several first readers, each with its own followers. Makes this reader
    // `number` of them. `readers` must live longer.
    void read_as_one_of(trace::Readers& readers, std::uint32_t number) {
        readers_ = &readers;
        reader_ = number;
    }

    // Passes completed buffers on and gives them back. Takes one buffer of each thread in turn, so
    // that no thread waits for the whole ring of another. With Spec::slice, takes buffers in the
    // order of completion. If mappings are captured, takes the oldest buffer first. Stops after
    // about as many buffers as a ring has, to leave time for other work. Returns true if there were
    // any buffers.
    bool consume();
    // Called after the driver's end, when consume() finds no more buffers and no buffer is kept.
    // Passes on each thread's last, partial buffer.
    void consume_rest();

    // For a first reader with followers. `announce` is called with the slot of each buffer before
    // the buffer is passed on. A buffer is given back when the followers have processed it:
    // release() gets their number of processed buffers, in the order of announcements. consume()
    // finds no buffers while too many are kept.
    void keep_buffers(std::function<void(std::uint32_t slot)> announce) {
        announce_ = std::move(announce);
    }
    void release(std::uint64_t buffers);
    bool keeps_any() const { return !kept_.empty(); }
    // For a follower: passes on the next buffer of the slot.
    void follow(std::uint32_t slot);
    // Buffers are then neither checked nor passed on. Called if this process does not need them.
    void pass_over_records() { passes_over_ = true; }

    // Reads additions to the tables and to the event log. consume() does the same if there are
    // buffers.
    void refresh();
    // Gives completed buffers back unread. Returns true if there were any.
    bool discard();

    const CodeTables& code() const { return code_; }
    const AddressMap& addresses() const { return addresses_; }
    std::uint64_t records() const { return records_; }
    // Number of bytes of the event log that have been read.
    std::uint64_t event_bytes() const { return event_bytes_; }
    // With Spec::objects: the paths of files by number; and, during a call of the sink, the number
    // of entries of the allocation log when the buffer was completed.
    const std::deque<std::string>& mapped_files() const { return mapped_files_; }
    std::uint64_t allocations() const { return allocations_; }
    // With Spec::objects, during a call of the sink: when the last record was made, in instructions
    // of the process. 0 if this record is not the last of a buffer.
    std::uint64_t time() const { return time_; }
    // Valid during a call of the sink, for trace_parser_footprints().
    std::span<const std::uint64_t> footprints() const { return footprints_; }
    // The reason why the driver refused to continue, or "".
    const std::string& refusal() const { return refusal_; }

    // A message about the program that the process is about to run without its driver, or "".
    const std::string& leaves_for() const { return leaves_for_; }

    // What the threads have executed. Valid as long as this reader.
    const ThreadCounts& counts() const { return counts_; }
    ThreadCounts& counts() { return counts_; }
    // With Spec::threads: the known names, by thread.
    const std::map<std::uint32_t, std::string>& thread_names() const { return thread_names_; }

  private:
    // A thread slot. `buffer_count` has been checked, unlike the number in the segment.
    struct Ring {
        std::uint32_t number;
        trace::ThreadSlot* slot;
        const trace_record_t* records;
        std::uint32_t buffer_count;
        std::uint32_t consumed;  // number of buffers given back

        // Order of the next buffer; only with Spec::slice or captured mappings.
        std::uint64_t place_of_next() const { return slot->place_in_order[index()].load(); }
        // Index of the next buffer in the ring.
        std::uint32_t index() const { return consumed & (buffer_count - 1); }
        std::span<const trace_record_t> buffer() const {
            return {records + index() * trace::kRecordsPerBuffer, trace::kRecordsPerBuffer};
        }
    };

    // A buffer that the followers have not processed.
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
    static std::span<const trace_record_t> last_records(const Ring& ring, std::uint64_t cursor);
    void end_runs(const Ring& ring);
    struct Complete {  // a complete buffer
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

    Segment& segment_;
    Sink sink_;
    const Role role_;
    trace::Readers* readers_ = nullptr;
    std::uint32_t reader_ = 0;  // number of this reader
    CodeTables code_;
    ThreadCounts counts_;
    AddressMap addresses_;
    std::uint64_t event_bytes_ = 0;  // number of bytes read
    MarkerQueues markers_;
    std::deque<std::string> mapped_files_;
    std::map<std::uint32_t, std::string> thread_names_;
    std::uint64_t allocations_ = 0;
    std::uint64_t time_ = 0;
    std::string refusal_, leaves_for_;
    std::uint64_t records_ = 0;
    std::span<const std::uint64_t> footprints_;
    std::vector<Ring> rings_;  // by slot
    // With Spec::slice: the number of buffers taken, and since when the next one is missing
    // although there are others.
    std::uint64_t taken_in_order_ = 0;
    std::optional<std::chrono::steady_clock::time_point> in_vain_since_;
    std::function<void(std::uint32_t slot)> announce_;
    std::deque<Kept> kept_;
    std::uint64_t released_ = 0;
    bool passes_over_ = false;
};

}  // namespace assay::collector
