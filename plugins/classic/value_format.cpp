#include "plugins/classic/value_format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace classic {
namespace {

// The mandatory prefix in VEX's encoding: none, 66, F3, F2 (Intel SDM volume 2, 2.3.5).
enum Prefix : unsigned { kNoPrefix, k66, kF3, kF2 };

struct Encoding {
    unsigned prefix = kNoPrefix;
    bool wide = false;  // VEX.W or EVEX.W
};

Encoding encoding_of(const trace_instr_t& instr) {
    Encoding found;
    for (unsigned i = 0; i + 3 < instr.length; ++i) {
        const unsigned byte = instr.bytes[i];
        if (byte == 0xc5 && instr.opcode >> 8 >= TRACE_MAP_VECTOR) {
            found.prefix = instr.bytes[i + 1] & 3;
            return found;
        }
        if ((byte == 0xc4 || byte == 0x62) && instr.opcode >> 8 >= TRACE_MAP_VECTOR) {
            found.prefix = instr.bytes[i + 2] & 3;
            found.wide = instr.bytes[i + 2] & 0x80;
            return found;
        }
        if (byte == 0xf2) found.prefix = kF2;
        if (byte == 0xf3) found.prefix = kF3;
        if (byte == 0x66 && found.prefix == kNoPrefix) found.prefix = k66;
        if (byte == 0x0f) break;
    }
    return found;
}

Reading by_prefix(unsigned prefix) {
    return prefix == k66 || prefix == kF2 ? Reading::kDouble : Reading::kSingle;
}

// For opcodes of map 0F. Sources: SDM volume 2, tables.
Reading of_two_byte_map(unsigned byte, unsigned prefix, Operand operand) {
    const bool result = operand == Operand::kResult || operand == Operand::kStored;
    switch (byte) {
        case 0x2a:  // cvtsi2sd and similar ones
            return result ? by_prefix(prefix) : Reading::kInteger;
        case 0x2c:  // cvttsd2si
        case 0x2d:
            return result ? Reading::kInteger : by_prefix(prefix);
        case 0x5a:  // cvtsd2ss and back
            if (!result) return by_prefix(prefix);
            return by_prefix(prefix) == Reading::kDouble ? Reading::kSingle : Reading::kDouble;
        case 0x12:
        case 0x13:  // movlpd and movlps move 64 bits; the lower of two singles is shown
        case 0x16:
        case 0x17:
            return by_prefix(prefix);
        default:
            break;
    }
    const bool floating = byte == 0x10 || byte == 0x11 || byte == 0x14 || byte == 0x15 ||
                          byte == 0x28 || byte == 0x29 || byte == 0x2b || byte == 0x2e ||
                          byte == 0x2f || (byte >= 0x51 && byte <= 0x53) ||
                          (byte >= 0x58 && byte <= 0x5f && byte != 0x5b) || byte == 0xc6;
    return floating ? by_prefix(prefix) : Reading::kInteger;
}

// Registers are captured as doubles, except ax, into which fnstsw (DF E0) stores. The register
// field of ModRM gives the type of a memory operand. SDM volume 2, tables.
Reading of_x87(const trace_instr_t& instr, Operand operand) {
    const bool in_memory = operand == Operand::kLoaded || operand == Operand::kStored;
    const auto* const end = instr.bytes + instr.length;
    const auto* const opcode =
        std::find(instr.bytes, end, static_cast<std::uint8_t>(instr.opcode & 0xff));
    if (end - opcode < 2) return Reading::kInteger;
    const bool status = opcode[0] == 0xdf && opcode[1] == 0xe0;
    if (!in_memory) return status ? Reading::kInteger : Reading::kDouble;
    if (opcode[1] >= 0xc0) return Reading::kInteger;
    const unsigned extension = opcode[1] >> 3 & 7;
    switch (instr.opcode & 0xff) {
        case 0xd8:
            return Reading::kSingle;
        case 0xdc:
            return Reading::kDouble;
        case 0xd9:
            return extension <= 3 ? Reading::kSingle : Reading::kInteger;
        case 0xdd:
            return extension == 0 || extension == 2 || extension == 3 ? Reading::kDouble
                                                                      : Reading::kInteger;
        default:
            return Reading::kInteger;
    }
}

template <typename Number>
std::string shortest(std::uint64_t bits) {
    Number number;
    std::memcpy(&number, &bits, sizeof number);
    std::array<char, 64> text;
    const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
    std::string written(text.data(), end);
    // 1.0 must not look like an integer.
    if (written.find_first_not_of("-0123456789") == std::string::npos) written += ".0";
    return written;
}

}  // namespace

Reading reading_of(const trace_instr_t& instr, Operand operand) {
    const unsigned map = instr.opcode >> 8, byte = instr.opcode & 0xff;
    const Encoding encoding = encoding_of(instr);
    if (map == 0 && byte >= 0xd8 && byte <= 0xdf) return of_x87(instr, operand);
    if (map == 1 || map == TRACE_MAP_VECTOR + 1)
        return of_two_byte_map(byte, encoding.prefix, operand);
    // Fused multiplications and additions.
    const bool fused = byte >= 0x96 && byte <= 0xbf && (byte & 0xf) >= 6;
    if (map == TRACE_MAP_VECTOR + 2 && fused)
        return encoding.wide ? Reading::kDouble : Reading::kSingle;
    return Reading::kInteger;
}

std::string format(Reading reading, std::uint64_t value) {
    if (reading == Reading::kDouble) return shortest<double>(value);
    if (reading == Reading::kSingle) return shortest<float>(value);
    constexpr std::int64_t kFewDigits = 99'999;
    const auto number = static_cast<std::int64_t>(value);
    if (number >= -kFewDigits && number <= kFewDigits) return std::to_string(number);
    std::array<char, 16> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr;
    return "0x" + std::string(digits.data(), end);
}

}  // namespace classic
