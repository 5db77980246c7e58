// The source files of a profile: where they are now, and what they contain.
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

// A folder that has moved since the program was compiled.
struct MovedFolder {
    std::string from, to;
};

// Where a source is now: as it was named when it was compiled, with the first folder replaced that
// fits and has it; or below one of `include_dirs`. There, the name may have lost leading folders,
// because sources move as whole trees.
std::optional<std::filesystem::path> find_source(const std::filesystem::path& name,
                                                 const std::vector<std::string>& include_dirs,
                                                 const std::vector<MovedFolder>& moved = {});

// A whole file; one in UTF-16 (Unicode, section 23.8: it begins with a byte order mark) as UTF-8.
// Throws Error if it cannot be read, or is larger than any source.
std::string read_source(const std::filesystem::path& path);

// Without what ends them: a newline, or a carriage return and a newline.
std::vector<std::string_view> split_lines(std::string_view text);

// What a reader has to know of a source that was written later than one of the profiles; "" if it
// was not. `name` is how the profiles name it.
std::string warning_if_newer(std::string_view name, const std::filesystem::path& source,
                             std::span<const std::string> profiles);

}  // namespace assay
