#include "framework/driver/native/translate/miss_references.h"

#include "framework/driver/native/translate/filtered_references.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace assay::native {
namespace {

constexpr std::size_t kSampledPart = 64;  // one of so many records
constexpr unsigned kFewMisses = 128;      // sampled misses; fewer do not justify a translation
// A mispredicted branch costs about 20 cycles. A check without a branch costs about 3 more.
constexpr std::uint64_t kOften = 8;  // one of so many executions
// One more record costs the collector half as much. The collector has more to do than the driver.
constexpr std::uint64_t kOftenNew = 2;  // for runs: one of so many references

}  // namespace

// All sites of an operand leave out references, or no site does. They are counted together.
std::uint32_t MissSampler::counted_as(std::uint32_t site) const {
    return trace_.spec().data.runs() ? trace_.run_of_site(site) : site;
}

std::span<const std::uint32_t> MissSampler::sample(std::span<const trace_record_t> buffer) {
    found_.clear();
    const std::size_t most =
        std::max<std::size_t>(trace_.next_site(), trace_.run_count() + std::size_t{1});
    if (misses_.size() < most) misses_.resize(most);
    if (trace_.spec().data.runs()) references_.resize(misses_.size());
    for (const trace_record_t& record : buffer.first(buffer.size() / kSampledPart)) {
        const std::uint32_t which = counted_as(record.site);
        std::uint16_t& misses = misses_[which];
        if (misses == std::numeric_limits<std::uint16_t>::max()) continue;
        ++misses;
        if (trace_.spec().data.runs()) references_[which] += record.aux + 1U;
        if (misses >= kFewMisses && std::has_single_bit(misses) && misses_often(record.site))
            find_all(record.site);
    }
    return found_;
}

void MissSampler::find_all(std::uint32_t site) {
    if (!trace_.spec().data.runs()) return found_.push_back(site);
    const std::uint32_t run = trace_.run_of_site(site);
    for (std::uint32_t other = 0; other < trace_.next_site(); ++other)
        if (trace_.run_of_site(other) == run) found_.push_back(other);
}

bool MissSampler::misses_often(std::uint32_t site) const {
    const std::uint32_t which = counted_as(site);
    if (which >= misses_.size() || misses_[which] < kFewMisses) return false;
    if (trace_.spec().data.runs()) return misses_[which] * kOftenNew > references_[which];
    const std::uint64_t often = trace_.is_data(site) ? kOften : kOftenNew;
    return misses_[which] * kSampledPart * often > trace_.executions(site);
}

// Begins with the check of filtered references. If the line is not the most recent one of its set,
// cold code looks for it in the thread's first level of caches (FirstLevel). The line is nearly
// always where it was last, and the code then stores its use. A stub handles all other cases.

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

// Loads the last place of the line in register `line` into `place`. Jumps if the line left it.
std::uint64_t MissReferences::look_up(unsigned line, unsigned place) {
    // The low bits of the line's number, times kPlaceBytes.
    const auto shift = static_cast<unsigned>(std::countr_zero(spec_.data.line_bytes / kPlaceBytes));
    cold_.registers(kStore, place, line, false);
    cold_.shift_right(place, shift);
    cold_.group1(kAnd, place, (FirstLevel::kPlaces - 1) * kPlaceBytes, false);
    cold_.load_context_word(place, kDataPlacesInContext, static_cast<std::uint8_t>(place));
    return look_at_place(line, place);
}

// Jumps if the line in register `line` is not at the offset in `place`.
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

// The group touches only the lines of its first and last byte. These are of different sets, so
// their order does not matter if both are in the cache. Otherwise the order matters, and the code
// after this one handles them.
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

// The filter also has the touched bytes of the most recent line of each set. A group touches no
// more than its first reference.

namespace {

// True for a small power of two: an address that is a multiple of it does not straddle lines.
bool is_aligned_size(std::uint32_t bytes) {
    return (bytes & (bytes - 1)) == 0 && bytes <= kMostAlignedBytes;
}

// The footprint of the first `bytes` bytes of a 64-byte line.
std::uint64_t bits_of(std::uint32_t bytes) {
    return bytes < 64 ? (std::uint64_t{1} << bytes) - 1 : ~std::uint64_t{0};
}

class FootprintReferences final : public LineReferences {
  public:
    using LineReferences::LineReferences;

