// Thumb code of Arm's M profile: Arm v7-M and Arm v8-M Architecture Reference Manuals, A5 and C2,
// "Instruction set encoding". Covers Armv8-M with floating point, without MVE.
#include "framework/isa/architecture.h"
#include "framework/isa/encoding.h"

#include <bit>
#include <cstring>

namespace assay::isa {
namespace {

constexpr std::int32_t sign_extended(std::uint32_t value, unsigned bits) {
    return static_cast<std::int32_t>(value << (32 - bits)) >> (32 - bits);
}

constexpr unsigned kWord = 4;
constexpr std::uint32_t kStack = 13, kLink = 14, kPc = 15;  // registers

// The distance is from the address that code sees as the pc.
void jump_by(std::int32_t distance, Instruction& described) {
    constexpr std::int32_t kPcAhead = 4;
    described.jumps(distance + kPcAhead);
}

void refer_to(bool loads, unsigned bytes, Instruction& described) {
    if (bytes != 0) described.add(loads ? TRACE_SITE_READ : TRACE_SITE_WRITE, bytes);
}

unsigned bytes_of_list(std::uint32_t registers) {
    return kWord * static_cast<unsigned>(std::popcount(registers));
}

void jump_to_register(std::uint32_t source, bool links, Instruction& described) {
    described.flags |= links             ? TRACE_INSTR_CALL | TRACE_INSTR_INDIRECT
                       : source == kLink ? TRACE_INSTR_RETURN
                                         : TRACE_INSTR_INDIRECT;
}

void describe_miscellaneous(std::uint32_t code, Instruction& described) {
    if (matches(code, 0xf500, 0xb100)) {  // CBZ, CBNZ
        described.flags |= TRACE_INSTR_CONDITIONAL;
        jump_by(static_cast<std::int32_t>(field(code, 9, 1) << 6 | field(code, 3, 5) << 1),
                described);
    } else if (matches(code, 0xfe00, 0xb400)) {
        refer_to(false, bytes_of_list(field(code, 0, 9)), described);  // PUSH
    } else if (matches(code, 0xfe00, 0xbc00)) {
        refer_to(true, bytes_of_list(field(code, 0, 9)), described);  // POP
        if (field(code, 8, 1)) described.flags |= TRACE_INSTR_RETURN;
    } else if (matches(code, 0xff00, 0xbf00) && field(code, 0, 4) != 0) {
        described.conditional_followers =
            static_cast<std::uint8_t>(4 - std::countr_zero(field(code, 0, 4)));  // IT
    }
}

void describe_register_offset(std::uint32_t code, Instruction& described) {
    constexpr struct {
        bool loads;
        unsigned bytes;
    } kForms[] = {{false, 4}, {false, 2}, {false, 1}, {true, 1},
                  {true, 4},  {true, 2},  {true, 1},  {true, 2}};
    const auto& form = kForms[field(code, 9, 3)];
    refer_to(form.loads, form.bytes, described);
}

void describe_half(std::uint32_t code, Instruction& described) {
    const bool loads = field(code, 11, 1);
    switch (code >> 12) {
        case 0b0100:
            if (loads)
                refer_to(true, kWord, described);  // relative to the pc
            else if (matches(code, 0xff00, 0x4700))
                jump_to_register(field(code, 3, 4), field(code, 7, 1), described);
            else if (matches(code, 0xff87, 0x4687))  // MOV to the pc
                jump_to_register(field(code, 3, 4), false, described);
            else if (matches(code, 0xff87, 0x4487))  // ADD
                described.flags |= TRACE_INSTR_INDIRECT;
            break;
        case 0b0101:
            describe_register_offset(code, described);
            break;
        case 0b0110:
        case 0b1001:  // relative to the stack pointer
            refer_to(loads, kWord, described);
            break;
        case 0b0111:
            refer_to(loads, 1, described);
            break;
        case 0b1000:
            refer_to(loads, 2, described);
            break;
        case 0b1011:
            describe_miscellaneous(code, described);
            break;
        case 0b1100:
            refer_to(loads, bytes_of_list(field(code, 0, 8)), described);
            break;
        case 0b1101:
            if (field(code, 8, 4) >= 14) break;  // UDF, SVC
            described.flags |= TRACE_INSTR_CONDITIONAL;
            jump_by(sign_extended(field(code, 0, 8) << 1, 9), described);
            break;
        case 0b1110:
            jump_by(sign_extended(field(code, 0, 11) << 1, 12), described);
            break;
        default:
            break;
    }
}

// A whole instruction has its first half in the upper bits.

bool describe_list(std::uint32_t code, Instruction& described) {
    const bool loads = field(code, 20, 1);
    if (field(code, 23, 2) == 0 || field(code, 23, 2) == 3) return false;  // RFE, SRS
    refer_to(loads, bytes_of_list(field(code, 0, 16)), described);
    if (loads && field(code, kPc, 1))
        described.flags |= field(code, 16, 4) == kStack ? TRACE_INSTR_RETURN : TRACE_INSTR_INDIRECT;
    return true;
}

bool describe_ordered(std::uint32_t code, Instruction& described) {
    const std::uint32_t operation = field(code, 4, 4);
    const unsigned bytes = 1U << (operation & 3);
    const bool loads = field(code, 20, 1);
    if (loads && operation <= 1) {  // TBB, TBH
        refer_to(true, bytes, described);
        described.flags |= TRACE_INSTR_INDIRECT;
        return true;
    }
    if (operation < 4 || operation == 6 || operation == 11 || operation == 15) return false;
    refer_to(loads, bytes, described);
    // A store writes nothing if the processor has lost its reservation.
    const bool is_exclusive = field(operation, 2, 1);
    if (!loads && is_exclusive) described.flags |= TRACE_INSTR_VARIABLE;
    return true;
}

bool describe_double(std::uint32_t code, Instruction& described) {
    constexpr std::uint32_t kSecureGateway = 0xe97fe97f;
    const bool loads = field(code, 20, 1);
    if (code == kSecureGateway) return true;
    if (field(code, 24, 1) || field(code, 21, 1)) {
        refer_to(loads, 2 * kWord, described);  // LDRD, STRD
        return true;
    }
    if (field(code, 23, 1)) return describe_ordered(code, described);
    if (!loads && field(code, 12, 4) == kPc) return true;  // TT
    refer_to(loads, kWord, described);                     // LDREX, STREX
    if (!loads) described.flags |= TRACE_INSTR_VARIABLE;
    return true;
}

// Loops of Armv8.1-M have their distance in another way.
bool describe_loop(std::uint32_t code, Instruction& described) {
    const auto distance =
        static_cast<std::int32_t>(field(code, 1, 10) << 2 | field(code, 11, 1) << 1);
    if (matches(code, 0xffcff001, 0xf00fc001)) {  // LE
        if (!field(code, 21, 1)) described.flags |= TRACE_INSTR_CONDITIONAL;
        jump_by(-distance, described);
    } else if (matches(code, 0xff80f001, 0xf000c001)) {  // WLS
        described.flags |= TRACE_INSTR_CONDITIONAL;
        jump_by(distance, described);
    }
    return true;
}

bool describe_long_branch(std::uint32_t code, Instruction& described) {
    const bool links = field(code, 14, 1), is_long = field(code, 12, 1);
    if (!is_long && links) return describe_loop(code, described);
    const std::uint32_t sign = field(code, 26, 1), j1 = field(code, 13, 1), j2 = field(code, 11, 1);
    if (!is_long) {
        if (field(code, 23, 3) == 7) return true;  // system instructions
        described.flags |= TRACE_INSTR_CONDITIONAL;
        const std::uint32_t distance =
            sign << 20 | j2 << 19 | j1 << 18 | field(code, 16, 6) << 12 | field(code, 0, 11) << 1;
        jump_by(sign_extended(distance, 21), described);
        return true;
    }
    const std::uint32_t i1 = (j1 ^ sign) ^ 1, i2 = (j2 ^ sign) ^ 1;
    const std::uint32_t distance =
        sign << 24 | i1 << 23 | i2 << 22 | field(code, 16, 10) << 12 | field(code, 0, 11) << 1;
    jump_by(sign_extended(distance, 25), described);
    if (links) described.flags |= TRACE_INSTR_CALL;
    return true;
}

bool describe_single(std::uint32_t code, Instruction& described) {
    constexpr std::uint32_t kPopPc = 0xf85dfb04;
    const std::uint32_t size = field(code, 21, 2);
    const bool loads = field(code, 20, 1), is_to_pc = field(code, 12, 4) == kPc;
    if (size == 3 || (field(code, 24, 1) && !loads)) return false;
    if (loads && is_to_pc && size != 2) return true;  // PLD, PLI
    refer_to(loads, 1U << size, described);
    if (loads && is_to_pc)
        described.flags |= code == kPopPc ? TRACE_INSTR_RETURN : TRACE_INSTR_INDIRECT;
    return true;
}

bool describe_floating_point(std::uint32_t code, Instruction& described) {
    const std::uint32_t coprocessor = field(code, 8, 4), number = field(code, 0, 8);
    if (coprocessor < 9 || coprocessor > 11) return false;
    if (matches(code, 0xffe00000, 0xec400000)) return true;  // VMOV of two registers
    const bool loads = field(code, 20, 1), is_one = field(code, 24, 1) && !field(code, 21, 1);
    if (!is_one && number == 0) return false;  // VLSTM, VLLDM
    refer_to(loads, is_one ? 1U << (coprocessor - 8) : kWord * number, described);
    return true;
}

bool describe_whole_thumb(std::uint32_t code, Instruction& described) {
    if (matches(code, 0xfe400000, 0xe8000000)) return describe_list(code, described);
    if (matches(code, 0xfe400000, 0xe8400000)) return describe_double(code, described);
    if (matches(code, 0xf8008000, 0xf0008000)) return describe_long_branch(code, described);
    if (matches(code, 0xfe000000, 0xf8000000)) return describe_single(code, described);
    if (matches(code, 0xfe000000, 0xec000000)) return describe_floating_point(code, described);
    return !matches(code, 0xfe000000, 0xfc000000);  // MVE, other coprocessors
}

}  // namespace

bool describe_thumb(std::span<const std::uint8_t> code, Instruction& described) {
    std::uint16_t half = 0, second = 0;
    if (code.size() < sizeof half) return false;
    std::memcpy(&half, code.data(), sizeof half);
    described = {};
    if (half < 0xe800) {
        described.length = sizeof half;
        describe_half(half, described);
        return true;
    }
    if (code.size() < 2 * sizeof half) return false;
    std::memcpy(&second, code.data() + sizeof half, sizeof second);
    described.length = 2 * sizeof half;
    return describe_whole_thumb(std::uint32_t{half} << 16 | second, described);
}

}  // namespace assay::isa
