// What a report consists of besides its data; made from page/ and third_party/ by embed.py.
#pragma once

#include <span>
#include <string_view>

namespace assay::report {

// In pieces that follow one another.
extern const std::span<const std::string_view> kStyle, kScript;

}  // namespace assay::report
