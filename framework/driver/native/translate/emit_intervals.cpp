// The Emitter's part that counts instructions down to the end of an interval: see Intervals.
#include "framework/driver/native/translate/emitter.h"

#include <algorithm>

namespace assay::native {

// Subtracts `instructions`, and leaves before `block` if that is more than remain. Changes flags.
// `leave`: what does that.
void Emitter::emit_interval_countdown(Assembler& code, unsigned instructions, std::uint64_t leave) {
    count_down(code, offsetof(Context, interval_countdown), static_cast<int>(instructions));
    code.jump_if(kSign, leave);
}

// Instructions from `block` to where the unit counts again, or to its end; and what is counted with
// them of what follows.
unsigned Emitter::instructions_from(const PlannedBlock& block) const {
    const auto next =
        std::find_if(plan_.blocks.begin(), plan_.blocks.end(), [&](const PlannedBlock& later) {
            return later.first > block.first && later.counted_in_interval;
        });
    const std::size_t end =
        next == plan_.blocks.end() ? plan_.instructions.size() : std::size_t{next->first};
    return static_cast<unsigned>(end - block.first) + plan_.blocks[counted_by_].counted_beyond;
}

// Where jumps into the middle of a unit arrive: who comes from the block before has been counted
// where the unit was entered.
std::uint64_t Emitter::emit_interval_arrival(const PlannedBlock& block, std::uint64_t body) {
    const bool flags_live = plan_.flags_live[block.first] != 0;
    const std::uint64_t leave = leave_at_entry(block, ExitKind::kInterval, flags_live);
    const std::uint64_t arrival = cold_.address;
    if (flags_live) save_flags(cold_, false);
    emit_interval_countdown(cold_, instructions_from(block), leave);
    if (flags_live) restore_flags(cold_, false);
    cold_.jump(body);
    return arrival;
}

}  // namespace assay::native
