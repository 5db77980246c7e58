// Parts of an instruction's encoding, for the decoders of this folder.
#pragma once

#include <cstdint>

namespace assay::isa {

// The `count` bits from `low` on.
constexpr std::uint32_t field(std::uint32_t code, unsigned low, unsigned count) {
    return code >> low & ((1U << count) - 1);
}

constexpr bool matches(std::uint32_t code, std::uint32_t mask, std::uint32_t value) {
    return (code & mask) == value;
}

}  // namespace assay::isa
