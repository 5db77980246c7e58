// The branch predictor that runs in the program: trace_capture_predictions.
//
// Conditional branches: the history of outcomes stands in the high bits of a byte, so that a shift
// drops the oldest outcome. Before the shift, the byte selects a counter. The counters of one
// branch are spread over 256 bytes. Between them lie the counters of branches whose addresses
// differ only in the bits that the history leaves free.
//
//   counters[pc's other bits * 256 + pc's lowest bits + history]
//
// The byte is the lowest of a word. Each branch waits until the one before has stored the history,
// and processors are faster with words (assembler.h).
//
// Indirect branches: targets[pc's lowest bits].
#pragma once

#include "framework/trace/segment_layout.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace assay::driver {

// States of a counter are 0 to 3, and the higher two predict taken. The prediction was right if the
// next state is 0 or 3. The next state therefore selects which counter of the block is incremented:
// trace::counters().
inline constexpr unsigned kCounterStates = 4;
inline constexpr std::uint8_t kSurelyTaken = kCounterStates - 1;

struct Predictor {
    alignas(64) std::uint8_t counters[1U << trace::kMaxCounterBits];
    std::uint64_t targets[1U << trace::kMaxTargetBits];
    std::uint8_t next_states[2][kCounterStates];  // by outcome and state
    std::uint32_t history;

    // Sets the state before the first branch.
    void reset();
    // Does what translated code does at a conditional branch. Returns true for a misprediction.
    bool conditional(const trace::PredictorShape& shape, std::uint64_t pc, bool taken);
    // The same for a branch that is taken `times` times without another one in between. Returns the
    // number of mispredictions.
    std::uint32_t taken_in_a_row(const trace::PredictorShape& shape, std::uint64_t pc,
                                 std::uint64_t times);
};

// The bit that a taken branch sets in the history after the shift.
inline constexpr unsigned taken_bit(const trace::PredictorShape& shape) {
    return 1U << (trace::kMaxHistoryBits - shape.history_bits) & 0xffU;
}

// Index in Predictor::counters of the first counter of the branch at `pc`.
inline constexpr std::size_t first_counter(const trace::PredictorShape& shape, std::uint64_t pc) {
    const std::uint64_t address = pc & ((std::uint64_t{1} << shape.address_bits) - 1);
    const unsigned between = trace::kMaxHistoryBits - shape.history_bits;
    return (address >> between) << trace::kMaxHistoryBits |
           (address & ((std::uint64_t{1} << between) - 1));
}

inline constexpr std::size_t target_entry(const trace::PredictorShape& shape, std::uint64_t pc) {
    return pc & ((std::uint64_t{1} << shape.target_bits) - 1);
}

inline void Predictor::reset() {
    *this = {};
    for (std::uint8_t state = 0; state <= kSurelyTaken; ++state) {
        next_states[0][state] = static_cast<std::uint8_t>(state == 0 ? 0 : state - 1);
        next_states[1][state] =
            static_cast<std::uint8_t>(state == kSurelyTaken ? state : state + 1);
    }
}

inline bool Predictor::conditional(const trace::PredictorShape& shape, std::uint64_t pc,
                                   bool taken) {
    std::uint8_t& counter = counters[first_counter(shape, pc) + (history & 0xffU)];
    counter = next_states[taken][counter];
    history = history * 2U + (taken ? taken_bit(shape) : 0);
    return counter != 0 && counter != kSurelyTaken;
}

inline std::uint32_t Predictor::taken_in_a_row(const trace::PredictorShape& shape, std::uint64_t pc,
                                               std::uint64_t times) {
    // When the history holds only taken branches, and its counter is at the maximum, further taken
    // branches change nothing and are predicted right.
    const std::uint64_t until_settled = trace::kMaxHistoryBits + kSurelyTaken;
    std::uint32_t mispredicted = 0;
    for (std::uint64_t i = std::min(times, until_settled); i != 0; --i)
        mispredicted += conditional(shape, pc, true);
    return mispredicted;
}

}  // namespace assay::driver
