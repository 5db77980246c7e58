// Code for tests of the decoder, and a part of what is learnt of it.
#pragma once

#include "framework/x86/decoder.h"

#include <doctest/doctest.h>
#include <cstdint>
#include <vector>

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint64_t kPc = 0x401000;

// With other code behind it, as in a program.
inline Bytes padded(Bytes bytes) {
    bytes.resize(15, 0x90);
    return bytes;
}

inline assay::native::Decoder& decoder() {
    static assay::native::Decoder the_decoder;
    return the_decoder;
}

// What is learnt of an instruction that is valid, and has no other bytes.
inline assay::native::Instruction decode(const Bytes& bytes, std::uint64_t pc = kPc) {
    assay::native::Instruction instruction;
    const bool valid = decoder().decode(padded(bytes), pc, instruction);
    REQUIRE(valid);
    CHECK(instruction.form->length == bytes.size());
    return instruction;
}

// What is added to the registers of a reference's address.
inline std::int64_t displacement_of(const assay::native::Instruction& instruction,
                                    const assay::native::MemoryReference& reference) {
    std::int64_t sum = reference.bias;
    if (reference.encoded) sum += instruction.displacement();
    if (reference.base == assay::native::kRip)
        sum += static_cast<std::int64_t>(instruction.next_pc());
    return sum;
}
