// Consumes what a driver writes to the trace segment.
//
// A program can scribble over the segment, which its driver has mapped. Therefore lengths,
// indexes and sizes are checked here before anything follows them; profilers may rely on them.
// The checks throw Error, after which only discard() may be called: it keeps the program going.
#pragma once

#include "framework/collector/address_map.h"
#include "framework/collector/parser.h"
#include "framework/collector/segment.h"

#include <array>
#include <functional>
#include <string>
#include <vector>

namespace assay::collector {

class TraceReader {
  public:
    // Receives the records of one buffer; the tables are those at that time.
    using Sink = std::function<void(std::uint32_t thread, std::span<const trace_record_t> records)>;

    TraceReader(const Segment& segment, Sink sink);

    // Passes on all completed buffers and gives them back. Returns whether there were any.
    bool consume();
    // After the driver's end: passes on what consume() left, and each thread's last, partial
    // buffer.
    void consume_rest();
    // Looks at what has been added to the tables and to the event log. consume() does so itself if
    // there are buffers.
    void refresh();
    // Gives completed buffers back unread. Returns whether there were any.
    bool discard();

    const CodeTables& code() const { return code_; }
    const AddressMap& addresses() const { return addresses_; }
    std::uint64_t records() const { return records_; }
    // Why the driver refused to go on; "" if it did not.
    const std::string& refusal() const { return refusal_; }

    // What the process is about to run without its driver; "" if nothing.
    const std::string& leaves_for() const { return leaves_for_; }

    // Executions by instruction, from the block counters and the blocks left early. Exact once the
    // driver has ended; block counts must have been captured.
    std::vector<std::uint64_t> instruction_counts() const;
    // Executed instructions so far, roughly.
    std::uint64_t instructions() const;

  private:
    void refresh_tables();
    void check_block(std::size_t index, std::uint32_t instrs) const;
    void refresh_events();
    void take_event(const trace::EventHeader& header, const std::byte* body);
    std::uint32_t threads() const;
    std::uint32_t completed(std::uint32_t thread) const;
    void pass_on(std::uint32_t thread, const trace_record_t* records, std::uint32_t count);
    void give_back(std::uint32_t thread);
    std::uint64_t block_count(std::uint32_t block) const;

    const Segment& segment_;
    Sink sink_;
    CodeTables code_;
    AddressMap addresses_;
    std::uint64_t event_bytes_ = 0;  // of the event log, taken
    std::vector<trace::PartialEvent> partials_;
    std::string refusal_, leaves_for_;
    std::uint64_t records_ = 0;
    std::array<std::uint32_t, trace::kMaxThreads> consumed_{};  // buffers given back
};

}  // namespace assay::collector
