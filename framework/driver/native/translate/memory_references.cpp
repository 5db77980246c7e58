#include "framework/driver/native/translate/memory_references.h"

#include "framework/driver/native/translate/control_flow.h"
#include "framework/driver/native/translate/specials.h"

#include <algorithm>

namespace assay::native {
namespace {

// Larger groups too often lie in two lines: with 16 bytes cc1 takes 3 % longer, sort 4 %.
constexpr std::int64_t kMostBytesOfGroup = 8;

constexpr std::int64_t kBytesInSeries = 8;

}  // namespace

void MemoryReferences::place(Placer& placer, const PlannedBlock& block, unsigned instr) {
    if (instr == block.first) group_.open = false;
    if (spec_.captures & trace::kCaptureCode) place_code(placer, block, instr);
    if (spec_.captures & trace::kCaptureReferences) place_data(placer, instr);
}

// --- Of data.

void MemoryReferences::place_data(Placer& placer, unsigned instr) {
    const Form& form = *plan_.instructions[instr].form;
    if (Specials::takes(spec_, form)) return;
    for (unsigned r = 0; r < form.reference_count; ++r) place_reference(placer, instr, r);
    const auto change = plan_.instructions[instr].stack_change();
    group_.stack_change += change.value_or(0);
    const auto moved = static_cast<GprMask>(change ? form.writes & ~bit(RSP) : form.writes);
    if (moved & address_registers(group_.first)) group_.open = false;
    if (!form.sets_base) return;
    group_.open = false;
    placer.stay_behind(instr);
}

void MemoryReferences::place_reference(Placer& placer, unsigned instr, unsigned number) {
    UnitPlan& plan = placer.plan();
    const Instruction& instruction = plan.instructions[instr];
    const MemoryReference& form = instruction.form->references[number];
    const std::uint32_t line = spec_.data.line_bytes;
    PlannedReference reference;
    reference.instr = static_cast<std::uint16_t>(instr);
    reference.number = static_cast<std::uint8_t>(number);
    reference.bytes = line ? std::min<std::uint32_t>(form.bytes, line) : form.bytes;
    reference.offset = (form.encoded ? instruction.displacement() : 0) + form.bias;
    if (form.base == kRip) reference.offset += static_cast<std::int64_t>(instruction.next_pc());
    if (join(plan, reference, form)) return;

    Item item;
    item.instr = reference.instr;
    item.first_reference = static_cast<std::uint32_t>(plan.references.size());
    item.reference_count = 1;
    item.low = reference.offset;
    item.high = reference.offset + reference.bytes;
    plan.references.push_back(reference);
    placer.place(item, address_registers(form));
    group_.item = plan.items.size() - 1;
    group_.first = form;
    group_.constant = is_constant(form);
    group_.stack_change = 0;
    group_.open = spec_.data.sets != 0 && !form.address32;
}

// True if the member makes the group a longer series, or one of two: both ends of it are checked,
// which pays for the stack only, since nothing else is referred to like that often.
bool MemoryReferences::continues_series(const Item& item, const PlannedReference& member) const {
    const unsigned count = item.series_count == 0 ? 1 : item.series_count;
    if (count != item.reference_count || spec_.data.sets < 2 || spec_.footprints || spec_.runs ||
        spec_.first_writes)
        return false;
    const PlannedReference* const series = &plan_.references[item.first_reference];
    const std::int64_t step = member.offset - series[count - 1].offset;
    if (plan_.form_of(member).base != RSP || plan_.form_of(member).index != kNoGpr ||
        (step != kBytesInSeries && step != -kBytesInSeries))
        return false;
    return series->bytes == kBytesInSeries && member.bytes == kBytesInSeries &&
           (count == 1 || series[1].offset - series->offset == step);
}

// Makes the reference a part of the group, if it can be.
bool MemoryReferences::join(UnitPlan& plan, const PlannedReference& reference,
                            const MemoryReference& form) {
    if (!group_.open || group_.item + 1 != plan.items.size() ||
        group_.constant != is_constant(form) || form.address32 ||
        form.segment != group_.first.segment)
        return false;
    if (!group_.constant && (form.base != group_.first.base || form.index != group_.first.index ||
                             form.scale != group_.first.scale))
        return false;
    // Of a group in one line the first is recorded, which must be what the others are.
    const bool writes = form.kind != TRACE_SITE_READ;
    if (spec_.first_writes && writes != (group_.first.kind != TRACE_SITE_READ)) return false;
    PlannedReference member = reference;
    if (form.base == RSP) member.offset += group_.stack_change;
    Item& item = plan.items[group_.item];
    const std::int64_t line = spec_.data.line_bytes;
    const std::int64_t low = std::min(item.low, member.offset);
    const std::int64_t high = std::max(item.high, member.offset + member.bytes);
    const bool larger = low != item.low || high != item.high;
    if (larger && spec_.footprints) return false;  // the first may be all that is executed
    const bool series = high - low <= line && continues_series(item, member);
    if (larger && !series &&
        high - low > (group_.constant ? line : std::min(line, kMostBytesOfGroup)))
        return false;
    if (group_.constant && (low & -line) != ((high - 1) & -line)) return false;
    if (series) item.series_count = static_cast<std::uint16_t>(item.reference_count + 1);
    item.low = low;
    item.high = high;
    ++item.reference_count;
    plan.references.push_back(member);
    return true;
}

// --- Of code.

// Not before the fetches of the other kind of the instructions before, whose lines may be others:
// items are in the order of their instructions.
void MemoryReferences::place_code(Placer& placer, const PlannedBlock& block, unsigned instr) {
    if (instr == block.first || instr == next_stretch_) begin_stretch(block, instr);
    for (; next_piece_ < pieces_.size() && pieces_[next_piece_].instr == instr; ++next_piece_)
        place_piece(placer, pieces_[next_piece_]);
}

void MemoryReferences::place_piece(Placer& placer, const CodePiece& piece) const {
    UnitPlan& plan = placer.plan();
    Item item;
    item.instr = piece.instr;
    item.first_reference = static_cast<std::uint32_t>(plan.references.size());
    item.reference_count = 1;
    item.low = static_cast<std::int64_t>(piece.begin);
    item.high = static_cast<std::int64_t>(piece.end);
    plan.references.push_back({.instr = item.instr,
                               .number = PlannedReference::kCode,
                               .offset = item.low,
                               .bytes = static_cast<std::uint32_t>(piece.end - piece.begin)});
    placer.place(item);
}

// Fetches of the instructions from `instr` on, one for each line. Only of those that follow one
// another at once: a shared filter has to see what is between.
void MemoryReferences::begin_stretch(const PlannedBlock& block, unsigned instr) {
    unsigned last = instr;
    while (last + 1 < block.end() && !ends_stretch(block, last)) ++last;
    const std::uint64_t end = plan_.instructions[last].next_pc();
    const std::uint32_t line =
        spec_.data.sets == 0 ? spec_.code_line : std::min(spec_.code_line, spec_.data.line_bytes);
    pieces_.clear();
    for (std::uint64_t pc = plan_.instructions[instr].pc, behind; pc < end; pc = behind) {
        behind = std::min<std::uint64_t>(end, (pc | (line - 1)) + 1);
        pieces_.push_back({static_cast<std::uint16_t>(instr), pc, behind});
        while (instr < last && plan_.instructions[instr].next_pc() <= behind) ++instr;
    }
    next_piece_ = 0;
    next_stretch_ = last + 1;
}

// True if what the instruction does comes between its fetch and that of the next one.
bool MemoryReferences::ends_stretch(const PlannedBlock& block, unsigned instr) const {
    const Form& form = *plan_.instructions[instr].form;
    return form.reference_count != 0 || form.special != Special::kNone ||
           (Calls::wanted(spec_) && Calls::leaves_stack(plan_, block, instr));
}

}  // namespace assay::native
