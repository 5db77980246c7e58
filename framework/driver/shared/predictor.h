// The branch predictor that runs in the target: trace_capture_predictions.
//
// Conditional branches: the history of outcomes stands in the high bits of a byte, so that the
// oldest drops out when it is shifted. That byte, before that, selects a counter: those of one
// branch lie in 256 bytes, and between them those of branches whose pcs differ only in the bits
// that the history leaves free.
//
//   counters[pc's other bits * 256 + pc's lowest bits + history]
//
// The byte is the lowest of a word. Each branch waits for the one before to store it, and
// processors are quicker with words: assembler.h.
//
// Indirect branches: targets[pc's lowest bits].
#pragma once

#include "framework/trace/segment_layout.h"

#include <cstddef>
#include <cstdint>

namespace assay::driver {

// States of a counter: 0 to 3, the higher two predict taken. The next state tells whether the
// prediction was right: it was if that is one of the extremes. So it selects which counter of the
// block is incremented: trace::counters().
inline constexpr unsigned kCounterStates = 4;
inline constexpr std::uint8_t kSurelyTaken = kCounterStates - 1;

struct Predictor {
    alignas(64) std::uint8_t counters[1U << trace::kMaxCounterBits];
    std::uint64_t targets[1U << trace::kMaxTargetBits];
    std::uint8_t next_states[2][kCounterStates];  // by outcome and state
    std::uint32_t history;

    // Nothing has been executed yet.
    void reset();
    // What translated code does at a conditional branch. Returns whether it was mispredicted.
    bool conditional(const trace::PredictorShape& shape, std::uint64_t pc, bool taken);
    // The same for one that is taken so many times without another in between. Returns how many of
    // them were mispredicted.
    std::uint32_t taken_in_a_row(const trace::PredictorShape& shape, std::uint64_t pc,
                                 std::uint64_t times);
};

// What a taken branch adds to the history when it has been shifted.
inline constexpr unsigned taken_bit(const trace::PredictorShape& shape) {
    return 1U << (trace::kMaxHistoryBits - shape.history_bits) & 0xffU;
}

// The first of the counters of the branch at `pc`, in Predictor::counters.
inline constexpr std::size_t first_counter(const trace::PredictorShape& shape, std::uint64_t pc) {
    const std::uint64_t address = pc & ((std::uint64_t{1} << shape.address_bits) - 1);
    const unsigned between = trace::kMaxHistoryBits - shape.history_bits;
    return (address >> between) << trace::kMaxHistoryBits |
           (address & ((std::uint64_t{1} << between) - 1));
}

inline constexpr std::size_t target_entry(const trace::PredictorShape& shape, std::uint64_t pc) {
    return pc & ((std::uint64_t{1} << shape.target_bits) - 1);
}

}  // namespace assay::driver
