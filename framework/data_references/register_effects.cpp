// What instructions do to the types in registers and in the frame.

#include "framework/data_references/register_types.h"

#include <Zydis/Zydis.h>

namespace assay::data_references {
namespace {

using namespace native;
using symbols::DataType;
using symbols::DataTypeId;

constexpr GprMask kClobbered =
    bit(RAX) | bit(RCX) | bit(RDX) | bit(RSI) | bit(RDI) | bit(R8) | bit(R9) | bit(R10) | bit(R11);

bool is_call(const Instruction& instruction) {
    return instruction.form->flow == Flow::kCall || instruction.form->flow == Flow::kCallIndirect;
}

bool is_whole(const RegisterOperand& operand) {
    return operand.kind == RegisterOperand::kGpr && operand.bytes == kPointerBytes;
}

// A new unknown value. Equal ones can be recognized in other registers.
Value unknown_from(const Instruction& instruction) {
    return {Value::Kind::kUnknown, 0, static_cast<std::int64_t>(instruction.pc)};
}

bool is_plain_unknown(const Value& value) {
    return value == Value{};
}

// Also handles pushes and pops with an operand in memory.
std::optional<std::int64_t> stack_change(const Instruction& instruction) {
    const std::optional<std::int64_t> change = instruction.stack_change();
    const Form& form = *instruction.form;
    const bool of_memory = form.reference_count == 2;
    if (change || !of_memory) return change;
    if (form.mnemonic == ZYDIS_MNEMONIC_PUSH) return -std::int64_t{form.references[1].bytes};
    if (form.mnemonic == ZYDIS_MNEMONIC_POP) return form.references[0].bytes;
    return std::nullopt;
}

// The operand of a lea, which the decoder does not report as a reference.
MemoryReference address_operand(const Instruction& instruction) {
    const Form& form = *instruction.form;
    const std::uint8_t before =
        form.opcode_offset > 0 ? instruction.bytes[form.opcode_offset - 1] : 0;
    const unsigned rex = (before & 0xf0) == 0x40 ? before : 0;
    const unsigned modrm = instruction.bytes[form.modrm_offset];
    const unsigned mode = modrm >> 6, rm = modrm & 7;
    MemoryReference reference;
    reference.encoded = true;
    if (rm == 4) {
        const unsigned sib = instruction.bytes[form.modrm_offset + 1];
        const unsigned index = (sib >> 3 & 7) | (rex & 2) << 2;
        if (index != RSP) reference.index = static_cast<std::uint8_t>(index);
        reference.scale = static_cast<std::uint8_t>((1U << (sib >> 6)) & 0xf);
        if ((sib & 7) != 5 || mode != 0)
            reference.base = static_cast<std::uint8_t>((sib & 7) | (rex & 1) << 3);
    } else if (rm == 5 && mode == 0) {
        reference.base = kRip;
    } else {
        reference.base = static_cast<std::uint8_t>(rm | (rex & 1) << 3);
    }
    return reference;
}

}  // namespace

void RegisterTypes::execute(State& state, const Instruction& instruction) {
    const Form& form = *instruction.form;
    if (is_call(instruction)) {
        execute_call(state, instruction);
        return;
    }
    const State before_writes = [&] {
        State copy;
        copy.registers = state.registers;
        return copy;
    }();
    const Value result = result_of(state, instruction);
    const Value stored = stored_by(state, instruction);
    if (form.mnemonic == ZYDIS_MNEMONIC_LEAVE) {
        const Value frame = state.registers[RBP];
        state.registers[RBP] = loaded(state, instruction.pc, frame, kPointerBytes);
        state.registers[RSP] = sum(frame, kPointerBytes);
        return;
    }
    if (form.mnemonic == ZYDIS_MNEMONIC_MOV && form.reference_count == 1 &&
        stored.kind == Value::Kind::kUnknown && stored.offset != 0)
        learn(state, instruction, stored);
    for (unsigned n = 0; n < form.reference_count; ++n) {
        const MemoryReference& reference = form.references[n];
        if (reference.kind != TRACE_SITE_READ)
            store(state, address_of(before_writes, instruction, reference), reference.bytes,
                  stored);
    }
    const std::optional<std::int64_t> change = stack_change(instruction);
    for (unsigned reg = 0; reg < state.registers.size(); ++reg) {
        if (!(form.writes & bit(reg))) continue;
        const bool is_destination =
            form.destination.kind == RegisterOperand::kGpr && form.destination.number == reg;
        if (reg == RSP && change)
            state.registers[RSP] = sum(state.registers[RSP], *change);
        else
            state.registers[reg] = is_destination ? result : Value{};
        if (is_destination && is_plain_unknown(result))
            state.registers[reg] = unknown_from(instruction);
    }
    if (form.mnemonic == ZYDIS_MNEMONIC_XCHG && is_whole(form.sources[0]) &&
        is_whole(form.sources[1])) {
        state.registers[form.sources[0].number] = before_writes.registers[form.sources[1].number];
        state.registers[form.sources[1].number] = before_writes.registers[form.sources[0].number];
    }
}

// A value that is stored into a pointer member gets the type of the member. This finds the type of
// memory that was just allocated.
void RegisterTypes::learn(State& state, const Instruction& instruction, const Value& stored) {
    const MemoryReference& reference = instruction.form->references[0];
    if (reference.bytes != kPointerBytes || reference.kind != TRACE_SITE_WRITE) return;
    const Value to = as_pointer(address_of(state, instruction, reference));
    const Value learned = member(to);
    if (learned.kind != Value::Kind::kPointer) return;
    for (Value& value : state.registers)
        if (value == stored) value = learned;
}

Value RegisterTypes::operand(const State& state, const Instruction& instruction,
                             const RegisterOperand& reg) {
    return is_whole(reg) ? in_register(state, reg.number, instruction.pc) : Value{};
}

// The source operand of a move.
Value RegisterTypes::source_of(const State& state, const Instruction& instruction) {
    const Form& form = *instruction.form;
    if (form.reference_count != 0 && form.references[0].kind == TRACE_SITE_READ)
        return loaded(state, instruction.pc, address_of(state, instruction, form.references[0]),
                      form.references[0].bytes);
    const RegisterOperand& last =
        form.sources[1].kind != RegisterOperand::kNone ? form.sources[1] : form.sources[0];
    if (last.kind != RegisterOperand::kNone) return operand(state, instruction, last);
    if (form.imm_bytes == 0) return {};
    // A move to the lower half of a register clears the upper half.
    const std::int64_t number = form.destination.bytes == 4
                                    ? static_cast<std::uint32_t>(instruction.immediate())
                                    : instruction.immediate();
    return {number == 0 ? Value::Kind::kZero : Value::Kind::kConstant, 0, number};
}

Value RegisterTypes::stored_by(const State& state, const Instruction& instruction) {
    switch (instruction.form->mnemonic) {
        case ZYDIS_MNEMONIC_MOV:
        case ZYDIS_MNEMONIC_PUSH:
            return source_of(state, instruction);
        default:
            return {};
    }
}

// The sum of an address and an index, in any order.
Value RegisterTypes::added(const State& state, std::uint64_t pc, Value a, Value b) {
    if (as_pointer(a).kind == Value::Kind::kUnknown) std::swap(a, b);
    if (as_pointer(a).kind == Value::Kind::kUnknown) {
        const std::int64_t number = constant_part(a) + constant_part(b);
        return number != 0 ? Value{Value::Kind::kNumber, 0, number} : Value{};
    }
    return indexed(state, pc, sum(a, constant_part(b)));
}

Value RegisterTypes::moved_number(const State& state, const RegisterOperand& from) {
    if (from.kind != RegisterOperand::kGpr) return {};
    const Value& value = state.registers[from.number];
    return value.kind == Value::Kind::kNumber ? value : Value{};
}

// The new value of the destination register.
Value RegisterTypes::result_of(const State& state, const Instruction& instruction) {
    const Form& form = *instruction.form;
    const RegisterOperand& to = form.destination;
    if (to.kind != RegisterOperand::kGpr) return {};
    const bool from_register =
        form.reference_count == 0 && form.sources[1].kind == RegisterOperand::kGpr;
    const bool of_itself = from_register && form.sources[0].number == form.sources[1].number;
    switch (form.mnemonic) {
        case ZYDIS_MNEMONIC_XOR:
        case ZYDIS_MNEMONIC_SUB:
            if (of_itself && to.bytes >= 4) return {Value::Kind::kZero, 0, 0};
            [[fallthrough]];
        case ZYDIS_MNEMONIC_ADD:
            // An index, which is extended later.
            if (to.bytes == 4 && form.imm_bytes != 0 && form.reference_count == 0)
                return {Value::Kind::kNumber, 0,
                        constant_part(state.registers[to.number]) +
                            (form.mnemonic == ZYDIS_MNEMONIC_ADD ? instruction.immediate()
                                                                 : -instruction.immediate())};
            break;
        case ZYDIS_MNEMONIC_MOVSXD:
        case ZYDIS_MNEMONIC_CDQE:
            if (form.reference_count == 0) return moved_number(state, form.sources[0]);
            break;
        case ZYDIS_MNEMONIC_SHL:
            if (form.imm_bytes == 1 && form.reference_count == 0)
                return {Value::Kind::kNumber, 0,
                        constant_part(state.registers[to.number])
                            << (instruction.immediate() & 15)};
            break;
        case ZYDIS_MNEMONIC_MOV:
            if (to.bytes != 4 || form.reference_count != 0) break;
            return form.imm_bytes != 0 ? source_of(state, instruction)
                                       : moved_number(state, form.sources[0]);
        case ZYDIS_MNEMONIC_LEA:
            if (to.bytes == 4) {
                const Value sum = address_of(state, instruction, address_operand(instruction));
                return sum.kind == Value::Kind::kNumber ? sum : Value{};
            }
            break;
        default:
            break;
    }
    if (to.bytes != kPointerBytes) return {};
    const Value before = in_register(state, to.number, instruction.pc);
    switch (form.mnemonic) {
        case ZYDIS_MNEMONIC_MOV:
        case ZYDIS_MNEMONIC_POP:
            return source_of(state, instruction);
        case ZYDIS_MNEMONIC_LEA:
            return address_of(state, instruction, address_operand(instruction));
        case ZYDIS_MNEMONIC_INC:
            return sum(before, 1);
        case ZYDIS_MNEMONIC_DEC:
            return sum(before, -1);
        case ZYDIS_MNEMONIC_AND:
            return form.imm_bytes != 0 && instruction.immediate() < 0 && to.number != RSP ? before
                                                                                          : Value{};
        case ZYDIS_MNEMONIC_ADD:
            if (form.imm_bytes != 0) return sum(before, instruction.immediate());
            return from_register
                       ? added(state, instruction.pc, before, source_of(state, instruction))
                       : indexed(state, instruction.pc, before);
        case ZYDIS_MNEMONIC_SUB:
            if (form.imm_bytes != 0) return sum(before, -instruction.immediate());
            if (from_register &&
                as_pointer(source_of(state, instruction)).kind != Value::Kind::kUnknown)
                return {};
            return indexed(state, instruction.pc, before);
        default:
            break;
    }
    // The move may happen or not.
    if (form.mnemonic >= ZYDIS_MNEMONIC_CMOVB && form.mnemonic <= ZYDIS_MNEMONIC_CMOVZ)
        return merged(before, source_of(state, instruction));
    return {};
}

void RegisterTypes::execute_call(State& state, const Instruction& instruction) {
    const DataTypeId type = returned_by(state, instruction);
    for (unsigned reg = 0; reg < state.registers.size(); ++reg)
        if (kClobbered & bit(reg)) state.registers[reg] = {};
    if (types_[type].kind == DataType::Kind::kPointer)
        state.registers[RAX] = pointer_to(types_.target(type), 0);
    if (is_plain_unknown(state.registers[RAX])) state.registers[RAX] = unknown_from(instruction);
}

DataTypeId RegisterTypes::returned_by(const State& state, const Instruction& instruction) {
    const Form& form = *instruction.form;
    if (const auto known = variables_.returned_to(instruction.next_pc())) return *known;
    if (form.flow == Flow::kCall) {
        const Dwarf_Die* callee = entries_.function_at(instruction.target());
        return callee != nullptr ? types_.type_of(*callee) : 0;
    }
    const Value callee = source_of(state, instruction);
    const bool known = callee.kind == Value::Kind::kPointer &&
                       types_[callee.type].kind == DataType::Kind::kFunction;
    return known ? types_.target(callee.type) : 0;
}

}  // namespace assay::data_references
