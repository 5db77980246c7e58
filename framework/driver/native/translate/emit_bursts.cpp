// The Emitter's part that counts instructions where a unit is left: see Bursts.
#include "framework/driver/native/translate/emitter.h"

#include <algorithm>

namespace assay::native {

// Instructions of its unit before the block that a jump to `pc` will enter, as far as is known.
unsigned Emitter::position_of(std::uint64_t pc) const {
    const auto own =
        std::find_if(plan_.blocks.begin(), plan_.blocks.end(),
                     [pc](const PlannedBlock& candidate) { return candidate.pc == pc; });
    if (own != plan_.blocks.end()) return own->first;
    const Block* known = cache_.find(pc, plan_.version);
    return known == nullptr ? 0 : known->position();
}

// A jump back is taken most of the time: what it has to count stands right behind the branch. What
// others have is in the code that links them.
void Emitter::emit_counted_branch(const PlannedBlock& block, const Instruction& last) {
    const bool flags_live = block.live_if_taken.flags != 0;
    const unsigned opposite = (last.form->opcode & 0xfU) ^ 1U;
    if (block.goes_on_taken)
        return direct_exit(hot_,
                           hot_.patchable([&] { return hot_.jump_if(opposite, hot_.address); }),
                           last.next_pc(), block.end(), block.live_otherwise.flags != 0);
    if (last.form->flow == Flow::kConditional && last.target() <= last.pc) {
        const std::uint64_t not_taken = hot_.jump_if(opposite, hot_.address);
        emit_counted_jump(block, last.target(), flags_live);
        hot_.patch(not_taken, hot_.address);
    } else {
        direct_exit(hot_, emit_branch(last), last.target(), block.end(), flags_live);
    }
    emit_continuation(block, last.next_pc());
}

void Emitter::emit_counted_jump(const PlannedBlock& block, std::uint64_t target, bool flags_live) {
    const unsigned position = position_of(target);
    const int instructions = int{block.end()} - static_cast<int>(position);
    if (flags_live) save_flags(hot_, false);
    count_down(hot_, offsetof(Context, countdown), instructions);
    const std::uint64_t negative = hot_.jump_if(kSign, hot_.address);
    if (flags_live) restore_flags(hot_, false);
    const std::uint64_t site = hot_.patchable([&] { return hot_.jump(hot_.address); });
    const std::uint64_t leave = cold_.address;
    if (flags_live) restore_flags(cold_, false);
    direct_exit(hot_, site, target, position, flags_live);
    hot_.patch(negative, leave);
}

// At a return or an indirect jump, with its target in rcx, and rax free.
void Emitter::emit_leaving_count(unsigned position) {
    if (!plan_.counts_at_exits) return;
    const bool flags_live = plan_.flags_live[position] != 0;
    if (flags_live) save_flags(hot_, true);
    count_down(hot_, offsetof(Context, countdown), static_cast<int>(position + 1));
    if (!flags_live) {
        hot_.jump_if(kSign, cache_.counted_out_thunk());
        return;
    }
    const std::uint64_t negative = hot_.jump_if(kSign, cold_.address);
    hot_.patch(negative, cold_.address);
    restore_flags(cold_, true);
    cold_.jump(cache_.counted_out_thunk());
    restore_flags(hot_, true);
}

}  // namespace assay::native
