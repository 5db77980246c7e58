#include "tools/output/csv.h"

namespace assay {

std::string csv_field(std::string_view text) {
    const bool bare = text.find_first_of(",\"\r\n") == std::string_view::npos;
    if (bare) return std::string(text);
    std::string field = "\"";
    for (const char c : text) field.append(c == '"' ? 2 : 1, c);
    return field += '"';
}

}  // namespace assay
