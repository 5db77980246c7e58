#include "plugins/branch/settings.h"

#include "plugins/branch/conditional.h"
#include "plugins/branch/indirect.h"
#include "plugins/common/profiler.h"

#include <charconv>

namespace branch {
namespace {

constexpr unsigned kFewestBits = 5;
constexpr unsigned kDeepestStack = 1U << 20;

bool number(std::string_view value, unsigned from, unsigned to, unsigned& into, std::string& why) {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), into);
    if (error == std::errc{} && end == value.data() + value.size() && into >= from && into <= to)
        return true;
    why = "use " + std::to_string(from) + " to " + std::to_string(to);
    return false;
}

bool take(Settings& settings, std::string_view name, std::string_view value, std::string& why) {
    if (name == "predictor") {
        settings.predictor = value;
        why = "use cachegrind, bimodal, gshare, tournament or tage";
        return conditional_predictor(value, kFewestBits) != nullptr;
    }
    if (name == "predictor-bits")
        return number(value, kFewestBits, kMostTableBits, settings.table_bits, why);
    if (name == "indirect-predictor") {
        settings.target_predictor = value;
        why = "use last, target-cache or ittage";
        return target_predictor(value, kFewestBits) != nullptr;
    }
    if (name == "indirect-bits")
        return number(value, kFewestBits, kMostTableBits, settings.target_bits, why);
    return number(value, 0, kDeepestStack, settings.return_stack, why);
}

}  // namespace

bool apply(Settings& settings, std::string_view name, std::string_view value, std::string& why) {
    if (take(settings, name, value, why)) return true;
    return plugins::unusable(name, value, why);
}

bool check(const Settings& settings, std::string& why) {
    if (settings.table_bits == 0 || !settings.predicts_conditional_inside()) return true;
    why = "--predictor-bits: Cachegrind's predictor has one size; choose another with --predictor";
    return false;
}

}  // namespace branch
