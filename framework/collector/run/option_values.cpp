#include "framework/collector/run/option_values.h"

#include "framework/support/error.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace assay::collector {
namespace {

// Splits at commas, except at those between parameters of a function or a template.
std::vector<std::string> split_functions(const std::string& list) {
    std::vector<std::string> out{""};
    int depth = 0;
    for (const char c : list) {
        if (c == '(' || c == '<') ++depth;
        if (c == ')' || c == '>') --depth;
        if (c == ',' && depth <= 0)
            out.emplace_back();
        else
            out.back() += c;
    }
    return out;
}

// Returns 0 if the text is not a number of instructions, or is too large for a period.
std::uint64_t instructions(std::string_view text) {
    constexpr std::uint64_t kMost = 1'000'000'000'000'000;
    const std::uint64_t number = count(text).value_or(0);
    return number > kMost ? 0 : number;
}

// True for a function name with the roles of its arguments: "take(size=2,old=1)".
bool names_roles(std::string_view text) {
    constexpr std::array<std::string_view, 5> kRoles{"size", "count", "old", "free", "result"};
    const std::size_t open = text.find('(');
    if (open == 0 || open == std::string_view::npos || !text.ends_with(')') ||
        text.substr(0, open).find_first_of("), \t\n\v\f\r") != std::string_view::npos)
        return false;
    std::string_view rest = text.substr(open + 1, text.size() - open - 2);
    for (bool first = true;; first = false) {
        const std::string_view one = rest.substr(0, rest.find(','));
        const std::size_t equals = one.find('=');
        const std::string_view role = one.substr(0, equals);
        if (equals == std::string_view::npos || equals + 2 != one.size() || one.back() < '1' ||
            one.back() > '6' || std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end() ||
            (role == "free" && !first))
            return false;
        if (one.size() == rest.size()) return true;
        rest.remove_prefix(one.size() + 1);
    }
}

}  // namespace

trace::CpuLevel cpu_level(const Setting& setting) {
    const auto found = std::find_if(trace::kCpuLevels.begin(), trace::kCpuLevels.end(),
                                    [&](const auto& l) { return l.name == setting.value; });
    if (found == trace::kCpuLevels.end())
        bad_value(setting, "host, x86-64-v2, x86-64-v3 or x86-64-v4");
    return found->level;
}

std::uint64_t instructions_of(const Setting& setting) {
    constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
    const std::uint64_t number = count(setting.value).value_or(0);
    if (number == 0 || number > kMost)
        bad_value(setting, "a whole number from 1 to 2^63-1, as 4000000, 4000k or 4M");
    return number;
}

std::uint32_t recursion(const Setting& setting) {
    constexpr std::uint32_t kAll = std::numeric_limits<std::uint32_t>::max();
    if (setting.value == "all") return kAll;
    std::uint32_t number = 0;
    const char* end = setting.value.data() + setting.value.size();
    const auto [stop, error] = std::from_chars(setting.value.data(), end, number);
    if (error != std::errc() || stop != end || number == 0)
        bad_value(setting, "a whole number from 1 on, or all");
    return number;
}

std::chrono::milliseconds duration(const Setting& setting) {
    double number = 0;
    const char* end = setting.value.data() + setting.value.size();
    const auto [stop, error] = std::from_chars(setting.value.data(), end, number);
    const std::string_view unit(stop, end);
    const double seconds = unit.empty() || unit == "s" ? 1
                           : unit == "m"               ? 60
                           : unit == "h"               ? 3600
                                                       : 0;
    constexpr double kMost = 1e9;
    if (error != std::errc() || !(number > 0) || seconds == 0 || number * seconds > kMost)
        bad_value(setting, "a time, for example 90, 1.5, 10s, 5m or 1h");
    return std::chrono::milliseconds(std::max(1LL, std::llround(number * seconds * 1000)));
}

ShowProgress progress(const Setting& setting) {
    if (setting.value == "auto") return ShowProgress::kInReplays;
    if (setting.value != "yes" && setting.value != "no") bad_value(setting, "auto, yes or no");
    return setting.value == "yes" ? ShowProgress::kAlways : ShowProgress::kNever;
}

