// RISC-V: the unprivileged specification, chapter "RV32/64G instruction set listings" and
// "Compressed instructions". Covers RV64GC without vectors.
#include "framework/isa/architecture.h"
#include "framework/isa/encoding.h"

#include <cstring>
#include <initializer_list>

namespace assay::isa {
namespace {

// Registers that hold return addresses: table 3 of the specification.
constexpr bool is_link(std::uint32_t number) {
    return number == 1 || number == 5;
}

void note_jump(std::uint32_t link, std::uint32_t source, Instruction& described) {
    if (is_link(link))
        described.flags |= TRACE_INSTR_CALL | TRACE_INSTR_INDIRECT;
    else
        described.flags |= is_link(source) ? TRACE_INSTR_RETURN : TRACE_INSTR_INDIRECT;
}

bool describe_amo(std::uint32_t code, Instruction& described) {
    constexpr std::uint32_t kLoadReserved = 2, kStoreConditional = 3;
    const unsigned bytes = 1U << field(code, 12, 3);
    if (bytes != 4 && bytes != 8) return false;
    const std::uint32_t operation = field(code, 27, 5);
    if (operation == kLoadReserved) {
        described.add(TRACE_SITE_READ, bytes);
    } else if (operation == kStoreConditional) {
        described.add(TRACE_SITE_WRITE, bytes);
        described.flags |= TRACE_INSTR_VARIABLE;
    } else {
        described.add(TRACE_SITE_MODIFY, bytes);
    }
    return true;
}

// Puts the bits of an immediate together. Each piece is `count` bits from `from` on, which become
// those from `to` on. The last piece has the sign.
struct Piece {
    unsigned from, count, to;
};
constexpr std::int32_t immediate(std::uint32_t code, std::initializer_list<Piece> pieces) {
    std::uint32_t value = 0;
    unsigned bits = 32;
    for (const Piece& piece : pieces) {
        value |= field(code, piece.from, piece.count) << piece.to;
        bits = piece.to + piece.count;
    }
    return static_cast<std::int32_t>(value << (32 - bits)) >> (32 - bits);
}

bool describe_whole(std::uint32_t code, Instruction& described) {
    constexpr std::uint32_t kMret = 0x30200073, kSret = 0x10200073;
    const std::uint32_t width = field(code, 12, 3), destination = field(code, 7, 5);
    switch (field(code, 0, 7)) {
        case 0x03:
            if (width == 7) return false;
            described.add(TRACE_SITE_READ, 1U << (width & 3));
            return true;
        case 0x23:
            if (width > 3) return false;
            described.add(TRACE_SITE_WRITE, 1U << width);
            return true;
        case 0x07:
        case 0x27:
            if (width == 0 || width > 4) return false;  // vectors
            described.add(field(code, 5, 1) ? TRACE_SITE_WRITE : TRACE_SITE_READ, 1U << width);
            return true;
        case 0x2f:
            return describe_amo(code, described);
        case 0x63:
            described.flags |= TRACE_INSTR_CONDITIONAL;
            described.jumps(immediate(code, {{8, 4, 1}, {25, 6, 5}, {7, 1, 11}, {31, 1, 12}}));
            return true;
        case 0x6f:
            described.jumps(immediate(code, {{21, 10, 1}, {20, 1, 11}, {12, 8, 12}, {31, 1, 20}}));
            if (is_link(destination)) described.flags |= TRACE_INSTR_CALL;
            return true;
        case 0x67:
            note_jump(destination, field(code, 15, 5), described);
            return true;
        case 0x57:
            return false;  // vectors
        case 0x73:
            described.ends_handler = code == kMret || code == kSret;
            if (described.ends_handler) described.flags |= TRACE_INSTR_RETURN;
            return true;
        default:
            return true;
    }
}

// `code` has 16 bits. The number of the form is its quadrant and its upper three bits.
bool describe_compressed(std::uint32_t code, Instruction& described) {
    switch (field(code, 0, 2) << 3 | field(code, 13, 3)) {
        case 0b00'001:  // c.fld
        case 0b00'011:  // c.ld
        case 0b10'001:  // c.fldsp
        case 0b10'011:  // c.ldsp
            described.add(TRACE_SITE_READ, 8);
            return true;
        case 0b00'010:  // c.lw
        case 0b10'010:  // c.lwsp
            described.add(TRACE_SITE_READ, 4);
            return true;
        case 0b00'101:  // c.fsd
        case 0b00'111:  // c.sd
        case 0b10'101:  // c.fsdsp
        case 0b10'111:  // c.sdsp
            described.add(TRACE_SITE_WRITE, 8);
            return true;
        case 0b00'110:  // c.sw
        case 0b10'110:  // c.swsp
            described.add(TRACE_SITE_WRITE, 4);
            return true;
        case 0b00'100:
            return false;
        case 0b01'110:  // c.beqz
        case 0b01'111:  // c.bnez
            described.flags |= TRACE_INSTR_CONDITIONAL;
            described.jumps(
                immediate(code, {{3, 2, 1}, {10, 2, 3}, {2, 1, 5}, {5, 2, 6}, {12, 1, 8}}));
            return true;
        case 0b01'101:  // c.j
            described.jumps(immediate(code, {{3, 3, 1},
                                             {11, 1, 4},
                                             {2, 1, 5},
                                             {7, 1, 6},
                                             {6, 1, 7},
                                             {9, 2, 8},
                                             {8, 1, 10},
                                             {12, 1, 11}}));
            return true;
        case 0b10'100: {  // c.jr, c.jalr, c.mv, c.add, c.ebreak
            const std::uint32_t source = field(code, 7, 5);
            if (field(code, 2, 5) == 0 && source != 0)
                note_jump(field(code, 12, 1), source, described);
            return true;
        }
        default:
            return true;
    }
}

}  // namespace

bool describe_riscv(std::span<const std::uint8_t> code, Instruction& described) {
    std::uint16_t half = 0;
    std::uint32_t word = 0;
    if (code.size() < sizeof half) return false;
    std::memcpy(&half, code.data(), sizeof half);
    described = {};
    if ((half & 3) != 3) {
        described.length = sizeof half;
        return describe_compressed(half, described);
    }
    if (code.size() < sizeof word) return false;
    std::memcpy(&word, code.data(), sizeof word);
    described.length = sizeof word;
    return describe_whole(word, described);
}

}  // namespace assay::isa
