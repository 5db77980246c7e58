// The Emitter's part that finds where regions begin and end: see Regions.
#include "framework/driver/native/translate/emitter.h"

namespace assay::native {

// Before a block, where all of the target's state is in its place.
void Emitter::emit_gate(const PlannedBlock& block) {
    if (!block.enters_function && !block.counted_down && !block.counted_in_interval) return;
    const bool flags_live = plan_.flags_live[block.first] != 0;
    if (flags_live) save_flags(hot_, false);
    if (block.enters_function) {
        hot_.with_context(kCompareMemory, RSP, offsetof(Context, enters_above));
        const std::uint64_t enters = hot_.jump_if(kAbove, hot_.address);
        hot_.patch(enters, leave_at_entry(block, ExitKind::kEnters, flags_live));
    }
    if (block.counted_down) {
        count_down(hot_, offsetof(Context, countdown), block.count);
        const std::uint64_t negative = hot_.jump_if(kSign, hot_.address);
        hot_.patch(negative, leave_at_entry(block, ExitKind::kCountdown, flags_live));
    }
    if (block.counted_in_interval) {
        emit_interval_countdown(hot_, instructions_from(block),
                                leave_at_entry(block, ExitKind::kInterval, flags_live));
    }
    if (flags_live) restore_flags(hot_, false);
}

std::uint64_t Emitter::leave_at_entry(const PlannedBlock& block, ExitKind kind, bool flags_saved) {
    const std::uint64_t address = cold_.address;
    if (flags_saved) restore_flags(cold_, false);
    Exit exit;
    exit.kind = kind;
    exit.block = block_index_;
    exit.target = block.pc;
    if (plan_.counts_at_exits) count_when_taken(exit, block.first);
    emit_exit_id(cold_, add_exit(exit));
    cold_.jump(cache_.exit_thunk());
    return address;
}

// At a return or an indirect jump, with its target in rcx, and rax free.
void Emitter::emit_left_check(unsigned position) {
    if (!plan_.leaves_functions) return;
    const bool flags_live = plan_.flags_live[position] != 0;
    if (flags_live) save_flags(hot_, true);
    hot_.with_context(kCompareMemory, RSP, offsetof(Context, leaves_above));
    if (!flags_live) {
        hot_.jump_if(kAbove, cache_.left_thunk());
        return;
    }
    const std::uint64_t leaves = hot_.jump_if(kAbove, cold_.address);
    hot_.patch(leaves, cold_.address);
    restore_flags(cold_, true);
    cold_.jump(cache_.left_thunk());
    restore_flags(hot_, true);
}

}  // namespace assay::native
