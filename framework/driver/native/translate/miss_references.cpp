// The check is that of filtered references. A line that is not the most recent one of its set is
// looked for in the thread's first level of caches (FirstLevel), in cold code: where it was last,
// it nearly always is. Then its use is noted; for all else there is a stub.
#include "framework/driver/native/translate/filtered_references.h"

#include <bit>

namespace assay::native {
namespace {

constexpr std::size_t kLines = kDataCacheInContext + FirstLevel::kLines;
constexpr std::size_t kUses = kDataCacheInContext + FirstLevel::kUses;
constexpr std::size_t kDataClock = kDataCacheInContext + FirstLevel::kClock;
constexpr std::size_t kPlaceBytes = sizeof(FirstLevel::data_places[0]);

class MissReferences final : public FilteredReferences {
  public:
    using FilteredReferences::FilteredReferences;

  private:
    void constant_miss(const Operands& operands, std::size_t entry, std::uint64_t back) override;
    void record_miss(const Operands& operands, bool may_be_misaligned, std::uint64_t back) override;
    void record_series(const Operands& operands, std::uint64_t back) override;
    void record_two_lines(const Operands& operands, unsigned count, std::uint64_t back) override;
    void use_ends(const Operands& operands, std::uint64_t back);
    std::uint64_t look_up(unsigned line, unsigned place);
    std::uint64_t look_at_place(unsigned line, unsigned place);
    void note_use(unsigned time, unsigned place);
};

// Where the line in the register `line` was last goes to `place`; jumps if it is not there.
std::uint64_t MissReferences::look_up(unsigned line, unsigned place) {
    // The number of the line times kPlaceBytes, as far as it matters.
    const auto shift = static_cast<unsigned>(std::countr_zero(spec_.data.line_bytes / kPlaceBytes));
    cold_.registers(kStore, place, line, false);
    cold_.shift_right(place, shift);
    cold_.group1(kAnd, place, (FirstLevel::kPlaces - 1) * kPlaceBytes, false);
    cold_.load_context_word(place, kDataPlacesInContext, static_cast<std::uint8_t>(place));
    return look_at_place(line, place);
}

// Jumps if the line in the register `line` is not where the offset in `place` says.
std::uint64_t MissReferences::look_at_place(unsigned line, unsigned place) {
    cold_.with_context(kCompareMemory, line, kLines, true, static_cast<std::uint8_t>(place));
    return cold_.jump_if(kNotEqual, cold_.address);
}

void MissReferences::note_use(unsigned time, unsigned place) {
    cold_.with_context_again(kLoad, time, kDataClock);
    cold_.lea(time, Address{static_cast<std::uint8_t>(time), kNoGpr, 1, FirstLevel::kTick});
    cold_.with_context_again(kStore, time, kDataClock);
    cold_.with_context(kStore, time, kUses, true, static_cast<std::uint8_t>(place));
}

void MissReferences::constant_miss(const Operands& operands, std::size_t entry,
                                   std::uint64_t back) {
    const unsigned line = operands.a, place = line == RCX ? unsigned{RDX} : unsigned{RCX};
    const std::uint64_t number = constant_address(operands) / spec_.data.line_bytes;
    cold_.with_thread(kStore, line, entry);
    cold_.with_thread(kStore, place, offsetof(Context, stub_gpr));
    cold_.load_context_word(place,
                            kDataPlacesInContext + number % FirstLevel::kPlaces * kPlaceBytes);
    const std::uint64_t elsewhere = look_at_place(line, place);
    note_use(line, place);
    cold_.with_thread(kLoad, place, offsetof(Context, stub_gpr));
    cold_.jump(back);

    cold_.patch(elsewhere, cold_.address);
    cold_.with_thread(kLoad, place, offsetof(Context, stub_gpr));
    record_each(operands, 1, back);
}

void MissReferences::record_miss(const Operands& operands, bool may_be_misaligned,
                                 std::uint64_t back) {
    const unsigned line = operands.a, place = operands.b;
    const PlannedReference& first = first_of(operands.item);
    std::uint64_t misaligned = 0;
    if (may_be_misaligned && first.bytes != 1) {
        cold_.test_bits(line, first.bytes - 1);
        misaligned = cold_.jump_if(kNotEqual, cold_.address);
    }
    cold_.with_context(kStore, line, kTag, true, static_cast<std::uint8_t>(operands.b));
    const std::uint64_t elsewhere = look_up(line, place);
    note_use(line, place);
    cold_.jump(back);

    if (misaligned != 0) cold_.patch(misaligned, cold_.address);
    cold_.patch(elsewhere, cold_.address);
    const unsigned cursor = scratch_.cached_cursor();
    load_operand_address(cold_, operands, first, operands.item.flags_live);
    if (cursor != kNoGpr) cold_.store_context(kCursorOffset, cursor);
    writer_.call_stub(cache_.miss_stub(line, place, may_be_misaligned ? first.bytes : 1),
                      [&] { cold_.push_constant(operands.site); });
    if (cursor != kNoGpr) cold_.load_context(cursor, kCursorOffset);
    cold_.jump(back);
}

void MissReferences::record_series(const Operands& operands, std::uint64_t back) {
    use_ends(operands, back);
    FilteredReferences::record_series(operands, back);
}

void MissReferences::record_two_lines(const Operands& operands, unsigned count,
                                      std::uint64_t back) {
    use_ends(operands, back);
    record_each(operands, count, back);
}

// The lines of a group's first and last byte are all that it touches, and of different sets: nobody
// sees in which order. Only if one of them has to be recorded, the order matters: then it goes on
// behind this.
void MissReferences::use_ends(const Operands& operands, std::uint64_t back) {
    if (spec_.data.sets == 1) return;
    const unsigned line = operands.a;
    const auto place = static_cast<std::uint8_t>(operands.b);
    std::array<std::uint64_t, 2> elsewhere{};
    PlannedReference end = first_of(operands.item);
    for (const bool last : {false, true}) {
        end.offset = last ? operands.item.high - 1 : operands.item.low;
        load_operand_address(cold_, operands, end, operands.item.flags_live);
        cold_.registers(kStore, place, line, false);
        cold_.group1(kAnd, line, -line_bytes(), true);
        cold_.group1(kAnd, place, data_set_mask(spec_.data), false);
        cold_.with_context(kCompareMemory, line, kTag, true, place);
        const std::uint64_t most_recent = cold_.short_jump_if(kEqual);
        cold_.with_context(kStore, line, kTag, true, place);
        elsewhere[last] = look_up(line, place);
        note_use(line, place);
        cold_.patch_short(most_recent);
    }
    cold_.jump(back);
    for (const std::uint64_t jump : elsewhere) cold_.patch(jump, cold_.address);
}

}  // namespace

std::unique_ptr<DataReferences> miss_references(UnitWriter& writer) {
    return std::make_unique<MissReferences>(writer);
}

}  // namespace assay::native
