// AArch64: Arm Architecture Reference Manual, C4.1, "A64 instruction set encoding". Covers Armv8.5
// without SVE, memory tags and 64-byte atomics.
#include "framework/isa/architecture.h"
#include "framework/isa/encoding.h"

#include <cstring>

namespace assay::isa {
namespace {

constexpr std::uint8_t read_or_write(bool reads) {
    return reads ? TRACE_SITE_READ : TRACE_SITE_WRITE;
}

// LD1 to LD4 and ST1 to ST4 of whole registers.
bool describe_structures(std::uint32_t code, Instruction& described) {
    unsigned registers = 0;
    switch (field(code, 12, 4)) {
        case 0b0000:
        case 0b0010:
            registers = 4;
            break;
        case 0b0100:
        case 0b0110:
            registers = 3;
            break;
        case 0b1000:
        case 0b1010:
            registers = 2;
            break;
        case 0b0111:
            registers = 1;
            break;
        default:
            return false;
    }
    described.add(read_or_write(field(code, 22, 1)), registers * (field(code, 30, 1) ? 16 : 8));
    return true;
}

// The same for one element of each register, and LD1R to LD4R.
bool describe_structure(std::uint32_t code, Instruction& described) {
    const std::uint32_t opcode = field(code, 13, 3), size = field(code, 10, 2);
    const unsigned registers = ((opcode & 1) << 1 | field(code, 21, 1)) + 1;
    unsigned scale = opcode >> 1;
    if (scale == 3)
        scale = size;
    else if (scale == 2 && size == 1)
        scale = 3;
    described.add(read_or_write(field(code, 22, 1)), registers << scale);
    return true;
}

// Exclusive and ordered references, and compare and swap.
bool describe_exclusive(std::uint32_t code, Instruction& described) {
    const unsigned bytes = 1U << field(code, 30, 2);
    const bool load = field(code, 22, 1), is_pair = field(code, 21, 1),
               ordered = field(code, 23, 1);
    if (ordered && is_pair) {
        described.add(TRACE_SITE_MODIFY, bytes);  // CAS
    } else if (ordered) {
        described.add(read_or_write(load), bytes);  // LDAR, STLR
    } else if (is_pair && !field(code, 31, 1)) {
        described.add(TRACE_SITE_MODIFY, 8U << field(code, 30, 1));  // CASP
    } else {
        described.add(read_or_write(load), is_pair ? 2 * bytes : bytes);
        // A store writes nothing if the processor has lost its reservation.
        if (!load) described.flags |= TRACE_INSTR_VARIABLE;
    }
    return true;
}

bool describe_pair(std::uint32_t code, Instruction& described) {
    const std::uint32_t size = field(code, 30, 2);
    const bool load = field(code, 22, 1);
    if (size == 3) return false;
    if (field(code, 26, 1))
        described.add(read_or_write(load), 8U << size);
    else if (size == 1 && !load)
        return false;  // STGP
    else
        described.add(read_or_write(load), size == 2 ? 16 : 8);
    return true;
}

// Loads and stores of one register. `size` and `operation` are the fields size and opc.
bool describe_register(std::uint32_t code, Instruction& described) {
    const std::uint32_t size = field(code, 30, 2), operation = field(code, 22, 2);
    if (field(code, 26, 1)) {
        if (operation >= 2 && size != 0) return false;
        described.add(read_or_write(operation & 1), operation >= 2 ? 16 : 1U << size);
        return true;
    }
    if (size == 3 && operation == 2) return true;  // PRFM
    described.add(read_or_write(operation != 0), 1U << size);
    return true;
}

// Atomic memory operations, LDAPR, and loads with pointer authentication.
bool describe_atomic(std::uint32_t code, Instruction& described) {
    const unsigned bytes = 1U << field(code, 30, 2);
    if (field(code, 26, 1)) return false;
    if (field(code, 10, 2) != 0) {  // LDRAA, LDRAB
        if (bytes != 8) return false;
        described.add(TRACE_SITE_READ, bytes);
        return true;
    }
    const std::uint32_t operation = field(code, 12, 4);
    if (operation == 0b1100)
        described.add(TRACE_SITE_READ, bytes);  // LDAPR
    else if (operation <= 0b1000)
        described.add(TRACE_SITE_MODIFY, bytes);  // LDADD and others, SWP
    else
        return false;
    return true;
}

bool describe_memory(std::uint32_t code, Instruction& described) {
    if (matches(code, 0xbfbf0000, 0x0c000000) || matches(code, 0xbfa00000, 0x0c800000))
        return describe_structures(code, described);
    if (matches(code, 0xbf9f0000, 0x0d000000) || matches(code, 0xbf800000, 0x0d800000))
        return describe_structure(code, described);
    if (matches(code, 0x3f000000, 0x08000000)) return describe_exclusive(code, described);
    if (matches(code, 0x3b000000, 0x18000000)) {  // relative to the pc
        const std::uint32_t size = field(code, 30, 2);
        if (field(code, 26, 1))
            described.add(TRACE_SITE_READ, 4U << size);
        else if (size != 3)  // PRFM
            described.add(TRACE_SITE_READ, size == 1 ? 8 : 4);
        return true;
    }
    if (matches(code, 0x3a000000, 0x28000000)) return describe_pair(code, described);
    if (matches(code, 0x3f200c00, 0x19000000)) {  // LDAPUR, STLUR
        described.add(read_or_write(field(code, 22, 2) != 0), 1U << field(code, 30, 2));
        return true;
    }
    if (matches(code, 0x3b000000, 0x39000000)) return describe_register(code, described);
    if (!matches(code, 0x3b000000, 0x38000000)) return false;
    if (!field(code, 21, 1) || field(code, 10, 2) == 2) return describe_register(code, described);
    return describe_atomic(code, described);
}

// The signed distance in a field of `count` bits, in bytes.
constexpr std::int32_t distance(std::uint32_t code, unsigned low, unsigned count) {
    return static_cast<std::int32_t>(field(code, low, count) << (32 - count)) >> (30 - count);
}

void describe_branch(std::uint32_t code, Instruction& described) {
    if (matches(code, 0x7c000000, 0x14000000))
        described.jumps(distance(code, 0, 26));
    else if (matches(code, 0xff000000, 0x54000000) || matches(code, 0x7e000000, 0x34000000))
        described.jumps(distance(code, 5, 19));
    else if (matches(code, 0x7e000000, 0x36000000))
        described.jumps(distance(code, 5, 14));
    if (matches(code, 0xfc000000, 0x94000000))
        described.flags |= TRACE_INSTR_CALL;
    else if (matches(code, 0xff000000, 0x54000000) || matches(code, 0x7c000000, 0x34000000))
        described.flags |= TRACE_INSTR_CONDITIONAL;
    else if (matches(code, 0xfe000000, 0xd6000000))
        switch (field(code, 21, 3)) {
            case 0:
                described.flags |= TRACE_INSTR_INDIRECT;
                break;
            case 1:
                described.flags |= TRACE_INSTR_INDIRECT | TRACE_INSTR_CALL;
                break;
            case 4:  // ERET
                described.ends_handler = true;
                [[fallthrough]];
            case 2:  // RET
                described.flags |= TRACE_INSTR_RETURN;
                break;
            default:
                break;
        }
}

}  // namespace

bool describe_aarch64(std::span<const std::uint8_t> code, Instruction& described) {
    std::uint32_t word = 0;
    if (code.size() < sizeof word) return false;
    std::memcpy(&word, code.data(), sizeof word);
    described = {};
    described.length = sizeof word;
    if (matches(word, 0x0a000000, 0x08000000)) return describe_memory(word, described);
    describe_branch(word, described);
    described.may_fault = matches(word, 0xffc00000, 0xd5000000);    // system registers
    described.clears_line = matches(word, 0xffffffe0, 0xd50b7420);  // DC ZVA
    described.address_register = static_cast<std::uint8_t>(field(word, 0, 5));
    return true;
}

}  // namespace assay::isa
