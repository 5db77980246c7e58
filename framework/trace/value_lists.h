// The values that a driver captures of each instruction (trace_vlist.h): a list for each opcode,
// and for each combination of loads and stores. The lists stand in the trace segment.
#pragma once

#include "assay/trace_vlist.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

namespace assay::trace {

// The maps of TRACE_OPCODE.
inline constexpr std::array<std::uint8_t, 12> kOpcodeMaps{0,
                                                          1,
                                                          2,
                                                          3,
                                                          TRACE_MAP_VECTOR + 1,
                                                          TRACE_MAP_VECTOR + 2,
                                                          TRACE_MAP_VECTOR + 3,
                                                          TRACE_MAP_VECTOR + 5,
                                                          TRACE_MAP_VECTOR + 6,
                                                          TRACE_MAP_VECTOR + 8,
                                                          TRACE_MAP_VECTOR + 9,
                                                          TRACE_MAP_VECTOR + 10};
inline constexpr unsigned kOpcodesOfMap = 256;
inline constexpr unsigned kAccesses = 4;
inline constexpr unsigned kAccessFlags = TRACE_INSTR_LOAD | TRACE_INSTR_STORE;
static_assert(kAccessFlags == kAccesses - 1);

// Index in kOpcodeMaps, or its size if the opcode's map is unknown.
inline unsigned map_index(std::uint16_t opcode) {
    const auto* const found = std::find(kOpcodeMaps.begin(), kOpcodeMaps.end(), opcode >> 8);
    return static_cast<unsigned>(found - kOpcodeMaps.begin());
}

// A trace_value_t as a site's `operand`: seven bits, and kReadBefore for TRACE_BEFORE.
inline constexpr unsigned kReadBefore = 0x80;
inline constexpr std::uint8_t value_byte(trace_value_t value) {
    return static_cast<std::uint8_t>((value & 0x7f) | (value & TRACE_BEFORE ? kReadBefore : 0));
}
static_assert(TRACE_VECTOR0 + 31 <= 0x7f);

// Limits for one instruction and all profilers together. The code that captures the values of a
// unit must fit into its part of the code cache, so there can be fewer wide values.
inline constexpr unsigned kMostValues = 30;
inline constexpr unsigned kMostWideValues = 14;
inline constexpr unsigned kMostValueBytes = 64;
inline constexpr unsigned kValueRecordBytes = 8;  // the bytes of a value that one record holds
inline constexpr unsigned kMostValueRecords =
    kMostValues + kMostWideValues * (kMostValueBytes / kValueRecordBytes - 1);

struct ValueList {
    std::uint8_t selected;             // by some profiler, perhaps without any value
    std::uint8_t count;                // the number of values, which all differ
    std::uint8_t values[kMostValues];  // value_byte()
    std::uint32_t wide;  // a bit for each value that has TRACE_WIDE, the lowest for the first

    unsigned index_of(std::uint8_t value) const {  // `count` if the list does not have it
        return static_cast<unsigned>(std::find(values, values + count, value) - values);
    }
    bool is_wide(unsigned index) const { return wide >> index & 1; }
    void add(std::uint8_t value, bool is_wide) {
        wide |= std::uint32_t{is_wide} << count;
        values[count++] = value;
    }
};
static_assert(sizeof(ValueList) == 36 && kMostValues <= 32);

struct ValueLists {
    ValueList lists[kOpcodeMaps.size()][kOpcodesOfMap][kAccesses];

    // The list for instructions with this opcode and these TRACE_INSTR_ flags; nullptr if no
    // profiler has selected them.
    const ValueList* find(std::uint16_t opcode, unsigned flags) const {
        const unsigned map = map_index(opcode);
        if (map == kOpcodeMaps.size()) return nullptr;
        const ValueList& list = lists[map][opcode & 0xff][flags & kAccessFlags];
        return list.selected ? &list : nullptr;
    }
};
static_assert(std::is_trivially_copyable_v<ValueLists>);

}  // namespace assay::trace
