#include "framework/driver/native/translate/translator.h"

#include "framework/driver/native/processor/shown_processor.h"
#include "framework/driver/native/translate/emitter.h"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <cstring>

namespace assay::native {

bool Translator::must_flush_for(std::uint64_t pc) {
    if (planner_.must_keep_flags(pc)) {
        planner_.set_flags_cross_calls();
        return true;
    }
    return cache_.nearly_full();
}

Block* Translator::translate(std::uint64_t pc, Version version, bool landing) {
    if (!planner_.plan(pc, version, landing, plan_)) return nullptr;
    const Unit unit = emit_new_unit();
    for (std::uint32_t i = unit.first_block; i < unit.first_block + unit.block_count; ++i)
        if (!plan_.blocks[i - unit.first_block].copy) cache_.enter_block(i);
    for (std::uint32_t i = unit.first_exit; i < unit.first_exit + unit.exit_count; ++i) {
        if (cache_.exits()[i].kind != ExitKind::kDirect) continue;
        if (Block* target = cache_.find(cache_.exits()[i].target, version)) cache_.link(i, *target);
    }
    return &cache_.blocks()[unit.first_block];
}

Block* Translator::translate_alone(std::uint64_t pc, Version version) {
    if (!planner_.plan_alone(pc, version, plan_)) return nullptr;
    return &cache_.blocks()[emit_new_unit().first_block];
}

Unit Translator::emit_new_unit() {
    Unit unit;
    unit.landing = plan_.landing;
    unit.first_block = static_cast<std::uint32_t>(cache_.blocks().size());
    unit.first_exit = static_cast<std::uint32_t>(cache_.exits().size());
    unit.block_count = static_cast<std::uint32_t>(plan_.blocks.size());
    if (!emit_as_before(unit)) {
        const TableRows first = trace_.next();
        emit(unit, first, &trace_);
        unit.first_site = first.site;
        unit.end_site = trace_.next_site();
        trace_.publish();
    }
    const auto unit_index = static_cast<std::uint32_t>(cache_.units().size());
    for (Block& block : output_.blocks) {
        block.unit = unit_index;
        block.index = static_cast<std::uint32_t>(cache_.blocks().size());
        cache_.blocks().push_back(block);
    }
    for (Exit& exit : output_.exits) {
        exit.block += unit.first_block;
        cache_.exits().push_back(exit);
    }
    cache_.units().push_back(unit);
    return unit;
}

// True if the trace's table has the planned instructions from row `instr` on.
bool Translator::starts_as(std::uint32_t instr) const {
    return std::all_of(plan_.instructions.begin(), plan_.instructions.end(),
                       [&](const Instruction& planned) {
                           const trace_instr_t& row = trace_.instr(instr++);
                           return row.pc == planned.pc && row.length == planned.form->length &&
                                  std::memcmp(row.bytes, planned.bytes, row.length) == 0;
                       });
}

// Emits plan_ with the rows that the same unit had before. Code that is translated again and again
// then does not fill the trace's tables.
bool Translator::emit_as_before(Unit& unit) {
    const CodeCache::Rows* const rows =
        cache_.forgotten_rows(plan_.blocks.front().pc, plan_.version);
    if (rows == nullptr || !starts_as(rows->first.instr)) return false;
    unit.first_site = rows->first.site;
    unit.end_site = rows->end.site;
    note_often_missed(unit);
    trace_.begin_comparison(rows->first);
    if (emit(unit, rows->first, &trace_, &rows->end)) return true;
    unit.missed_count = 0;
    return false;
}

// Emits plan_ at the end of the code cache. If its rows are compared, they must equal the old ones
// up to `end`. Otherwise it emits nothing, and returns false.
bool Translator::emit(Unit& unit, const TableRows& rows, TraceTables* trace, const TableRows* end) {
    const UnitWriter::Numbers numbers{rows.block, rows.instr, rows.site,
                                      cache_.exit_number(unit.first_exit),
                                      static_cast<std::uint32_t>(cache_.specials().size())};
    output_.clear();
    cache_.use(plan_.version);
    unit.hot_begin = cache_.hot;
    unit.cold_begin = cache_.cold;
    UnitWriter writer(plan_, cache_, trace_, trace, numbers, cache_.often_missed(unit), output_);
    Captures captures(writer);
    captures.place_items(plan_);
    Emitter(writer, captures).emit();
    if (end != nullptr && !trace->end_comparison(*end)) return false;
    cache_.hot = unit.hot_end = writer.hot.address;
    cache_.cold = unit.cold_end = writer.cold.address;
    unit.first_point = static_cast<std::uint32_t>(cache_.points().size());
    unit.point_count = static_cast<std::uint32_t>(output_.points.size());
    const auto append = [](auto& to, const auto& from) {
        to.insert(to.end(), from.begin(), from.end());
    };
    append(cache_.points(), output_.points);
    append(cache_.specials(), output_.specials);
    unit.exit_count = static_cast<std::uint32_t>(output_.exits.size());
    return true;
}

void Translator::adapt(std::span<const trace_record_t> buffer) {
    if (trace_.spec().data.ways != 0 && !trace_.object_runs().active()) return;
    if (!trace_.captures(trace::kCaptureBlockCounts) && !trace_.spec().data.runs()) return;
    for (const std::uint32_t site : misses_.sample(buffer)) {
        if (!trace_.is_checked(site)) continue;
        const Block* const block = find(trace_.block_of(site));
        if (block == nullptr) continue;
        const std::uint32_t unit = block->unit;
        const auto known = cache_.often_missed(cache_.units()[unit]);
        if (std::find(known.begin(), known.end(), site) == known.end()) translate_again(unit);
    }
}

// The present translation of a block of the trace's table; nullptr if there is no translation.
const Block* Translator::find(std::uint32_t id) {
    for (const Version version : {kCollecting, kExact}) {
        const Block* const block = cache_.find(trace_.block(id).pc, version);
        if (block != nullptr && block->id == id) return block;
    }
    return nullptr;
}

void Translator::note_often_missed(Unit& unit) {
    unit.first_missed = static_cast<std::uint32_t>(cache_.often_missed().size());
    driver::ObjectRuns& runs = trace_.object_runs();
    for (std::uint32_t site = unit.first_site; site < unit.end_site; ++site) {
        if (!trace_.is_checked(site)) continue;
        const bool has_run = !trace_.is_data(site);
        if (!misses_.misses_often(site) && !(has_run && runs.has_given_up(site))) continue;
        cache_.often_missed().push_back(site);
        if (has_run) runs.give_up(site);
    }
    unit.missed_count =
        static_cast<std::uint32_t>(cache_.often_missed().size()) - unit.first_missed;
}

void Translator::translate_again(std::uint32_t unit_index) {
    if (cache_.nearly_full()) return;
    Unit unit = cache_.units()[unit_index];
    planner_.replan(unit, plan_);
    if (plan_.blocks.size() != unit.block_count) return;
    const Block& first = cache_.blocks()[unit.first_block];
    const TableRows rows{first.id, first.first_instr, unit.first_site};
    note_often_missed(unit);
    const std::uint32_t exits = unit.exit_count;
    emit(unit, rows, nullptr);
    if (unit.exit_count != exits) return;
    cache_.replace(unit, output_.blocks, output_.exits);
}

std::string Translator::describe(std::uint64_t pc) {
    Instruction instruction;
    const auto code = memory_.code_at(pc);
    if (!decoder_.decode(code, pc, instruction)) {
        const char* newer = shown_processor().newer_instruction(code);
        return newer ? newer : "none";
    }
    const Form& form = *instruction.form;
    const char* name = ZydisMnemonicGetString(static_cast<ZydisMnemonic>(form.mnemonic));
    const std::string text = name ? name : "unknown";
    return form.extension == ProcessorExtension::kNone
               ? text
               : text + " (" + name_of(form.extension) + ')';
}

void Translator::flush() {
    cache_.flush();
    planner_.forget_code();
}

void Translator::invalidate(std::uint64_t start, std::uint64_t end) {
    cache_.invalidate(start, end);
    planner_.forget_code();
}

}  // namespace assay::native
