#include "framework/driver/native/decode/decoder.h"

#include "framework/driver/native/decode/form_key.h"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>
#include <vector>

namespace assay::native {
namespace {

std::uint8_t gpr_of(ZydisRegister reg) {
    if (reg == ZYDIS_REGISTER_NONE) return kNoGpr;
    if (reg == ZYDIS_REGISTER_RIP || reg == ZYDIS_REGISTER_EIP) return kRip;
    const ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    if (full < ZYDIS_REGISTER_RAX || full > ZYDIS_REGISTER_R15) return kNoGpr;
    return static_cast<std::uint8_t>(full - ZYDIS_REGISTER_RAX);
}

void note_read(Form& form, ZydisRegister reg) {
    const std::uint8_t number = gpr_of(reg);
    if (number < 16) form.reads |= bit(number);
}

// Instructions that leave their destination as it was: rdssp without shadow stacks (SDM volume 2),
// bit scans of 0 on all processors so far, and what processors without BMI1 and LZCNT take for bit
// scans.
bool may_not_write(const ZydisDecodedInstruction& zydis) {
    switch (zydis.mnemonic) {
        case ZYDIS_MNEMONIC_RDSSPD:
        case ZYDIS_MNEMONIC_RDSSPQ:
        case ZYDIS_MNEMONIC_BSF:
        case ZYDIS_MNEMONIC_BSR:
        case ZYDIS_MNEMONIC_TZCNT:
        case ZYDIS_MNEMONIC_LZCNT:
            return true;
        default:
            return false;
    }
}

void note_register(Form& form, const ZydisDecodedInstruction& zydis,
                   const ZydisDecodedOperand& operand) {
    const std::uint8_t number = gpr_of(operand.reg.value);
    if (number >= 16) return;
    const bool whole = operand.size >= 32 && !may_not_write(zydis) &&
                       operand.actions & ZYDIS_OPERAND_ACTION_WRITE &&
                       !(operand.actions & ZYDIS_OPERAND_ACTION_CONDWRITE);
    if (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) form.writes |= bit(number);
    if (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ || !whole) form.reads |= bit(number);
    if (whole) form.kills |= bit(number);
}

RegisterOperand register_operand(const ZydisDecodedOperand& operand) {
    const ZydisRegister reg = operand.reg.value;
    RegisterOperand out;
    out.bytes = static_cast<std::uint8_t>(operand.size / 8);
    switch (ZydisRegisterGetClass(reg)) {
        case ZYDIS_REGCLASS_XMM:
        case ZYDIS_REGCLASS_YMM:
        case ZYDIS_REGCLASS_ZMM:
            out.kind = RegisterOperand::kVector;
            out.number = static_cast<std::uint8_t>(ZydisRegisterGetId(reg));
            return out;
        default:
            break;
    }
    const std::uint8_t number = gpr_of(reg);
    if (number >= 16) return {};
    out.kind = reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH ? RegisterOperand::kHighByte
                                                                    : RegisterOperand::kGpr;
    out.number = number;
    return out;
}

// Zydis lists explicit operands first.
void note_register_operand(Form& form, const ZydisDecodedOperand& operand) {
    const RegisterOperand reg = register_operand(operand);
    const bool hidden = operand.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN;
    if (reg.kind == RegisterOperand::kNone || (hidden && reg.number == RSP)) return;
    if (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
        form.destination.kind == RegisterOperand::kNone)
        form.destination = reg;
    if (!(operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ)) return;
    for (RegisterOperand& source : form.sources)
        if (source.kind == RegisterOperand::kNone) {
            source = reg;
            return;
        }
}

// Under an opmask other than k0, or the mask of a register.
bool is_masked(const ZydisDecodedInstruction& zydis) {
    switch (zydis.mnemonic) {
        case ZYDIS_MNEMONIC_MASKMOVQ:
        case ZYDIS_MNEMONIC_MASKMOVDQU:
        case ZYDIS_MNEMONIC_VMASKMOVDQU:
        case ZYDIS_MNEMONIC_VMASKMOVPS:
        case ZYDIS_MNEMONIC_VMASKMOVPD:
        case ZYDIS_MNEMONIC_VPMASKMOVD:
        case ZYDIS_MNEMONIC_VPMASKMOVQ:
            return true;
        default:
            return zydis.avx.mask.reg != ZYDIS_REGISTER_NONE &&
                   zydis.avx.mask.reg != ZYDIS_REGISTER_K0;
    }
}

bool touches_no_data(const ZydisDecodedInstruction& zydis) {
    switch (zydis.meta.category) {
        case ZYDIS_CATEGORY_PREFETCH:
        case ZYDIS_CATEGORY_WIDENOP:
        case ZYDIS_CATEGORY_NOP:
        case ZYDIS_CATEGORY_CLFLUSHOPT:
        case ZYDIS_CATEGORY_CLWB:
        case ZYDIS_CATEGORY_CLDEMOTE:
            return true;
        default:
            return zydis.mnemonic == ZYDIS_MNEMONIC_CLFLUSH;
    }
}

// By category: movsd and cmpsd are names of SSE instructions, too.
bool is_string_instruction(const ZydisDecodedInstruction& zydis) {
    return zydis.meta.category == ZYDIS_CATEGORY_STRINGOP;
}

// gs is the driver's while translated code runs: the operand is rewritten, where it can be.
void note_gs(Form& form, const ZydisDecodedInstruction& zydis, const ZydisDecodedOperand& operand) {
    form.uses_gs = true;
    const bool by_modrm = form.modrm_offset != 0 && !touches_no_data(zydis) &&
                          operand.visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
                          form.special == Special::kNone && form.flow == Flow::kNone &&
                          form.processor_use == ProcessorUse::kNone;
    if (!by_modrm) form.flow = Flow::kUnsupported;
}

void note_memory(Form& form, const ZydisDecodedInstruction& zydis,
                 const ZydisDecodedOperand& operand) {
    note_read(form, operand.mem.base);
    if (operand.mem.type != ZYDIS_MEMOP_TYPE_VSIB) note_read(form, operand.mem.index);
    if (operand.mem.type == ZYDIS_MEMOP_TYPE_VSIB) form.special = Special::kGather;
    if (operand.mem.type == ZYDIS_MEMOP_TYPE_AGEN) return;
    if (zydis.meta.category == ZYDIS_CATEGORY_NOP || zydis.meta.category == ZYDIS_CATEGORY_WIDENOP)
        return;
    if (operand.mem.segment == ZYDIS_REGISTER_GS) note_gs(form, zydis, operand);
    if (touches_no_data(zydis)) return;

    MemoryReference reference;
    const bool reads = operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ;
    const bool writes = operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
    reference.kind = reads && writes ? TRACE_SITE_MODIFY
                     : writes        ? TRACE_SITE_WRITE
                                     : TRACE_SITE_READ;
    reference.base = gpr_of(operand.mem.base);
    if (operand.mem.type != ZYDIS_MEMOP_TYPE_VSIB) reference.index = gpr_of(operand.mem.index);
    reference.scale = operand.mem.scale ? operand.mem.scale : 1;
    reference.bytes = static_cast<std::uint16_t>(operand.size / 8);
    if (reference.bytes == 0) reference.bytes = 1;
    const bool hidden = operand.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN;
    reference.encoded = !hidden && !is_string_instruction(zydis);
    if (operand.mem.segment == ZYDIS_REGISTER_FS) reference.segment = Segment::kFs;
    if (operand.mem.segment == ZYDIS_REGISTER_GS) reference.segment = Segment::kGs;
    reference.address32 = zydis.address_width == 32 && reference.base != RSP;
    // Zydis names the stack operand of a push by the pointer before the decrement.
    if (hidden && writes && reference.base == RSP)
        reference.bias = static_cast<std::int16_t>(-static_cast<int>(reference.bytes));
    // SDM, POP: a destination addressed by rsp is computed after the increment.
    if (zydis.mnemonic == ZYDIS_MNEMONIC_POP && !hidden && reference.base == RSP)
        reference.bias = static_cast<std::int16_t>(reference.bytes);
    if (form.reference_count == 2) {  // no instruction of user mode has three
        form.flow = Flow::kUnsupported;
        return;
    }
    form.references[form.reference_count++] = reference;
}

// mov, pop, lfs or lgs to fs or gs, whose bases are the driver's to know. Those of ds, es and ss
// are 0 whatever they hold (SDM volume 3, 3.4.4).
bool loads_own_segment(const ZydisDecodedInstruction& zydis, const ZydisDecodedOperand* operands) {
    return std::any_of(operands, operands + zydis.operand_count, [](const auto& operand) {
        return operand.type == ZYDIS_OPERAND_TYPE_REGISTER &&
               operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
               (operand.reg.value == ZYDIS_REGISTER_FS || operand.reg.value == ZYDIS_REGISTER_GS);
    });
}

Flow flow_of(const ZydisDecodedInstruction& zydis, const ZydisDecodedOperand* operands) {
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
        case ZYDIS_MNEMONIC_IRETQ:
        case ZYDIS_MNEMONIC_SYSRET:
        case ZYDIS_MNEMONIC_SYSEXIT:
        case ZYDIS_MNEMONIC_XBEGIN:
        case ZYDIS_MNEMONIC_XEND:
        case ZYDIS_MNEMONIC_SWAPGS:
        case ZYDIS_MNEMONIC_INCSSPD:
        case ZYDIS_MNEMONIC_INCSSPQ:
            return Flow::kUnsupported;
        default:
            break;
    }
    const bool base = zydis.mnemonic == ZYDIS_MNEMONIC_WRFSBASE ||
                      zydis.mnemonic == ZYDIS_MNEMONIC_WRGSBASE ||
                      zydis.mnemonic == ZYDIS_MNEMONIC_RDGSBASE;
    if (base && zydis.operand_width != 64) return Flow::kUnsupported;
    if (zydis.meta.category == ZYDIS_CATEGORY_COND_BR) return Flow::kConditional;
    return loads_own_segment(zydis, operands) ? Flow::kUnsupported : Flow::kNone;
}

// A shift or rotation of one operand by another, and one that shifts bits in from a third.
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

// The map as TRACE_OPCODE numbers it.
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
    // What Zydis takes for the opcode of 3DNow! is the byte behind the operands.
    if (zydis.opcode_map == ZYDIS_OPCODE_MAP_0F0F) return TRACE_OPCODE(1, 0x0f);
    const bool vector = zydis.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY;
    return TRACE_OPCODE(map_of(zydis) | (vector ? TRACE_MAP_VECTOR : 0), zydis.opcode);
}

