#include "tools/block_vectors/simulation_points.h"

#include "framework/events/file.h"
#include "framework/support/text.h"

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace assay {
namespace {

// The number after `words`, if the line begins with these.
std::optional<std::uint64_t> number_behind(std::string_view line, std::string_view words) {
    if (!line.starts_with(words)) return {};
    line.remove_prefix(words.size());
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (error != std::errc()) return {};
    return number;
}

// Takes FILE from "# FILE: intervals 3 to 14", which assay merge writes.
std::string merged_file(const std::string& line) {
    constexpr std::string_view kBefore = "# ", kBehind = ": intervals ";
    const std::size_t behind = line.rfind(kBehind);
    if (!line.starts_with(kBefore) || behind == std::string::npos || behind < kBefore.size())
        return "";
    unsigned long long first = 0, last = 0;
    int end = 0;
    const char* const numbers = line.c_str() + behind + kBehind.size();
    if (std::sscanf(numbers, "%llu to %llu%n", &first, &last, &end) != 2 || numbers[end] != '\0')
        return "";
    return line.substr(kBefore.size(), behind - kBefore.size());
}

void take_comment(const std::string& line, VectorComments& comments) {
    if (const auto thread = number_behind(line, "# Thread ")) comments.thread = *thread;
    if (const auto count = number_behind(line, "#   Total instructions: "))
        comments.instructions = *count;
    if (std::string file = merged_file(line); !file.empty())
        comments.files.push_back(std::move(file));
}

VectorComments comments_of(const std::string& path) {
    VectorComments comments;
    std::string line;  // a comment; empty for other lines
    bool begins = true, takes = false;
    events::read_file(path, [&](std::string_view block) {
        for (const char c : block) {
            if (begins) takes = c == '#';
            begins = c == '\n';
            if (takes && !begins) line += c;
            if (!begins || line.empty()) continue;
            take_comment(line, comments);
            line.clear();
        }
    });
    if (!line.empty()) take_comment(line, comments);
    return comments;
}

}  // namespace

SimulationPointFiles simulation_point_files(std::string vectors) {
    for (const std::string_view ending : {".gz", ".zst"})
        if (vectors.ends_with(ending)) vectors.resize(vectors.size() - ending.size());
    return {vectors + ".simpts", vectors + ".weights", vectors + ".labels"};
}

std::optional<FoundVectors> vectors_beside(const std::string& points, std::uint64_t thread) {
    constexpr std::string_view kEnding = ".simpts";
    if (!points.ends_with(kEnding)) return {};
    std::string name = points.substr(0, points.size() - kEnding.size());
    if (thread != 1) name += "." + std::to_string(thread);
    std::error_code error;
    for (const char* ending : {"", ".gz", ".zst"})
        if (std::filesystem::is_regular_file(name + ending, error))
            return FoundVectors{name + ending, comments_of(name + ending)};
    return {};
}

}  // namespace assay