  private:
    void constant_hit(const Operands& operands, std::size_t entry) override;
    void constant_miss(const Operands& operands, std::size_t /*entry*/,
                       std::uint64_t back) override {
        record_each(operands, 1, back);
    }
    void computed(Operands& operands) override;
    std::uint64_t check(const Operands& operands, bool aligned);
    void record_miss(Operands operands, bool may_be_misaligned, std::uint64_t back);
};

void FootprintReferences::constant_hit(const Operands& operands, std::size_t entry) {
    const std::uint64_t address = constant_address(operands);
    hot_.load_address(operands.a, bits_of(first_of(operands.item).bytes)
                                      << (address - line_of(address)));
    hot_.with_context(kOrInMemory, operands.a, entry - kTag + kTouched);
}

void FootprintReferences::computed(Operands& operands) {
    const Item& item = operands.item;
    GprMask exclude = address_registers(operands.form);
    if (item.flags_live) exclude |= bit(RAX);
    for (unsigned* const reg : {&operands.a, &operands.b, &operands.c}) {
        *reg = scratch_.acquire(exclude, item.position);
        exclude |= bit(*reg);
    }
    const bool aligned = is_aligned_size(first_of(item).bytes);
    load_first_address(hot_, operands, false);
    const bool rax_free = scratch_.is_free(RAX);
    const KeptFlags flags(hot_, item.flags_live, rax_free);
    const std::uint64_t straddles = check(operands, aligned);
    const std::uint64_t differs = hot_.jump_if(kNotEqual, hot_.address);
    hot_.with_context(kOrInMemory, operands.c, kTouched, true,
                      static_cast<std::uint8_t>(operands.b));
    const std::uint64_t back = hot_.address;
    flags.restore(hot_);

    hot_.patch(differs, cold_.address);
    record_miss(operands, aligned, back);
    if (straddles == 0) return;
    hot_.patch(straddles, cold_.address);
    record_each(operands, 1, back);
}

// Compares the line with the most recent one of its set, and loads the place of the set's entry
// into `b`. `a` gets the line's address, with the bits that must be 0 if the reference is
// `aligned`. `c` gets the touched bytes. Returns the jump for a reference in two lines.
std::uint64_t FootprintReferences::check(const Operands& operands, bool aligned) {
    const unsigned a = operands.a, b = operands.b, c = operands.c;
    const auto line = static_cast<std::int32_t>(spec_.data.line_bytes);
    const auto bytes = static_cast<std::int32_t>(first_of(operands.item).bytes);
    std::uint64_t straddles = 0;
    if (!aligned) {
        hot_.registers(kStore, b, a, false);
        hot_.group1(kAnd, b, line - 1, false);
        hot_.group1(kCompare, b, line - bytes, false);
        straddles = hot_.jump_if(kAbove, hot_.address);
    }
    hot_.load_address(c, bits_of(static_cast<std::uint32_t>(bytes)));
    hot_.shift_left(c, c, a);
    hot_.registers(kStore, b, a, false);
    hot_.group1(kAnd, b, data_set_mask(spec_.data), false);
    hot_.group1(kAnd, a, aligned ? -line | (bytes - 1) : -line, true);
    hot_.with_context(kCompareMemory, a, kTag, true, static_cast<std::uint8_t>(b));
    return straddles;
}

// Writes two records: the footprint of the line that is no longer the most recent one, and the
// reference. The second one is begun first: if it has no room, the buffer keeps the footprint.
void FootprintReferences::record_miss(Operands operands, bool may_be_misaligned,
                                      std::uint64_t back) {
    const unsigned a = operands.a;
    const auto entry = static_cast<std::uint8_t>(operands.b);
    const std::uint32_t bytes = first_of(operands.item).bytes;
    std::uint64_t misaligned = 0;
    if (may_be_misaligned && bytes != 1) {
        cold_.test_bits(a, bytes - 1);
        misaligned = cold_.jump_if(kNotEqual, cold_.address);
    }
    cold_.with_context(kStore, a, kTag, true, entry);
    Operands spare = operands;
    spare.b = operands.c;  // for the address
    load_first_address(cold_, spare, operands.item.flags_live);
    const bool cached = scratch_.cached_cursor() != kNoGpr;
    const auto cursor = static_cast<std::uint8_t>(cached ? scratch_.cached_cursor() : operands.c);
    if (!cached) cold_.load_context(cursor, kCursorOffset);
    const auto append = [&](std::int32_t at, std::uint32_t site) {
        cold_.with_memory(kStore, a, Address{cursor, kNoGpr, 1, at});
        cold_.with_memory(kStoreConstant, 0, Address{cursor, kNoGpr, 1, at + 8});
        cold_.u32(site);
    };
    append(kRecordBytes, operands.site);
    cold_.with_context(kLoad, a, kTouched, true, entry);
    append(0, operands.site - 1);
    cold_.with_memory(kStore, entry, Address{cursor, kNoGpr, 1, 12}, false);
    cold_.prefetch_for_write(Address{cursor, kNoGpr, 1, kPrefetched});
    cold_.with_context(kStoreConstant, 0, kTouched, true, entry);
    cold_.u32(0);
    cold_.lea(cursor, Address{cursor, kNoGpr, 1, 2 * kRecordBytes});
    if (!cached) cold_.store_context(kCursorOffset, cursor);
    cold_.jump(back);
    if (misaligned == 0) return;
    cold_.patch(misaligned, cold_.address);
    record_each(operands, 1, back);
}

}  // namespace

std::unique_ptr<DataReferences> footprint_references(UnitWriter& writer) {
    return std::make_unique<FootprintReferences>(writer);
}

}  // namespace assay::native
