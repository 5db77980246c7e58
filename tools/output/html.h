// Text in pages of HTML.
#pragma once

#include <string>
#include <string_view>

namespace assay {

// What comes from files, so that it is nothing but text, in elements and in quoted attributes.
std::string html_text(std::string_view text);

}  // namespace assay
