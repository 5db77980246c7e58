#include "framework/collector/run/output_files.h"

#include "framework/events/file.h"
#include "framework/support/error.h"
#include "framework/support/mpi_rank.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

namespace assay::collector {
namespace {

namespace fs = std::filesystem;

bool has_any_of(std::string_view pattern, std::string_view kinds) {
    for (std::size_t at = pattern.find('%');
         at != std::string_view::npos && at + 1 < pattern.size(); at = pattern.find('%', at + 2))
        if (kinds.find(pattern[at + 1]) != std::string_view::npos) return true;
    return false;
}

// The names of devices and pipes stay the same.
std::string append(std::string name, std::string_view what) {
    std::error_code error;
    const fs::file_status status = fs::status(name, error);
    if (exists(status) && !is_regular_file(status)) return name;
    std::string_view ending;
    for (const std::string_view compressed : {".gz", ".zst"})
        if (name.ends_with(compressed)) ending = compressed;
    name.resize(name.size() - ending.size());
    return fmt::format("{}.{}{}", name, what, ending);
}

// Adds the profiler's name if another profiler has an option of the same name.
std::string written(const Session& session, const ProfilerHandle& profiler,
                    const std::string& option) {
    const bool shared = std::any_of(
        session.profilers.begin(), session.profilers.end(),
        [&](const auto& other) { return other.get() != &profiler && other->option(option); });
    return fmt::format("--{}{}", shared ? profiler.name() + "." : "", option);
}

bool is_output(const ProfilerHandle& profiler, const std::string& option) {
    return profiler.option(option)->type == VP_OPTION_OUTPUT_FILE;
}

// Returns an absolute path, with links resolved as far as the path exists.
fs::path whole_path(const std::string& path) {
    std::error_code error;
    const fs::path behind = events::behind_links(path);
    const fs::path whole = fs::weakly_canonical(fs::absolute(behind, error), error);
    return error ? behind : whole;
}

bool is_same_file(const std::string& a, const std::string& b) {
    std::error_code error;
    const fs::file_status status = fs::status(a, error);
    if (!fs::exists(status)) return whole_path(a) == whole_path(b);
    return fs::is_regular_file(status) && fs::equivalent(a, b, error);
}

}  // namespace

std::string command_line(const std::vector<std::string>& words) {
    std::string line = join(words, " ");
    std::replace_if(
        line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    return line;
}

std::string file_of_process(std::string_view pattern, const Image& image) {
    std::string name = expand_file_name(pattern, image.pid, image.program);
    if (const std::string rank = mpi_rank(); !rank.empty() && !has_any_of(pattern, "pqr"))
        name = append(name, "rank" + rank);
    if (!image.of_first_process && !has_any_of(pattern, "p"))
        name = append(name, std::to_string(image.pid));
    return image.earlier == 0 ? name : append(name, fmt::format("process{}", image.earlier + 1));
}

std::string file_of_image(std::string_view pattern, const Image& image) {
    return append(file_of_process(pattern, image), std::to_string(image.number));
}

std::string own_file_of_image(std::string_view pattern, const Image& image) {
    std::string name = file_of_process(pattern, image);
    return image.number == 1 ? name : append(name, fmt::format("image{}", image.number));
}

std::string file_of_part(std::string_view file, std::string_view name) {
    constexpr std::size_t kLongest = 100;
    std::string safe(name.substr(0, kLongest));
    for (char& c : safe)
        if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.') c = '_';
    return append(std::string(file), safe);
}

std::vector<OutputFile> output_files(const Session& session, const Image& image) {
    std::vector<OutputFile> files;
    if (session.columns.size() > 0)
        files.push_back({"--out", file_of_process(session.settings.out, image), false});
    for (std::size_t i = 0; i < session.profilers.size(); ++i) {
        const ProfilerHandle& profiler = *session.profilers[i];
        for (const auto& [option, value] : given_to(profiler, session.given[i], image))
            if (is_output(profiler, option) && !value.empty())
                files.push_back({written(session, profiler, option), value, true});
    }
    return files;
}

Given given_to(const ProfilerHandle& profiler, Given given, const Image& image) {
    for (const ProfilerOption& option : profiler.options()) {
        const auto is_this = [&](const auto& setting) { return setting.first == option.name; };
        if (option.type == VP_OPTION_OUTPUT_FILE && option.default_value &&
            std::none_of(given.begin(), given.end(), is_this))
            given.emplace_back(option.name, *option.default_value);
    }
    for (auto& [option, value] : given)
        if (is_output(profiler, option) && !value.empty()) value = own_file_of_image(value, image);
    return given;
}

void check_distinct(std::span<const OutputFile> files) {
    for (auto file = files.begin(); file != files.end(); ++file)
        for (auto before = files.begin(); before != file; ++before)
            if (is_same_file(before->path, file->path))
                throw Error(fmt::format("{} and {} name the same file: {}", before->option,
                                        file->option, file->path));
}

void check_writable(std::span<const OutputFile> files) {
    for (const OutputFile& file : files)
        if (file.in_place)
            events::check_writable_in_place(file.path);
        else
            events::check_writable(file.path);
}

}  // namespace assay::collector