void note_flags(Form& form, const ZydisDecodedInstruction& zydis,
                const ZydisDecodedOperand* operands) {
    if (!zydis.cpu_flags) return;
    form.flags_read = zydis.cpu_flags->tested & kArithmeticFlags;
    if (writes_flags_conditionally(zydis, operands)) return;
    // Flags that the manual calls undefined are as good as overwritten: no program can rely on
    // them.
    form.flags_killed = (zydis.cpu_flags->modified | zydis.cpu_flags->set_0 |
                         zydis.cpu_flags->set_1 | zydis.cpu_flags->undefined) &
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

// Reads come before writes; cmps reads [rdi] first, as Valgrind has it (the manual leaves the
// order open).
void order_references(Form& form, const ZydisDecodedInstruction& zydis) {
    if (form.reference_count != 2) return;
    const bool compares = is_string_instruction(zydis) && (zydis.opcode & 0xfe) == 0xa6;
    if (compares || form.references[0].kind == TRACE_SITE_WRITE)
        std::swap(form.references[0], form.references[1]);
}

// Valgrind makes a locked instruction a load and a compare-and-swap, and a branch back in case that
// fails (VEX/priv/guest_amd64_toIR.c, casLE); but for those that compare and exchange themselves.
// SDM volume 2, XCHG: with a memory operand it is locked without the prefix.
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

Form make_form(const ZydisDecodedInstruction& zydis, const ZydisDecodedOperand* operands) {
    Form form;
    note_encoding(form, zydis);
    form.flow = flow_of(zydis, operands);
    form.special = special_of(zydis, operands);
    form.processor_use = processor_use_of(zydis);
    form.sets_fs_base = zydis.mnemonic == ZYDIS_MNEMONIC_WRFSBASE;
    form.reads_gs_base = zydis.mnemonic == ZYDIS_MNEMONIC_RDGSBASE;
    form.sets_gs_base = zydis.mnemonic == ZYDIS_MNEMONIC_WRGSBASE;
    for (unsigned i = 0; i < zydis.operand_count; ++i) {
        if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER) {
            note_register(form, zydis, operands[i]);
            note_register_operand(form, operands[i]);
        }
        if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY) note_memory(form, zydis, operands[i]);
    }
    form.masked = is_masked(zydis);
    note_flags(form, zydis, operands);
    order_references(form, zydis);
    form.trace_flags = trace_flags_of(form);
    form.retried = is_retried(zydis, form);
    return form;
}

