#include "framework/driver/native/translate/value_records.h"

#include "framework/driver/native/translate/values.h"

#include <algorithm>
#include <utility>

namespace assay::native {
namespace {

constexpr std::size_t kTargetWaits = offsetof(Context, latency);  // for indirect branches

std::size_t waiting(unsigned index) {
    return offsetof(Context, values) + index * sizeof Context::values[0];
}
std::size_t wide_waiting(unsigned index, unsigned part) {
    return offsetof(Context, wide_values) + index * sizeof Context::wide_values[0] +
           part * sizeof Context::wide_values[0][0];
}

// The difference between the stack pointer before the instruction and after it. Nothing if the
// registers of the address change in another way.
std::optional<std::int64_t> change_of_address(const Instruction& instruction,
                                              const MemoryReference& reference) {
    const auto changed =
        static_cast<GprMask>(instruction.form->writes & address_registers(reference));
    if (changed == 0) return 0;
    const auto change = instruction.stack_change();
    if (changed != bit(RSP) || reference.index == RSP || !change) return std::nullopt;
    return -*change;
}

// The encoding for `bytes` bytes of the register.
Assembler::VectorEncoding encoding_of(unsigned vector, unsigned bytes) {
    static const bool avx = __builtin_cpu_supports("avx");
    if (vector >= 16 || bytes > 32) return Assembler::VectorEncoding::kEvex;
    return avx ? Assembler::VectorEncoding::kVex : Assembler::VectorEncoding::kLegacy;
}

bool is_conditional(const Instruction& instruction) {
    return instruction.form->flow == Flow::kConditional || instruction.form->flow == Flow::kCounted;
}

}  // namespace

// How the values of one instruction are read.
struct Values::ValueReader {
    Assembler& code;
    const Instruction& instruction;
    const trace::ValueList& list;
    const Scratch* scratch;  // null after a branch
    unsigned temporary;
    unsigned second = kNoGpr;  // if it is needed
    bool behind = true;        // false before the instruction

    Value value(unsigned index) const { return value_of(*instruction.form, list, index); }
    const MemoryReference& reference(const Value& value) const {
        return instruction.form->references[value.number];
    }
    // True if the value or its address waits in the context.
    bool waits(const Value& value) const {
        switch (value.place) {
            case Value::kAddress:
                return !scratch || !change_of_address(instruction, reference(value));
            case Value::kMemory:
                return value.before || !change_of_address(instruction, reference(value));
            case Value::kGpr:
            case Value::kHighByte:
            case Value::kVector:
            case Value::kMask:
                return value.before;
            case Value::kMmx:
            case Value::kX87:
                return is_in_saved_state(*instruction.form, value);
            default:
                return false;
        }
    }
    // Needs the context, because only the low 64 bits can be moved to another register.
    static bool is_wide_vector(const Value& value) {
        return value.place == Value::kVector && value.is_wide();
    }
    // A value that is only read can be read before the instruction, if its address is lost then.
    bool waits_as_address(const Value& value) const {
        return value.place == Value::kMemory && !value.before &&
               reference(value).kind != TRACE_SITE_READ;
    }

    // The place in the context of a waiting value that is no address.
    static std::size_t place(const Value& value, unsigned index, unsigned part) {
        return value.is_wide() ? wide_waiting(index, part) : waiting(index);
    }

