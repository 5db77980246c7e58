// assay/text.hpp - numbers as people want to read them, for summaries and reports of profilers.
//
// The functions depend on nothing but what they are given, and can be called from any thread.
#ifndef ASSAY_TEXT_HPP
#define ASSAY_TEXT_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace assay {

// 1,234,567
inline std::string with_commas(std::uint64_t number) {
    std::string digits = std::to_string(number);
    for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
    return digits;
}

// "12.3%", with one decimal; 0 of 0 is 0%.
inline std::string percent(std::uint64_t part, std::uint64_t whole, int decimals) {
    const double value =
        whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
    char text[32];
    std::snprintf(text, sizeof text, "%.*f%%", decimals, value);
    return text;
}

// What was counted in bursts as an estimate for the whole run, by Trace::scale. Samples and the
// totals of a summary are multiplied by assay.
inline std::uint64_t scaled(std::uint64_t count, double scale) {
    if (scale == 1) return count;
    return static_cast<std::uint64_t>(std::llround(static_cast<double>(count) * scale));
}

// With spaces in front, up to `width` bytes.
inline std::string right(const std::string& text, std::size_t width) {
    return std::string(width - std::min(width, text.size()), ' ') + text;
}

}  // namespace assay

#endif
