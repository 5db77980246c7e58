#include "framework/driver/native/translate/unit_writer.h"

namespace assay::native {

std::uint32_t UnitWriter::new_site(unsigned instr, unsigned bytes, unsigned kind,
                                   unsigned operand) {
    if (trace) trace->add_site(instr_id(instr), bytes, kind, operand);
    return next_site_++;
}

std::size_t UnitWriter::counter() const {
    constexpr std::size_t kCounterBytes = sizeof(std::uint64_t);
    const std::size_t block = numbers_.block + block_index;
    return kCountersInContext + block * trace::counters(spec) * kCounterBytes;
}

std::uint32_t UnitWriter::add_exit(const Exit& exit) {
    output.exits.push_back(exit);
    return kFirstExit + numbers_.exit + static_cast<std::uint32_t>(output.exits.size() - 1);
}

void UnitWriter::exit_id(Assembler& code, std::uint32_t exit) {
    code.with_context(kStoreConstant, 0, offsetof(Context, exit_id), false);
    code.u32(exit);
}

void UnitWriter::leave(ExitKind kind, std::uint64_t pc) {
    Exit exit;
    exit.kind = kind;
    exit.block = block_index;
    exit.target = pc;
    if (plan.counts_at_exits) count_when_taken(exit, plan.blocks[block_index].end());
    exit_id(hot, add_exit(exit));
    hot.jump(cache.exit_thunk());
}

void UnitWriter::direct_exit(Assembler& code, std::uint64_t site, std::uint64_t target,
                             unsigned uncounted, bool flags_live) {
    Exit exit;
    exit.block = block_index;
    exit.target = target;
    exit.jump = site;
    exit.stub = cold.address;
    exit.counted_beyond = plan.blocks[counted_by].counted_beyond;
    if (plan.counts_at_exits) count_when_taken(exit, uncounted);
    exit.flags_live = flags_live;
    code.patch(site, exit.stub);
    exit_id(cold, add_exit(exit));
    cold.jump(cache.exit_thunk());
}

void UnitWriter::enter_driver(const Instruction& instruction, std::uint32_t first_site) {
    scratch.give_back_all();
    Exit exit;
    exit.kind = ExitKind::kSpecial;
    exit.block = block_index;
    exit.target = instruction.pc;
    exit.first_site = first_site;
    exit.special = numbers_.special + static_cast<std::uint32_t>(output.specials.size());
    output.specials.push_back(instruction);
    exit_id(hot, add_exit(exit));
    hot.jump(cache.exit_thunk());
    output.exits.back().stub = hot.address;
}

void UnitWriter::note_point(unsigned position) {
    const PlannedBlock& block = plan.blocks[block_index];
    const Instruction& instruction = plan.instructions[position];
    if (!instruction.form->may_fault) return;
    const Scratch::State state = scratch.state();
    RecoveryPoint point;
    point.pc_offset = static_cast<std::uint16_t>(instruction.pc - block.pc);
    point.offset = static_cast<std::uint32_t>(hot.address - hot_begin_);
    point.saved = state.saved;
    point.cursor = state.cursor;
    point.block = static_cast<std::uint8_t>(block_index);
    point.executed = static_cast<std::uint8_t>(position - block.first + 1U);
    point.counted = counted;
    point.rcx_is_target = instruction.form->flow == Flow::kCallIndirect;
    output.points.push_back(point);
}

void UnitWriter::append(Assembler& code, unsigned cursor, unsigned value, std::uint32_t site,
                        std::uint32_t aux) {
    const auto base = static_cast<std::uint8_t>(cursor);
    code.with_memory(kStore, value, Address{base, kNoGpr, 1, 0});
    // Sign-extended to 64 bits, because sites are below 2^31.
    code.with_memory(kStoreConstant, 0, Address{base, kNoGpr, 1, 8});
    code.u32(site);
    if (aux != 0) {
        code.with_memory(kStoreConstant, 0, Address{base, kNoGpr, 1, 12}, false);
        code.u32(aux);
    }
    code.prefetch_for_write(Address{base, kNoGpr, 1, kPrefetched});
}

void UnitWriter::append_constant(Assembler& code, unsigned cursor, std::uint64_t value,
                                 std::uint32_t site) {
    const auto base = static_cast<std::uint8_t>(cursor);
    // A large value needs two stores, because no instruction stores a 64-bit constant.
    const bool large = !fits32(static_cast<std::int64_t>(value));
    code.with_memory(kStoreConstant, 0, Address{base, kNoGpr, 1, 0}, !large);
    code.u32(static_cast<std::uint32_t>(value));
    if (large) {
        code.with_memory(kStoreConstant, 0, Address{base, kNoGpr, 1, 4}, false);
        code.u32(static_cast<std::uint32_t>(value >> 32));
    }
    code.with_memory(kStoreConstant, 0, Address{base, kNoGpr, 1, 8});
    code.u32(site);
    code.lea(base, Address{base, kNoGpr, 1, kRecordBytes});
}

void UnitWriter::record_constant(std::uint64_t value, std::uint32_t site, unsigned spare) {
    const bool cached = scratch.cached_cursor() != kNoGpr;
    const auto cursor = static_cast<std::uint8_t>(cached ? scratch.cached_cursor() : spare);
    if (!cached) cold.with_thread(kLoad, cursor, kCursorOffset);
    append_constant(cold, cursor, value, site);
    if (!cached) cold.with_thread(kStore, cursor, kCursorOffset);
}

void UnitWriter::record_by_rax(std::uint32_t site, unsigned value, std::uint32_t aux) {
    hot.load_context(RAX, kCursorOffset);
    append(hot, RAX, value, site, aux);
    hot.lea(RAX, Address{RAX, kNoGpr, 1, kRecordBytes});
    hot.store_context(kCursorOffset, RAX);
}

}  // namespace assay::native
