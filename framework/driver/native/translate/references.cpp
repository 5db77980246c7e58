#include "framework/driver/native/translate/references.h"

#include <algorithm>

namespace assay::native {

void DataReferences::emit(const Item& item) {
    const MemoryReference& form = plan_.form_of(first_of(item));
    Operands operands{item, form, new_sites(item)};
    // An earlier check may have borrowed a register of this address.
    if (!is_constant(form)) scratch_.give_back(address_registers(form));
    if (is_constant(form))
        constant(operands);
    else
        computed(operands);
}

bool DataReferences::is_write(const PlannedReference& reference) const {
    return reference.number != PlannedReference::kCode &&
           plan_.form_of(reference).kind != TRACE_SITE_READ;
}

bool DataReferences::is_often_missed(std::uint32_t site) const {
    const auto missed = writer_.often_missed;
    return std::find(missed.begin(), missed.end(), site) != missed.end();
}

std::uint32_t DataReferences::new_sites(const Item& item) {
    // Its site comes right before that of the reference. The stub and Recorder rely on this.
    if (spec_.data.footprints())
        writer_.new_site(plan_.references[item.first_reference].instr, 0, TRACE_SITE_FOOTPRINT, 0);
    const std::uint32_t first = writer_.next_site();
    for (unsigned i = 0; i < item.reference_count; ++i) {
        const PlannedReference& reference = plan_.references[item.first_reference + i];
        const MemoryReference& whole = plan_.form_of(reference);
        if (reference.number == PlannedReference::kCode)
            writer_.new_site(reference.instr, reference.bytes, TRACE_SITE_CODE, 0);
        else
            writer_.new_site(reference.instr, whole.bytes, whole.kind, reference.number);
    }
    return first;
}

// Records each of the group's first `count` references by a call of the record stub.
void DataReferences::record_each(const Operands& operands, unsigned count, std::uint64_t back) {
    for (unsigned i = 0; i < count; ++i) {
        const PlannedReference& reference = plan_.references[operands.item.first_reference + i];
        if (is_constant(operands.form))
            cold_.load_address(operands.a, static_cast<std::uint64_t>(reference.offset));
        else
            load_operand_address(cold_, operands, reference, operands.item.flags_live);
        writer_.call_stub(cache_.reference_stub(scratch_.cached_cursor()), [&] {
            cold_.push_constant(reference.bytes);
            cold_.push_constant(operands.site + i);
            cold_.push(operands.a);
        });
    }
    cold_.jump(back);
}

void DataReferences::load_operand_address(Assembler& code, const Operands& operands,
                                          const PlannedReference& reference, bool flags_saved) {
    const MemoryReference& form = operands.form;
    MemoryReference address = form;
    if (flags_saved && (address.base == RAX || address.index == RAX)) {
        code.load_context(operands.a, offsetof(Context, flags_rax));
        if (address.base == RAX) address.base = static_cast<std::uint8_t>(operands.a);
        if (address.index == RAX) address.index = static_cast<std::uint8_t>(operands.a);
    }
    code.load_offset(operands.a, address, reference.offset);
    // lea instead of add, because the flags may be live.
    if (form.segment != Segment::kFlat) {
        code.load_context(operands.b, segment_base_offset(form.segment));
        code.lea(operands.a, Address{static_cast<std::uint8_t>(operands.a),
                                     static_cast<std::uint8_t>(operands.b), 1, 0});
    }
}

void DataReferences::load_first_address(Assembler& code, const Operands& operands,
                                        bool flags_saved) {
    const PlannedReference& first = plan_.references[operands.item.first_reference];
    if (is_constant(operands.form))
        code.load_address(operands.a, static_cast<std::uint64_t>(first.offset));
    else
        load_operand_address(code, operands, first, flags_saved);
}

void DataReferences::append_always(const Operands& operands) {
    const auto cursor = static_cast<std::uint8_t>(operands.cursor);
    UnitWriter::append(hot_, cursor, operands.a, operands.site);
    hot_.lea(cursor, Address{cursor, kNoGpr, 1, kRecordBytes});
}

// --- Without a filter.

namespace {

class UnfilteredReferences final : public DataReferences {
  public:
    using DataReferences::DataReferences;

  private:
    void constant(Operands& operands) override {
        const Item& item = operands.item;
        const GprMask exclude = item.flags_live ? bit(RAX) : GprMask{0};
        operands.a = scratch_.acquire(exclude, item.position);
        operands.cursor =
            scratch_.cursor(static_cast<GprMask>(exclude | bit(operands.a)), item.position);
        load_first_address(hot_, operands, false);
        append_always(operands);
    }
    void computed(Operands& operands) override {
        const Item& item = operands.item;
        GprMask exclude = address_registers(operands.form);
        if (item.flags_live) exclude |= bit(RAX);
        operands.cursor = scratch_.cursor(exclude, item.position);
        operands.a = scratch_.acquire(exclude, item.position);
        if (operands.form.segment != Segment::kFlat)
            operands.b =
                scratch_.acquire(static_cast<GprMask>(exclude | bit(operands.a)), item.position);
        load_first_address(hot_, operands, false);
        append_always(operands);
    }
};

}  // namespace

std::unique_ptr<DataReferences> unfiltered_references(UnitWriter& writer) {
    return std::make_unique<UnfilteredReferences>(writer);
}

std::unique_ptr<DataReferences> data_references(UnitWriter& writer) {
    const trace::Spec& spec = writer.spec;
    if (spec.data.runs()) return run_references(writer);
    if (spec.data.sets == 0) return unfiltered_references(writer);
    if (spec.data.ways != 0) return miss_references(writer);
    return spec.data.footprints() ? footprint_references(writer) : filtered_references(writer);
}

}  // namespace assay::native
