#include "tools/sources/source_finder.h"

#include "framework/support/descriptor.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/text.h"
#include "framework/symbols/line_table.h"
#include "framework/symbols/symbolizer.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace assay {

namespace {

namespace fs = std::filesystem;

// Extensions of languages that are compiled to machine code. Programs keep settings and passwords
// in files of other languages, so the user must add those.
constexpr auto kExtensions = std::to_array<std::string_view>({
    ".c",   ".h",    ".cc",  ".hh",  ".cpp", ".hpp",   ".cxx",   ".hxx",  ".c++",   ".h++",
    ".cp",  ".inc",  ".inl", ".ipp", ".ixx", ".cppm",  ".tcc",   ".tpp",  ".txx",   ".def",
    ".i",   ".ii",   ".m",   ".mm",  ".s",   ".sx",    ".asm",   ".nasm", ".y",     ".yy",
    ".ypp", ".l",    ".ll",  ".lex", ".re",  ".rl",    ".gperf", ".td",   ".f",     ".for",
    ".ftn", ".f77",  ".f90", ".f95", ".f03", ".f08",   ".f18",   ".fpp",  ".rs",    ".go",
    ".d",   ".di",   ".zig", ".nim", ".cr",  ".swift", ".ada",   ".adb",  ".ads",   ".pas",
    ".pp",  ".lpr",  ".ml",  ".mli", ".mll", ".mly",   ".hs",    ".lhs",  ".hsc",   ".cu",
    ".cuh", ".cl",   ".hip", ".v",   ".sv",  ".vala",  ".java",  ".kt",   ".scala", ".cob",
    ".cbl", ".ispc", ".pyx", ".pxd", ".pxi", ".odin",
});

constexpr std::array<std::string_view, 4> kHeaderFolders = {"/usr/include", "/usr/local/include",
                                                            "/usr/lib", "/usr/src"};

std::string lower_case(std::string text) {
    for (char& c : text)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return text;
}

// Opens nothing, because opening a device or a FIFO can block or have an effect.
bool is_readable_file(const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error) && access(path.c_str(), R_OK) == 0;
}

// The folder after links; empty if it does not exist.
fs::path folder_behind_links(const fs::path& path) {
    std::error_code error;
    fs::path folder = fs::canonical(path, error);
    return error ? fs::path() : folder;
}

// Both paths are after links. Nothing is below an empty path.
bool is_below(const fs::path& path, const fs::path& folder) {
    return !folder.empty() &&
           std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
               folder.end();
}

bool is_hidden(const fs::path& path, const fs::path& folder) {
    const fs::path relative = path.lexically_relative(folder);
    return std::any_of(relative.begin(), relative.end(),
                       [](const fs::path& part) { return part.native().starts_with('.'); });
}

bool anybody_may_read(const fs::path& path) {
    std::error_code error;
    const fs::perms permissions = fs::status(path, error).permissions();
    return !error && (permissions & fs::perms::others_read) != fs::perms::none;
}

// Compilers for Windows write backslashes.
std::string with_slashes(std::string path) {
    std::replace(path.begin(), path.end(), '\\', '/');
    return path;
}

// The part of the path after the folder; no value if the path is not below the folder.
std::optional<std::string> rest_below(const std::string& path, std::string_view folder) {
    if (folder.ends_with('/')) folder.remove_suffix(1);
    if (!path.starts_with(folder)) return {};
    const std::string rest = path.substr(folder.size());
    if (!rest.empty() && !rest.starts_with('/')) return {};
    return rest;
}

// The spellings under which a file may exist: the name itself, without ".." (the folder before that
// may be gone), and with slashes.
std::vector<std::string> spellings(const std::string& name) {
    std::vector<std::string> all = {name, fs::path(name).lexically_normal()};
    const std::string slashes = with_slashes(name);
    all.push_back(slashes);
    all.push_back(fs::path(slashes).lexically_normal());
    std::vector<std::string> different;
    for (std::string& each : all)
        if (std::find(different.begin(), different.end(), each) == different.end())
            different.push_back(std::move(each));
    return different;
}

