// Where the instrumentation of a unit goes, and which references are checked as one.
#include "framework/driver/native/translate/unit_plan.h"

#include <algorithm>

namespace assay::native {
namespace {

// Larger groups too often lie in two lines: with 16 bytes cc1 takes 3 % longer, sort 4 %.
constexpr std::int64_t kMostBytesOfGroup = 8;

constexpr std::int64_t kBytesInSeries = 8;

// True if the instruction gives rsp a value that was not computed from rsp before in the block, as
// compilers do to allocate memory of variable size.
bool leaves_stack(const UnitPlan& plan, const PlannedBlock& block, unsigned instr) {
    const Instruction& setting = plan.instructions[instr];
    if (!setting.sets_stack()) return false;
    const auto source = static_cast<GprMask>(setting.form->reads & ~bit(RSP));
    if (setting.form->reference_count != 0 || source == 0) return true;
    for (unsigned i = instr; i-- > block.first;) {
        const Form& form = *plan.instructions[i].form;
        if (!(form.writes & source)) continue;
        if (form.reads & bit(RSP)) return false;
        if (form.kills & ~form.reads & source) return true;
    }
    return true;
}

}  // namespace

bool Planner::predicts_last(const UnitPlan& plan, const PlannedBlock& block) const {
    return trace_.captures(trace::kCapturePredictions) && plan.collects() &&
           is_predicted(plan.instructions[block.first + block.count - 1U]);
}

bool Planner::crosses_line(const UnitPlan& plan, const PlannedBlock& block, unsigned instr) const {
    if (instr == block.first) return true;
    const std::uint64_t line = trace_.spec().fetch.line_bytes;
    const Instruction& instruction = plan.instructions[instr];
    return (instruction.pc - 1) / line != (instruction.next_pc() - 1) / line;
}

// Puts `item` at the latest point where the flags are dead, not before `earliest` and not before
// an instruction that changes a register of `address`; if there is none, right before its
// instruction.
void Planner::place(UnitPlan& plan, Item item, unsigned earliest, GprMask address) {
    item.position = item.instr;
    item.flags_live = plan.flags_live[item.instr] != 0;
    for (unsigned at = item.instr; item.flags_live; --at) {
        if (plan.flags_live[at] == 0) {
            item.position = static_cast<std::uint16_t>(at);
            item.flags_live = false;
        }
        if (at == earliest || (plan.instructions[at - 1U].form->writes & address) != 0) break;
    }
    plan.items.push_back(item);
}

void Planner::place_items(UnitPlan& plan, PlannedBlock& block) {
    block.first_item = static_cast<std::uint32_t>(plan.items.size());
    const bool fetches = trace_.captures(trace::kCaptureFetches);
    const bool references = trace_.captures(trace::kCaptureReferences);
    const bool code = trace_.captures(trace::kCaptureCode);
    const bool repeats = trace_.captures(trace::kCaptureRepeats);
    const bool calls = trace_.captures(trace::kCaptureCalls);
    const bool predicts = trace_.captures(trace::kCapturePredictions);
    unsigned earliest = block.first, fetched = block.first;  // before this instruction
    std::vector<CodePiece> pieces;
    auto piece = pieces.cbegin();
    Group group;
    for (unsigned i = block.first; i < block.first + block.count; ++i) {
        // The check of the first instruction's fetch stands before the block: some ways into it
        // skip that.
        if (fetches && i != block.first && crosses_line(plan, block, i)) {
            place_fetch(plan, i, earliest);
            group.open = false;
        }
        if (code && i == fetched) {
            pieces = pieces_of_stretch(plan, block, i, fetched);
            piece = pieces.cbegin();
            group.open = false;
        }
        // Not before the fetches of the other kind of the instructions before, whose lines may be
        // others: items are in the order of their instructions.
        for (; piece != pieces.cend() && piece->instr == i; ++piece)
            place_code(plan, *piece, earliest);
        if (references)
            place_references(plan, i, group, earliest);
        else if ((repeats || predicts) && plan.instructions[i].form->special == Special::kString)
            place_special(plan, i, group, earliest);
        if (!calls) continue;
        const Flow flow = plan.instructions[i].form->flow;
        if (flow == Flow::kCall || flow == Flow::kCallIndirect) place_call(plan, i);
        if (!leaves_stack(plan, block, i)) continue;
        plan.sets_stack[i] = true;
        earliest = i + 1;
        group.open = false;
    }
    // What is predicted is counted with the prediction.
    if (trace_.captures(trace::kCaptureBlockCounts) && !predicts_last(plan, block))
        place_count(plan, block);
    block.item_count = static_cast<std::uint32_t>(plan.items.size()) - block.first_item;
}

void Planner::place_fetch(UnitPlan& plan, unsigned instr, unsigned& earliest) {
    Item item;
    item.kind = ItemKind::kFetch;
    item.instr = static_cast<std::uint16_t>(instr);
    place(plan, item, earliest, 0);
    earliest = plan.items.back().position;
}

// True if what the instruction does comes between its fetch and that of the next one.
bool Planner::ends_stretch(const UnitPlan& plan, const PlannedBlock& block, unsigned instr) const {
    const Form& form = *plan.instructions[instr].form;
    return form.reference_count != 0 || form.special != Special::kNone ||
           (trace_.captures(trace::kCaptureCalls) && leaves_stack(plan, block, instr));
}

// Fetches of the instructions from `instr` on, one for each line. Only of those that follow one
// another at once: a shared filter has to see what is between. `next` becomes the instruction that
// is the next to be fetched.
std::vector<Planner::CodePiece> Planner::pieces_of_stretch(const UnitPlan& plan,
                                                           const PlannedBlock& block,
                                                           unsigned instr, unsigned& next) const {
    unsigned last = instr;
    while (last + 1 < block.end() && !ends_stretch(plan, block, last)) ++last;
    const std::uint64_t end = plan.instructions[last].next_pc();
    const trace::Spec& spec = trace_.spec();
    const std::uint32_t line =
        spec.data.sets == 0 ? spec.code_line : std::min(spec.code_line, spec.data.line_bytes);
    std::vector<CodePiece> pieces;
    for (std::uint64_t pc = plan.instructions[instr].pc, behind; pc < end; pc = behind) {
        behind = std::min<std::uint64_t>(end, (pc | (line - 1)) + 1);
        pieces.push_back({static_cast<std::uint16_t>(instr), pc, behind});
        while (instr < last && plan.instructions[instr].next_pc() <= behind) ++instr;
    }
    next = last + 1;
    return pieces;
}

void Planner::place_code(UnitPlan& plan, const CodePiece& piece, unsigned& earliest) {
    Item item;
    item.kind = ItemKind::kData;
    item.instr = piece.instr;
    item.first_reference = static_cast<std::uint32_t>(plan.references.size());
    item.reference_count = 1;
    item.low = static_cast<std::int64_t>(piece.begin);
    item.high = static_cast<std::int64_t>(piece.end);
    plan.references.push_back({.instr = item.instr,
                               .number = PlannedReference::kCode,
                               .offset = item.low,
                               .bytes = static_cast<std::uint32_t>(piece.end - piece.begin)});
    place(plan, item, earliest, 0);
    earliest = plan.items.back().position;
}

// Of which the table of footprints has to know each.
bool Planner::touches_many_lines(const Form& form) const {
    const trace::Spec& spec = trace_.spec();
    return spec.footprints && std::any_of(form.references, form.references + form.reference_count,
                                          [&](const MemoryReference& reference) {
                                              return reference.bytes > spec.data.line_bytes;
                                          });
}

void Planner::place_references(UnitPlan& plan, unsigned instr, Group& group, unsigned& earliest) {
    const Form& form = *plan.instructions[instr].form;
    if (form.special != Special::kNone || touches_many_lines(form))
        return place_special(plan, instr, group, earliest);
    for (unsigned r = 0; r < form.reference_count; ++r)
        place_reference(plan, instr, r, group, earliest);
    const auto change = plan.instructions[instr].stack_change();
    group.stack_change += change.value_or(0);
    const auto moved = static_cast<GprMask>(change ? form.writes & ~bit(RSP) : form.writes);
    if (moved & address_registers(group.first)) group.open = false;
    if (!form.sets_base) return;
    group.open = false;
    earliest = instr + 1;
}

void Planner::place_special(UnitPlan& plan, unsigned instr, Group& group, unsigned& earliest) {
    Item item;
    item.kind = ItemKind::kSpecial;
    item.instr = item.position = static_cast<std::uint16_t>(instr);
    plan.items.push_back(item);
    earliest = instr;
    group.open = false;
}

// Right before the call: what it references is still its caller's.
void Planner::place_call(UnitPlan& plan, unsigned instr) {
    Item item;
    item.kind = ItemKind::kCall;
    item.instr = item.position = static_cast<std::uint16_t>(instr);
    plan.items.push_back(item);
}

void Planner::place_reference(UnitPlan& plan, unsigned instr, unsigned number, Group& group,
                              unsigned& earliest) {
    const Instruction& instruction = plan.instructions[instr];
    const MemoryReference& form = instruction.form->references[number];
    const std::uint32_t line = trace_.spec().data.line_bytes;
    PlannedReference reference;
    reference.instr = static_cast<std::uint16_t>(instr);
    reference.number = static_cast<std::uint8_t>(number);
    reference.bytes = line ? std::min<std::uint32_t>(form.bytes, line) : form.bytes;
    reference.offset = (form.encoded ? instruction.displacement() : 0) + form.bias;
    if (form.base == kRip) reference.offset += static_cast<std::int64_t>(instruction.next_pc());
    if (join(plan, reference, form, group)) return;

    Item item;
    item.kind = ItemKind::kData;
    item.instr = reference.instr;
    item.first_reference = static_cast<std::uint32_t>(plan.references.size());
    item.reference_count = 1;
    item.low = reference.offset;
    item.high = reference.offset + reference.bytes;
    plan.references.push_back(reference);
    place(plan, item, earliest, address_registers(form));
    earliest = plan.items.back().position;
    group.item = plan.items.size() - 1;
    group.first = form;
    group.constant = is_constant(form);
    group.stack_change = 0;
    group.open = trace_.spec().data.sets != 0 && !form.address32;
}

// True if the member makes the group a longer series, or one of two: both ends of it are checked,
// which pays for the stack only, since nothing else is referred to like that often.
bool Planner::continues_series(const UnitPlan& plan, const Item& item,
                               const PlannedReference& member) const {
    const trace::Spec& spec = trace_.spec();
    const unsigned count = item.series_count == 0 ? 1 : item.series_count;
    if (count != item.reference_count || spec.data.sets < 2 || spec.footprints || spec.runs)
        return false;
    const PlannedReference* const series = &plan.references[item.first_reference];
    const std::int64_t step = member.offset - series[count - 1].offset;
    if (plan.form_of(member).base != RSP || plan.form_of(member).index != kNoGpr ||
        (step != kBytesInSeries && step != -kBytesInSeries))
        return false;
    return series->bytes == kBytesInSeries && member.bytes == kBytesInSeries &&
           (count == 1 || series[1].offset - series->offset == step);
}

// Makes the reference a part of the group, if it can be.
bool Planner::join(UnitPlan& plan, const PlannedReference& reference, const MemoryReference& form,
                   Group& group) const {
    if (!group.open || group.constant != is_constant(form) || form.address32 ||
        form.segment != group.first.segment)
        return false;
    if (!group.constant && (form.base != group.first.base || form.index != group.first.index ||
                            form.scale != group.first.scale))
        return false;
    PlannedReference member = reference;
    if (form.base == RSP) member.offset += group.stack_change;
    Item& item = plan.items[group.item];
    const std::int64_t line = trace_.spec().data.line_bytes;
    const std::int64_t low = std::min(item.low, member.offset);
    const std::int64_t high = std::max(item.high, member.offset + member.bytes);
    const bool larger = low != item.low || high != item.high;
    if (larger && trace_.spec().footprints) return false;  // the first may be all that is executed
    const bool series = high - low <= line && continues_series(plan, item, member);
    if (larger && !series &&
        high - low > (group.constant ? line : std::min(line, kMostBytesOfGroup)))
        return false;
    if (group.constant && (low & -line) != ((high - 1) & -line)) return false;
    if (series) item.series_count = static_cast<std::uint16_t>(item.reference_count + 1);
    item.low = low;
    item.high = high;
    ++item.reference_count;
    plan.references.push_back(member);
    return true;
}

void Planner::place_count(UnitPlan& plan, const PlannedBlock& block) {
    Item item;
    item.kind = ItemKind::kCount;
    item.position = block.first;
    item.flags_live = true;
    for (unsigned i = block.first; i < block.first + block.count && item.flags_live; ++i) {
        if (plan.flags_live[i] != 0) continue;
        item.position = static_cast<std::uint16_t>(i);
        item.flags_live = false;
    }
    const auto before =
        std::find_if(plan.items.begin() + block.first_item, plan.items.end(),
                     [&item](const Item& other) { return other.position > item.position; });
    plan.items.insert(before, item);
}

}  // namespace assay::native
