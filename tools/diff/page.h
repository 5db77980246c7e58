// How the page of assay diff looks; made from page.css and the style of reports by embed.py.
#pragma once

#include <span>
#include <string_view>

namespace assay::diff {

// In pieces that follow one another.
extern const std::span<const std::string_view> kStyle;

}  // namespace assay::diff
