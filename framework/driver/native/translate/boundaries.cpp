#include "framework/driver/native/translate/boundaries.h"

#include <algorithm>

namespace assay::native {

void Boundaries::gate(const PlannedBlock& block) {
    if (!block.has_boundary()) return;
    const bool flags_live = plan_.flags_live[block.first] != 0;
    const KeptFlags flags(hot_, flags_live, false);
    // This is first: a thread that leaves here must not have counted anything else of the block.
    if (block.counted_in_slice) {
        count_down(hot_, offsetof(Context, slice_countdown), block.count);
        const std::uint64_t negative = hot_.jump_if(kSign, hot_.address);
        hot_.patch(negative, leave_at_entry(block, ExitKind::kSliceEnd, flags_live));
    }
    if (block.enters_function) {
        hot_.with_context(kCompareMemory, RSP, offsetof(Context, enters_above));
        const std::uint64_t enters = hot_.jump_if(kAbove, hot_.address);
        hot_.patch(enters, leave_at_entry(block, ExitKind::kEnters, flags_live));
    }
    if (block.allocates) {
        hot_.with_context(kCompareMemory, RSP, offsetof(Context, allocates_above));
        const std::uint64_t allocates = hot_.jump_if(kAbove, hot_.address);
        hot_.patch(allocates, leave_at_entry(block, ExitKind::kAllocates, flags_live));
    }
    if (block.counted_down) {
        count_down(hot_, offsetof(Context, countdown), block.count);
        const std::uint64_t negative = hot_.jump_if(kSign, hot_.address);
        hot_.patch(negative, leave_at_entry(block, ExitKind::kCountdown, flags_live));
    }
    if (block.counted_in_interval) {
        count_interval_down(hot_, instructions_from(block),
                            leave_at_entry(block, ExitKind::kInterval, flags_live));
    }
    flags.restore(hot_);
}

std::uint64_t Boundaries::leave_at_entry(const PlannedBlock& block, ExitKind kind,
                                         bool flags_saved) {
    const std::uint64_t address = cold_.address;
    if (flags_saved) restore_flags(cold_, false);
    Exit exit;
    exit.kind = kind;
    exit.block = writer_.block_index;
    exit.target = block.pc;
    if (plan_.counts_at_exits) writer_.count_when_taken(exit, block.first);
    writer_.exit_id(cold_, writer_.add_exit(exit));
    cold_.jump(cache_.exit_thunk());
    return address;
}

void Boundaries::check_left(unsigned position) {
    if (!plan_.leaves_functions) return;
    const bool flags_live = plan_.flags_live[position] != 0;
    const KeptFlags flags(hot_, flags_live, true);
    hot_.with_context(kCompareMemory, RSP, offsetof(Context, leaves_above));
    if (!flags_live) {
        hot_.jump_if(kAbove, cache_.left_thunk());
        return;
    }
    const std::uint64_t leaves = hot_.jump_if(kAbove, cold_.address);
    hot_.patch(leaves, cold_.address);
    flags.restore(cold_);
    cold_.jump(cache_.left_thunk());
    flags.restore(hot_);
}

// --- Intervals.

// Subtracts `instructions`, and jumps to `leave` if fewer remain in the interval. Changes flags.
void Boundaries::count_interval_down(Assembler& code, unsigned instructions, std::uint64_t leave) {
    count_down(code, offsetof(Context, interval_countdown), static_cast<int>(instructions));
    code.jump_if(kSign, leave);
}

// The instructions from `block` to the next block of the unit that counts, or to the unit's end.
// Includes those of other units that are counted with them.
unsigned Boundaries::instructions_from(const PlannedBlock& block) const {
    const auto next =
        std::find_if(plan_.blocks.begin(), plan_.blocks.end(), [&](const PlannedBlock& later) {
            return later.first > block.first && later.counted_in_interval;
        });
    const std::size_t end =
        next == plan_.blocks.end() ? plan_.instructions.size() : std::size_t{next->first};
    return static_cast<unsigned>(end - block.first) +
           plan_.blocks[writer_.counted_by].counted_beyond;
}

// The entry for jumps into the middle of a unit. A thread that comes from the block before has been
// counted at the entry of the unit.
std::uint64_t Boundaries::interval_arrival(const PlannedBlock& block, std::uint64_t body) {
    const bool flags_live = plan_.flags_live[block.first] != 0;
    const std::uint64_t leave = leave_at_entry(block, ExitKind::kInterval, flags_live);
    const std::uint64_t arrival = cold_.address;
    const KeptFlags flags(cold_, flags_live, false);
    count_interval_down(cold_, instructions_from(block), leave);
    flags.restore(cold_);
    cold_.jump(body);
    return arrival;
}

// --- Bursts: instructions are counted where a unit is left.

// How many instructions of its unit come before the block at `pc`; 0 if the unit is not known.
unsigned Boundaries::position_of(std::uint64_t pc) const {
    const auto own =
        std::find_if(plan_.blocks.begin(), plan_.blocks.end(),
                     [pc](const PlannedBlock& candidate) { return candidate.pc == pc; });
    if (own != plan_.blocks.end()) return own->first;
    const Block* known = cache_.find(pc, plan_.version);
    return known == nullptr ? 0 : known->position();
}

void Boundaries::counted_jump(const PlannedBlock& block, std::uint64_t target, bool flags_live) {
    const unsigned position = position_of(target);
    const int instructions = int{block.end()} - static_cast<int>(position);
    const KeptFlags flags(hot_, flags_live, false);
    count_down(hot_, offsetof(Context, countdown), instructions);
    const std::uint64_t negative = hot_.jump_if(kSign, hot_.address);
    flags.restore(hot_);
    const std::uint64_t site = hot_.patchable([&] { return hot_.jump(hot_.address); });
    const std::uint64_t leave = cold_.address;
    flags.restore(cold_);
    writer_.direct_exit(hot_, site, target, position, flags_live);
    hot_.patch(negative, leave);
}

void Boundaries::count_leaving(unsigned position) {
    if (!plan_.counts_at_exits) return;
    const bool flags_live = plan_.flags_live[position] != 0;
    const KeptFlags flags(hot_, flags_live, true);
    count_down(hot_, offsetof(Context, countdown), static_cast<int>(position + 1));
    if (!flags_live) {
        hot_.jump_if(kSign, cache_.counted_out_thunk());
        return;
    }
    const std::uint64_t negative = hot_.jump_if(kSign, cold_.address);
    hot_.patch(negative, cold_.address);
    flags.restore(cold_);
    cold_.jump(cache_.counted_out_thunk());
    flags.restore(hot_);
}

Placer::Placer(UnitPlan& plan) : plan_(plan) {
    plan_.items.clear();
    plan_.references.clear();
}

void Placer::begin(PlannedBlock& block) {
    block.first_item = static_cast<std::uint32_t>(plan_.items.size());
    earliest_ = block.first;
}

void Placer::end(PlannedBlock& block) const {
    block.item_count = static_cast<std::uint32_t>(plan_.items.size()) - block.first_item;
}

void Placer::add(Item item) {
    item.capture = capture_;
    plan_.items.push_back(item);
    earliest_ = item.position;
}

void Placer::place(Item item, GprMask address) {
    item.position = item.instr;
    item.flags_live = plan_.flags_live[item.instr] != 0;
    for (unsigned at = item.instr; item.flags_live; --at) {
        if (plan_.flags_live[at] == 0) {
            item.position = static_cast<std::uint16_t>(at);
            item.flags_live = false;
        }
        if (at == earliest_ || (plan_.instructions[at - 1U].form->writes & address) != 0) break;
    }
    add(item);
}

void Placer::place_before(unsigned instr) {
    Item item;
    item.instr = item.position = static_cast<std::uint16_t>(instr);
    add(item);
}

void Placer::place_behind(unsigned instr) {
    Item item;
    item.instr = static_cast<std::uint16_t>(instr);
    item.position = static_cast<std::uint16_t>(instr + 1);
    add(item);
}

void Placer::place_anywhere(const PlannedBlock& block) {
    Item item;
    item.capture = capture_;
    item.position = block.first;
    item.flags_live = true;
    for (unsigned i = block.first; i < block.end() && item.flags_live; ++i) {
        if (plan_.flags_live[i] != 0) continue;
        item.position = static_cast<std::uint16_t>(i);
        item.flags_live = false;
    }
    const auto before =
        std::find_if(plan_.items.begin() + block.first_item, plan_.items.end(),
                     [&item](const Item& other) { return other.position > item.position; });
    plan_.items.insert(before, item);
}

void Placer::place_at_entry(const PlannedBlock& block) {
    Item item;
    item.capture = capture_;
    item.position = block.first;
    item.flags_live = plan_.flags_live[block.first] != 0;
    plan_.items.insert(plan_.items.begin() + block.first_item, item);
}

}  // namespace assay::native
