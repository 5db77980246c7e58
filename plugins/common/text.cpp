#include "plugins/common/text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace plugins {

std::string with_commas(std::uint64_t number) {
    std::string digits = std::to_string(number);
    for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
    return digits;
}

std::string percent(std::uint64_t part, std::uint64_t whole, int decimals) {
    const double value =
        whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
    char text[32];
    std::snprintf(text, sizeof text, "%.*f%%", decimals, value);
    return text;
}

std::uint64_t scaled(std::uint64_t count, double scale) {
    if (scale == 1) return count;
    return static_cast<std::uint64_t>(std::llround(static_cast<double>(count) * scale));
}

std::string right(const std::string& text, std::size_t width) {
    return std::string(width - std::min(width, text.size()), ' ') + text;
}

}  // namespace plugins
