// assay/text.hpp - numbers for people, for summaries and reports of profilers, and suggestions for
// misspelt words.
//
// The functions depend only on their arguments. Call them from any thread.
#ifndef ASSAY_TEXT_HPP
#define ASSAY_TEXT_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// Scales a count of bursts to an estimate of the whole run, by Trace::scale. assay scales samples
// and the totals of a summary itself.
inline std::uint64_t scaled(std::uint64_t count, double scale) {
    if (scale == 1) return count;
    return static_cast<std::uint64_t>(std::llround(static_cast<double>(count) * scale));
}

// Pads `text` on the left to `width` bytes.
inline std::string right(const std::string& text, std::size_t width) {
    return std::string(width - std::min(width, text.size()), ' ') + text;
}

// Returns the candidate with the smallest Levenshtein distance to the word, the first one of
// equals. Returns "" if a third of the word's letters or more would be wrong.
inline std::string similar_word(std::string_view word, std::span<const std::string> candidates) {
    std::string best;
    std::size_t fewest = std::max<std::size_t>(2, word.size() / 3 + 1);
    for (const std::string& candidate : candidates) {
        std::vector<std::size_t> row(candidate.size() + 1);
        for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
        for (std::size_t i = 0; i < word.size(); ++i) {
            std::size_t diagonal = std::exchange(row[0], i + 1);
            for (std::size_t j = 1; j < row.size(); ++j) {
                const std::size_t changed = diagonal + (word[i] != candidate[j - 1]);
                diagonal = std::exchange(row[j], std::min({changed, row[j] + 1, row[j - 1] + 1}));
            }
        }
        if (row.back() >= fewest) continue;
        fewest = row.back();
        best = candidate;
    }
    return best;
}

}  // namespace assay

#endif
