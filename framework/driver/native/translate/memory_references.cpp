#include "framework/driver/native/translate/memory_references.h"

#include "framework/driver/native/translate/captures.h"
#include "framework/driver/native/translate/references.h"
#include "framework/trace/object_sites.h"

#include <algorithm>

namespace assay::native {

namespace {

// Larger groups lie in two lines too often: with 16 bytes cc1 takes 3 % longer, sort 4 %.
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

// True if the member makes the group a longer series, or one of two. A series needs checks of both
// ends. This is worth it only for the stack, because other references seldom form a series.
bool MemoryReferences::continues_series(const Item& item, const PlannedReference& member) const {
    const unsigned count = item.series_count == 0 ? 1 : item.series_count;
    if (count != item.reference_count || spec_.data.sets < 2 || spec_.data.footprints() ||
        spec_.data.runs() || spec_.data.first_writes())
        return false;
    const PlannedReference* const series = &plan_.references[item.first_reference];
    const std::int64_t step = member.offset - series[count - 1].offset;
    if (plan_.form_of(member).base != RSP || plan_.form_of(member).index != kNoGpr ||
        (step != kBytesInSeries && step != -kBytesInSeries))
        return false;
    return series->bytes == kBytesInSeries && member.bytes == kBytesInSeries &&
           (count == 1 || series[1].offset - series->offset == step);
}

// True if all later items only record references for their objects.
bool MemoryReferences::is_last(const UnitPlan& plan, std::size_t item) {
    constexpr std::uint8_t kRecords = Captures::kNumber<ObjectReferences>;
    return std::all_of(plan.items.begin() + static_cast<std::ptrdiff_t>(item) + 1, plan.items.end(),
                       [](const Item& later) { return later.capture == kRecords; });
}

// Adds the reference to the group if possible.
bool MemoryReferences::join(UnitPlan& plan, const PlannedReference& reference,
                            const MemoryReference& form) {
    if (!group_.open || !is_last(plan, group_.item) || group_.constant != is_constant(form) ||
        form.address32 || form.segment != group_.first.segment)
        return false;
    if (!group_.constant && (form.base != group_.first.base || form.index != group_.first.index ||
                             form.scale != group_.first.scale))
        return false;
    // The first reference is recorded for all of a group in one line, so they must be of one kind.
    const bool writes = form.kind != TRACE_SITE_READ;
    if (spec_.data.first_writes() && writes != (group_.first.kind != TRACE_SITE_READ)) return false;
    PlannedReference member = reference;
    if (form.base == RSP) member.offset += group_.stack_change;
    Item& item = plan.items[group_.item];
    const std::int64_t line = spec_.data.line_bytes;
    const std::int64_t low = std::min(item.low, member.offset);
    const std::int64_t high = std::max(item.high, member.offset + member.bytes);
    const bool larger = low != item.low || high != item.high;
    if (larger && spec_.data.footprints()) return false;  // perhaps only the first one is executed
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

// Places these items in the order of their instructions, because the other fetches of earlier
// instructions may be of other lines.
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

// Plans the fetches of the instructions from `instr` on, one for each line. Stops at the first data
// reference, because the shared filter must see it in order.
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

// True if events of the instruction come between its fetch and the next one.
bool MemoryReferences::ends_stretch(const PlannedBlock& block, unsigned instr) const {
    const Form& form = *plan_.instructions[instr].form;
    return form.reference_count != 0 || form.special != Special::kNone ||
           (Calls::wanted(spec_) && Calls::leaves_stack(plan_, block, instr));
}

// Instrumentation of data references by runs: a reference that continues a run needs no record
// (trace_capture_runs).
//
//   runs[n]    trace::Run, in the thread's slot: where the operand's next reference is expected,
//              and how many came as expected
//
// There are two kinds of code:
//   check    compare, and branch to cold code that appends the record and begins a run
//   each     always append, and note in the run that no reference is left out any more; for
//            references that continue a run so rarely that the branch would be mispredicted
//
// All references begin with the check. MissSampler finds those that are faster with `each`. A site
// of the same operand that still has a check then also records each reference, in all threads.

namespace {

constexpr std::size_t kExpected = offsetof(trace::Run, expected);
constexpr std::size_t kExpectedHigh = kExpected + 4;
constexpr std::size_t kLeftOut = offsetof(trace::Run, left_out);
constexpr std::size_t kSite = offsetof(trace::Run, site);
constexpr std::size_t kStride = offsetof(trace::Run, stride);
constexpr std::size_t kRecord = offsetof(trace::Run, record);
static_assert(kLeftOut == kExpectedHigh + 4, "both are stored at once");

class RunReferences final : public DataReferences {
  public:
    using DataReferences::DataReferences;

  private:
    void constant(Operands& operands) override { reference(operands); }
    void computed(Operands& operands) override { reference(operands); }
    void reference(Operands& operands);
    static void append_record(Assembler& code, unsigned cursor, const Operands& operands,
                              std::size_t run);
    void append_each(const Operands& operands, std::size_t run);
    void check(const Operands& operands, std::size_t run);
    void begin_run(const Operands& operands, std::size_t run, std::uint64_t back);
};

void RunReferences::reference(Operands& operands) {
    const Item& item = operands.item;
    const PlannedReference& first = first_of(item);
    const Instruction& instruction = plan_.instructions[first.instr];
    const MemoryReference& whole = instruction.form->references[first.number];
    const std::uint32_t number =
        writer_.tables.run_of({instruction.pc, whole.bytes, whole.kind, first.number});
    writer_.tables.note_run(operands.site, number);
    const std::size_t run = kRunsInContext + number * sizeof(trace::Run);
    const bool each = number == trace::kMaxRuns || is_often_missed(operands.site);

    GprMask exclude = is_constant(operands.form) ? GprMask{0} : address_registers(operands.form);
    if (item.flags_live) exclude |= bit(RAX);
    if (each) operands.cursor = scratch_.cursor(exclude, item.position);
    operands.a = scratch_.acquire(exclude, item.position);
    if (!each || operands.form.segment != Segment::kFlat)
        operands.b =
            scratch_.acquire(static_cast<GprMask>(exclude | bit(operands.a)), item.position);
    load_first_address(hot_, operands, false);
    if (number == trace::kMaxRuns)
        append_always(operands);
    else if (each)
        append_each(operands, run);
    else
        check(operands, run);
}

// Appends a record of the reference at `a`, and of those that were left out before. Destroys `a`.
void RunReferences::append_record(Assembler& code, unsigned cursor, const Operands& operands,
                                  std::size_t run) {
    const auto base = static_cast<std::uint8_t>(cursor);
    code.with_memory(kStore, operands.a, Address{base, kNoGpr, 1, 0});
    code.with_memory(kStoreConstant, 0, Address{base, kNoGpr, 1, 8}, false);
    code.u32(operands.site);
    code.with_thread(kLoad, operands.a, run + kLeftOut, false);
    code.with_memory(kStore, operands.a, Address{base, kNoGpr, 1, 12}, false);
    code.prefetch_for_write(Address{base, kNoGpr, 1, kPrefetched});
}

// Uses only moves, and keeps the flags.
void RunReferences::append_each(const Operands& operands, std::size_t run) {
    const auto cursor = static_cast<std::uint8_t>(operands.cursor);
    append_record(hot_, cursor, operands, run);
    // Sign-extended, so that it also sets left_out to 0.
    hot_.with_thread(kStoreConstant, 0, run + kExpectedHigh, true, sizeof(std::uint32_t));
    hot_.u32(trace::kNoneExpected);
    hot_.lea(cursor, Address{cursor, kNoGpr, 1, kRecordBytes});
}

// Increments `left_out`, unless it would become 2^31. That reference is recorded.
void RunReferences::check(const Operands& operands, std::size_t run) {
    const unsigned a = operands.a;
    const bool rax_free = scratch_.is_free(RAX);
    const KeptFlags flags(hot_, operands.item.flags_live, rax_free);
    hot_.with_thread(kCompareMemory, a, run + kExpected);
    const std::uint64_t differs = hot_.jump_if(kNotEqual, hot_.address);
    hot_.with_thread(kIncrement, 0, run + kLeftOut, false);
    const std::uint64_t full = hot_.jump_if(kSign, hot_.address);
    // An operand at a constant address has the stride 0 while it continues a run.
    if (!is_constant(operands.form)) {
        hot_.with_thread(kAddMemory, a, run + kStride);
        hot_.with_thread(kStore, a, run + kExpected);
    }
    const std::uint64_t back = hot_.address;
    flags.restore(hot_);

    hot_.patch(full, cold_.address);
    cold_.with_thread(kIncrement, 1, run + kLeftOut, false);  // /1: decrement
    hot_.patch(differs, cold_.address);
    begin_run(operands, run, back);
}

// The reference at `a` continues no run, or a run that is too long. If SIGKILL ends the program
// here, trace::is_told() says whether the record counts.
void RunReferences::begin_run(const Operands& operands, std::size_t run, std::uint64_t back) {
    const unsigned a = operands.a, b = operands.b;
    const bool cached = scratch_.cached_cursor() != kNoGpr;
    const auto cursor = static_cast<std::uint8_t>(cached ? scratch_.cached_cursor() : b);
    if (!cached) cold_.load_context(cursor, kCursorOffset);
    append_record(cold_, cursor, operands, run);
    cold_.with_thread(kStore, cursor, run + kRecord);
    cold_.with_memory(kLoad, a, Address{cursor, kNoGpr, 1, 0});
    cold_.lea(cursor, Address{cursor, kNoGpr, 1, kRecordBytes});
    cold_.store_context(kCursorOffset, cursor);
    cold_.with_thread(kStoreConstant, 0, run + kLeftOut, false, sizeof(std::uint32_t));
    cold_.u32(0);
    cold_.with_thread(kStoreConstant, 0, run + kSite, false, sizeof(std::uint32_t));
    cold_.u32(operands.site);
    cold_.with_thread(kStoreConstant, 0, run + kRecord, true, sizeof(std::uint32_t));
    cold_.u32(0);

    cold_.with_thread(kGroup1, kCompare, run + kExpectedHigh, false, sizeof(std::uint32_t));
    cold_.u32(trace::kNoneExpected);
    const std::uint64_t none = cold_.jump_if(kEqual, cold_.address);
    // stride = a - (expected - stride), expected = a + stride
    cold_.registers(kStore, b, a);
    cold_.with_thread(kSubtractMemory, b, run + kExpected);
    cold_.with_thread(kAddMemory, b, run + kStride);
    cold_.with_thread(kStore, b, run + kStride);
    cold_.lea(b, Address{static_cast<std::uint8_t>(b), static_cast<std::uint8_t>(a), 1, 0});
    cold_.with_thread(kStore, b, run + kExpected);
    cold_.patch(none, cold_.address);
    cold_.jump(back);
}

}  // namespace

std::unique_ptr<DataReferences> run_references(UnitWriter& writer) {
    return std::make_unique<RunReferences>(writer);
}

namespace {

// The table of footprints must know each line of the reference.
bool touches_many_lines(const trace::Spec& spec, const Form& form) {
    return spec.data.footprints() &&
           std::any_of(form.references, form.references + form.reference_count,
                       [&](const MemoryReference& reference) {
                           return reference.bytes > spec.data.line_bytes;
                       });
}

}  // namespace

// Without references, only string instructions have repeats and predictions.
bool Specials::takes(const trace::Spec& spec, const Form& form) {
    if (spec.captures & trace::kCaptureReferences)
        return form.special != Special::kNone || touches_many_lines(spec, form);
    return form.special == Special::kString;
}

void Specials::place(Placer& placer, const PlannedBlock& /*block*/, unsigned instr) {
    if (takes(spec_, *plan_.instructions[instr].form)) placer.place_before(instr);
}

void Specials::emit(const Item& item) {
    const Form& form = *plan_.instructions[item.instr].form;
    const bool bit_string = form.special == Special::kBitString;
    const bool references = spec_.captures & trace::kCaptureReferences;
    if (spec_.data.footprints()) writer_.new_site(item.instr, 0, TRACE_SITE_FOOTPRINT, 0);
    // The sites of objects come right before: see ReferenceRecorder.
    const bool objects = trace::records_objects(spec_);
    for (unsigned r = 0; objects && r < form.reference_count; ++r)
        writer_.new_site(item.instr, 0, TRACE_SITE_OBJECT,
                         trace::object_operand(form.references[r].kind, 1));
    const std::uint32_t first_site = writer_.next_site();
    for (unsigned r = 0; references && r < form.reference_count; ++r)
        writer_.new_site(item.instr, bit_string ? 1 : form.references[r].bytes,
                         form.references[r].kind, r);
    if (form.trace_flags & TRACE_INSTR_VARIABLE)
        writer_.new_site(item.instr, 0, TRACE_SITE_COUNT, 0);
    if (form.special == Special::kString && Predictions::wanted(spec_))
        writer_.new_site(item.instr, 0, TRACE_SITE_PREDICTIONS, 0);
    writer_.enter_driver(plan_.instructions[item.instr], first_site);
}

}  // namespace assay::native
