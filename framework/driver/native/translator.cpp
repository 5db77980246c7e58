#include "framework/driver/native/translator.h"

#include "framework/driver/native/emitter.h"

#include <Zydis/Zydis.h>

#include <algorithm>

namespace assay::native {
namespace {

Assembler assembler_at(std::uint64_t address, std::uint8_t* out) {
    Assembler assembler;
    assembler.address = address;
    assembler.out = out;
    return assembler;
}

std::uint8_t* memory_at(std::uint64_t address) {
    return reinterpret_cast<std::uint8_t*>(address);
}

}  // namespace

Block* Translator::translate(std::uint64_t pc) {
    if (planner_.must_keep_flags(pc)) {
        planner_.set_flags_cross_calls();
        flush();
    }
    if (cache_.nearly_full()) flush();
    if (!planner_.plan(pc, plan_)) return nullptr;

    Unit unit;
    unit.hot_begin = cache_.hot;
    unit.cold_begin = cache_.cold;
    unit.first_block = static_cast<std::uint32_t>(cache_.blocks().size());
    unit.first_exit = static_cast<std::uint32_t>(cache_.exits().size());
    unit.block_count = static_cast<std::uint32_t>(plan_.blocks.size());
    const Emitter::Numbers numbers{trace_.next_block(), trace_.next_instr(), trace_.next_site(),
                                   unit.first_exit};
    Emitter::Output output;
    Emitter emitter(plan_, cache_, trace_.spec(), numbers,
                    assembler_at(cache_.hot, memory_at(cache_.hot)),
                    assembler_at(cache_.cold, memory_at(cache_.cold)));
    emitter.emit(output, &trace_, {});
    trace_.publish();

    cache_.hot = unit.hot_end = emitter.hot().address;
    cache_.cold = unit.cold_end = emitter.cold().address;
    unit.indirect_jump = output.indirect_jump;
    unit.exit_count = static_cast<std::uint32_t>(output.exits.size());
    const auto unit_index = static_cast<std::uint32_t>(cache_.units().size());
    for (Block& block : output.blocks) {
        block.unit = unit_index;
        cache_.blocks().push_back(block);
        cache_.enter_block(static_cast<std::uint32_t>(cache_.blocks().size() - 1));
    }
    for (Exit& exit : output.exits) {
        exit.block += unit.first_block;
        cache_.exits().push_back(exit);
    }
    cache_.units().push_back(unit);
    for (std::uint32_t i = 0; i < unit.exit_count; ++i) {
        Exit& exit = cache_.exits()[unit.first_exit + i];
        if (exit.kind != ExitKind::kDirect) continue;
        if (Block* target = cache_.find(exit.target)) cache_.link(exit, *target);
    }
    return &cache_.blocks()[unit.first_block];
}

FaultState Translator::recover(std::uint64_t host_pc) {
    FaultState state;
    const Unit* unit = cache_.unit_at(host_pc);
    if (unit == nullptr || host_pc >= unit->hot_end || host_pc < unit->hot_begin) return state;
    UnitPlan plan;
    planner_.replan(*unit, plan);
    if (plan.blocks.size() != unit->block_count) return state;

    const Block& first = cache_.blocks()[unit->first_block];
    std::vector<std::uint8_t> hot(unit->hot_end - unit->hot_begin + 64);
    std::vector<std::uint8_t> cold(unit->cold_end - unit->cold_begin + 64);
    const Emitter::Numbers numbers{first.id, first.first_instr, first.first_site, unit->first_exit};
    Emitter::Output output;
    Emitter emitter(plan, cache_, trace_.spec(), numbers, assembler_at(unit->hot_begin, hot.data()),
                    assembler_at(unit->cold_begin, cold.data()));
    emitter.emit(output, nullptr,
                 [&](std::uint64_t address, unsigned block, unsigned instr,
                     const Scratch::State& scratch, bool counted) {
                     if (address > host_pc) return;
                     state.known = true;
                     state.pc = plan.instructions[instr].pc;
                     state.scratch = scratch;
                     state.block = first.id + block;
                     state.executed = instr - plan.blocks[block].first + 1U;
                     state.counted = counted;
                 });
    return state;
}

std::string Translator::describe(std::uint64_t pc) {
    Instruction instruction;
    if (!decoder_.decode(memory_.code_at(pc), pc, instruction)) return "invalid";
    const char* name =
        ZydisMnemonicGetString(static_cast<ZydisMnemonic>(instruction.form->mnemonic));
    return name ? name : "unknown";
}

void Translator::flush() {
    cache_.flush();
    planner_.forget_code();
}

}  // namespace assay::native
