#include "framework/driver/native/translate/values.h"

#include <algorithm>

namespace assay::native {
namespace {

constexpr std::uint8_t kMostBytes = 8;

// Vector registers that the processor, and so the program, has.
unsigned vector_registers() {
    static const unsigned count = __builtin_cpu_supports("avx512f") ? 32 : 16;
    return count;
}

bool is_readable(unsigned bytes) {
    return bytes == 1 || bytes == 2 || bytes == 4 || bytes >= kMostBytes;
}

// A load of a whole register leaves there what it has read, even if another thread changes the
// memory meanwhile: mov, movzx, and pop but of rsp.
bool is_loaded_into_destination(const Form& form) {
    const bool move = form.opcode == 0x8b || (form.opcode >= 0x58 && form.opcode <= 0x5f);
    const bool extending =
        form.opcode == TRACE_OPCODE(1, 0xb6) || form.opcode == TRACE_OPCODE(1, 0xb7);
    return (move || extending) && form.destination.kind == RegisterOperand::kGpr &&
           form.reference_count == 1 && form.references[0].kind == TRACE_SITE_READ;
}

Value operand(const RegisterOperand& reg) {
    switch (reg.kind) {
        case RegisterOperand::kGpr:
            return {Value::kGpr, reg.number, reg.bytes};
        case RegisterOperand::kHighByte:
            return {Value::kHighByte, reg.number, 1};
        case RegisterOperand::kVector:
            return {Value::kVector, reg.number, kMostBytes};
        case RegisterOperand::kNone:
            break;
    }
    return {};
}

Value memory(const Form& form, bool loaded, bool before) {
    if (loaded && is_loaded_into_destination(form)) return operand(form.destination);
    for (std::uint8_t i = 0; i < form.reference_count; ++i) {
        const MemoryReference& reference = form.references[i];
        if (reference.kind == (loaded ? TRACE_SITE_WRITE : TRACE_SITE_READ)) continue;
        const bool written_too = loaded && (form.trace_flags & TRACE_INSTR_STORE);
        const bool by_branch = form.flow != Flow::kNone;
        if (by_branch && !loaded) return before ? Value{} : Value{Value::kReturn, 0, kMostBytes};
        if (by_branch) return {Value::kTarget, 0, kMostBytes};
        // What a bit string refers to is one byte, whatever the size of its operand.
        const unsigned bytes = form.special == Special::kBitString ? 1 : reference.bytes;
        const bool masked = form.masked && form.special == Special::kNone;
        if (masked || !is_readable(bytes)) return {};
        return {Value::kMemory, i, static_cast<std::uint8_t>(std::min(bytes, unsigned{kMostBytes})),
                before || written_too};
    }
    return {};
}

bool is_branch(Flow flow) {
    switch (flow) {
        case Flow::kJump:
        case Flow::kConditional:
        case Flow::kCounted:
        case Flow::kCall:
        case Flow::kJumpIndirect:
        case Flow::kCallIndirect:
        case Flow::kReturn:
            return true;
        default:
            return false;
    }
}

Value find(const Form& form, unsigned what, bool before) {
    if (what >= TRACE_VECTOR0 && what < TRACE_VECTOR0 + vector_registers())
        return {Value::kVector, static_cast<std::uint8_t>(what - TRACE_VECTOR0)};
    if (what >= TRACE_GPR0 && what < TRACE_GPR0 + 16)
        return {Value::kGpr, static_cast<std::uint8_t>(what - TRACE_GPR0)};
    switch (what) {
        case TRACE_EFFECTIVE_ADDRESS:
            return form.reference_count != 0 ? Value{Value::kAddress, 0} : Value{};
        case TRACE_LOADED:
            return memory(form, true, false);
        case TRACE_STORED:
            return memory(form, false, before);
        case TRACE_DESTINATION:
            return operand(form.destination);
        case TRACE_SOURCE0:
            return operand(form.sources[0]);
        case TRACE_SOURCE1:
            return operand(form.sources[1]);
        case TRACE_BRANCH_TAKEN:
            return is_branch(form.flow) ? Value{Value::kTaken, 0} : Value{};
        case TRACE_BRANCH_TARGET:
            return is_branch(form.flow) ? Value{Value::kTarget, 0} : Value{};
        case TRACE_LATENCY:
            return form.flow == Flow::kNone && !has_values_by_driver(form) ? Value{Value::kTime, 0}
                                                                           : Value{};
        default:
            return {};
    }
}

}  // namespace

Value value_of(const Form& form, std::uint8_t value) {
    const bool before = value & trace::kReadBefore;
    const unsigned what = value & ~trace::kReadBefore;
    Value found = find(form, what, before);
    const bool loaded = what == TRACE_LOADED;
    if (found.place == Value::kVector) {
        found.before = before && !loaded;
    } else if (found.place == Value::kGpr || found.place == Value::kHighByte) {
        found.before = before && !loaded && (form.writes & bit(found.number));
    }
    return found;
}

ValueRegisters value_registers(const Form& form, const trace::ValueList& list) {
    ValueRegisters registers;
    for (unsigned i = 0; i < list.count; ++i) {
        const Value value = value_of(form, list.values[i]);
        if (value.place != Value::kGpr && value.place != Value::kHighByte) continue;
        (value.before ? registers.before : registers.behind) |= bit(value.number);
    }
    return registers;
}

}  // namespace assay::native
