#include "plugins/opcode_mix/summary.h"

#include "plugins/opcode_mix/events.h"

#include <assay/text.hpp>

#include <array>
#include <cstdio>
#include <utility>

namespace opcode_mix {
namespace {

using assay::percent;
using assay::right;
using assay::with_commas;

constexpr std::size_t kLabel = 24, kNumber = 20, kShare = 9;

std::string left(std::string_view text, std::size_t width) {
    std::string padded(text);
    padded.resize(std::max(width, text.size() + 1), ' ');
    return padded;
}

std::string row(std::string_view label, std::uint64_t count, std::uint64_t all) {
    return left(label, kLabel) + right(with_commas(count), kNumber) +
           right(percent(count, all, 1), kShare) + "\n";
}

std::string quotient(std::string_view label, std::uint64_t part, std::uint64_t whole) {
    if (whole == 0) return {};
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3f",
                  static_cast<double>(part) / static_cast<double>(whole));
    return left(label, kLabel) + right(text.data(), kNumber) + "\n";
}

constexpr std::array<std::pair<Event, const char*>, 7> kGroups{{
    {kMov, "moves"},
    {kInt, "integer"},
    {kCtl, "control"},
    {kStk, "stack"},
    {kFp, "scalar floating point"},
    {kVec, "vector"},
    {kOth, "other"},
}};

}  // namespace

std::string summarise(std::span<const std::uint64_t> totals, const std::vector<Opcode>& opcodes) {
    const std::uint64_t all = totals[kIr], moved = totals[kLdB] + totals[kStB];
    std::string text = left("instructions", kLabel) + right(with_commas(all), kNumber) + "\n";
    for (const auto& [event, label] : kGroups)
        text += row(std::string("  ") + label, totals[event], all);
    text += left("bytes read", kLabel) + right(with_commas(totals[kLdB]), kNumber) + "\n" +
            left("bytes written", kLabel) + right(with_commas(totals[kStB]), kNumber) + "\n" +
            left("flops", kLabel) + right(with_commas(totals[kFlops]), kNumber) + "\n" +
            quotient("flops per instruction", totals[kFlops], all) +
            quotient("flops per byte", totals[kFlops], moved);
    if (opcodes.empty()) return text;
    text += "\nmost frequent opcodes\n";
    for (const Opcode& opcode : opcodes)
        text += row("  " + std::string(opcode.mnemonic), opcode.executions, all);
    return text;
}

std::string in_one_line(const std::vector<Opcode>& opcodes, std::uint64_t instructions) {
    std::string text;
    for (const Opcode& opcode : opcodes) {
        if (!text.empty()) text += ", ";
        text += std::string(opcode.mnemonic) + " " + percent(opcode.executions, instructions, 1);
    }
    return text;
}

}  // namespace opcode_mix