// The name with each matching folder replaced, or unchanged if no folder matches.
std::vector<std::string> moved_names(const std::string& name,
                                     const std::vector<MovedFolder>& moved) {
    std::vector<std::string> names;
    for (const MovedFolder& folder : moved)
        for (const std::string& spelling : spellings(name))
            for (const std::string& from : spellings(folder.from))
                if (const std::optional<std::string> rest = rest_below(spelling, from)) {
                    const std::string_view to = folder.to;
                    names.push_back(std::string(to.substr(0, to.size() - to.ends_with('/'))) +
                                    *rest);
                }
    return names.empty() ? spellings(name) : names;
}

}  // namespace

std::vector<MovedFolder> parse_moved(std::string_view option,
                                     const std::vector<std::string>& texts) {
    std::vector<MovedFolder> moved;
    for (const std::string& text : texts) {
        const std::size_t equals = text.find('=');
        if (equals == 0 || equals == std::string::npos)
            throw Error(fmt::format("{}={}: give the old folder and the new one: {}=OLD=NEW",
                                    option, text, option));
        moved.push_back({text.substr(0, equals), text.substr(equals + 1)});
    }
    return moved;
}

SourceFinder::SourceFinder(SourceOptions options, std::vector<events::Object> objects)
    : options_(std::move(options)), objects_(std::move(objects)) {
    for (const std::string_view extension : kExtensions) extensions_.emplace(extension);
    for (const std::string& extension : options_.extensions)
        extensions_.insert(lower_case(extension.starts_with('.') ? extension : "." + extension));
    for (const std::string& folder : options_.include_dirs)
        folders_.push_back(folder_behind_links(folder));
    for (const MovedFolder& folder : options_.moved)
        folders_.push_back(folder_behind_links(folder.to));
    working_directory_ = folder_behind_links(".");
    if (working_directory_ == "/") working_directory_.clear();
}

SourceFinder::Source SourceFinder::find(const std::string& name, By by) {
    bool is_left_out = false;
    for (fs::path& path : candidates(name)) {
        if (!is_readable_file(path)) continue;
        if (by == By::kUser || may_be_shown(path, name)) return {Status::kFound, std::move(path)};
        is_left_out = true;
    }
    return {is_left_out ? Status::kLeftOut : Status::kNotFound, {}};
}

std::vector<fs::path> SourceFinder::candidates(const std::string& name) const {
    std::vector<fs::path> paths;
    for (std::string& now : moved_names(name, options_.moved)) paths.emplace_back(std::move(now));
    const fs::path relative = fs::path(with_slashes(name)).relative_path();
    for (const std::string& folder : options_.include_dirs)
        for (auto first = relative.begin(); first != relative.end(); ++first) {
            fs::path path = folder;
            for (auto part = first; part != relative.end(); ++part) path /= *part;
            paths.push_back(std::move(path));
        }
    return paths;
}

bool SourceFinder::may_be_shown(const fs::path& path, const std::string& name) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    if (error) return false;
    const auto contains = [&](const fs::path& folder) { return is_below(real, folder); };
    if (std::any_of(folders_.begin(), folders_.end(), contains)) return true;
    if (is_below(real, "/proc") || is_below(real, "/sys")) return false;
    if (has_source_extension(real)) return true;
    if (contains(working_directory_) && !is_hidden(real, working_directory_)) return true;
    if (std::any_of(kHeaderFolders.begin(), kHeaderFolders.end(), contains)) return true;
    return path == name && anybody_may_read(real) && is_named_by_debug_information(name);
}

bool SourceFinder::has_source_extension(const fs::path& path) const {
    return extensions_.contains(lower_case(path.extension()));
}

bool SourceFinder::is_named_by_debug_information(const std::string& name) {
    while (!names_.contains(name) && !objects_.empty()) {
        names_.merge(symbols::source_names(objects_.front().path, objects_.front().build_id,
                                           symbols::kDebugRoot));
        objects_.erase(objects_.begin());
    }
    return names_.contains(name);
}

