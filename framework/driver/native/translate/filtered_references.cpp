#include "framework/driver/native/translate/filtered_references.h"

namespace assay::native {

void LineReferences::constant(Operands& operands) {
    const Item& item = operands.item;
    operands.a = scratch_.acquire(item.flags_live ? bit(RAX) : GprMask{0}, item.position);
    const std::uint64_t line = line_of(constant_address(operands));
    const std::size_t set = line & static_cast<std::uint64_t>(data_set_mask(spec_.data));
    const std::size_t entry = kTag + set;
    const bool straddles = line_of(static_cast<std::uint64_t>(item.high) - 1) != line;
    const bool rax_free = scratch_.is_free(RAX) && operands.a != RAX;
    const KeptFlags flags(hot_, item.flags_live, rax_free);
    std::uint64_t differs = 0;
    if (straddles) {
        differs = hot_.jump(hot_.address);
    } else {
        hot_.load_address(operands.a, line);
        hot_.with_context(kCompareMemory, operands.a, tag_of(operands) + set);
        differs = hot_.jump_if(kNotEqual, hot_.address);
        constant_hit(operands, entry);
    }
    const std::uint64_t back = hot_.address;
    flags.restore(hot_);
    hot_.patch(differs, cold_.address);
    if (straddles)
        record_each(operands, 1, back);
    else
        constant_miss(operands, entry, back);
}

void FilteredReferences::constant_miss(const Operands& operands, std::size_t entry,
                                       std::uint64_t back) {
    cold_.with_thread(kStore, operands.a, entry);
    if (is_first_write(operands))
        cold_.with_thread(kStore, operands.a, entry + kWrittenTag - kTag);
    else if (spec_.data.first_writes())
        forget_write(entry + kWrittenTag - kTag);
    writer_.record_constant(constant_address(operands), operands.site, operands.a);
    cold_.jump(back);
}

void FilteredReferences::forget_write(std::size_t entry) {
    cold_.with_thread(kStoreConstant, 0, entry, true, sizeof(std::uint32_t));
    cold_.u32(0);
}

void FilteredReferences::computed(Operands& operands) {
    const Item& item = operands.item;
    GprMask exclude = address_registers(operands.form);
    if (item.flags_live) exclude |= bit(RAX);
    const bool appends =
        item.series_count == 0 && !spec_.data.first_writes() && is_often_missed(operands.site);
    if (appends) operands.cursor = scratch_.cursor(exclude, item.position);
    operands.a = scratch_.acquire(exclude, item.position);
    operands.b = scratch_.acquire(static_cast<GprMask>(exclude | bit(operands.a)), item.position);
    if (appends && item.reference_count == 1 && first_of(item).bytes > kMostAlignedBytes)
        operands.next = scratch_.acquire(
            static_cast<GprMask>(exclude | bit(operands.a) | bit(operands.b)), item.position);
    if (item.series_count != 0)
        check_series(operands);
    else if (appends)
        append_if_new(operands);
    else
        branch_if_new(operands);
}

void FilteredReferences::append_if_new(const Operands& operands) {
    const unsigned a = operands.a;
    const auto index = static_cast<std::uint8_t>(operands.b);
    const bool rax_free = scratch_.is_free(RAX);

    const PlannedReference& first = first_of(operands.item);
    if (operands.item.reference_count == 1 && first.bytes > kMostAlignedBytes)
        return append_if_either_new(operands);
    load_operand_address(hot_, operands, first, false);
    writer_.append(hot_, operands.cursor, a, operands.site);
    const KeptFlags flags(hot_, operands.item.flags_live, rax_free);
    const std::uint64_t straddles = load_line(operands, false);
    hot_.with_context(kCompareMemory, a, kTag, true, index);
    hot_.with_context(kStore, a, kTag, true, index);
    hot_.lea(a, Address{static_cast<std::uint8_t>(operands.cursor), kNoGpr, 1, kRecordBytes});
    hot_.move_if(kNotEqual, operands.cursor, a);
    const std::uint64_t back = hot_.address;
    flags.restore(hot_);
    if (straddles == 0) return;
    hot_.patch(straddles, cold_.address);
    record_two_lines(operands, operands.item.reference_count, back);
}

// A large reference often lies in two lines. This code has no branch for that case either.
void FilteredReferences::append_if_either_new(const Operands& operands) {
    const unsigned a = operands.a, cursor = operands.cursor;
    const auto index = static_cast<std::uint8_t>(operands.b);
    const auto line = static_cast<std::int32_t>(spec_.data.line_bytes);
    const bool rax_free = scratch_.is_free(RAX);
    const PlannedReference& first = first_of(operands.item);
    PlannedReference last = first;
    last.offset += first.bytes - 1;

    load_operand_address(hot_, operands, first, false);
    writer_.append(hot_, cursor, a, operands.site);
    hot_.lea(operands.next, Address{static_cast<std::uint8_t>(cursor), kNoGpr, 1, kRecordBytes});
    const KeptFlags flags(hot_, operands.item.flags_live, rax_free);
    for (const bool at_last : {false, true}) {
        if (at_last) load_operand_address(hot_, operands, last, operands.item.flags_live);
        hot_.registers(kStore, index, a, false);
        hot_.group1(kAnd, a, -line, true);
        hot_.group1(kAnd, index, data_set_mask(spec_.data), false);
        hot_.with_context(kCompareMemory, a, kTag, true, index);
        hot_.with_context(kStore, a, kTag, true, index);
        hot_.move_if(kNotEqual, cursor, operands.next);
    }
    flags.restore(hot_);
}

void FilteredReferences::branch_if_new(const Operands& operands) {
    const bool rax_free = scratch_.is_free(RAX);
    load_operand_address(hot_, operands, first_of(operands.item), false);
    const KeptFlags flags(hot_, operands.item.flags_live, rax_free);
    const std::uint64_t straddles = load_line(operands, true);
    hot_.with_context(kCompareMemory, operands.a, tag_of(operands), true,
                      static_cast<std::uint8_t>(operands.b));
    const std::uint64_t differs = hot_.jump_if(kNotEqual, hot_.address);
    const std::uint64_t back = hot_.address;
    flags.restore(hot_);

    hot_.patch(differs, cold_.address);
    record_miss(operands, straddles == 0, back);
    if (straddles == 0) return;
    hot_.patch(straddles, cold_.address);
    record_two_lines(operands, operands.item.reference_count, back);
}

// Checks the group's first and last byte, at most a line apart. Returns the jumps of `code` that
// are taken if one of them is not in the most recent line of its set. Changes `a` and `b`.
std::array<std::uint64_t, 2> FilteredReferences::check_ends(Assembler& code,
                                                            const Operands& operands) {
    const unsigned a = operands.a;
    const auto index = static_cast<std::uint8_t>(operands.b);
    const auto line = static_cast<std::int32_t>(spec_.data.line_bytes);
    PlannedReference end = first_of(operands.item);
    std::array<std::uint64_t, 2> differs{};
    for (const bool last : {false, true}) {
        end.offset = last ? operands.item.high - 1 : operands.item.low;
        load_operand_address(code, operands, end, operands.item.flags_live);
        code.registers(kStore, index, a, false);
        code.group1(kAnd, a, -line, true);
        code.group1(kAnd, index, data_set_mask(spec_.data), false);
        code.with_context(kCompareMemory, a, tag_of(operands), true, index);
        differs[last] = code.jump_if(kNotEqual, code.address);
    }
    return differs;
}

void FilteredReferences::check_series(const Operands& operands) {
    const Item& item = operands.item;
    const bool rax_free = scratch_.is_free(RAX);
    const KeptFlags flags(hot_, item.flags_live, rax_free);
    const auto differs = check_ends(hot_, operands);
    const std::uint64_t back = hot_.address;
    flags.restore(hot_);

    for (const std::uint64_t jump : differs) hot_.patch(jump, cold_.address);
    record_series(operands, back);
}

void FilteredReferences::record_series(const Operands& operands, std::uint64_t back) {
    const Item& item = operands.item;
    const PlannedReference* const series = &plan_.references[item.first_reference];
    const std::int64_t distance = series[item.series_count - 1].offset - series->offset;
    load_operand_address(cold_, operands, *series, item.flags_live);
    writer_.call_stub(cache_.series_stub(scratch_.cached_cursor()), [&] {
        cold_.push_constant(static_cast<std::uint32_t>(distance));
        cold_.push_constant(operands.site);
        cold_.push(operands.a);
    });
    cold_.jump(back);
}

// Jumps if the group may lie in two lines. Loads the address into `a`, without the bits that the
// filter ignores, and its set into `b`. Returns the address of the jump, or 0 if it is not needed.
std::uint64_t FilteredReferences::load_line(const Operands& operands, bool compares_alignment) {
    const unsigned a = operands.a, b = operands.b;
    const auto line = static_cast<std::int32_t>(spec_.data.line_bytes);
    const Item& item = operands.item;
    const std::int64_t below = plan_.references[item.first_reference].offset - item.low;
    const auto span = static_cast<std::int32_t>(item.high - item.low);
    // An address that is a multiple of the size does not straddle lines. Vectors often are not
    // aligned.
    const bool aligned = below == 0 && (span & (span - 1)) == 0 && span <= kMostAlignedBytes &&
                         (item.reference_count == 1 || span == 1);
    std::uint64_t straddles = 0;
    if (!aligned) {
        hot_.lea(
            b, Address{static_cast<std::uint8_t>(a), kNoGpr, 1, static_cast<std::int32_t>(-below)},
            false);
        hot_.group1(kAnd, b, line - 1, false);
        hot_.group1(kCompare, b, line - span, false);
        straddles = hot_.jump_if(kAbove, hot_.address);
    }
    hot_.registers(kStore, b, a, false);
    hot_.group1(kAnd, a, aligned ? -line | (span - 1) : -line, true);
    hot_.group1(kAnd, b, data_set_mask(spec_.data), false);
    if (aligned && span != 1 && !compares_alignment) {
        hot_.test_bits(a, static_cast<std::uint32_t>(span - 1));
        straddles = hot_.jump_if(kNotEqual, hot_.address);
    }
    return straddles;
}

// A vector often lies in two lines, and often both are the most recent ones of their sets. It then
// needs no record.
void FilteredReferences::record_two_lines(const Operands& operands, unsigned count,
                                          std::uint64_t back) {
    if (operands.item.high - operands.item.low <= kMostAlignedBytes)
        return record_each(operands, count, back);
    const auto differs = check_ends(cold_, operands);
    cold_.jump(back);
    for (const std::uint64_t jump : differs) cold_.patch(jump, cold_.address);
    record_each(operands, count, back);
}

void FilteredReferences::record_miss(const Operands& operands, bool may_be_misaligned,
                                     std::uint64_t back) {
    const PlannedReference& first = first_of(operands.item);
    if (records_inline() || spec_.data.first_writes())
        return record_miss_inline(operands, may_be_misaligned, back);
    load_operand_address(cold_, operands, first, operands.item.flags_live);
    writer_.call_stub(cache_.miss_stub(operands.a, operands.b, may_be_misaligned ? first.bytes : 1),
                      [&] { cold_.push_constant(operands.site); });
    cold_.jump(back);
}

// For units that have turned out to make many records.
void FilteredReferences::record_miss_inline(const Operands& operands, bool may_be_misaligned,
                                            std::uint64_t back) {
    const unsigned a = operands.a;
    const PlannedReference& first = first_of(operands.item);
    std::uint64_t misaligned = 0;
    if (may_be_misaligned && first.bytes != 1) {
        cold_.test_bits(a, first.bytes - 1);
        misaligned = cold_.short_jump_if(kNotEqual);
    }
    const auto index = static_cast<std::uint8_t>(operands.b);
    cold_.with_context(kStore, a, kTag, true, index);
    if (is_first_write(operands)) {
        cold_.with_context(kStore, a, kWrittenTag, true, index);
    } else if (spec_.data.first_writes()) {
        cold_.with_context(kStoreConstant, 0, kWrittenTag, true, index);
        cold_.u32(0);
    }
    const bool cached = scratch_.cached_cursor() != kNoGpr;
    const unsigned cursor = cached ? unsigned{scratch_.cached_cursor()} : operands.b;
    load_operand_address(cold_, operands, first, operands.item.flags_live);
    if (!cached) cold_.load_context(cursor, kCursorOffset);
    writer_.append(cold_, cursor, a, operands.site);
    cold_.lea(cursor, Address{static_cast<std::uint8_t>(cursor), kNoGpr, 1, kRecordBytes});
    if (!cached) cold_.store_context(kCursorOffset, cursor);
    cold_.jump(back);
    if (misaligned == 0) return;
    cold_.patch_short(misaligned);
    record_two_lines(operands, 1, back);
}

std::unique_ptr<DataReferences> filtered_references(UnitWriter& writer) {
    return std::make_unique<FilteredReferences>(writer);
}

}  // namespace assay::native
