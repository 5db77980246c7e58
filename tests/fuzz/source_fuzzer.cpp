// Feeds garbage to what prints sources and names: a terminal must get text of one line, whatever
// the bytes are, and text that already is that must stay as it is.
#include "framework/support/text.h"
#include "tools/sources/source_finder.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const std::string shown = assay::printable(text);
    for (const char c : shown) {
        const auto byte = static_cast<unsigned char>(c);
        if ((byte < 0x20 && c != '\t') || byte == 0x7f) std::abort();
    }
    if (shown.find("\xC2\x80") != std::string::npos || assay::printable(shown) != shown)
        std::abort();
    std::size_t bytes = 0;
    for (const std::string_view line : assay::split_lines(text)) bytes += line.size();
    if (bytes > size) std::abort();
    return 0;
}
