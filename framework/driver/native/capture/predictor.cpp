#include "framework/driver/native/capture/predictor.h"

namespace assay::native {

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

}  // namespace assay::native
