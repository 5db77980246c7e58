// What source files contain. Where they are, SourceFinder knows (source_finder.h).
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// What stands for a source file that is not known.
inline constexpr std::string_view kUnknownFile = "???";
// True for this name, and for "[OBJECT]", which is known to be in an object only.
inline bool is_unknown_file(std::string_view name) {
    return name == kUnknownFile || (name.starts_with('[') && name.ends_with(']'));
}

// A whole file; one in UTF-16 (Unicode, section 23.8: it begins with a byte order mark) as UTF-8.
// Throws Error if it cannot be read, is larger than any source, or no regular file.
std::string read_source(const std::filesystem::path& path);

// The same; but of what cannot be read, a line on stderr says why.
std::optional<std::string> read_source_or_warn(const std::filesystem::path& path);

// Without what ends them: a newline, or a carriage return and a newline.
std::vector<std::string_view> split_lines(std::string_view text);

// What a reader has to know of a source that was written later than one of the profiles; "" if it
// was not. `name` is how the profiles name it.
std::string warning_if_newer(std::string_view name, const std::filesystem::path& source,
                             std::span<const std::string> profiles);

}  // namespace assay
