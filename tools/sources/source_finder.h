// Where the source files of a profile are now, and which of them may be shown.
//
// A profile is data, and may be anybody's: what it names is not shown because it is named there,
// least of all in a report, which is made to be sent to others. A file is shown if the path that is
// behind all symbolic links
//   - has the extension of a source file, one of the usual ones or of those that the user adds;
//   - is below the working directory, a folder of the user's (`include_dirs`, `moved`), or a folder
//     where headers are installed, of which those of C++ have no extension;
//   - or is named by the debug information of one of the profile's objects, and anybody may read
//   it:
//     a program can be sent along with its profile.
// Not so below the working directory: what is hidden there, and anything if it is /. What is below
// /proc and /sys is shown only if `include_dirs` says so.
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

// As options have them, OLD=NEW. Throws Error, which begins with the option.
std::vector<MovedFolder> parse_moved(std::string_view option,
                                     const std::vector<std::string>& texts);

// What the user says about sources.
struct SourceOptions {
    std::vector<std::string> include_dirs;  // where to look for them, too
    std::vector<MovedFolder> moved;
    std::vector<std::string> extensions;  // of sources, beside the usual ones: inc2, or .inc2
};

// What remedies a file that is left out.
inline constexpr const char* kHowToShow =
    "--include=DIR shows what is below DIR, --source-extensions=EXT what ends in .EXT";

class SourceFinder {
  public:
    // Of a profile with these objects, whose debug information is read once it is needed.
    SourceFinder(SourceOptions options, std::vector<events::Object> objects);

    enum class Status : std::uint8_t {
        kFound,
        kNotFound,
        kLeftOut,  // there is one, which nothing says is a source
    };
    struct Source {
        Status status;
        std::filesystem::path path;  // if it was found
    };
    // Who names the file: what the user names may be shown.
    enum class By : std::uint8_t { kProfile, kUser };
    // As it was named when it was compiled, with the first moved folder replaced that fits and has
    // it, also without "..", and with slashes for backslashes; or below a folder of the user's.
    // There, the name may have lost leading folders, because sources move as whole trees.
    Source find(const std::string& name, By by = By::kProfile);

  private:
    std::vector<std::filesystem::path> candidates(const std::string& name) const;
    bool may_be_shown(const std::filesystem::path& path, const std::string& name);
    bool has_source_extension(const std::filesystem::path& path) const;
    bool is_named_by_debug_information(const std::string& name);

    SourceOptions options_;
    std::unordered_set<std::string> extensions_;  // in lower case, with a point
    std::vector<std::filesystem::path> folders_;  // of the user's, behind links
    std::filesystem::path working_directory_;     // behind links; empty if it is /
    std::vector<events::Object> objects_;         // whose debug information has not been read
    std::unordered_set<std::string> names_;       // in that of the others
};

// What source files contain. Where they are, SourceFinder knows (source_finder.h).

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
