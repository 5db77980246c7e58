#include "tools/sources/source_files.h"

#include "framework/support/descriptor.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/text.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>

namespace assay {

namespace {

namespace fs = std::filesystem;

// Generated sources reach some hundred megabytes.
constexpr std::uintmax_t kMostBytes = std::uintmax_t{1} << 30;

[[noreturn]] void fail(const fs::path& path, const std::string& reason) {
    throw Error(fmt::format("cannot read source file {}: {}", path.string(), reason));
}

// Of the file behind all links, where SourceFinder has looked, too: below /proc, links can lead
// elsewhere than the paths that they show.
std::string content_of(const fs::path& path) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    if (error) fail(path, error.message());
    // Some files of the kernel's are regular ones, and reading them waits for something to happen.
    const Descriptor file(open(real.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat status {};
    if (file.number() < 0 || fstat(file.number(), &status) != 0) fail(path, system_reason(errno));
    if (!S_ISREG(status.st_mode)) fail(path, "it is no regular file");
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

// A surrogate without its other half stays one: printing it is printable()'s business.
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
