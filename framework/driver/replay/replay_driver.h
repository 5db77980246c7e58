// A driver that runs no program: it fills a trace segment from a trace file.
//
// What it gives is what the native driver would have given to the same specification, but for what
// that may leave out as a matter of speed only (assay/trace_vlist.h).
#pragma once

#include "framework/driver/replay/image_trace.h"
#include "framework/driver/replay/parallel_parts.h"
#include "framework/driver/replay/replayed_thread.h"
#include "framework/driver/replay/segment_writer.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace assay::replay {

// What it gives of what is wanted, of a trace with `content`. `values`: what is wanted of them.
// Throws Error if something is missing that has to be there.
trace::Spec possible(const trace::Spec& wanted, const trace::ValueLists& values,
                     const recording::TraceContent& content);
// Whether one driver can give both: they want the same but for the caches that references miss, or
// filters of them.
bool go_together(const trace::Spec& a, const trace::Spec& b);

// One of the segments that it fills.
struct Output {
    int segment;  // a descriptor; its specification is possible()
    trace::Readers& readers;
};

class ReplayDriver {
  public:
    // All specifications of `outputs` go together; `combined` is that of them all, and `values` are
    // those of all. `image`, `values` and the readers must live longer. `point`: which one of the
    // image's simulation points is replayed, from 1; 0: all there is. Throws Error.
    ReplayDriver(const ImageTrace& image, const trace::Spec& combined,
                 const trace::ValueLists& values, std::span<const Output> outputs,
                 std::uint32_t point = 0);

    // Does all of it, while the readers read. Throws nothing: what goes
    // wrong is the problem().
    void run();

    // Why not all has been replayed; "" if it has. Behind run().
    const std::string& problem() const { return problem_; }

  private:
    void replay();
    void take(const PartSequence::Part& part);
    ReplayedThread& thread_of(std::uint32_t slot_number, std::uint32_t number);
    void tell_executed();
    void pass_events(std::uint64_t bytes);
    SlotWriter& slot_of(std::uint32_t number);
    void event(trace::EventType type, std::span<const std::byte> body);
    void mark(const trace_part_marker_t& marker, std::uint32_t number, SlotWriter& slot,
              ReplayedThread& thread);
    void tell_early_ends();
    void end();

    const ImageTrace& image_;
    const trace::Spec spec_;
    const ReplayPlan plan_;
    const std::vector<ReferenceKind> kinds_;
    std::vector<std::unique_ptr<SegmentWriter>> segments_;
    ParallelParts parts_;
    std::map<std::uint32_t, std::unique_ptr<SlotWriter>> slots_;
    std::map<std::uint32_t, std::unique_ptr<ReplayedContexts>> contexts_;  // likewise, by slot
    std::map<std::uint32_t, std::unique_ptr<ReplayedThread>> threads_;     // likewise
    SlotWriter* last_slot_ = nullptr;
    std::map<std::uint32_t, EarlyEnds> early_ends_;  // by slot
    std::uint64_t events_ = 0;                       // bytes that have been passed
    std::string problem_;
};

}  // namespace assay::replay
