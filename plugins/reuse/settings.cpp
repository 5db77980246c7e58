#include "plugins/reuse/settings.h"

#include "plugins/common/geometry.h"

#include <assay/profiler.hpp>

#include <algorithm>
#include <bit>

namespace reuse {
namespace {

std::vector<unsigned> shifts_of(std::string_view name, std::string_view value) {
    std::vector<unsigned> shifts;
    std::string_view rest = value;
    for (bool more = true; more;) {
        const std::size_t comma = rest.find(',');
        const std::string_view word = rest.substr(0, comma);
        more = comma != std::string_view::npos;
        if (more) rest.remove_prefix(comma + 1);
        std::uint64_t bytes = 0;
        if (!cache::parse_size(word, bytes) || !std::has_single_bit(bytes) ||
            bytes >> kSmallestShift == 0 || bytes >> kLargestShift > 1)
            throw assay::BadOption(name, value,
                                   "use powers of two from 1K to 1G, separated by commas, such as "
                                   "32K,1M");
        shifts.push_back(static_cast<unsigned>(std::countr_zero(bytes)));
    }
    std::sort(shifts.begin(), shifts.end());
    shifts.erase(std::unique(shifts.begin(), shifts.end()), shifts.end());
    return shifts;
}

}  // namespace

void apply(Settings& settings, std::string_view name, std::string_view value) {
    if (name == "sizes") {
        settings.shifts = shifts_of(name, value);
        return;
    }
    if (name == "miss-curve") {
        settings.miss_curve = value;
        return;
    }
    const std::uint64_t line =
        assay::number(name, value, cache::kSmallestLine, cache::kLargestLine);
    if (!std::has_single_bit(line)) throw assay::BadOption(name, value, "use a power of two");
    settings.line = static_cast<std::uint32_t>(line);
}

void check(const Settings& settings) {
    const std::uint64_t smallest = std::uint64_t{1} << settings.shifts.front();
    if (smallest < settings.line)
        throw assay::BadOption("sizes", size_name(smallest),
                               "less than a line, --line-size=" + std::to_string(settings.line));
}

std::string size_name(std::uint64_t bytes) {
    for (const auto& [shift, unit] : {std::pair{30, "G"}, {20, "M"}, {10, "K"}})
        if (bytes >> shift != 0 && bytes % (std::uint64_t{1} << shift) == 0)
            return std::to_string(bytes >> shift) + unit;
    return std::to_string(bytes);
}

}  // namespace reuse
