#include "framework/x86/make_form.h"

#include "framework/x86/form_operands.h"

#include <algorithm>

namespace assay::native {
namespace {

// True for mov, pop, lfs and lgs to fs or gs, which the driver uses itself. The bases of ds, es and
// ss are 0 whatever these contain (SDM volume 3, 3.4.4).
bool loads_own_segment(const ZydisDecodedInstruction& zydis, const ZydisDecodedOperand* operands) {
    return std::any_of(operands, operands + zydis.operand_count, [](const auto& operand) {
        return operand.type == ZYDIS_OPERAND_TYPE_REGISTER &&
               operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
               (operand.reg.value == ZYDIS_REGISTER_FS || operand.reg.value == ZYDIS_REGISTER_GS);
    });
}

ProcessorExtension extension_of(const ZydisDecodedInstruction& zydis) {
    if (zydis.mnemonic == ZYDIS_MNEMONIC_XBEGIN || zydis.mnemonic == ZYDIS_MNEMONIC_XEND)
        return ProcessorExtension::kTransactions;
    return zydis.meta.category == ZYDIS_CATEGORY_AMX_TILE ? ProcessorExtension::kTiles
                                                          : ProcessorExtension::kNone;
}

Flow flow_of(const ZydisDecodedInstruction& zydis, const ZydisDecodedOperand* operands) {
    if (extension_of(zydis) != ProcessorExtension::kNone) return Flow::kUnsupported;
    if (zydis.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) return Flow::kUnsupported;
    const bool relative = zydis.raw.imm[0].is_relative;
    switch (zydis.mnemonic) {
        case ZYDIS_MNEMONIC_JMP:
            return relative ? Flow::kJump : Flow::kJumpIndirect;
        case ZYDIS_MNEMONIC_CALL:
            return relative ? Flow::kCall : Flow::kCallIndirect;
        case ZYDIS_MNEMONIC_RET:
            return Flow::kReturn;
        case ZYDIS_MNEMONIC_SYSCALL:
            return Flow::kSyscall;
        case ZYDIS_MNEMONIC_IRETQ:
            return Flow::kInterruptReturn;
        case ZYDIS_MNEMONIC_LOOP:
        case ZYDIS_MNEMONIC_LOOPE:
        case ZYDIS_MNEMONIC_LOOPNE:
        case ZYDIS_MNEMONIC_JRCXZ:
        case ZYDIS_MNEMONIC_JECXZ:
            return Flow::kCounted;
        case ZYDIS_MNEMONIC_INT3:
        case ZYDIS_MNEMONIC_INT1:
        case ZYDIS_MNEMONIC_UD0:
        case ZYDIS_MNEMONIC_UD1:
        case ZYDIS_MNEMONIC_UD2:
        case ZYDIS_MNEMONIC_HLT:
            return Flow::kTrap;
        case ZYDIS_MNEMONIC_INT:
        case ZYDIS_MNEMONIC_SYSENTER:
        case ZYDIS_MNEMONIC_IRET:
        case ZYDIS_MNEMONIC_IRETD:
        case ZYDIS_MNEMONIC_SYSRET:
        case ZYDIS_MNEMONIC_SYSEXIT:
        case ZYDIS_MNEMONIC_SWAPGS:
        case ZYDIS_MNEMONIC_INCSSPD:
        case ZYDIS_MNEMONIC_INCSSPQ:
            return Flow::kUnsupported;
        default:
            break;
    }
    // Only Knights Corner had branches with another encoding (jkzd). Elsewhere they are no
    // instructions.
    if (zydis.meta.category == ZYDIS_CATEGORY_COND_BR)
        return zydis.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY ? Flow::kConditional
                                                                   : Flow::kTrap;
    return loads_own_segment(zydis, operands) ? Flow::kUnsupported : Flow::kNone;
}

// A shift or rotation of one operand by another, or a shift of bits from a third one.
bool is_shift(const ZydisDecodedInstruction& zydis) {
    switch (zydis.mnemonic) {
        case ZYDIS_MNEMONIC_SHL:
        case ZYDIS_MNEMONIC_SHR:
        case ZYDIS_MNEMONIC_SAR:
        case ZYDIS_MNEMONIC_ROL:
        case ZYDIS_MNEMONIC_ROR:
        case ZYDIS_MNEMONIC_RCL:
        case ZYDIS_MNEMONIC_RCR:
            return true;
        default:
            return false;
    }
}

bool is_double_shift(const ZydisDecodedInstruction& zydis) {
    return zydis.mnemonic == ZYDIS_MNEMONIC_SHLD || zydis.mnemonic == ZYDIS_MNEMONIC_SHRD;
}

bool writes_flags_conditionally(const ZydisDecodedInstruction& zydis,
                                const ZydisDecodedOperand* operands) {
    if (is_shift(zydis)) return operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
    if (is_double_shift(zydis)) return operands[2].type == ZYDIS_OPERAND_TYPE_REGISTER;
    return (zydis.attributes &
            (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)) != 0;
}

bool shifts_by_immediate(const ZydisDecodedInstruction& zydis) {
    return (is_shift(zydis) || is_double_shift(zydis)) && zydis.raw.imm[0].size != 0;
}

Special special_of(const ZydisDecodedInstruction& zydis, const ZydisDecodedOperand* operands) {
    if (is_string_instruction(zydis) &&
        (zydis.attributes &
         (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)))
        return Special::kString;
    switch (zydis.mnemonic) {
        case ZYDIS_MNEMONIC_XLAT:
            return Special::kTranslate;
        case ZYDIS_MNEMONIC_CLZERO:
            return Special::kClearLine;
        case ZYDIS_MNEMONIC_CLFLUSH:
        case ZYDIS_MNEMONIC_CLFLUSHOPT:
        case ZYDIS_MNEMONIC_CLWB:
            return Special::kFlushLine;
        case ZYDIS_MNEMONIC_BT:
        case ZYDIS_MNEMONIC_BTS:
        case ZYDIS_MNEMONIC_BTR:
        case ZYDIS_MNEMONIC_BTC:
            return operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
                           operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER
                       ? Special::kBitString
                       : Special::kNone;
        default:
            return Special::kNone;
    }
}

ProcessorUse processor_use_of(const ZydisDecodedInstruction& zydis) {
    switch (zydis.mnemonic) {
        case ZYDIS_MNEMONIC_CPUID:
        case ZYDIS_MNEMONIC_XGETBV:
            return ProcessorUse::kIdentify;
        case ZYDIS_MNEMONIC_XSAVE:
        case ZYDIS_MNEMONIC_XSAVE64:
        case ZYDIS_MNEMONIC_XSAVEC:
        case ZYDIS_MNEMONIC_XSAVEC64:
        case ZYDIS_MNEMONIC_XSAVEOPT:
        case ZYDIS_MNEMONIC_XSAVEOPT64:
        case ZYDIS_MNEMONIC_XRSTOR:
        case ZYDIS_MNEMONIC_XRSTOR64:
            return ProcessorUse::kSaveState;
        default:
            return ProcessorUse::kNone;
    }
}

// The opcode map in TRACE_OPCODE's numbers.
unsigned map_of(const ZydisDecodedInstruction& zydis) {
    switch (zydis.opcode_map) {
        case ZYDIS_OPCODE_MAP_0F:
            return 1;
        case ZYDIS_OPCODE_MAP_0F38:
            return 2;
        case ZYDIS_OPCODE_MAP_0F3A:
            return 3;
        case ZYDIS_OPCODE_MAP_MAP5:
            return 5;
        case ZYDIS_OPCODE_MAP_MAP6:
            return 6;
        case ZYDIS_OPCODE_MAP_XOP8:
            return 8;
        case ZYDIS_OPCODE_MAP_XOP9:
            return 9;
        case ZYDIS_OPCODE_MAP_XOPA:
            return 10;
        default:
            return 0;
    }
}

std::uint16_t opcode_of(const ZydisDecodedInstruction& zydis) {
    // For 3DNow!, Zydis reports the byte after the operands as the opcode.
    if (zydis.opcode_map == ZYDIS_OPCODE_MAP_0F0F) return TRACE_OPCODE(1, 0x0f);
    const bool vector = zydis.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY;
    return TRACE_OPCODE(map_of(zydis) | (vector ? TRACE_MAP_VECTOR : 0), zydis.opcode);
}

// Most instructions overwrite flags that the manual calls undefined for them. AMD's processors
// leave the flags unchanged for these instructions, and a program can save them.
bool keeps_undefined_flags(const ZydisDecodedInstruction& zydis) {
    switch (zydis.mnemonic) {
        case ZYDIS_MNEMONIC_BSF:
        case ZYDIS_MNEMONIC_BSR:
        case ZYDIS_MNEMONIC_LZCNT:
        case ZYDIS_MNEMONIC_TZCNT:
        case ZYDIS_MNEMONIC_BT:
        case ZYDIS_MNEMONIC_BTC:
        case ZYDIS_MNEMONIC_BTR:
        case ZYDIS_MNEMONIC_BTS:
        case ZYDIS_MNEMONIC_MUL:
        case ZYDIS_MNEMONIC_IMUL:
        case ZYDIS_MNEMONIC_DIV:
        case ZYDIS_MNEMONIC_IDIV:
            return true;
        default:
            return false;
    }
}

void note_flags(Form& form, const ZydisDecodedInstruction& zydis,
                const ZydisDecodedOperand* operands) {
    if (!zydis.cpu_flags) return;
    form.flags_read = zydis.cpu_flags->tested & kArithmeticFlags;
    if (writes_flags_conditionally(zydis, operands)) return;
    // The kernel returns with the flags that the program had (arch/x86/entry/entry_64.S).
    if (form.flow == Flow::kSyscall) return;
    form.flags_killed =
        (zydis.cpu_flags->modified | zydis.cpu_flags->set_0 | zydis.cpu_flags->set_1 |
         (keeps_undefined_flags(zydis) ? 0 : zydis.cpu_flags->undefined)) &
        kArithmeticFlags;
    form.shift_by_immediate = shifts_by_immediate(zydis);
}

std::uint8_t trace_flags_of(const Form& form) {
    unsigned flags = 0;
    for (unsigned i = 0; i < form.reference_count; ++i) {
        if (form.references[i].kind != TRACE_SITE_WRITE) flags |= TRACE_INSTR_LOAD;
        if (form.references[i].kind != TRACE_SITE_READ) flags |= TRACE_INSTR_STORE;
    }
    if (form.flow == Flow::kConditional || form.flow == Flow::kCounted)
        flags |= TRACE_INSTR_CONDITIONAL;
    if (form.flow == Flow::kJumpIndirect || form.flow == Flow::kCallIndirect)
        flags |= TRACE_INSTR_INDIRECT;
    if (form.flow == Flow::kCall || form.flow == Flow::kCallIndirect) flags |= TRACE_INSTR_CALL;
    if (form.flow == Flow::kReturn) flags |= TRACE_INSTR_RETURN;
    if (form.special == Special::kString) flags |= TRACE_INSTR_REPEATED | TRACE_INSTR_VARIABLE;
    if (form.special == Special::kGather) flags |= TRACE_INSTR_VARIABLE;
    return static_cast<std::uint8_t>(flags);
}

void note_encoding(Form& form, const ZydisDecodedInstruction& zydis) {
    form.length = zydis.length;
    form.modrm_offset = zydis.raw.modrm.offset;
    form.disp_offset = zydis.raw.disp.offset;
    form.disp_bytes = static_cast<std::uint8_t>(zydis.raw.disp.size / 8);
    form.imm_offset = zydis.raw.imm[0].offset;
    form.imm_bytes = static_cast<std::uint8_t>(zydis.raw.imm[0].size / 8);
    form.opcode = opcode_of(zydis);
    form.mnemonic = static_cast<std::uint16_t>(zydis.mnemonic);
    form.rip_relative = zydis.attributes & ZYDIS_ATTRIB_IS_RELATIVE && form.disp_bytes == 4 &&
                        form.modrm_offset && zydis.raw.modrm.mod == 0 && zydis.raw.modrm.rm == 5;
    form.opcode_offset = form.modrm_offset ? static_cast<std::uint8_t>(form.modrm_offset - 1)
                                           : static_cast<std::uint8_t>(zydis.raw.prefix_count);
}

// Valgrind turns a locked instruction into a load, a compare-and-swap, and a branch back in case
// that fails (VEX/priv/guest_amd64_toIR.c, casLE). Instructions that compare and exchange are the
// exception. SDM volume 2, XCHG: with a memory operand it is locked even without the prefix.
bool is_retried(const ZydisDecodedInstruction& zydis, const Form& form) {
    switch (zydis.mnemonic) {
        case ZYDIS_MNEMONIC_CMPXCHG:
        case ZYDIS_MNEMONIC_CMPXCHG8B:
        case ZYDIS_MNEMONIC_CMPXCHG16B:
            return false;
        case ZYDIS_MNEMONIC_XCHG:
            return form.reference_count != 0;
        default:
            return zydis.attributes & ZYDIS_ATTRIB_HAS_LOCK;
    }
}

// Some processors lack these two. Zydis counts them among arithmetic and branches.
bool is_transactional(const ZydisDecodedInstruction& zydis) {
    return zydis.mnemonic == ZYDIS_MNEMONIC_XTEST || zydis.mnemonic == ZYDIS_MNEMONIC_XABORT;
}

// False for arithmetic, moves and branches that use only general-purpose registers.
bool may_fault(const ZydisDecodedInstruction& zydis, const ZydisDecodedOperand* operands) {
    switch (zydis.meta.category) {
        case ZYDIS_CATEGORY_BINARY:
        case ZYDIS_CATEGORY_CMOV:
        case ZYDIS_CATEGORY_COND_BR:
        case ZYDIS_CATEGORY_DATAXFER:
        case ZYDIS_CATEGORY_LOGICAL:
        case ZYDIS_CATEGORY_ROTATE:
        case ZYDIS_CATEGORY_SETCC:
        case ZYDIS_CATEGORY_SHIFT:
        case ZYDIS_CATEGORY_UNCOND_BR:
            break;
        default:
            return zydis.mnemonic != ZYDIS_MNEMONIC_LEA;
    }
    // Moves to and from segment and control registers may fault.
    const auto is_harmless = [](const ZydisDecodedOperand& operand) {
        return operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE ||
               (operand.type == ZYDIS_OPERAND_TYPE_REGISTER && gpr_of(operand.reg.value) != kNoGpr);
    };
    return zydis.mnemonic == ZYDIS_MNEMONIC_DIV || zydis.mnemonic == ZYDIS_MNEMONIC_IDIV ||
           is_transactional(zydis) ||
           !std::all_of(operands, operands + zydis.operand_count_visible, is_harmless);
}

// Copies::copy_in_segment() needs free registers. cmpxchg16b with a 32-bit or rip-relative address
// leaves one too few. Hidden operands must have 64-bit addresses.
bool can_rewrite_segment(const Form& form) {
    const auto in_segment = std::find_if(
        form.references, form.references + form.reference_count,
        [](const MemoryReference& reference) { return reference.segment != Segment::kFlat; });
    if (in_segment == form.references + form.reference_count) return true;
    const bool narrow = in_segment->address32;
    if (form.special == Special::kGather || form.special == Special::kClearLine) return !narrow;
    if (!in_segment->encoded) return !narrow || form.special == Special::kTranslate;
    const int wanted = narrow || in_segment->base == kRip ? 2 : 1;
    return __builtin_popcount(registers_for_address(form)) >= wanted;
}

void note_base(Form& form, const ZydisDecodedInstruction& zydis) {
    const bool fs =
        zydis.mnemonic == ZYDIS_MNEMONIC_RDFSBASE || zydis.mnemonic == ZYDIS_MNEMONIC_WRFSBASE;
    form.reads_base =
        zydis.mnemonic == ZYDIS_MNEMONIC_RDFSBASE || zydis.mnemonic == ZYDIS_MNEMONIC_RDGSBASE;
    form.sets_base =
        zydis.mnemonic == ZYDIS_MNEMONIC_WRFSBASE || zydis.mnemonic == ZYDIS_MNEMONIC_WRGSBASE;
    if (form.reads_base || form.sets_base) form.segment = fs ? Segment::kFs : Segment::kGs;
}

}  // namespace

Form make_form(const ZydisDecodedInstruction& zydis, const ZydisDecodedOperand* operands) {
    Form form;
    note_encoding(form, zydis);
    form.flow = flow_of(zydis, operands);
    form.extension = extension_of(zydis);
    form.special = special_of(zydis, operands);
    form.processor_use = processor_use_of(zydis);
    note_base(form, zydis);
    note_operands(form, zydis, operands);
    if (form.segment != Segment::kFlat && form.flow == Flow::kNone && !can_rewrite_segment(form))
        form.flow = Flow::kUnsupported;
    note_flags(form, zydis, operands);
    form.trace_flags = trace_flags_of(form);
    form.retried = is_retried(zydis, form);
    form.may_fault = may_fault(zydis, operands);
    return form;
}

}  // namespace assay::native
