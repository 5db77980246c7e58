#include "framework/driver/native/translate/emitter.h"

namespace assay::native {

void Emitter::emit(Output& output, TraceTables* trace) {
    output_ = &output;
    trace_ = trace;
    hot_begin_ = hot_.address;
    for (unsigned i = 0; i < plan_.blocks.size(); ++i) emit_block(i);
    emit_taken_ways();
}

void Emitter::emit_block(unsigned index) {
    const PlannedBlock& planned = plan_.blocks[index];
    block_index_ = index;
    counted_ = false;
    next_item_ = planned.first_item;
    scratch_.begin(planned);
    if (trace_) {
        for (unsigned i = 0; i < planned.count; ++i)
            trace_->add_instr(plan_.instructions[planned.first + i]);
        trace_->add_block(planned.pc);
    }
    Block record;
    record.version = plan_.version;
    record.pc = planned.pc;
    record.bytes = static_cast<std::uint16_t>(planned.end_pc - planned.pc);
    record.instr_count = planned.count;
    record.first_length = plan_.instructions[planned.first].form->length;
    record.first_instr = global_instr(planned.first);
    record.chained = planned.chained;
    record.previous_fetched = planned.previous_fetched;
    record.id = numbers_.block + index;
    record.counts_at_exits = plan_.counts_at_exits;
    if (planned.counted_in_interval) counted_by_ = static_cast<std::uint8_t>(index);
    record.counted_by = counted_by_;
    record.to_count = plan_.counts_at_exits
                          ? planned.first
                          : static_cast<std::uint16_t>(instructions_from(planned));
    if (index == 0 && plan_.landing) emit_landing(planned, record);
    emit_entry(planned, record);
    output_->blocks.push_back(record);

    const unsigned last = planned.first + planned.count - 1U;
    for (unsigned i = planned.first; i <= last; ++i) {
        emit_items(planned, i);
        const Instruction& instruction = plan_.instructions[i];
        const bool flow = instruction.form->flow != Flow::kNone;
        if (i == last && flow) scratch_.give_back_all();
        if (flow && instruction.form->flow != Flow::kTrap) break;
        emit_instruction(instruction, i);
        if (plan_.sets_stack[i]) emit_stack_pointer(i, TRACE_SITE_STACK);
    }
    scratch_.give_back_all();
    emit_flow(planned, plan_.instructions[last]);
}

// As CodeCache's landings, but shorter. It keeps the flags even where its own block does not read
// them: who arrives may want another one of the same index, whose block does.
void Emitter::emit_landing(const PlannedBlock& block, Block& record) {
    const std::uint64_t next = hot_.patchable([&] {
        record.landing = hot_.address;
        hot_.load_address(RAX, block.pc);
        // rcx -= pc, by its complement: rcx + ~pc + 1
        hot_.u8(0x48);  // not rax
        hot_.u8(0xf7);
        hot_.u8(0xd0);
        hot_.lea(RCX, Address{RCX, RAX, 1, 1});
        hot_.u8(0xe3);  // jrcxz over the mismatch part, which makes rcx the target again
        hot_.u8(3 + 4 + 5);
        hot_.u8(0x48);  // not rax
        hot_.u8(0xf7);
        hot_.u8(0xd0);
        hot_.lea(RCX, Address{RCX, RAX, 1, 0});
        return hot_.jump(cache_.indirect_miss());
    });
    record.to_landing_next = static_cast<std::uint8_t>(next - record.landing);
    const GprMask live = plan_.gprs_live[block.first];
    if (live & bit(RCX)) hot_.load_context(RCX, offsetof(Context, indirect_rcx));
    if (live & bit(RAX)) hot_.load_context(RAX, offsetof(Context, indirect_rax));
}

// The check of the first instruction's fetch stands before the block, or, where the block before
// has just fetched the line and runs on into this one, aside.
void Emitter::emit_entry(const PlannedBlock& block, Block& record) {
    record.entry = record.entry_fetched = hot_.address;
    if (block.checked) emit_check(block);
    emit_gate(block);
    if (!plan_.collects()) return;
    if (spec_.captures & trace::kCaptureFetches) emit_first_fetch(block, record);
    if (spec_.interval == 0 || block.counted_in_interval) return;
    record.entry_counted = record.entry;
    record.entry = record.entry_fetched = emit_interval_arrival(block, record.entry);
}

void Emitter::emit_first_fetch(const PlannedBlock& block, Block& record) {
    const bool flags_live = plan_.flags_live[block.first] != 0;
    if (!block.previous_fetched) {
        emit_fetch_check(hot_, block.first, block.first, flags_live);
        if (!block.has_gate()) record.entry_fetched = hot_.address;
        return;
    }
    const std::uint64_t body = hot_.address;
    record.entry = cold_.address;
    emit_fetch_check(cold_, block.first, block.first, flags_live);
    cold_.jump(body);
}

// To the driver, which comes back if the code is still what it was.
void Emitter::emit_check(const PlannedBlock& block) {
    Exit exit;
    exit.kind = ExitKind::kCheck;
    exit.block = block_index_;
    exit.target = block.pc;
    if (plan_.counts_at_exits) count_when_taken(exit, block.first);
    emit_exit_id(hot_, add_exit(exit));
    hot_.jump(cache_.exit_thunk());
    output_->exits.back().stub = hot_.address;
}

void Emitter::emit_items(const PlannedBlock& block, unsigned position) {
    while (next_item_ < block.first_item + block.item_count &&
           plan_.items[next_item_].position == position) {
        const Item& item = plan_.items[next_item_++];
        switch (item.kind) {
            case ItemKind::kCount:
                emit_count(item);
                break;
            case ItemKind::kFetch:
                emit_fetch_check(hot_, item.instr, item.position, item.flags_live);
                break;
            case ItemKind::kData:
                emit_data(item);
                break;
            case ItemKind::kSpecial:
                emit_special(item);
                break;
            case ItemKind::kCall:
                emit_stack_pointer(item.instr, TRACE_SITE_CALL);
                break;
        }
    }
}

// Of the block's executions, in the context.
std::size_t Emitter::counter_offset() const {
    constexpr std::size_t kCounterBytes = sizeof(std::uint64_t);
    const std::size_t block = numbers_.block + block_index_;
    return kCountersInContext + block * trace::counters(spec_) * kCounterBytes;
}

void Emitter::emit_count(const Item& item) {
    const std::size_t counter = counter_offset();
    if (item.flags_live) {
        const unsigned reg = scratch_.acquire(0, item.position);
        hot_.load_context(reg, counter);
        hot_.lea(reg, Address{static_cast<std::uint8_t>(reg), kNoGpr, 1, 1});
        hot_.store_context(counter, reg);
    } else if (plan_.blocks[block_index_].in_short_loop) {
        hot_.increment_context_again(counter);
    } else {
        hot_.increment_context(counter);
    }
    counted_ = true;
}

void Emitter::emit_special(const Item& item) {
    const Form& form = *plan_.instructions[item.instr].form;
    const bool bit_string = form.special == Special::kBitString;
    const bool references = spec_.captures & trace::kCaptureReferences;
    if (spec_.footprints) new_site(item.instr, 0, TRACE_SITE_FOOTPRINT, 0);
    const std::uint32_t first_site = next_site_;
    for (unsigned r = 0; references && r < form.reference_count; ++r)
        new_site(item.instr, bit_string ? 1 : form.references[r].bytes, form.references[r].kind, r);
    if (form.trace_flags & TRACE_INSTR_VARIABLE) new_site(item.instr, 0, TRACE_SITE_COUNT, 0);
    if (form.special == Special::kString && predicts())
        new_site(item.instr, 0, TRACE_SITE_PREDICTIONS, 0);
    emit_driver_part(plan_.instructions[item.instr], first_site);
}

// Leaves to the driver, which does its part of the instruction, and goes on behind.
void Emitter::emit_driver_part(const Instruction& instruction, std::uint32_t first_site) {
    scratch_.give_back_all();
    Exit exit;
    exit.kind = ExitKind::kSpecial;
    exit.block = block_index_;
    exit.target = instruction.pc;
    exit.first_site = first_site;
    exit.special = numbers_.special + static_cast<std::uint32_t>(output_->specials.size());
    output_->specials.push_back(instruction);
    emit_exit_id(hot_, add_exit(exit));
    hot_.jump(cache_.exit_thunk());
    output_->exits.back().stub = hot_.address;
}

// --- Exits.

void Emitter::emit_leave(ExitKind kind, std::uint64_t pc) {
    Exit exit;
    exit.kind = kind;
    exit.block = block_index_;
    exit.target = pc;
    if (plan_.counts_at_exits) count_when_taken(exit, plan_.blocks[block_index_].end());
    emit_exit_id(hot_, add_exit(exit));
    hot_.jump(cache_.exit_thunk());
}

// The jump at `site` leaves the unit: to the driver, until it is linked.
void Emitter::direct_exit(Assembler& code, std::uint64_t site, std::uint64_t target,
                          unsigned uncounted, bool flags_live) {
    Exit exit;
    exit.block = block_index_;
    exit.target = target;
    exit.jump = site;
    exit.stub = cold_.address;
    exit.counted_beyond = plan_.blocks[counted_by_].counted_beyond;
    if (plan_.counts_at_exits) count_when_taken(exit, uncounted);
    exit.flags_live = flags_live;
    code.patch(site, exit.stub);
    emit_exit_id(cold_, add_exit(exit));
    cold_.jump(cache_.exit_thunk());
}

std::uint32_t Emitter::add_exit(const Exit& exit) {
    output_->exits.push_back(exit);
    return kFirstExit + numbers_.exit + static_cast<std::uint32_t>(output_->exits.size() - 1);
}

void Emitter::emit_exit_id(Assembler& code, std::uint32_t exit) {
    code.with_context(0xc7, 0, offsetof(Context, exit_id), false);
    code.u32(exit);
}

}  // namespace assay::native
