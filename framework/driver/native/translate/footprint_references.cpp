// Besides the most recent line of each set, the filter has the bytes of it that were touched. The
// members of a group touch no more than the first of it, here and where an address is constant.
#include "framework/driver/native/translate/line_references.h"

namespace assay::native {
namespace {

// Of a power of two: an address that is a multiple of it does not straddle.
bool is_aligned_size(std::uint32_t bytes) {
    return (bytes & (bytes - 1)) == 0 && bytes <= kMostAlignedBytes;
}

// A footprint of the first bytes of a line of 64.
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

// Compares the line with the most recent of its set, whose entry's place goes to `b`. Then `a` is
// the line, with the bits in it that must not be set if the reference is `aligned`, and `c` has the
// bytes touched. Returns where the jump is if the reference lies in two lines.
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

// Two records: which bytes were touched of the line that is the most recent no more, and the
// reference. That one is begun first; where it finds no room, the buffer takes the bytes with it.
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
