// Numbers as summaries show them.
#pragma once

#include <cstdint>
#include <string>

namespace plugins {

// 1,234,567
std::string with_commas(std::uint64_t number);
// "12.3%"; 0 of 0 is 0%.
std::string percent(std::uint64_t part, std::uint64_t whole, int decimals);
// What was counted in bursts as an estimate for the whole run, by trace_parser_scale.
std::uint64_t scaled(std::uint64_t count, double scale);
// With spaces in front, up to that width.
std::string right(const std::string& text, std::size_t width);

}  // namespace plugins