// nop [rax + rax + "assy"]
constexpr std::array<std::uint8_t, kMarkerBytes> kMarker{0x0f, 0x1f, 0x84, 0x00,
                                                         'a',  's',  's',  'y'};
constexpr std::uint16_t kLongNop = TRACE_OPCODE(1, 0x1f);

bool is_marker(std::span<const std::uint8_t> code) {
    return code.size() >= kMarker.size() &&
           std::equal(kMarker.begin(), kMarker.end(), code.begin());
}

}  // namespace

struct Decoder::Impl {
    struct alignas(64) Entry {
        FormKey key;
        Form form;
    };
    static constexpr std::size_t kSlots = 1U << 15;
    static constexpr std::size_t kMostForms = kSlots / 4 * 3;

    ZydisDecoder zydis;
    // Open addressing: 1 + indexes in `entries`, which lie together and stay where they are.
    std::vector<std::uint16_t> slots = std::vector<std::uint16_t>(kSlots);
    std::vector<Entry> entries;
    std::unordered_map<std::uint64_t, Form> unkeyed;  // by pc: what has no key, or no place
    Form marker;

    Impl() {
        ZydisDecoderInit(&zydis, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
        entries.reserve(kMostForms);
        decode_form(kMarker, marker);
        marker.flow = Flow::kMarker;
    }

    bool decode_form(std::span<const std::uint8_t> code, Form& form) const;
    // The slot of the key, or the free one where it belongs.
    std::uint16_t& slot_of(const FormKey& key);
    // Of the instruction at `code`, which is the one at `pc`; null if it is none.
    const Form* form_of(std::span<const std::uint8_t> code, std::uint64_t pc);
};

bool Decoder::Impl::decode_form(std::span<const std::uint8_t> code, Form& form) const {
    ZydisDecodedInstruction instruction;
    std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&zydis, code.data(), code.size(), &instruction,
                                             operands.data())))
        return false;
    form = make_form(instruction, operands.data());
    if (form.disp_bytes != 1) return true;
    // What an EVEX displacement byte counts in: the displacement that a byte of 1 stands for.
    std::array<std::uint8_t, 15> probe{};
    std::memcpy(probe.data(), code.data(), std::min(code.size(), probe.size()));
    probe[form.disp_offset] = 1;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&zydis, probe.data(), probe.size(), &instruction,
                                             operands.data())))
        return false;
    for (unsigned i = 0; i < instruction.operand_count; ++i)
        if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY && operands[i].mem.disp.has_displacement)
            form.disp_scale = static_cast<std::uint8_t>(operands[i].mem.disp.value);
    return true;
}

