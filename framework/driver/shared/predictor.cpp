#include "framework/driver/shared/predictor.h"

#include <algorithm>

namespace assay::driver {

void Predictor::reset() {
    *this = {};
    for (std::uint8_t state = 0; state <= kSurelyTaken; ++state) {
        next_states[0][state] = static_cast<std::uint8_t>(state == 0 ? 0 : state - 1);
        next_states[1][state] =
            static_cast<std::uint8_t>(state == kSurelyTaken ? state : state + 1);
    }
}

bool Predictor::conditional(const trace::PredictorShape& shape, std::uint64_t pc, bool taken) {
    std::uint8_t& counter = counters[first_counter(shape, pc) + (history & 0xffU)];
    counter = next_states[taken][counter];
    history = history * 2U + (taken ? taken_bit(shape) : 0);
    return counter != 0 && counter != kSurelyTaken;
}

std::uint32_t Predictor::taken_in_a_row(const trace::PredictorShape& shape, std::uint64_t pc,
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
