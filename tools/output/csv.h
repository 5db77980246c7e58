// Comma-separated values (RFC 4180).
#pragma once

#include <string>
#include <string_view>

namespace assay {

// In quotes if it must be.
std::string csv_field(std::string_view text);

}  // namespace assay
