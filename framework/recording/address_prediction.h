// The part of trace_predictor_t that encoder and decoder of records need most often: addresses,
// which are the values of all sites except TRACE_SITE_VALUE and TRACE_SITE_VALUE_REST.
#pragma once

#include "assay/trace_file.h"

#include <cstdint>

namespace assay::recording {

// True for sites whose predictions use the address of a reference: trace_word().
inline bool is_memory_value(const trace_site_t& site) {
    return trace_is_value(&site) && trace_is_of_memory(&site);
}

// The predictions of an address, as of trace_guess_stride() and trace_guess_relative().
struct AddressGuesses {
    AddressGuesses(const trace_predictor_t& predictor, const trace_site_state_t& state)
        : last(state.last),
          base(predictor.bases[trace_region(state.last)]),
          stride(trace_guess_stride(&state)),
          relative(trace_guess_relative(&state, base)),
          favours_relative(state.trust >= 2) {}

    std::uint64_t favoured() const { return favours_relative ? relative : stride; }
    std::uint64_t other() const { return favours_relative ? stride : relative; }

    const std::uint64_t last, base, stride, relative;
    const bool favours_relative;
};

// Does what trace_learn_value() does. `kind`: of the site; with 0 no prediction of a value can use
// the address.
inline void learn_address(trace_predictor_t& predictor, trace_site_state_t& state, unsigned kind,
                          const AddressGuesses& guesses, std::uint64_t address) {
    // By stride, by relative and trust.
    static constexpr std::uint8_t kTrust[2][2][4] = {{{0, 1, 2, 3}, {1, 2, 3, 3}},
                                                     {{0, 0, 1, 2}, {0, 1, 2, 3}}};
    state.trust = kTrust[guesses.stride == address][guesses.relative == address][state.trust % 4];
    const auto delta = static_cast<std::int64_t>(address - guesses.last);
    const auto near = static_cast<std::int32_t>(delta);
    const std::int32_t near_delta = near == delta ? near : 0;
    state.stride = near_delta == state.last_delta ? near_delta : state.stride;
    state.last_delta = near_delta;
    state.last = address;
    const unsigned accesses = kind <= TRACE_SITE_MODIFY ? kind : 0;
    static_assert(TRACE_SITE_READ == 1 && TRACE_SITE_WRITE == 2 && TRACE_SITE_MODIFY == 3);
    predictor.read = accesses & TRACE_SITE_READ ? address : predictor.read;
    predictor.written = accesses & TRACE_SITE_WRITE ? address : predictor.written;
    std::uint64_t& base = predictor.bases[trace_region(address)];
    state.relative = address - base;
    base = address;
}

}  // namespace assay::recording
