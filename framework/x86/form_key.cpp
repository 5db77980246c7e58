// Source: Intel SDM volume 2, chapter 2 and appendix A.
#include "framework/x86/form_key.h"

#include <cstring>

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

// Of VEX map 3: the immediate says which register the fourth operand is (SDM volume 2, VBLENDVPS;
// AMD64 APM volume 6, VPERMIL2PS and FMA4).
bool immediate_is_register(std::uint8_t op) {
    return (op >= 0x48 && op <= 0x4c) || (op >= 0x5c && op <= 0x5f) || (op >= 0x68 && op <= 0x6f) ||
           (op >= 0x78 && op <= 0x7f);
}

constexpr std::size_t kMaxKeyBytes = 14;

// 0 if there is no key.
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

// The first bytes of a word in memory.
std::uint64_t first_bytes(std::uint64_t word, std::size_t count) {
    return count < 8 ? word & ((std::uint64_t{1} << (8 * count)) - 1) : word;
}

}  // namespace

// Whole words are read where there are as many bytes as an instruction can have: bytes that are
// copied one by one could not be read as words right afterwards without waiting for them.
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

}  // namespace assay::native
