#include "framework/driver/native/translate/values.h"

#include "framework/x86/instruction_facts.h"

#include <algorithm>

namespace assay::native {
namespace {

constexpr std::uint8_t kMostBytes = 8;

// The number of the processor's vector registers.
unsigned vector_registers() {
    static const unsigned count = __builtin_cpu_supports("avx512f") ? 32 : 16;
    return count;
}
std::uint8_t vector_bytes() {
    static const std::uint8_t bytes = __builtin_cpu_supports("avx512f") ? 64
                                      : __builtin_cpu_supports("avx")   ? 32
                                                                        : 16;
    return bytes;
}

// Bytes of a mask register that KMOVQ or, without AVX-512BW, KMOVW reads; 0 without AVX-512.
std::uint8_t mask_bytes() {
    static const std::uint8_t bytes = __builtin_cpu_supports("avx512bw")  ? 8
                                      : __builtin_cpu_supports("avx512f") ? 2
                                                                          : 0;
    return bytes;
}

bool is_readable(unsigned bytes) {
    return bytes == 1 || bytes == 2 || bytes == 4 || bytes >= kMostBytes;
}

// True for a load of a whole register: mov, movzx, and pop except of rsp. The register then has the
// loaded value, even if another thread changes the memory.
bool is_loaded_into_destination(const Form& form) {
    const bool move = form.opcode == 0x8b || (form.opcode >= 0x58 && form.opcode <= 0x5f);
    const bool extending =
        form.opcode == TRACE_OPCODE(1, 0xb6) || form.opcode == TRACE_OPCODE(1, 0xb7);
    return (move || extending) && form.destination.kind == RegisterOperand::kGpr &&
           form.reference_count == 1 && form.references[0].kind == TRACE_SITE_READ;
}

Value mask(std::uint8_t number) {
    return mask_bytes() == 0 ? Value{} : Value{Value::kMask, number, mask_bytes()};
}

Value operand(const RegisterOperand& reg) {
    switch (reg.kind) {
        case RegisterOperand::kGpr:
            return {Value::kGpr, reg.number, reg.bytes};
        case RegisterOperand::kHighByte:
            return {Value::kHighByte, reg.number, 1};
        case RegisterOperand::kVector:
            return {Value::kVector, reg.number, kMostBytes};
        case RegisterOperand::kMask:
            return mask(reg.number);
        case RegisterOperand::kMmx:
            return {Value::kMmx, reg.number, kMostBytes};
        case RegisterOperand::kX87:
            return {Value::kX87, reg.number, kMostBytes};
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
        // A bit string refers to one byte, whatever the size of its operand.
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
    if (what >= TRACE_MASK0 && what < TRACE_MASK0 + 8)
        return mask(static_cast<std::uint8_t>(what - TRACE_MASK0));
    if (what >= TRACE_MMX0 && what < TRACE_MMX0 + 8)
        return {Value::kMmx, static_cast<std::uint8_t>(what - TRACE_MMX0)};
    if (what >= TRACE_ST0 && what < TRACE_ST0 + 8)
        return {Value::kX87, static_cast<std::uint8_t>(what - TRACE_ST0)};
    switch (what) {
        case TRACE_EFFECTIVE_ADDRESS:
            return form.reference_count != 0 || form.names_line ? Value{Value::kAddress, 0}
                                                                : Value{};
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

// With TRACE_WIDE. The rest after a multiple of 8 bytes must also be readable.
std::uint8_t wide_bytes(const Form& form, const Value& value, unsigned what) {
    if (value.place == Value::kVector && what == TRACE_DESTINATION) return form.destination.bytes;
    if (value.place == Value::kVector && what == TRACE_SOURCE0) return form.sources[0].bytes;
    if (value.place == Value::kVector && what == TRACE_SOURCE1) return form.sources[1].bytes;
    if (value.place == Value::kVector) return vector_bytes();
    if (value.place != Value::kMemory || value.bytes != kMostBytes) return value.bytes;
    // For a gather, this is an element.
    const unsigned bytes = form.references[value.number].bytes;
    const bool whole = form.special == Special::kNone || form.special == Special::kClearLine;
    if (!whole || bytes > trace::kMostValueBytes) return value.bytes;
    const unsigned rest = bytes % kMostBytes;
    return rest == 0 || is_readable(rest) ? static_cast<std::uint8_t>(bytes) : value.bytes;
}

bool is_register(const Value& value) {
    switch (value.place) {
        case Value::kGpr:
        case Value::kHighByte:
        case Value::kVector:
        case Value::kMask:
        case Value::kMmx:
        case Value::kX87:
            return true;
        default:
            return false;
    }
}

// False if the instruction does not change the register.
bool may_change(const Form& form, const Value& value) {
    switch (value.place) {
        case Value::kGpr:
        case Value::kHighByte:
            return form.writes & bit(value.number);
        case Value::kMmx:
            return !uses_mmx(form) || (form.destination.kind == RegisterOperand::kMmx &&
                                       form.destination.number == value.number);
        default:
            return true;
    }
}

}  // namespace

bool uses_mmx(const Form& form) {
    return form.destination.kind == RegisterOperand::kMmx ||
           form.sources[0].kind == RegisterOperand::kMmx ||
           form.sources[1].kind == RegisterOperand::kMmx;
}

Value value_of(const Form& form, std::uint8_t value, bool wide) {
    const bool before = value & trace::kReadBefore;
    const unsigned what = value & ~trace::kReadBefore;
    Value found = find(form, what, before);
    if (wide) found.bytes = wide_bytes(form, found, what);
    if (found.place == Value::kX87 || found.place == Value::kMmx) {
        // Branches do not change these registers, and the driver is entered only before branches.
        found.before = form.flow != Flow::kNone || (before && may_change(form, found));
    } else if (is_register(found)) {
        found.before = before && what != TRACE_LOADED && may_change(form, found);
    }
    const bool operand = what >= TRACE_DESTINATION && what <= TRACE_SOURCE1;
    if (found.place == Value::kX87 && operand && !found.before)
        found.number = (found.number + x87_pushes(form.mnemonic)) & 7;
    return found;
}

ValueRegisters value_registers(const Form& form, const trace::ValueList& list) {
    ValueRegisters registers;
    for (unsigned i = 0; i < list.count; ++i) {
        const Value value = value_of(form, list, i);
        if (value.place != Value::kGpr && value.place != Value::kHighByte) continue;
        (value.before ? registers.before : registers.behind) |= bit(value.number);
    }
    return registers;
}

}  // namespace assay::native
