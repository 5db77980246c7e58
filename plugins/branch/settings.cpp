#include "plugins/branch/settings.h"

#include "plugins/branch/conditional.h"
#include "plugins/branch/indirect.h"

#include <assay/profiler.hpp>

namespace branch {
namespace {

constexpr unsigned kFewestBits = 5;
constexpr unsigned kDeepestStack = 1U << 20;

unsigned number(std::string_view name, std::string_view value, unsigned from, unsigned to) {
    return static_cast<unsigned>(assay::number(name, value, from, to));
}

}  // namespace

void apply(Settings& settings, std::string_view name, std::string_view value) {
    if (name == "predictor") {
        settings.predictor = value;
        if (!conditional_predictor(value, kFewestBits))
            throw assay::BadOption(name, value,
                                   "use cachegrind, bimodal, gshare, tournament or tage");
    } else if (name == "predictor-bits") {
        settings.table_bits = number(name, value, kFewestBits, kMostTableBits);
    } else if (name == "indirect-predictor") {
        settings.target_predictor = value;
        if (!target_predictor(value, kFewestBits))
            throw assay::BadOption(name, value, "use last, target-cache or ittage");
    } else if (name == "indirect-bits") {
        settings.target_bits = number(name, value, kFewestBits, kMostTableBits);
    } else {
        settings.return_stack = number(name, value, 0, kDeepestStack);
    }
}

void check(const Settings& settings) {
    if (settings.table_bits != 0 && settings.predicts_conditional_inside())
        throw std::invalid_argument(
            "--predictor-bits: Cachegrind's predictor has one size; choose another with "
            "--predictor");
}

}  // namespace branch
