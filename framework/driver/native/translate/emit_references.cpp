// Instrumentation of data references.
//
// A filter is a table with the most recently referenced line of each set. A reference to that
// line needs no record: a cache simulation with at least that many sets would find it in the
// most recent way and change nothing. Everything else is appended to the trace buffer.
//
//   data_filter[address & set_mask]   address of the line, or anything that no line's address is
//   footprints[address & set_mask]    with Spec::footprints, in the thread's slot: the bytes of
//                                     the line that were touched by what was not recorded
//
// Two ways to check a data reference:
//   branch        compare and branch to cold code, which appends the record
//   no branch     the record is always written, and the cursor moves on only if the line is a
//                 new one; for references that miss so often that the branch would be mispredicted
// All begin with the branch; MissSampler finds those that had better have none.
//
// The end of the buffer is a page that cannot be written: the store that begins a record faults
// there, and the handler puts the start of the next buffer into the register it used.
#include "framework/driver/native/emit/record_stubs.h"
#include "framework/driver/native/translate/data_filter.h"
#include "framework/driver/native/translate/emitter.h"

#include <algorithm>

namespace assay::native {

std::uint32_t Emitter::new_site(unsigned instr, unsigned bytes, unsigned kind, unsigned operand) {
    if (trace_) trace_->add_site(global_instr(instr), bytes, kind, operand);
    return next_site_++;
}

std::uint32_t Emitter::new_sites(const Item& item) {
    // Right before that of the reference: the stub and Recorder rely on it.
    if (spec_.footprints)
        new_site(plan_.references[item.first_reference].instr, 0, TRACE_SITE_FOOTPRINT, 0);
    const std::uint32_t first = next_site_;
    for (unsigned i = 0; i < item.reference_count; ++i) {
        const PlannedReference& reference = plan_.references[item.first_reference + i];
        const MemoryReference& whole = plan_.form_of(reference);
        if (reference.number == PlannedReference::kCode)
            new_site(reference.instr, reference.bytes, TRACE_SITE_CODE, 0);
        else
            new_site(reference.instr, whole.bytes, whole.kind, reference.number);
    }
    return first;
}

// lahf and seto keep CF PF AF ZF SF OF in ah and al.
void Emitter::emit_append(Assembler& code, unsigned cursor, unsigned value, std::uint32_t site,
                          std::uint32_t aux) {
    const auto base = static_cast<std::uint8_t>(cursor);
    code.with_memory(kStore, value, Address{base, kNoGpr, 1, 0});
    // Sign-extended to 64 bits: sites are below 2^31.
    code.with_memory(kStoreConstant, 0, Address{base, kNoGpr, 1, 8});
    code.u32(site);
    if (aux != 0) {
        code.with_memory(kStoreConstant, 0, Address{base, kNoGpr, 1, 12}, false);
        code.u32(aux);
    }
    code.prefetch_for_write(Address{base, kNoGpr, 1, kPrefetched});
}

// Calls a stub of CodeCache with what `push_arguments` pushes, on its own stack. Moves only.
template <typename PushArguments>
void Emitter::call_stub(std::uint64_t stub, const PushArguments& push_arguments) {
    cold_.with_thread(kStore, RSP, offsetof(Context, target_sp));
    cold_.with_thread(kLoad, RSP, offsetof(Context, stub_sp));
    push_arguments();
    cold_.call(stub);
    cold_.with_thread(kLoad, RSP, offsetof(Context, target_sp));
}

// Each of the group's first `count` references by itself, by calls of the record stub.
void Emitter::emit_cold_references(const Operands& operands, unsigned count, std::uint64_t back) {
    for (unsigned i = 0; i < count; ++i) {
        const PlannedReference& reference = plan_.references[operands.item.first_reference + i];
        if (is_constant(operands.form))
            cold_.load_address(operands.a, static_cast<std::uint64_t>(reference.offset));
        else
            emit_address(cold_, operands, reference, operands.item.flags_live);
        call_stub(cache_.reference_stub(scratch_.cached_cursor()), [&] {
            cold_.push_constant(reference.bytes);
            cold_.push_constant(operands.site + i);
            cold_.push(operands.a);
        });
    }
    cold_.jump(back);
}

// The group's first `count` references, which may lie in two lines. Those of a vector often do, and
// often both lines are the most recent of their sets: then none is recorded.
void Emitter::emit_two_lines(const Operands& operands, unsigned count, std::uint64_t back) {
    if (operands.item.high - operands.item.low <= kMostAlignedBytes)
        return emit_cold_references(operands, count, back);
    const auto differs = emit_ends_check(cold_, operands);
    cold_.jump(back);
    for (const std::uint64_t jump : differs) cold_.patch(jump, cold_.address);
    emit_cold_references(operands, count, back);
}

// --- Data references.

void Emitter::emit_data(const Item& item) {
    const PlannedReference& first = plan_.references[item.first_reference];
    const MemoryReference& form = plan_.form_of(first);
    Operands operands{item, form, new_sites(item)};
    // What a check before has borrowed may be part of this address.
    if (!is_constant(form)) scratch_.give_back(address_registers(form));
    if (spec_.runs) return emit_run(operands);
    if (is_constant(form)) return emit_constant_reference(operands);
    if (spec_.footprints) return emit_footprint(operands);

    GprMask exclude = address_registers(form);
    if (item.flags_live) exclude |= bit(RAX);
    const bool appends =
        spec_.data.sets == 0 ||
        (item.series_count == 0 && std::find(often_missed_.begin(), often_missed_.end(),
                                             operands.site) != often_missed_.end());
    if (appends) operands.cursor = scratch_.cursor(exclude, item.position);
    operands.a = scratch_.acquire(exclude, item.position);
    operands.b = scratch_.acquire(static_cast<GprMask>(exclude | bit(operands.a)), item.position);
    if (appends && item.reference_count == 1 && first.bytes > kMostAlignedBytes)
        operands.next = scratch_.acquire(
            static_cast<GprMask>(exclude | bit(operands.a) | bit(operands.b)), item.position);
    if (spec_.data.sets == 0)
        emit_unfiltered_reference(operands);
    else if (item.series_count != 0)
        emit_series(operands);
    else if (appends)
        emit_append_if_new(operands);
    else
        emit_branch_if_new(operands);
}

// `flags_saved`: rax has them.
void Emitter::emit_address(Assembler& code, const Operands& operands,
                           const PlannedReference& reference, bool flags_saved) {
    const MemoryReference& form = operands.form;
    MemoryReference address = form;
    if (flags_saved && (address.base == RAX || address.index == RAX)) {
        code.load_context(operands.a, offsetof(Context, flags_rax));
        if (address.base == RAX) address.base = static_cast<std::uint8_t>(operands.a);
        if (address.index == RAX) address.index = static_cast<std::uint8_t>(operands.a);
    }
    code.load_offset(operands.a, address, reference.offset);
    // Not add: the flags may be live here.
    if (form.segment != Segment::kFlat) {
        code.load_context(operands.b, segment_base_offset(form.segment));
        code.lea(operands.a, Address{static_cast<std::uint8_t>(operands.a),
                                     static_cast<std::uint8_t>(operands.b), 1, 0});
    }
}

void Emitter::emit_unfiltered_reference(const Operands& operands) {
    emit_address(hot_, operands, plan_.references[operands.item.first_reference], false);
    emit_append(hot_, operands.cursor, operands.a, operands.site);
    hot_.lea(operands.cursor,
             Address{static_cast<std::uint8_t>(operands.cursor), kNoGpr, 1, kRecordBytes});
}

// Jumps if the group may be in two lines. Leaves the address in `a` with those bits cleared that
// do not matter to the filter, and its set in `b`. Returns where the jump is, 0 if none is needed.
std::uint64_t Emitter::emit_line(const Operands& operands, bool compares_alignment) {
    const unsigned a = operands.a, b = operands.b;
    const auto line = static_cast<std::int32_t>(spec_.data.line_bytes);
    const Item& item = operands.item;
    const std::int64_t below = plan_.references[item.first_reference].offset - item.low;
    const auto span = static_cast<std::int32_t>(item.high - item.low);
    // An address that is a multiple of the size does not straddle. Vectors often are not.
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
    hot_.registers(0x89, b, a, false);
    hot_.group1(kAnd, a, aligned ? -line | (span - 1) : -line, true);
    hot_.group1(kAnd, b, data_set_mask(spec_.data), false);
    if (aligned && span != 1 && !compares_alignment) {
        hot_.test_bits(a, static_cast<std::uint32_t>(span - 1));
        straddles = hot_.jump_if(kNotEqual, hot_.address);
    }
    return straddles;
}

void Emitter::emit_append_if_new(const Operands& operands) {
    const unsigned a = operands.a;
    const auto index = static_cast<std::uint8_t>(operands.b);
    const bool rax_free = scratch_.is_free(RAX);

    const PlannedReference& first = plan_.references[operands.item.first_reference];
    if (operands.item.reference_count == 1 && first.bytes > kMostAlignedBytes)
        return emit_append_if_either_new(operands);
    emit_address(hot_, operands, first, false);
    emit_append(hot_, operands.cursor, a, operands.site);
    if (operands.item.flags_live) save_flags(hot_, rax_free);
    const std::uint64_t straddles = emit_line(operands, false);
    hot_.with_context(kCompareMemory, a, kTag, true, index);
    hot_.with_context(kStore, a, kTag, true, index);
    hot_.lea(a, Address{static_cast<std::uint8_t>(operands.cursor), kNoGpr, 1, kRecordBytes});
    hot_.move_if(kNotEqual, operands.cursor, a);
    const std::uint64_t back = hot_.address;
    if (operands.item.flags_live) restore_flags(hot_, rax_free);
    if (straddles == 0) return;
    hot_.patch(straddles, cold_.address);
    emit_two_lines(operands, operands.item.reference_count, back);
}

// A large reference, which often is in two lines, without a branch on that either.
void Emitter::emit_append_if_either_new(const Operands& operands) {
    const unsigned a = operands.a, cursor = operands.cursor;
    const auto index = static_cast<std::uint8_t>(operands.b);
    const auto line = static_cast<std::int32_t>(spec_.data.line_bytes);
    const bool rax_free = scratch_.is_free(RAX);
    const PlannedReference& first = plan_.references[operands.item.first_reference];
    PlannedReference last = first;
    last.offset += first.bytes - 1;

    emit_address(hot_, operands, first, false);
    emit_append(hot_, cursor, a, operands.site);
    hot_.lea(operands.next, Address{static_cast<std::uint8_t>(cursor), kNoGpr, 1, kRecordBytes});
    if (operands.item.flags_live) save_flags(hot_, rax_free);
    for (const bool at_last : {false, true}) {
        if (at_last) emit_address(hot_, operands, last, operands.item.flags_live);
        hot_.registers(0x89, index, a, false);
        hot_.group1(kAnd, a, -line, true);
        hot_.group1(kAnd, index, data_set_mask(spec_.data), false);
        hot_.with_context(kCompareMemory, a, kTag, true, index);
        hot_.with_context(kStore, a, kTag, true, index);
        hot_.move_if(kNotEqual, cursor, operands.next);
    }
    if (operands.item.flags_live) restore_flags(hot_, rax_free);
}

void Emitter::emit_branch_if_new(const Operands& operands) {
    const bool rax_free = scratch_.is_free(RAX);
    emit_address(hot_, operands, plan_.references[operands.item.first_reference], false);
    if (operands.item.flags_live) save_flags(hot_, rax_free);
    const std::uint64_t straddles = emit_line(operands, true);
    hot_.with_context(kCompareMemory, operands.a, kTag, true,
                      static_cast<std::uint8_t>(operands.b));
    const std::uint64_t differs = hot_.jump_if(kNotEqual, hot_.address);
    const std::uint64_t back = hot_.address;
    if (operands.item.flags_live) restore_flags(hot_, rax_free);

    hot_.patch(differs, cold_.address);
    emit_miss(operands, straddles == 0, back);
    if (straddles == 0) return;
    hot_.patch(straddles, cold_.address);
    emit_two_lines(operands, operands.item.reference_count, back);
}

// Jumps of `code` that are taken if what is between the group's first byte and its last, no more
// than a line, is not in the most recent lines of their sets. Changes `a` and `b`.
std::array<std::uint64_t, 2> Emitter::emit_ends_check(Assembler& code, const Operands& operands) {
    const unsigned a = operands.a;
    const auto index = static_cast<std::uint8_t>(operands.b);
    const auto line = static_cast<std::int32_t>(spec_.data.line_bytes);
    PlannedReference end = plan_.references[operands.item.first_reference];
    std::array<std::uint64_t, 2> differs{};
    for (const bool last : {false, true}) {
        end.offset = last ? operands.item.high - 1 : operands.item.low;
        emit_address(code, operands, end, operands.item.flags_live);
        code.registers(0x89, index, a, false);
        code.group1(kAnd, a, -line, true);
        code.group1(kAnd, index, data_set_mask(spec_.data), false);
        code.with_context(kCompareMemory, a, kTag, true, index);
        differs[last] = code.jump_if(kNotEqual, code.address);
    }
    return differs;
}

void Emitter::emit_series(const Operands& operands) {
    const Item& item = operands.item;
    const PlannedReference* const series = &plan_.references[item.first_reference];
    const bool rax_free = scratch_.is_free(RAX);
    if (item.flags_live) save_flags(hot_, rax_free);
    const auto differs = emit_ends_check(hot_, operands);
    const std::uint64_t back = hot_.address;
    if (item.flags_live) restore_flags(hot_, rax_free);

    for (const std::uint64_t jump : differs) hot_.patch(jump, cold_.address);
    const std::int64_t distance = series[item.series_count - 1].offset - series->offset;
    emit_address(cold_, operands, *series, item.flags_live);
    call_stub(cache_.series_stub(scratch_.cached_cursor()), [&] {
        cold_.push_constant(static_cast<std::uint32_t>(distance));
        cold_.push_constant(operands.site);
        cold_.push(operands.a);
    });
    cold_.jump(back);
}

// `a` holds a line that is not the most recent, or, if that `may_be_misaligned`, an address in it
// whose reference may lie in two.
void Emitter::emit_miss(const Operands& operands, bool may_be_misaligned, std::uint64_t back) {
    const PlannedReference& first = plan_.references[operands.item.first_reference];
    if (records_inline()) return emit_miss_inline(operands, may_be_misaligned, back);
    emit_address(cold_, operands, first, operands.item.flags_live);
    call_stub(cache_.miss_stub(operands.a, operands.b, may_be_misaligned ? first.bytes : 1),
              [&] { cold_.push_constant(operands.site); });
    cold_.jump(back);
}

// In units that have turned out to make many records.
void Emitter::emit_miss_inline(const Operands& operands, bool may_be_misaligned,
                               std::uint64_t back) {
    const unsigned a = operands.a;
    const PlannedReference& first = plan_.references[operands.item.first_reference];
    std::uint64_t misaligned = 0;
    if (may_be_misaligned && first.bytes != 1) {
        cold_.test_bits(a, first.bytes - 1);
        misaligned = cold_.short_jump_if(kNotEqual);
    }
    cold_.with_context(kStore, a, kTag, true, static_cast<std::uint8_t>(operands.b));
    const bool cached = scratch_.cached_cursor() != kNoGpr;
    const unsigned cursor = cached ? unsigned{scratch_.cached_cursor()} : operands.b;
    emit_address(cold_, operands, first, operands.item.flags_live);
    if (!cached) cold_.load_context(cursor, kCursorOffset);
    emit_append(cold_, cursor, a, operands.site);
    cold_.lea(cursor, Address{static_cast<std::uint8_t>(cursor), kNoGpr, 1, kRecordBytes});
    if (!cached) cold_.store_context(kCursorOffset, cursor);
    cold_.jump(back);
    if (misaligned == 0) return;
    cold_.patch_short(misaligned);
    emit_two_lines(operands, 1, back);
}

// Addresses known now: so is their set, and whether they straddle. Those of a group do not,
// unless it is of one.
void Emitter::emit_constant_reference(Operands& operands) {
    const Item& item = operands.item;
    const std::uint32_t line = spec_.data.line_bytes;
    const auto address = static_cast<std::uint64_t>(plan_.references[item.first_reference].offset);
    const GprMask exclude = item.flags_live ? bit(RAX) : GprMask{0};
    operands.a = scratch_.acquire(exclude, item.position);
    if (spec_.data.sets == 0) {
        const unsigned cursor =
            scratch_.cursor(static_cast<GprMask>(exclude | bit(operands.a)), item.position);
        hot_.load_address(operands.a, address);
        emit_append(hot_, cursor, operands.a, operands.site);
        hot_.lea(cursor, Address{static_cast<std::uint8_t>(cursor), kNoGpr, 1, kRecordBytes});
        return;
    }
    const std::uint64_t first = address & ~std::uint64_t{line - 1};
    const std::size_t entry =
        kTag + (first & static_cast<std::uint64_t>(data_set_mask(spec_.data)));
    const bool straddles =
        ((static_cast<std::uint64_t>(item.high) - 1) & ~std::uint64_t{line - 1}) != first;
    const bool rax_free = scratch_.is_free(RAX) && operands.a != RAX;
    if (item.flags_live) save_flags(hot_, rax_free);
    std::uint64_t differs = 0;
    if (straddles) {
        differs = hot_.jump(hot_.address);
    } else {
        hot_.load_address(operands.a, first);
        hot_.with_context(kCompareMemory, operands.a, entry);
        differs = hot_.jump_if(kNotEqual, hot_.address);
        if (spec_.footprints) {
            const std::uint32_t bytes = plan_.references[item.first_reference].bytes;
            hot_.load_address(operands.a, bits_of(bytes) << (address - first));
            hot_.with_context(kOrInMemory, operands.a, entry - kTag + kTouched);
        }
    }
    const std::uint64_t back = hot_.address;
    if (item.flags_live) restore_flags(hot_, rax_free);
    hot_.patch(differs, cold_.address);
    if (straddles || spec_.footprints) return emit_cold_references(operands, 1, back);
    cold_.with_thread(kStore, operands.a, entry);
    emit_constant_record(address, operands.site, operands.a);
    cold_.jump(back);
}

}  // namespace assay::native
