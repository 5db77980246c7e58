// A driver that runs no program: it fills a trace segment from a trace file.
//
// What it gives is what the native driver would have given to the same specification, but for what
// that may leave out as a matter of speed only (assay/trace_vlist.h).
#pragma once

#include "framework/driver/replay/image_trace.h"
#include "framework/driver/replay/part_sequence.h"
#include "framework/driver/replay/replayed_thread.h"
#include "framework/driver/replay/segment_writer.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace assay::replay {

// What it gives of what is wanted. Throws Error if something is missing that has to be there.
trace::Spec possible(const trace::Spec& wanted);

class ReplayDriver {
  public:
    // `segment`: the descriptor of one whose specification is possible(). The others must live
    // longer. Throws Error.
    ReplayDriver(const ImageTrace& image, int segment, trace::Readers& readers);

    // Does all of it, while `readers` read. Throws nothing: what goes
    // wrong is the problem().
    void run();

    // Why not all has been replayed; "" if it has. Behind run().
    const std::string& problem() const { return problem_; }

  private:
    void replay();
    void take(const PartSequence::Part& part);
    ReplayedThread& thread_of(const PartSequence::Part& part);
    void pass_events(std::uint64_t bytes);
    void mark(const trace_part_marker_t& marker, const SlotWriter& slot);
    void tell_early_ends();
    void end();

    const ImageTrace& image_;
    SegmentWriter segment_;
    const trace::Spec spec_;
    const ReplayPlan plan_;
    PartSequence parts_;
    std::map<std::uint32_t, std::unique_ptr<ReplayedThread>> threads_;  // by slot
    SlotWriter* last_slot_ = nullptr;
    EarlyEnds early_ends_;
    std::uint64_t events_ = 0;  // bytes that have been passed
    std::string problem_;
};

}  // namespace assay::replay
