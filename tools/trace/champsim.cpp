#include "tools/trace/champsim.h"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <span>

namespace assay::tracing {
namespace {

const ZydisDecoder& decoder() {
    static const ZydisDecoder decoder = [] {
        ZydisDecoder made;
        ZydisDecoderInit(&made, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
        return made;
    }();
    return decoder;
}

// General registers, flags and the instruction pointer as Pin numbers them; all parts of a register
// are that register. Vector and other registers have numbers that Pin gives to parts of registers.
// 0 of segments, control registers and the like.
std::uint8_t number_of(ZydisRegister reg) {
    constexpr std::uint8_t kGeneral[] = {10, 9, 8, 7, kStackPointer, 5, 4, 3};  // rax, rcx, rdx...
    constexpr unsigned kR8 = 11, kVectors = 64, kMasks = 96, kMmx = 104, kX87 = 112;
    const unsigned id = static_cast<std::uint8_t>(ZydisRegisterGetId(reg));
    switch (ZydisRegisterGetClass(reg)) {
        case ZYDIS_REGCLASS_GPR8:
        case ZYDIS_REGCLASS_GPR16:
        case ZYDIS_REGCLASS_GPR32:
        case ZYDIS_REGCLASS_GPR64: {
            const ZydisRegister whole =
                ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
            const unsigned number = static_cast<std::uint8_t>(ZydisRegisterGetId(whole));
            return number < 8 ? kGeneral[number] : static_cast<std::uint8_t>(kR8 + number - 8);
        }
        case ZYDIS_REGCLASS_FLAGS:
            return kFlagsRegister;
        case ZYDIS_REGCLASS_IP:
            return kInstructionPointer;
        case ZYDIS_REGCLASS_XMM:
        case ZYDIS_REGCLASS_YMM:
        case ZYDIS_REGCLASS_ZMM:
            return static_cast<std::uint8_t>(kVectors + id);
        case ZYDIS_REGCLASS_MASK:
            return static_cast<std::uint8_t>(kMasks + id);
        case ZYDIS_REGCLASS_MMX:
            return static_cast<std::uint8_t>(kMmx + id);
        case ZYDIS_REGCLASS_X87:
            return static_cast<std::uint8_t>(kX87 + id);
        default:
            return 0;
    }
}

bool is_special(std::uint8_t reg) {
    return reg == kStackPointer || reg == kFlagsRegister || reg == kInstructionPointer;
}

// Those that do not fit are left out; the special ones of branches are the last that would be.
void put(std::span<std::uint8_t> registers, std::uint8_t reg, bool first) {
    if (reg == 0 || std::find(registers.begin(), registers.end(), reg) != registers.end()) return;
    if (first) {
        std::rotate(registers.begin(), registers.end() - 1, registers.end());
        registers.front() = reg;
        return;
    }
    const auto free = std::find(registers.begin(), registers.end(), 0);
    if (free != registers.end()) *free = reg;
}

bool is_branch(const ZydisDecodedInstruction& instruction) {
    switch (instruction.meta.category) {
        case ZYDIS_CATEGORY_COND_BR:
        case ZYDIS_CATEGORY_UNCOND_BR:
        case ZYDIS_CATEGORY_CALL:
        case ZYDIS_CATEGORY_RET:
            return true;
        default:
            return false;
    }
}

}  // namespace

ChampsimForm champsim_form(const trace_instr_t& instr) {
    ChampsimForm form{};
    form.record.ip = instr.pc;
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (!ZYAN_SUCCESS(
            ZydisDecoderDecodeFull(&decoder(), instr.bytes, instr.length, &instruction, operands)))
        return form;
    const bool branch = is_branch(instruction);
    form.record.is_branch = branch ? 1 : 0;
    form.is_conditional = instruction.meta.category == ZYDIS_CATEGORY_COND_BR;
    const std::span sources(form.record.source_registers);
    const std::span destinations(form.record.destination_registers);
    for (unsigned i = 0; i < instruction.operand_count; ++i) {
        const ZydisDecodedOperand& operand = operands[i];
        if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) {
            form.memory_operands += operand.mem.type == ZYDIS_MEMOP_TYPE_MEM ? 1 : 0;
            put(sources, number_of(operand.mem.base), false);
            put(sources, number_of(operand.mem.index), false);
        }
        if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
        const std::uint8_t reg = number_of(operand.reg.value);
        // System calls are none: they return.
        if (reg == kInstructionPointer && !branch) continue;
        const bool first = branch && is_special(reg);
        if (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) put(sources, reg, first);
        if (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) put(destinations, reg, first);
    }
    return form;
}

}  // namespace assay::tracing
