// Chooses the records of a replay that the native driver would have captured with --sample or
// between two instructions: see its Bursts and Regions. A block of the collector's tables belongs
// to the part of its last instruction.
#pragma once

#include "framework/driver/replay/replay_plan.h"
#include "framework/driver/replay/replayed_thread.h"
#include "framework/driver/shared/burst_places.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace assay::replay {

// True if a replay with `regions` leaves records out that the image has.
inline bool chooses_part(const trace::Regions& regions, const ImageTrace& image) {
    const bool samples = regions.sample_period != 0 && image.image().sample_period == 0;
    return samples || regions.from_instruction > 1 || regions.to_instruction != 0;
}

// --from-instruction and --to-instruction: instructions of the first thread. The other threads are
// captured while it is.
class InstructionRange {
  public:
    explicit InstructionRange(const trace::Regions& regions)
        : from_(regions.from_instruction), to_(regions.to_instruction), captures_(from_ <= 1) {}

    bool captures() const { return captures_; }
    // How many instructions the first thread executes before the next boundary.
    std::uint64_t boundary() const {
        if (!captures_ && !ended_) return from_ - 1;
        return captures_ && to_ != 0 ? to_ : UINT64_MAX;
    }
    void pass_boundary() {
        ended_ = captures_;
        captures_ = !captures_;
    }

  private:
    const std::uint64_t from_, to_;
    bool captures_, ended_ = false;
};

class CapturedPart {
  public:
    // `range`: of all threads of the image. `thread` gets the captured records. All arguments must
    // outlive this.
    CapturedPart(InstructionRange& range, const ReplayPlan& plan, const trace::Spec& spec,
                 std::uint32_t number, ReplayedThread& thread);

    void take(std::span<const trace_record_t> records);
    // The next records follow so many instructions of the thread.
    void begin_chunk(std::uint64_t executed) {
        if (!samples_) executed_ = executed;
    }
    // The thread ends by itself.
    void end();
    std::uint64_t executed() const { return executed_; }

  private:
    enum class Part : std::uint8_t { kRest, kWarmUp, kBurst };

    std::uint64_t boundary() const;
    bool is_due(std::uint64_t instructions) const;
    std::size_t divide(std::span<const trace_record_t> records);
    void pass_boundary(std::uint64_t pc);
    void pass_burst_boundary(std::uint64_t pc);

    InstructionRange& range_;
    const ReplayPlan& plan_;
    const trace::Regions& regions_;
    ReplayedThread& thread_;
    const bool is_first_, samples_;
    bool captures_;
    std::uint64_t executed_ = 0;
    // With bursts.
    driver::BurstPlaces places_;
    Part part_ = Part::kRest;
    std::uint64_t burst_boundary_ = 0;
};

}  // namespace assay::replay
