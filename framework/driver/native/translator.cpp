#include "framework/driver/native/translator.h"

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

Block* Translator::translate(std::uint64_t pc, bool landing) {
    if (planner_.must_keep_flags(pc)) {
        planner_.set_flags_cross_calls();
        flush();
    }
    if (cache_.nearly_full()) flush();
    if (!planner_.plan(pc, landing, plan_)) return nullptr;

    Unit unit;
    unit.landing = landing;
    unit.first_block = static_cast<std::uint32_t>(cache_.blocks().size());
    unit.first_exit = static_cast<std::uint32_t>(cache_.exits().size());
    unit.block_count = static_cast<std::uint32_t>(plan_.blocks.size());
    const Emitter::Numbers numbers{trace_.next_block(), trace_.next_instr(), trace_.next_site(),
                                   unit.first_exit};
    Emitter::Output output;
    emit(unit, numbers, &trace_, output);
    unit.end_site = trace_.next_site();
    trace_.publish();
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
    for (std::uint32_t i = unit.first_exit; i < unit.first_exit + unit.exit_count; ++i) {
        if (cache_.exits()[i].kind != ExitKind::kDirect) continue;
        if (Block* target = cache_.find(cache_.exits()[i].target)) cache_.link(i, *target);
    }
    return &cache_.blocks()[unit.first_block];
}

// Emits plan_ where the code cache goes on.
void Translator::emit(Unit& unit, const Emitter::Numbers& numbers, TraceWriter* trace,
                      Emitter::Output& output) {
    unit.hot_begin = cache_.hot;
    unit.cold_begin = cache_.cold;
    Emitter emitter(plan_, cache_, trace_.spec(), numbers, cache_.often_missed(unit),
                    assembler_at(cache_.hot, memory_at(cache_.hot)),
                    assembler_at(cache_.cold, memory_at(cache_.cold)));
    emitter.emit(output, trace, {});
    cache_.hot = unit.hot_end = emitter.hot().address;
    cache_.cold = unit.cold_end = emitter.cold().address;
    unit.indirect_jump = output.indirect_jump;
    unit.exit_count = static_cast<std::uint32_t>(output.exits.size());
}

void Translator::adapt() {
    if (!trace_.captures(trace::kCaptureBlockCounts) || cache_.blocks().empty()) return;
    const std::uint32_t first_block = cache_.blocks().front().id;
    for (const std::uint32_t site : misses_.sample(trace_.last_buffer())) {
        const std::uint32_t block = trace_.block_of(site);
        if (block < first_block || trace_.is_fetch(site)) continue;
        const std::uint32_t unit = cache_.blocks()[block - first_block].unit;
        const auto known = cache_.often_missed(cache_.units()[unit]);
        if (std::find(known.begin(), known.end(), site) == known.end()) translate_again(unit);
    }
}

void Translator::translate_again(std::uint32_t unit_index) {
    if (cache_.nearly_full()) return;
    Unit unit = cache_.units()[unit_index];
    planner_.replan(unit, plan_);
    if (plan_.blocks.size() != unit.block_count) return;
    const Block& first = cache_.blocks()[unit.first_block];
    const Emitter::Numbers numbers{first.id, first.first_instr, first.first_site, unit.first_exit};
    unit.first_missed = static_cast<std::uint32_t>(cache_.often_missed().size());
    for (std::uint32_t site = first.first_site; site < unit.end_site; ++site)
        if (!trace_.is_fetch(site) && misses_.misses_often(site))
            cache_.often_missed().push_back(site);
    unit.missed_count =
        static_cast<std::uint32_t>(cache_.often_missed().size()) - unit.first_missed;
    // Whoever executes the code of before leaves it at its next way out.
    cache_.divert(cache_.units()[unit_index]);
    Emitter::Output output;
    emit(unit, numbers, nullptr, output);
    cache_.replace(unit, output.blocks, output.exits);
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
    Emitter emitter(plan, cache_, trace_.spec(), numbers, cache_.often_missed(*unit),
                    assembler_at(unit->hot_begin, hot.data()),
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
                     state.rcx_is_target =
                         plan.instructions[instr].form->flow == Flow::kCallIndirect;
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