// Two small numbers are a ratio. The bursts then have the usual length.
void set_sampling(trace::Regions& regions, const Setting& setting) {
    constexpr std::uint64_t kShortestBurst = 1000, kUsualBurst = 40'000;
    const std::size_t slash = setting.value.find('/');
    std::uint64_t burst = 0, period = 0;
    if (slash != std::string::npos) {
        burst = instructions(std::string_view(setting.value).substr(0, slash));
        period = instructions(std::string_view(setting.value).substr(slash + 1));
    }
    if (burst == 0 || period == 0)
        bad_value(setting, "two numbers of instructions, for example 1/100 or 100k/10M");
    if (burst >= period)
        throw Error(
            fmt::format("{}: a burst of {} instructions must be shorter than its period of {}",
                        describe(setting), burst, period));
    if (burst < kShortestBurst && period < kShortestBurst * kShortestBurst) {
        period = (period * kUsualBurst + burst / 2) / burst;
        burst = kUsualBurst;
    }
    if (burst < kShortestBurst)
        throw Error(fmt::format("{}: bursts of {} instructions are too short: at least {}",
                                describe(setting), burst, kShortestBurst));
    regions.sample_burst = burst;
    regions.sample_period = period;
}

std::uint64_t warm_up_of(const Setting& setting) {
    const std::optional<std::uint64_t> number = count(setting.value);
    if (!number) bad_value(setting, "a whole number of instructions, as 40000, 40k or 1M");
    return *number;
}

// Slices of a run have at least 100 instructions, because each takes some microseconds, and a block
// of up to 64 instructions is not divided.
std::uint32_t slice(const Setting& setting, bool is_replay) {
    constexpr std::uint64_t kUsual = 100'000, kMost = 1'000'000'000;
    const std::uint64_t least = is_replay ? 1 : 100;
    constexpr std::string_view kFair = "fair";
    if (setting.value == "parallel") return 0;
    if (setting.value == kFair) return kUsual;
    const std::string_view value = setting.value;
    const bool fair = value.starts_with(kFair) && value[kFair.size()] == ':';
    const std::uint64_t wanted = fair ? instructions(value.substr(kFair.size() + 1)) : 0;
    if (wanted < least || wanted > kMost)
        bad_value(setting,
                  fmt::format("parallel, fair, or fair:N with N from {} to 1G instructions, for "
                              "example fair:10k",
                              least));
    return static_cast<std::uint32_t>(wanted);
}

void add_functions(trace::Regions& regions, const Setting& setting) {
    std::string all = regions.functions;
    for (const std::string& name : split_functions(setting.value)) {
        if (name.empty() || name.find('\n') != std::string::npos)
            bad_value(setting, "a list of function names");
        all += (all.empty() ? "" : "\n") + name;
    }
    if (all.size() >= sizeof regions.functions)
        throw Error(fmt::format("{}: more than {} characters of function names: use wildcards",
                                describe(setting), sizeof regions.functions));
    std::copy(all.begin(), all.end(), regions.functions);
}

// Makes the list for the driver (its trace/allocation_functions.h).
void add_allocation_functions(std::string& all, const Setting& setting) {
    for (const std::string& function : split_functions(setting.value)) {
        const bool allocates = function.find("size=") != std::string::npos;
        const bool frees = function.find("free=") != std::string::npos;
        if (!names_roles(function) || allocates == frees)
            bad_value(setting,
                      "a list of functions with the roles of their arguments, as in "
                      "pool_alloc(size=2),pool_free(free=1)");
        all += (all.empty() ? "" : "\n") + function;
    }
    if (all.size() >= trace::kMostNames)
        throw Error(fmt::format("{}: more than {} characters of functions", describe(setting),
                                trace::kMostNames));
}

// Tests give the path of a driver.
std::string driver(const Setting& setting) {
    const std::string& value = setting.value;
    if (value != "auto" && value != "native" && value != "qemu" &&
        value.find('/') == std::string::npos)
        bad_value(setting, "auto, native or qemu");
    return value;
}

}  // namespace assay::collector