namespace {

namespace fs = std::filesystem;

// Generated sources reach some hundred megabytes.
constexpr std::uintmax_t kMostBytes = std::uintmax_t{1} << 30;

[[noreturn]] void fail(const fs::path& path, const std::string& reason) {
    throw Error(fmt::format("cannot read source file {}: {}", path.string(), reason));
}

// Opens the path after all links, which SourceFinder has checked. Below /proc, links can lead
// elsewhere than the paths that they show.
std::string content_of(const fs::path& path) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    if (error) fail(path, error.message());
    // Some of the kernel's files are regular, and reading them waits for an event.
    const Descriptor file(open(real.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat status {};
    if (file.number() < 0 || fstat(file.number(), &status) != 0) fail(path, system_reason(errno));
    if (!S_ISREG(status.st_mode)) fail(path, "it is not a regular file");
    std::string text;
    std::vector<char> buffer(256 * 1024);
    for (auto size = static_cast<std::uintmax_t>(status.st_size); size <= kMostBytes;
         size = text.size()) {
        const ssize_t count = read(file.number(), buffer.data(), buffer.size());
        if (count == 0) return text;
        if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
        if (count < 0 && errno != EINTR) fail(path, system_reason(errno));
    }
    fail(path, fmt::format("it has more than {} bytes, which no source has", kMostBytes));
}

bool is_newer(const fs::path& source, const std::string& file) {
    std::error_code error;
    const fs::file_time_type source_time = fs::last_write_time(source, error);
    if (error) return false;
    const fs::file_time_type time = fs::last_write_time(file, error);
    return !error && source_time > time;
}

void append_utf8(std::string& out, char32_t c) {
    const auto append = [&out](char32_t byte) { out += static_cast<char>(byte); };
    if (c < 0x80) {
        append(c);
    } else if (c < 0x800) {
        append(0xC0 | c >> 6);
        append(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        append(0xE0 | c >> 12);
        append(0x80 | (c >> 6 & 0x3F));
        append(0x80 | (c & 0x3F));
    } else {
        append(0xF0 | c >> 18);
        append(0x80 | (c >> 12 & 0x3F));
        append(0x80 | (c >> 6 & 0x3F));
        append(0x80 | (c & 0x3F));
    }
}

// A surrogate without its partner stays as it is. printable() handles it.
std::string from_utf16(std::string_view text, bool big_endian) {
    const auto unit = [&](std::size_t i) -> char32_t {
        const auto first = static_cast<unsigned char>(text[i]);
        const auto second = static_cast<unsigned char>(text[i + 1]);
        return static_cast<char32_t>(big_endian ? first << 8 | second : second << 8 | first);
    };
    std::string out;
    for (std::size_t i = 2; i + 1 < text.size(); i += 2) {
        char32_t c = unit(i);
        if (c >= 0xD800 && c < 0xDC00 && i + 3 < text.size() && unit(i + 2) >= 0xDC00 &&
            unit(i + 2) < 0xE000) {
            c = 0x10000 + ((c - 0xD800) << 10) + (unit(i + 2) - 0xDC00);
            i += 2;
        }
        append_utf8(out, c);
    }
    return out;
}

}  // namespace

std::string read_source(const fs::path& path) {
    std::string text = content_of(path);
    if (text.starts_with("\xFF\xFE")) return from_utf16(text, false);
    if (text.starts_with("\xFE\xFF")) return from_utf16(text, true);
    if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
    return text;
}

std::optional<std::string> read_source_or_warn(const fs::path& path) {
    try {
        return read_source(path);
    } catch (const Error& error) {
        log::problem(error.what());
        return std::nullopt;
    }
}

std::vector<std::string_view> split_lines(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        if (line.ends_with('\r')) line.remove_suffix(1);
        lines.push_back(line);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
}

std::string warning_if_newer(std::string_view name, const fs::path& source,
                             std::span<const std::string> profiles) {
    const auto older = std::find_if(profiles.begin(), profiles.end(),
                                    [&](const auto& profile) { return is_newer(source, profile); });
    if (older == profiles.end()) return "";
    return fmt::format("Warning: {} is newer than {}; its lines may have moved since then.",
                       printable(name), printable(*older));
}

}  // namespace assay
