// How text is quoted in CSV and HTML.
#pragma once

#include <string>
#include <string_view>

namespace assay {

// Comma-separated values (RFC 4180).

// In quotes if it must be.
std::string csv_field(std::string_view text);

// Text in pages of HTML.

// What comes from files, so that it is nothing but text, in elements and in quoted attributes.
std::string html_text(std::string_view text);

}  // namespace assay
