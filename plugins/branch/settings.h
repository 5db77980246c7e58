// The profiler's options.
#pragma once

#include "assay/vprofiler.h"

#include <array>
#include <string>
#include <string_view>

namespace branch {

struct Settings {
    std::string predictor = "cachegrind";
    unsigned table_bits = 0;  // 0: the predictor's usual size
    std::string target_predictor = "last";
    unsigned target_bits = 0;
    unsigned return_stack = 0;  // entries; 0: returns are not looked at

    // Cachegrind's predictors, which run in the program.
    bool predicts_conditional_inside() const { return predictor == "cachegrind"; }
    bool predicts_targets_inside() const {
        constexpr unsigned kCachegrinds = 9;
        return predicts_conditional_inside() && target_predictor == "last" &&
               (target_bits == 0 || target_bits == kCachegrinds);
    }
    // ITTAGE's history has the outcomes of conditional branches.
    bool needs_outcomes() const {
        return !predicts_conditional_inside() || target_predictor == "ittage";
    }
};

inline constexpr std::array<vp_option_t, 5> kOptionTable{{
    {"predictor", "cachegrind|bimodal|gshare|tournament|tage", "cachegrind",
     "Predictor of conditional branches; cachegrind is by far the fastest.", VP_OPTION_TEXT, 0},
    {"predictor-bits", "N", nullptr,
     "Tables of 2^N entries, 5 to 24; default: 14 (bimodal, gshare), 12 (tournament), 10 (tage).",
     VP_OPTION_UNSIGNED, 0},
    {"indirect-predictor", "last|target-cache|ittage", "last",
     "Predictor of indirect jumps and calls.", VP_OPTION_TEXT, 0},
    {"indirect-bits", "N", "9", "Its tables have 2^N entries, 5 to 24.", VP_OPTION_UNSIGNED, 0},
    {"return-stack", "DEPTH", "0",
     "Predicts returns with a stack of so many entries and counts them as Br and Brm; 0: does not.",
     VP_OPTION_UNSIGNED, 0},
}};

// Takes one option over. Throws std::invalid_argument with the reason if its value is unusable.
void apply(Settings& settings, std::string_view name, std::string_view value);
// Throws the same for options that do not go together.
void check(const Settings& settings);

}  // namespace branch
