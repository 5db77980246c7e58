// What a report consists of besides its data; made from page/ and third_party/ by embed.py.
#pragma once

#include <string_view>

namespace assay::report {

extern const std::string_view kStyle, kScript;

}  // namespace assay::report
