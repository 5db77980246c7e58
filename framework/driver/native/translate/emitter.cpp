#include "framework/driver/native/translate/emitter.h"

namespace assay::native {

void Emitter::emit() {
    for (unsigned i = 0; i < plan_.blocks.size(); ++i) emit_block(i);
    emit_taken_ways();
}

void Emitter::emit_block(unsigned index) {
    const PlannedBlock& planned = plan_.blocks[index];
    writer_.block_index = index;
    writer_.counted = false;
    next_item_ = planned.first_item;
    scratch_.begin(planned);
    if (writer_.trace) {
        for (unsigned i = 0; i < planned.count; ++i)
            writer_.trace->add_instr(row_of(plan_.instructions[planned.first + i]));
        writer_.trace->add_block(planned.pc);
    }
    Block record;
    record.version = plan_.version;
    record.pc = planned.pc;
    record.bytes = static_cast<std::uint16_t>(planned.end_pc - planned.pc);
    record.instr_count = planned.count;
    record.first_length = plan_.instructions[planned.first].form->length;
    record.first_instr = writer_.instr_id(planned.first);
    record.chained = planned.chained;
    record.previous_fetched = planned.previous_fetched;
    record.id = writer_.block_id();
    record.counts_at_exits = plan_.counts_at_exits;
    if (planned.counted_in_interval) writer_.counted_by = static_cast<std::uint8_t>(index);
    record.counted_by = writer_.counted_by;
    record.to_count = plan_.counts_at_exits
                          ? planned.first
                          : static_cast<std::uint16_t>(boundaries_.instructions_from(planned));
    if (index == 0 && plan_.landing) emit_landing(planned, record);
    emit_entry(planned, record);
    writer_.output.blocks.push_back(record);

    const unsigned last = planned.first + planned.count - 1U;
    for (unsigned i = planned.first; i <= last; ++i) {
        emit_items(planned, i);
        const Instruction& instruction = plan_.instructions[i];
        const bool flow = instruction.form->flow != Flow::kNone;
        if (i == last && flow) scratch_.give_back_all();
        if (flow && instruction.form->flow != Flow::kTrap) break;
        emit_instruction(instruction, i);
    }
    emit_items(planned, planned.end());
    scratch_.give_back_all();
    emit_flow(planned, plan_.instructions[last]);
}

// Like CodeCache's landings, but shorter. It keeps the flags even if its own block does not read
// them: the branch may go on to another block of the same index, which does.
void Emitter::emit_landing(const PlannedBlock& block, Block& record) {
    const std::uint64_t next = hot_.patchable([&] {
        record.landing = hot_.address;
        hot_.load_address(RAX, block.pc);
        // rcx -= pc, by its complement: rcx + ~pc + 1
        hot_.complement(RAX);
        hot_.lea(RCX, Address{RCX, RAX, 1, 1});
        hot_.u8(0xe3);  // jrcxz over the mismatch part, which restores the target in rcx
        hot_.u8(3 + 4 + 5);
        hot_.complement(RAX);
        hot_.lea(RCX, Address{RCX, RAX, 1, 0});
        return hot_.jump(cache_.indirect_miss());
    });
    record.to_landing_next = static_cast<std::uint8_t>(next - record.landing);
    const GprMask live = plan_.gprs_live[block.first];
    if (live & bit(RCX)) hot_.load_context(RCX, offsetof(Context, indirect_rcx));
    if (live & bit(RAX)) hot_.load_context(RAX, offsetof(Context, indirect_rax));
}

// The check of the first fetch comes before the block. If the block before has just fetched the
// line and runs into this block, the check stands in cold code, and this way skips it.
void Emitter::emit_entry(const PlannedBlock& block, Block& record) {
    record.entry = record.entry_fetched = hot_.address;
    if (block.checked) emit_check(block);
    boundaries_.gate(block);
    if (!plan_.collects()) return;
    captures_.at_entry(block, record);
    if (spec_.interval == 0 || block.counted_in_interval) return;
    record.entry_counted = record.entry;
    record.entry = record.entry_fetched = boundaries_.interval_arrival(block, record.entry);
}

// Leaves to the driver, which returns if the code has not changed.
void Emitter::emit_check(const PlannedBlock& block) {
    Exit exit;
    exit.kind = ExitKind::kCheck;
    exit.block = writer_.block_index;
    exit.target = block.pc;
    if (plan_.counts_at_exits) writer_.count_when_taken(exit, block.first);
    writer_.exit_id(hot_, writer_.add_exit(exit));
    hot_.jump(cache_.exit_thunk());
    writer_.output.exits.back().stub = hot_.address;
}

void Emitter::emit_items(const PlannedBlock& block, unsigned position) {
    while (next_item_ < block.first_item + block.item_count &&
           plan_.items[next_item_].position == position)
        captures_.emit(plan_.items[next_item_++]);
}

void Emitter::emit_instruction(const Instruction& instruction, unsigned position) {
    captures_.before(instruction, position);
    scratch_.make_way(instruction);
    copies_.instruction(instruction, position);
    captures_.behind(instruction, position);
}

}  // namespace assay::native
