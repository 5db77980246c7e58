// How the page of assay sweep looks and what it does; made from page.css, page.js and the style of
// reports by embed.py.
#pragma once

#include <span>
#include <string_view>

namespace assay::sweep {

// In pieces that follow one another.
extern const std::span<const std::string_view> kStyle, kScript;

}  // namespace assay::sweep