std::uint16_t& Decoder::Impl::slot_of(const FormKey& key) {
    std::size_t at = key.hash() % kSlots;
    while (slots[at] != 0 && !(entries[slots[at] - 1U].key == key)) at = (at + 1) % kSlots;
    return slots[at];
}

Decoder::Decoder() : impl_(new Impl) {}
Decoder::~Decoder() {
    delete impl_;
}

const Form* Decoder::Impl::form_of(std::span<const std::uint8_t> code, std::uint64_t pc) {
    const std::optional<FormKey> key = form_key(code);
    std::uint16_t* const slot = key ? &slot_of(*key) : nullptr;
    if (slot != nullptr && *slot != 0) return &entries[*slot - 1U].form;
    Form form;
    if (!decode_form(code, form)) return nullptr;
    if (slot == nullptr || entries.size() == kMostForms) return &(unkeyed[pc] = form);
    entries.push_back({*key, form});
    *slot = static_cast<std::uint16_t>(entries.size());
    return &entries.back().form;
}

bool Decoder::decode(std::span<const std::uint8_t> code, std::uint64_t pc, Instruction& out) {
    const std::size_t available = std::min<std::size_t>(code.size(), 15);
    out.pc = pc;
    out.form = impl_->form_of(code.first(available), pc);
    if (out.form == nullptr || out.form->length > available) return false;
    std::memcpy(out.bytes, code.data(), available);
    if (out.form->opcode == kLongNop && is_marker(code)) out.form = &impl_->marker;
    return true;
}

}  // namespace assay::native
