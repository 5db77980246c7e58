// Source: Intel SDM volume 2, chapter 2 and appendix A.
#include "framework/x86/form_operands.h"

#include "framework/x86/instruction_facts.h"

#include <cstring>
#include <utility>

namespace assay::native {
namespace {

bool is_legacy_prefix(std::uint8_t byte) {
    switch (byte) {
        case 0x26:
        case 0x2e:
        case 0x36:
        case 0x3e:
        case 0x64:
        case 0x65:
        case 0x66:
        case 0x67:
        case 0xf0:
        case 0xf2:
        case 0xf3:
            return true;
        default:
            return false;
    }
}

bool is_rex(std::uint8_t byte) {
    return (byte & 0xf0) == 0x40;
}

bool one_byte_map_has_modrm(std::uint8_t op) {
    if (op < 0x40) return (op & 7) < 4;
    if (op >= 0x80 && op <= 0x8f) return true;
    switch (op) {
        case 0x62:
        case 0x63:
        case 0x69:
        case 0x6b:
        case 0xc0:
        case 0xc1:
        case 0xc6:
        case 0xc7:
        case 0xd0:
        case 0xd1:
        case 0xd2:
        case 0xd3:
        case 0xd8:
        case 0xd9:
        case 0xda:
        case 0xdb:
        case 0xdc:
        case 0xdd:
        case 0xde:
        case 0xdf:
        case 0xf6:
        case 0xf7:
        case 0xfe:
        case 0xff:
            return true;
        default:
            return false;
    }
}

bool two_byte_map_has_modrm(std::uint8_t op) {
    if (op >= 0x30 && op <= 0x37) return false;
    if (op >= 0x80 && op <= 0x8f) return false;
    if (op >= 0xc8 && op <= 0xcf) return false;
    switch (op) {
        case 0x04:
        case 0x05:
        case 0x06:
        case 0x07:
        case 0x08:
        case 0x09:
        case 0x0a:
        case 0x0b:
        case 0x0c:
        case 0x0e:
        case 0x77:
        case 0xa0:
        case 0xa1:
        case 0xa2:
        case 0xa8:
        case 0xa9:
        case 0xaa:
            return false;
        default:
            return true;
    }
}

// True for opcodes of VEX map 3 whose immediate names the fourth operand, a register (SDM volume 2,
// VBLENDVPS; AMD64 APM volume 6, VPERMIL2PS and FMA4).
bool immediate_is_register(std::uint8_t op) {
    return (op >= 0x48 && op <= 0x4c) || (op >= 0x5c && op <= 0x5f) || (op >= 0x68 && op <= 0x6f) ||
           (op >= 0x78 && op <= 0x7f);
}

constexpr std::size_t kMaxKeyBytes = 14;

// The number of bytes of the key; 0 if there is no key.
std::size_t form_bytes(std::span<const std::uint8_t> code) {
    std::size_t i = 0;
    while (i < code.size() && is_legacy_prefix(code[i])) ++i;
    if (i < code.size() && is_rex(code[i])) ++i;
    if (i + 6 > code.size() || i > 6) return 0;
    if (is_rex(code[i]) || is_legacy_prefix(code[i])) return 0;
    bool modrm = true;
    if (code[i] == 0x0f) {
        const std::uint8_t op = code[++i];
        if (op == 0x0f) return 0;
        if (op == 0x38 || op == 0x3a)
            ++i;
        else
            modrm = two_byte_map_has_modrm(op);
    } else if (code[i] == 0xc5) {
        i += 2;
        modrm = code[i] != 0x77;
    } else if (code[i] == 0xc4) {
        i += 3;
        const unsigned map = code[i - 2] & 0x1f;
        if (map == 3 && immediate_is_register(code[i])) return 0;
        modrm = !(code[i] == 0x77 && map == 1);
    } else if (code[i] == 0x62) {
        i += 4;
    } else if (code[i] == 0x8f && (code[i + 1] & 0x38) != 0) {
        return 0;
    } else {
        modrm = one_byte_map_has_modrm(code[i]);
    }
    ++i;
    if (modrm) {
        if (i >= code.size()) return 0;
        const std::uint8_t byte = code[i++];
        if ((byte & 0xc0) != 0xc0 && (byte & 7) == 4) {
            if (i >= code.size()) return 0;
            ++i;
        }
    }
    return i <= kMaxKeyBytes ? i : 0;
}

std::uint64_t load_word(const std::uint8_t* at) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    return word;
}

// The first `count` bytes of a word in memory.
std::uint64_t first_bytes(std::uint64_t word, std::size_t count) {
    return count < 8 ? word & ((std::uint64_t{1} << (8 * count)) - 1) : word;
}

}  // namespace