    // The place in the context of a register's value; 0 if the register has it.
    std::size_t place_of(unsigned reg) const {
        if (scratch) return scratch->is_borrowed(reg) ? Scratch::slot(reg) : 0;
        if (reg == RAX) return offsetof(Context, indirect_rax);
        return reg == RCX ? offsetof(Context, indirect_rcx) : 0;
    }
    void load_gpr(const Value& value) const {
        if (const std::size_t place = place_of(value.number))
            return code.load_context_zero_extended(temporary, place, value.bytes);
        code.zero_extend(temporary, value.number, value.bytes);
    }
    // Uses memory: not every register has a move of bits 8 to 15 that keeps flags.
    void load_high_byte(const Value& value, unsigned index) const {
        if (const std::size_t place = place_of(value.number))
            return code.load_context_zero_extended(temporary, place + 1, 1);
        code.store_context(waiting(index), value.number);
        code.load_context_zero_extended(temporary, waiting(index) + 1, 1);
    }
    void load_vector(const Value& value) const {
        code.move_from_vector(temporary, value.number, encoding_of(value.number, value.bytes));
    }
    void store_wide_vector(const Value& value, unsigned index) const {
        code.store_vector(wide_waiting(index, 0), value.number, value.bytes,
                          encoding_of(value.number, value.bytes));
    }
    void load_address(const Value& value) const {
        const MemoryReference& form = reference(value);
        std::int64_t offset = (form.encoded ? instruction.displacement() : 0) + form.bias;
        if (form.base == kRip)
            offset += static_cast<std::int64_t>(instruction.next_pc());
        else if (behind)
            offset += change_of_address(instruction, form).value_or(0);
        code.load_offset(temporary, form, offset);
        if (form.segment == Segment::kFlat) return;
        code.load_context(second, segment_base_offset(form.segment));
        code.lea(temporary, Address{static_cast<std::uint8_t>(temporary),
                                    static_cast<std::uint8_t>(second), 1, 0});
    }
    void load_memory(const Value& value, unsigned part) const {
        code.load_zero_extended(temporary,
                                Address{static_cast<std::uint8_t>(temporary), kNoGpr, 1,
                                        static_cast<std::int32_t>(part * trace::kValueRecordBytes)},
                                value.part_bytes(part));
    }
    // Loads the value into the temporary register. `part`: of a memory operand.
    void load(const Value& value, unsigned index, unsigned part) const {
        switch (value.place) {
            case Value::kAddress:
                return load_address(value);
            case Value::kMemory:
                load_address(value);
                return load_memory(value, part);
            case Value::kGpr:
                return load_gpr(value);
            case Value::kHighByte:
                return load_high_byte(value, index);
            case Value::kVector:
                return load_vector(value);
            case Value::kMask:
                return code.move_from_mask(temporary, value.number, value.bytes);
            case Value::kMmx:
                return code.move_from_mmx(temporary, value.number);
            default:
                return;
        }
    }
    void load_time() const {
        code.load_context(temporary, offsetof(Context, latency));
        code.complement(temporary);
        code.load_context(second, offsetof(Context, latency) + 8);
        code.lea(temporary, Address{static_cast<std::uint8_t>(temporary),
                                    static_cast<std::uint8_t>(second), 1, 1});
    }
    bool needs_second() const {
        for (unsigned i = 0; i < list.count; ++i) {
            const Value each = value(i);
            if (each.place == Value::kTime) return true;
            if ((each.place == Value::kAddress || each.place == Value::kMemory) &&
                reference(each).segment != Segment::kFlat)
                return true;
        }
        return false;
    }
};

// The registers for values of system calls and markers are read before the instruction.
ValueRegisters Values::reads(const TraceTables& tables, const Form& form) {
    const trace::ValueList* const list = tables.value_list(form.opcode, form.trace_flags);
    if (!list) return {};
    ValueRegisters registers = value_registers(form, *list);
    if (form.flow == Flow::kSyscall || form.flow == Flow::kMarker)
        registers.before |= std::exchange(registers.behind, GprMask{0});
    return registers;
}

const trace::ValueList* Values::list_of(const Instruction& instruction) const {
    const Form& form = *instruction.form;
    return form.flow == Flow::kTrap || form.flow == Flow::kUnsupported
               ? nullptr
               : lists_.find(form.opcode, form.trace_flags);
}

// The sites of the instruction, in the order of its list. An instruction without any value has one
// site, which tells its execution. If only the execution determines the values, this site comes
// first.
Values::Sites Values::new_sites(unsigned position, const trace::ValueList& list) {
    const Form& form = *plan_.instructions[position].form;
    Sites sites{writer_.next_site(), 0};
    const auto add = [&](unsigned bytes, unsigned kind, unsigned operand) {
        writer_.new_site(position, bytes, kind, operand);
        ++sites.count;
    };
    if (has_values_by_driver(form)) add(0, TRACE_SITE_VALUE, TRACE_NONE);
    for (unsigned i = 0; i < list.count; ++i) {
        const Value value = value_of(form, list, i);
        if (value.place == Value::kNone) continue;
        add(value.part_bytes(0), TRACE_SITE_VALUE, list.values[i]);
        for (unsigned part = 1; part < value.parts(); ++part)
            add(value.part_bytes(part), TRACE_SITE_VALUE_REST, list.values[i]);
    }
    if (sites.count == 0) add(0, TRACE_SITE_VALUE, TRACE_NONE);
    return sites;
}

// --- Instructions that are no branches.

void Values::before(const Instruction& instruction, unsigned position) {
    const trace::ValueList* const found = list_of(instruction);
    if (found == nullptr) return;
    const trace::ValueList& list = *found;
    scratch_.make_way(instruction, value_registers(*instruction.form, list).before);
    if (has_values_by_driver(*instruction.form))
        return read_by_driver(instruction, ExitKind::kValuesBefore, 0);
    read_saved(instruction, list, true);
    ValueReader reader{hot_, instruction, list, &scratch_, kNoGpr, kNoGpr, false};
    bool times = false;
    for (unsigned i = 0; i < list.count; ++i) {
        const Value value = reader.value(i);
        times |= value.place == Value::kTime;
        if (!reader.waits(value) || is_in_saved_state(*instruction.form, value)) continue;
        if (ValueReader::is_wide_vector(value)) {
            reader.store_wide_vector(value, i);
            continue;
        }
        if (reader.temporary == kNoGpr) take_registers(reader, position);
        if (reader.waits_as_address(value)) {
            reader.load_address(value);
            hot_.store_context(waiting(i), reader.temporary);
            continue;
        }
        for (unsigned part = 0; part < value.parts(); ++part) {
            if (value.place == Value::kMemory) writer_.note_point(position);  // the load may fault
            reader.load(value, i, part);
            hot_.store_context(reader.place(value, i, part), reader.temporary);
        }
    }
    if (times) read_time(offsetof(Context, latency), true);
}

void Values::behind(const Instruction& instruction, unsigned position) {
    const trace::ValueList* const found = list_of(instruction);
    if (found == nullptr) return;
    const trace::ValueList& list = *found;
    const Sites sites = new_sites(position, list);
    if (has_values_by_driver(*instruction.form))
        return read_by_driver(instruction, ExitKind::kValuesBehind, sites.first);
    ValueReader reader{hot_, instruction, list, &scratch_, kNoGpr};
    for (unsigned i = 0; i < list.count; ++i)
        if (reader.value(i).place == Value::kTime) read_time(offsetof(Context, latency) + 8, false);
    read_saved(instruction, list, false);
    const unsigned cursor = scratch_.cursor(registers_of(instruction), position);
    take_registers(reader, position);
    append_records(reader, cursor, sites, 0);
    hot_.lea(cursor, Address{static_cast<std::uint8_t>(cursor), kNoGpr, 1,
                             static_cast<std::int32_t>(sites.count) * kRecordBytes});
}

GprMask Values::registers_of(const Instruction& instruction) {
    return static_cast<GprMask>(instruction.form->reads | instruction.form->writes);
}

void Values::take_registers(ValueReader& reader, unsigned position) {
    const GprMask used = registers_of(reader.instruction);
    reader.temporary = scratch_.acquire(used, position);
    if (reader.needs_second())
        reader.second =
            scratch_.acquire(static_cast<GprMask>(used | bit(reader.temporary)), position);
}

// Begins with the last record.
void Values::append_records(const ValueReader& reader, unsigned cursor, const Sites& sites,
                            std::uint64_t target) {
    Assembler& code = reader.code;
    const auto base = static_cast<std::uint8_t>(cursor);
    const auto begin = [&](unsigned record) {
        const auto at = static_cast<std::int32_t>(record) * kRecordBytes;
        code.with_memory(kStoreConstant, 0, Address{base, kNoGpr, 1, at + 8});
        code.u32(sites.first + record);
        return Address{base, kNoGpr, 1, at};
    };
    unsigned record = sites.count;
    for (unsigned i = reader.list.count; i-- > 0;) {
        const Value value = reader.value(i);
        if (value.place == Value::kNone) continue;
        if (value.place == Value::kTaken) {
            code.with_memory(kStoreConstant, 0, begin(--record));
            code.u32(target != kNotTaken ? 1 : 0);
            continue;
        }
        // Whole registers need no temporary register.
        const bool whole = value.place == Value::kGpr && value.bytes == 8 && !value.before &&
                           reader.place_of(value.number) == 0;
        if (whole) {
            code.with_memory(kStore, value.number, begin(--record));
            continue;
        }
        if (ValueReader::is_wide_vector(value) && !value.before) reader.store_wide_vector(value, i);
        for (unsigned part = value.parts(); part-- > 0;) {
            const Address to = begin(--record);
            load_value(reader, i, part, target);
            code.with_memory(kStore, reader.temporary, to);
        }
    }
    if (record == 1) {
        const Address to = begin(0);
        code.with_memory(kStoreConstant, 0, to);
        code.u32(0);
    }
    code.prefetch_for_write(Address{base, kNoGpr, 1, kPrefetched});
}

void Values::load_value(const ValueReader& reader, unsigned index, unsigned part,
                        std::uint64_t target) {
    Assembler& code = reader.code;
    const Value value = reader.value(index);
    if (value.place == Value::kTime) return reader.load_time();
    if (value.place == Value::kReturn)
        return code.load_address(reader.temporary, reader.instruction.next_pc());
    if (value.place == Value::kTarget && target == kTargetInContext)
        return code.load_context(reader.temporary, kTargetWaits);
    if (value.place == Value::kTarget)
        return code.load_address(reader.temporary,
                                 target == kNotTaken ? reader.instruction.next_pc() : target);
    if (!reader.waits(value) && !ValueReader::is_wide_vector(value))
        return reader.load(value, index, part);
    if (!reader.waits_as_address(value))
        return code.load_context(reader.temporary, ValueReader::place(value, index, part));
    code.load_context(reader.temporary, waiting(index));
    reader.load_memory(value, part);
}

// The instruction runs alone between two readings of the time.
void Values::read_time(std::size_t to, bool before) {
    const std::size_t saved = offsetof(Context, latency_gpr);
    hot_.store_context(saved, RAX);
    hot_.store_context(saved + 8, RDX);
    hot_.read_time();
    hot_.with_context(kStore, RAX, to, false);
    hot_.with_context(kStore, RDX, to + 4, false);
    hot_.load_context(RAX, saved);
    hot_.load_context(RDX, saved + 8);
    if (before) hot_.load_fence();
}

void Values::read_by_driver(const Instruction& instruction, ExitKind kind,
                            std::uint32_t first_site) {
    writer_.enter_driver(instruction, first_site);
    writer_.output.exits.back().kind = kind;
}

// The driver puts the values that it must read before or after the instruction into the context.
void Values::read_saved(const Instruction& instruction, const trace::ValueList& list, bool before) {
    for (unsigned i = 0; i < list.count; ++i) {
        const Value value = value_of(*instruction.form, list, i);
        if (value.before != before || !is_in_saved_state(*instruction.form, value)) continue;
        return read_by_driver(instruction, before ? ExitKind::kStateBefore : ExitKind::kStateBehind,
                              0);
    }
}

// --- Branches, and instructions that leave to the driver.

void Values::before_branch(const Instruction& instruction, unsigned position) {
    const trace::ValueList* const found = list_of(instruction);
    if (found == nullptr) return;
    const trace::ValueList& list = *found;
    read_saved(instruction, list, true);
    ValueReader reader{hot_, instruction, list, nullptr, RCX, RAX, false};
    for (unsigned i = 0; i < list.count; ++i) {
        const Value value = reader.value(i);
        if (!reader.waits(value) || is_in_saved_state(*instruction.form, value)) continue;
        if (ValueReader::is_wide_vector(value)) {
            reader.store_wide_vector(value, i);
            continue;
        }
        hot_.store_context(offsetof(Context, indirect_rax), RAX);
        hot_.store_context(offsetof(Context, indirect_rcx), RCX);
        reader.load(value, i, 0);  // branches have no wide memory operands
        hot_.store_context(waiting(i), RCX);
        hot_.load_context(RAX, offsetof(Context, indirect_rax));
        hot_.load_context(RCX, offsetof(Context, indirect_rcx));
    }
    if (is_conditional(instruction)) sites_[writer_.block_index] = new_sites(position, list);
}

void Values::leave(const Way& way) {
    const Flow flow = way.last.form->flow;
    const trace::ValueList* const list = list_of(way.last);
    if (list == nullptr || flow == Flow::kNone) return;
    const Sites sites =
        is_conditional(way.last) ? sites_[writer_.block_index] : new_sites(way.position, *list);
    behind_branch(way.last, sites, way.taken ? way.target : kNotTaken);
}

void Values::leave_indirectly(const Instruction& branch, unsigned position) {
    const trace::ValueList* const list = list_of(branch);
    if (list != nullptr) behind_branch(branch, new_sites(position, *list), kTargetInContext);
}

// Reads the values after the branch, on its way to `target`. With kTargetInContext, rcx has the
// target and is kept, and the program's rax and rcx already wait.
void Values::behind_branch(const Instruction& branch, const Sites& sites, std::uint64_t target) {
    const ValueReader reader{hot_, branch, *list_of(branch), nullptr, RCX, RAX};
    if (target == kTargetInContext) {
        hot_.store_context(kTargetWaits, RCX);
    } else {
        hot_.store_context(offsetof(Context, indirect_rax), RAX);
        hot_.store_context(offsetof(Context, indirect_rcx), RCX);
    }
    hot_.load_context(RAX, kCursorOffset);
    append_records(reader, RAX, sites, target);
    hot_.lea(RAX, Address{RAX, kNoGpr, 1, static_cast<std::int32_t>(sites.count) * kRecordBytes});
    hot_.store_context(kCursorOffset, RAX);
    if (target == kTargetInContext) {
        hot_.load_context(RCX, kTargetWaits);
    } else {
        hot_.load_context(RAX, offsetof(Context, indirect_rax));
        hot_.load_context(RCX, offsetof(Context, indirect_rcx));
    }
}

}  // namespace assay::native
