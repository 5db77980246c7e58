#include "framework/driver/native/translate/blocks.h"

#include "framework/driver/native/translate/contexts.h"
#include "framework/driver/native/translate/control_flow.h"

namespace assay::native {

void BlockIncrements::place(Placer& placer, const PlannedBlock& block, unsigned instr) {
    if (instr + 1 != block.end()) return;
    // The prediction also counts the block.
    if (Predictions::wanted(spec_) && is_predicted(plan_.instructions[instr])) return;
    if (changes_context(block))
        placer.place_at_entry(block);
    else
        placer.place_anywhere(block);
}

// True if the block may change the context. It then counts in the context of its entry.
bool BlockIncrements::changes_context(const PlannedBlock& block) const {
    if (!Contexts::wanted(spec_)) return false;
    if (block.ends_with_position) return true;
    for (unsigned instr = block.first; instr < block.end(); ++instr)
        if (Calls::leaves_stack(plan_, block, instr)) return true;
    return false;
}

void BlockIncrements::emit(const Item& item) {
    const std::size_t counter = writer_.counter();
    if (item.flags_live) {
        const unsigned reg = scratch_.acquire(0, item.position);
        hot_.load_context(reg, counter);
        hot_.lea(reg, Address{static_cast<std::uint8_t>(reg), kNoGpr, 1, 1});
        hot_.store_context(counter, reg);
    } else if (plan_.blocks[writer_.block_index].in_short_loop) {
        hot_.increment_context_again(counter);
    } else {
        hot_.increment_context(counter);
    }
    writer_.counted = true;
    if (writer_.offset_in_node() != 0) count_in_context(item);
}

void BlockIncrements::count_in_context(const Item& item) {
    const unsigned node = scratch_.acquire(0, item.position);
    hot_.load_context(node, offsetof(Context, calls) + offsetof(CallState, node));
    const Address word{static_cast<std::uint8_t>(node), kNoGpr, 1, writer_.offset_in_node()};
    if (!item.flags_live) return hot_.with_memory(kIncrement, 0, word);
    const unsigned count = scratch_.acquire(bit(node), item.position);
    hot_.with_memory(kLoad, count, word);
    hot_.lea(count, Address{static_cast<std::uint8_t>(count), kNoGpr, 1, 1});
    hot_.with_memory(kStore, count, word);
}

void BlockRecords::place(Placer& placer, const PlannedBlock& block, unsigned instr) {
    if (instr == block.first) placer.place_before(instr);
}

// Uses only moves and lea, because flags may be live.
void BlockRecords::emit(const Item& item) {
    const auto cursor = static_cast<std::uint8_t>(scratch_.cursor(0, item.position));
    const std::uint32_t site = writer_.new_site(item.instr, 0, TRACE_SITE_BLOCK, 0);
    hot_.with_memory(kStoreConstant, 0, Address{cursor, kNoGpr, 1, 0});
    hot_.u32(0);
    hot_.with_memory(kStoreConstant, 0, Address{cursor, kNoGpr, 1, sizeof(std::uint64_t)});
    hot_.u32(site);
    hot_.prefetch_for_write(Address{cursor, kNoGpr, 1, kPrefetched});
    hot_.lea(cursor, Address{cursor, kNoGpr, 1, kRecordBytes});
}

}  // namespace assay::native