// Reads whole words if the code is long enough: bytes that are copied one by one and then read as a
// word would stall the processor.
std::optional<FormKey> form_key(std::span<const std::uint8_t> code) {
    constexpr std::size_t kWord = sizeof(std::uint64_t);
    const std::size_t length = form_bytes(code);
    if (length == 0) return std::nullopt;
    FormKey key;
    if (code.size() >= 2 * kWord - 1) {
        key.words[0] = first_bytes(load_word(code.data()), length);
        if (length > kWord)
            key.words[1] = first_bytes(load_word(code.data() + kWord - 1) >> 8, length - kWord);
    } else {
        std::memcpy(key.words, code.data(), length);
    }
    key.words[1] |= std::uint64_t{length} << 56;
    return key;
}

std::uint8_t gpr_of(ZydisRegister reg) {
    if (reg == ZYDIS_REGISTER_NONE) return kNoGpr;
    if (reg == ZYDIS_REGISTER_RIP || reg == ZYDIS_REGISTER_EIP) return kRip;
    const ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    if (full < ZYDIS_REGISTER_RAX || full > ZYDIS_REGISTER_R15) return kNoGpr;
    return static_cast<std::uint8_t>(full - ZYDIS_REGISTER_RAX);
}

namespace {

void note_read(Form& form, ZydisRegister reg) {
    const std::uint8_t number = gpr_of(reg);
    if (number < 16) form.reads |= bit(number);
}

// Instructions that may leave their destination unchanged: rdssp without shadow stacks (SDM volume
// 2), bit scans of 0 on all processors so far, and the encodings that processors without BMI1 and
// LZCNT execute as bit scans.
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

RegisterOperand::Kind kind_of(ZydisRegister reg) {
    switch (ZydisRegisterGetClass(reg)) {
        case ZYDIS_REGCLASS_XMM:
        case ZYDIS_REGCLASS_YMM:
        case ZYDIS_REGCLASS_ZMM:
            return RegisterOperand::kVector;
        case ZYDIS_REGCLASS_MASK:
            return RegisterOperand::kMask;
        case ZYDIS_REGCLASS_MMX:
            return RegisterOperand::kMmx;
        case ZYDIS_REGCLASS_X87:
            return RegisterOperand::kX87;
        default:
            break;
    }
    if (gpr_of(reg) >= 16) return RegisterOperand::kNone;
    return reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH ? RegisterOperand::kHighByte
                                                                : RegisterOperand::kGpr;
}

// For scalar instructions, Zydis reports the size of the part of a vector register that they use.
unsigned bytes_of(const ZydisDecodedOperand& operand) {
    switch (ZydisRegisterGetClass(operand.reg.value)) {
        case ZYDIS_REGCLASS_XMM:
            return 16;
        case ZYDIS_REGCLASS_YMM:
            return 32;
        case ZYDIS_REGCLASS_ZMM:
            return 64;
        default:
            return operand.size / 8;
    }
}

RegisterOperand register_operand(const ZydisDecodedOperand& operand) {
    RegisterOperand out;
    out.kind = kind_of(operand.reg.value);
    if (out.kind == RegisterOperand::kNone) return {};
    const bool general =
        out.kind == RegisterOperand::kGpr || out.kind == RegisterOperand::kHighByte;
    out.number = general ? gpr_of(operand.reg.value)
                         : static_cast<std::uint8_t>(ZydisRegisterGetId(operand.reg.value));
    out.bytes = static_cast<std::uint8_t>(bytes_of(operand));
    return out;
}

// Zydis reports that they also write st(0).
bool only_tests(const ZydisDecodedInstruction& zydis) {
    return zydis.mnemonic == ZYDIS_MNEMONIC_FTST || zydis.mnemonic == ZYDIS_MNEMONIC_FXAM;
}

// The opmask of an instruction does not count as an operand. Zydis lists explicit operands first.
void note_register_operand(Form& form, const ZydisDecodedInstruction& zydis,
                           const ZydisDecodedOperand& operand) {
    if (operand.encoding == ZYDIS_OPERAND_ENCODING_MASK) return;
    RegisterOperand reg = register_operand(operand);
    const bool hidden = operand.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN;
    const bool stack_pointer = reg.kind == RegisterOperand::kGpr && reg.number == RSP;
    if (reg.kind == RegisterOperand::kNone || (hidden && stack_pointer)) return;
    const bool reads = operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ;
    const bool writes = operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE && !only_tests(zydis);
    if (reg.kind == RegisterOperand::kX87 && reg.number == 0 && !reads &&
        x87_pushes(zydis.mnemonic) > 0)
        reg.number = 7;
    if (writes && form.destination.kind == RegisterOperand::kNone) form.destination = reg;
    if (!reads) return;
    for (RegisterOperand& source : form.sources)
        if (source.kind == RegisterOperand::kNone) {
            source = reg;
            return;
        }
}

// True under an opmask other than k0, or under a mask in a register.
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

// MPX accesses bounds only if it is enabled (SDM volume 1, 17.5.3). Linux has not enabled it since
// 5.6.
bool touches_no_data(const ZydisDecodedInstruction& zydis) {
    switch (zydis.meta.category) {
        case ZYDIS_CATEGORY_MPX:
        case ZYDIS_CATEGORY_PREFETCH:
        case ZYDIS_CATEGORY_PREFETCHWT1:
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

// True if the instruction only affects the line of its operand in caches.
bool names_line(const ZydisDecodedInstruction& zydis) {
    return touches_no_data(zydis) && zydis.meta.category != ZYDIS_CATEGORY_MPX;
}

Segment segment_of(const ZydisDecodedOperand& operand) {
    if (operand.mem.segment == ZYDIS_REGISTER_FS) return Segment::kFs;
    if (operand.mem.segment == ZYDIS_REGISTER_GS) return Segment::kGs;
    return Segment::kFlat;
}

void note_memory(Form& form, const ZydisDecodedInstruction& zydis,
                 const ZydisDecodedOperand& operand) {
    note_read(form, operand.mem.base);
    if (operand.mem.type != ZYDIS_MEMOP_TYPE_VSIB) note_read(form, operand.mem.index);
    if (operand.mem.type == ZYDIS_MEMOP_TYPE_VSIB) form.special = Special::kGather;
    if (operand.mem.type == ZYDIS_MEMOP_TYPE_AGEN) return;
    if (zydis.meta.category == ZYDIS_CATEGORY_NOP || zydis.meta.category == ZYDIS_CATEGORY_WIDENOP)
        return;
    // The driver uses fs and gs itself while translated code runs. The translator rewrites an
    // operand in them.
    const Segment segment = segment_of(operand);
    if (segment != Segment::kFlat) form.segment = segment;
    if (touches_no_data(zydis) && !names_line(zydis)) return;

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
    reference.segment = segment;
    reference.address32 = zydis.address_width == 32 && reference.base != RSP;
    // Zydis describes the stack operand of a push by the pointer before the decrement.
    if (hidden && writes && reference.base == RSP)
        reference.bias = static_cast<std::int16_t>(-static_cast<int>(reference.bytes));
    // SDM, POP: a destination that is addressed by rsp is computed after the increment.
    if (zydis.mnemonic == ZYDIS_MNEMONIC_POP && !hidden && reference.base == RSP)
        reference.bias = static_cast<std::int16_t>(reference.bytes);
    if (names_line(zydis)) {
        form.names_line = true;
        form.references[0] = reference;
        return;
    }
    if (form.reference_count == 2) {  // no instruction of user mode has three references
        form.flow = Flow::kUnsupported;
        return;
    }
    form.references[form.reference_count++] = reference;
}

// Reads come before writes. cmps reads [rdi] first, as in Valgrind; the manual leaves the order
// open.
void order_references(Form& form, const ZydisDecodedInstruction& zydis) {
    if (form.reference_count != 2) return;
    const bool compares = is_string_instruction(zydis) && (zydis.opcode & 0xfe) == 0xa6;
    if (compares || form.references[0].kind == TRACE_SITE_WRITE)
        std::swap(form.references[0], form.references[1]);
}

// clzero stores zeros to the line that rax points into (AMD64 APM volume 3). Zydis reports only
// rax.
void note_cleared_line(Form& form, const ZydisDecodedInstruction& zydis) {
    MemoryReference reference;
    reference.kind = TRACE_SITE_WRITE;
    reference.base = RAX;
    reference.bytes = kClearedBytes;
    reference.address32 = zydis.address_width == 32;
    form.references[form.reference_count++] = reference;
}

}  // namespace

// By category, because movsd and cmpsd are also names of SSE instructions.
bool is_string_instruction(const ZydisDecodedInstruction& zydis) {
    return zydis.meta.category == ZYDIS_CATEGORY_STRINGOP;
}

void note_operands(Form& form, const ZydisDecodedInstruction& zydis,
                   const ZydisDecodedOperand* operands) {
    for (unsigned i = 0; i < zydis.operand_count; ++i) {
        if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER) {
            note_register(form, zydis, operands[i]);
            note_register_operand(form, zydis, operands[i]);
        }
        if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY) note_memory(form, zydis, operands[i]);
    }
    if (form.special == Special::kClearLine) note_cleared_line(form, zydis);
    // These registers also change (SDM volume 2, CMPS and SCAS). Zydis reports only that they are
    // read.
    if (is_string_instruction(zydis)) form.writes |= form.reads & (bit(RSI) | bit(RDI));
    form.masked = is_masked(zydis);
    order_references(form, zydis);
}

}  // namespace assay::native
