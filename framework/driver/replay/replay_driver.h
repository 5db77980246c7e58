// A driver that runs no program: it fills a trace segment from a trace file.
//
// A specification gets the same records as from the native driver, except those that the native
// driver leaves out only for speed (assay/trace_vlist.h).
#pragma once

#include "framework/driver/replay/captured_part.h"
#include "framework/driver/replay/image_trace.h"
#include "framework/driver/replay/mixed_programs.h"
#include "framework/driver/replay/parallel_parts.h"
#include "framework/driver/replay/replayed_thread.h"
#include "framework/driver/replay/segment_writer.h"
#include "framework/isa/architecture.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace assay::replay {

// As Spec::slice of a replay: threads take turns as recorded.
inline constexpr std::uint32_t kAsRecorded = ~std::uint32_t{0};

// Returns what QEMU's driver, or a trace of it, lacks for the specification; "" if it lacks
// nothing. Removes the capture of values if no instruction of the set has any.
std::string missing_under_qemu(trace::Spec& spec, const trace::ValueLists& values,
                               const isa::Architecture& architecture);
// The specification that a replay of the image satisfies for `wanted`. `values`: the wanted values.
// Throws Error if the image lacks required content.
trace::Spec possible(const trace::Spec& wanted, const trace::ValueLists& values,
                     const ImageTrace& image);
// True if one driver can serve both: they differ at most in the caches or filters of references.
bool go_together(const trace::Spec& a, const trace::Spec& b);

// One of the segments that the driver fills.
struct Output {
    int segment;  // a descriptor; its specification is possible()
    trace::Readers& readers;
};

class ReplayDriver {
  public:
    // All specifications of `outputs` go together. `combined` and `values` combine those of all
    // outputs. `image`, `values` and the readers must outlive this. `point`: the number of the
    // image's simulation point that is replayed, from 1; 0: the whole image. `mixed`: the programs
    // of which `image` consists; null for one program. Throws Error.
    ReplayDriver(const ImageTrace& image, const trace::Spec& combined,
                 const trace::ValueLists& values, std::span<const Output> outputs,
                 std::uint32_t point = 0, MixedPrograms* mixed = nullptr);

    // Replays everything, while the readers read. Throws nothing; problem() tells errors.
    void run();

    // The reason why not everything was replayed; "" if it was. Valid after run().
    const std::string& problem() const { return problem_; }

  private:
    void replay();
    void take(std::size_t program, const PartSequence::Part& part);
    // A thread, and which of its records are captured.
    struct Running {
        ReplayedThread thread;
        std::optional<CapturedPart> part;  // empty: all
        void take(std::span<const trace_record_t> records) {
            return part ? part->take(records) : thread.take(records);
        }
    };
    Running& thread_of(std::uint32_t slot_number, std::uint32_t number);
    void tell_executed();
    void pass_events(std::size_t program, std::uint64_t bytes);
    SlotWriter& slot_of(std::uint32_t number);
    void event(trace::EventType type, std::span<const std::byte> body);
    void mark(const trace_part_marker_t& marker, std::uint32_t number, SlotWriter& slot,
              Running& running);
    void tell_early_ends();
    void end();

    const ImageTrace& image_;
    MixedPrograms* const mixed_;
    const trace::Spec spec_;
    const ReplayPlan plan_;
    const std::vector<ReferenceKind> kinds_;
    std::vector<std::unique_ptr<SegmentWriter>> segments_;
    ParallelParts parts_;
    InstructionRange range_;
    std::map<std::uint32_t, std::unique_ptr<SlotWriter>> slots_;
    std::map<std::uint32_t, std::unique_ptr<ReplayedContexts>> contexts_;  // by slot
    std::map<std::uint32_t, std::unique_ptr<Running>> threads_;            // by slot
    SlotWriter* last_slot_ = nullptr;
    std::map<std::uint32_t, EarlyEnds> early_ends_;  // by slot
    std::vector<std::uint64_t> events_;  // by program: bytes of events that have been passed
    std::string problem_;
};

}  // namespace assay::replay
