// Finds the source files of a profile, and decides which of them may be shown.
//
// A profile is data, and anybody may have written it. A file is not shown only because the profile
// names it, least of all in a report, which is made to be sent to others. A file is shown if its
// path after all symbolic links
//   - has the extension of a source file, a usual one or one that the user adds;
//   - is below a folder of the user (`include_dirs`, `moved`);
//   - is below the working directory, unless it is hidden there or the working directory is /;
//   - is below a folder of installed headers, because C++'s own have no extension;
//   - or is named by the debug information of one of the profile's objects, and anybody may read
//     it, because a program can be sent along with its profile.
// Files below /proc and /sys are shown only if they are below a folder of the user.
#pragma once

#include "framework/events/header.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace assay {

// A folder that has moved since the program was compiled.
struct MovedFolder {
    std::string from, to;
};

// Parses the values OLD=NEW of an option. Throws Error, whose message begins with the option.
std::vector<MovedFolder> parse_moved(std::string_view option,
                                     const std::vector<std::string>& texts);

// The user's options for sources.
struct SourceOptions {
    std::vector<std::string> include_dirs;  // additional folders to search
    std::vector<MovedFolder> moved;
    std::vector<std::string> extensions;  // of sources, in addition to the usual ones: inc2, or
                                          // .inc2
};

// The remedy for a file that is left out.
inline constexpr const char* kHowToShow =
    "--include=DIR shows files below DIR, --source-extensions=EXT files that end in .EXT";

class SourceFinder {
  public:
    // `objects` are those of the profile. Their debug information is read when it is needed.
    SourceFinder(SourceOptions options, std::vector<events::Object> objects);

    enum class Status : std::uint8_t {
        kFound,
        kNotFound,
        kLeftOut,  // the file exists, but nothing shows that it is a source
    };
    struct Source {
        Status status;
        std::filesystem::path path;  // if the status is kFound
    };
    // The origin of a name. A file that the user names may be shown.
    enum class By : std::uint8_t { kProfile, kUser };
    // Searches for the file under the name from compilation: with the first moved folder replaced
    // in which the file exists, also without "..", and with slashes instead of backslashes. Then
    // searches below `include_dirs`. There, leading folders of the name may be missing, because
    // sources move as whole trees.
    Source find(const std::string& name, By by = By::kProfile);

  private:
    std::vector<std::filesystem::path> candidates(const std::string& name) const;
    bool may_be_shown(const std::filesystem::path& path, const std::string& name);
    bool has_source_extension(const std::filesystem::path& path) const;
    bool is_named_by_debug_information(const std::string& name);

    SourceOptions options_;
    std::unordered_set<std::string> extensions_;  // in lower case, with a point
    std::vector<std::filesystem::path> folders_;  // of the user, after links
    std::filesystem::path working_directory_;     // after links; empty if it is /
    std::vector<events::Object> objects_;         // their debug information has not been read yet
    std::unordered_set<std::string> names_;       // in the debug information that has been read
};

// Reads source files. SourceFinder finds them (source_finder.h).

// The name of an unknown source file.
inline constexpr std::string_view kUnknownFile = "???";
// True for this name and for "[OBJECT]", the name for code of an object with an unknown file.
inline bool is_unknown_file(std::string_view name) {
    return name == kUnknownFile || (name.starts_with('[') && name.ends_with(']'));
}

// The content of a file. UTF-16 (Unicode, section 23.8: it begins with a byte order mark) is
// converted to UTF-8. Throws Error if the file cannot be read, is larger than any source, or is no
// regular file.
std::string read_source(const std::filesystem::path& path);

// The same, but if the file cannot be read, writes the reason to stderr and returns no value.
std::optional<std::string> read_source_or_warn(const std::filesystem::path& path);

// Lines end with a newline, or with a carriage return and a newline. The result excludes both.
std::vector<std::string_view> split_lines(std::string_view text);

// A warning if the source is newer than one of the profiles, otherwise "". `name` is the name in
// the profiles.
std::string warning_if_newer(std::string_view name, const std::filesystem::path& source,
                             std::span<const std::string> profiles);

}  // namespace assay
