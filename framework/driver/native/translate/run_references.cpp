// Instrumentation of data references where those that continue a run need no record
// (trace_capture_runs).
//
//   runs[n]    trace::Run, in the thread's slot: where the operand's next reference is expected,
//              and how many came as expected
//
// Two ways to make a reference:
//   check    compare and branch to cold code, which appends the record and begins a run
//   each     always appends, and says in the run that none is left out any more; for references of
//            which so many continue no run that the branch would be mispredicted
// All begin with the check; MissSampler finds those of which each had better be appended. A site of
// the same operand that still has a check then records each, too, whatever thread made the first.
#include "framework/driver/native/translate/references.h"

namespace assay::native {
namespace {

constexpr std::size_t kExpected = offsetof(trace::Run, expected);
constexpr std::size_t kExpectedHigh = kExpected + 4;
constexpr std::size_t kLeftOut = offsetof(trace::Run, left_out);
constexpr std::size_t kSite = offsetof(trace::Run, site);
constexpr std::size_t kStride = offsetof(trace::Run, stride);
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

// The record of the reference at `a`, which is lost, and of those that were left out before.
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

// Nothing but moves: the flags stay as they are.
void RunReferences::append_each(const Operands& operands, std::size_t run) {
    const auto cursor = static_cast<std::uint8_t>(operands.cursor);
    append_record(hot_, cursor, operands, run);
    // Sign-extended: nothing is left out.
    hot_.with_thread(kStoreConstant, 0, run + kExpectedHigh, true, sizeof(std::uint32_t));
    hot_.u32(trace::kNoneExpected);
    hot_.lea(cursor, Address{cursor, kNoGpr, 1, kRecordBytes});
}

// `left_out` is counted up last but where it would become 2^31: that reference is recorded.
void RunReferences::check(const Operands& operands, std::size_t run) {
    const unsigned a = operands.a;
    const bool rax_free = scratch_.is_free(RAX);
    const KeptFlags flags(hot_, operands.item.flags_live, rax_free);
    hot_.with_thread(kCompareMemory, a, run + kExpected);
    const std::uint64_t differs = hot_.jump_if(kNotEqual, hot_.address);
    hot_.with_thread(kIncrement, 0, run + kLeftOut, false);
    const std::uint64_t full = hot_.jump_if(kSign, hot_.address);
    // What is always at the same place has a stride of 0 where it is as expected.
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

// The reference at `a` continues no run, or one that is too long.
void RunReferences::begin_run(const Operands& operands, std::size_t run, std::uint64_t back) {
    const unsigned a = operands.a, b = operands.b;
    const bool cached = scratch_.cached_cursor() != kNoGpr;
    const auto cursor = static_cast<std::uint8_t>(cached ? scratch_.cached_cursor() : b);
    if (!cached) cold_.load_context(cursor, kCursorOffset);
    append_record(cold_, cursor, operands, run);
    cold_.with_thread(kStoreConstant, 0, run + kLeftOut, false, sizeof(std::uint32_t));
    cold_.u32(0);
    cold_.with_thread(kStoreConstant, 0, run + kSite, false, sizeof(std::uint32_t));
    cold_.u32(operands.site);
    cold_.with_memory(kLoad, a, Address{cursor, kNoGpr, 1, 0});
    cold_.lea(cursor, Address{cursor, kNoGpr, 1, kRecordBytes});
    if (!cached) cold_.store_context(kCursorOffset, cursor);

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

}  // namespace assay::native
