#include "tools/simpoint/strip.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <map>

namespace assay::simpoint {
namespace {

// Of xterm's 256 colours, such as can be told apart on dark and on light ground.
constexpr std::array<unsigned, 12> kColors{33, 208, 34, 161, 99, 178, 37, 130, 205, 244, 70, 25};

// The one that occurs most often.
std::uint32_t usual(std::span<const std::uint32_t> phases) {
    std::map<std::uint32_t, std::size_t> times;
    for (const std::uint32_t phase : phases) ++times[phase];
    std::uint32_t best = phases[0];
    for (const std::uint32_t phase : phases)
        if (times[phase] > times[best]) best = phase;
    return best;
}

}  // namespace

char letter(std::uint32_t phase) {
    constexpr std::uint32_t kLetters = 26;
    if (phase < kLetters) return static_cast<char>('A' + phase);
    return phase < 2 * kLetters ? static_cast<char>('a' + (phase - kLetters)) : '?';
}

std::string in_color(std::uint32_t phase, const std::string& text) {
    return fmt::format("\033[38;5;{}m{}\033[0m", kColors[phase % kColors.size()], text);
}

std::string strip(std::span<const std::uint32_t> phases, std::size_t width, bool color) {
    std::string text;
    const std::size_t cells = std::min(width, phases.size());
    for (std::size_t cell = 0; cell < cells; ++cell) {
        const std::size_t begin = cell * phases.size() / cells;
        const std::size_t end = (cell + 1) * phases.size() / cells;
        const std::uint32_t phase = usual(phases.subspan(begin, end - begin));
        text += color ? in_color(phase, "\u2588") : std::string(1, letter(phase));
    }
    return text;
}

}  // namespace assay::simpoint
