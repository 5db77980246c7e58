#include "tools/annotate_sources.h"

#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>

namespace assay::annotate {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kUnknownFile = "???";

// The lines of a source file, without their newlines.
std::vector<std::string_view> split_lines(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        lines.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
}

bool is_readable_file(const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error) && std::ifstream(path).good();
}

bool is_newer(const fs::path& source, const std::string& profile) {
    std::error_code error;
    const fs::file_time_type source_time = fs::last_write_time(source, error);
    if (error) return false;
    const fs::file_time_type profile_time = fs::last_write_time(profile, error);
    return !error && source_time > profile_time;
}

// Stands where lines are left out, or at their end; the line given is the next one.
std::string gap(std::size_t line) {
    return fmt::format("-- line {} {}\n", line, std::string(40, '-'));
}

class SourceWriter {
  public:
    SourceWriter(const Options& options, const Columns& columns, Output& output)
        : options_(options),
          columns_(columns),
          output_(output),
          annotated_(columns.totals.size()) {}

    void write(std::string_view name, const fs::path& path, const std::vector<SourceLine>& lines);
    void write_not_found(std::vector<std::string_view> names);
    // How much of the totals the annotated lines account for.
    void write_coverage();

  private:
    void write_ranges(const std::vector<std::string_view>& text, std::span<const SourceLine> lines,
                      const Table& table);
    void warn_if_newer(std::string_view name, const fs::path& path);
    void write_line(const Table& table, Counts counts, std::string_view text);

    const Options& options_;
    const Columns& columns_;
    Output& output_;
    std::vector<std::uint64_t> annotated_;
};

void SourceWriter::write(std::string_view name, const fs::path& path,
                         const std::vector<SourceLine>& lines) {
    output_.section(path == name ? fmt::format("Source: {}", name)
                                 : fmt::format("Source: {} (found at {})", name, path.string()));
    warn_if_newer(name, path);
    std::ifstream file(path, std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(file), {}};
    const std::vector<std::string_view> text = split_lines(content);

    Table table(columns_);
    for (const SourceLine& line : lines) table.fit(line.counts);
    output_.write(table.heading("") + "\n");

    auto known = std::span(lines);
    if (!known.empty() && known.front().line == 0) {
        write_line(table, known.front().counts, "<unknown line>");
        output_.write("\n");
        known = known.subspan(1);
    }
    const auto past_end = std::find_if(known.begin(), known.end(), [&](const SourceLine& line) {
        return line.line > text.size();
    });
    write_ranges(text, {known.begin(), past_end}, table);
    output_.write("\n");
    if (past_end == known.end()) return;

    for (const SourceLine& line : std::span(past_end, known.end()))
        write_line(table, line.counts, fmt::format("<line {}, past the end>", line.line));
    output_.write(
        fmt::format("\nWarning: {} has {} lines, but there are counts of later ones; it "
                    "is not the file that was compiled.\n\n",
                    name, text.size()));
}

// Lines with counts and those around them, with a gap marked wherever lines are left out.
void SourceWriter::write_ranges(const std::vector<std::string_view>& text,
                                std::span<const SourceLine> lines, const Table& table) {
    std::size_t next = 1;  // the first line not yet written
    for (auto line = lines.begin(); line != lines.end(); ++line) {
        const std::size_t context = options_.context;
        const std::size_t first =
            std::max(next, line->line > context ? line->line - context : std::size_t{1});
        if (first != next) output_.write(gap(first));
        for (next = first; next < line->line; ++next)
            output_.write(table.empty_row(text[next - 1]));
        write_line(table, line->counts, text[next++ - 1]);
        const std::size_t following =
            std::next(line) == lines.end() ? text.size() + 1 : std::next(line)->line;
        const std::size_t end = std::min({line->line + context + 1, following, text.size() + 1});
        for (; next < end; ++next) output_.write(table.empty_row(text[next - 1]));
    }
    if (!lines.empty() && next <= text.size()) output_.write(gap(next));
}

void SourceWriter::write_line(const Table& table, Counts counts, std::string_view text) {
    output_.write(table.row(counts, text));
    for (std::size_t i = 0; i < counts.size(); ++i) annotated_[i] += counts[i];
}

void SourceWriter::warn_if_newer(std::string_view name, const fs::path& path) {
    for (const std::string& profile : options_.profiles)
        if (is_newer(path, profile)) {
            output_.write(
                fmt::format("Warning: {} is newer than {}; its lines may have moved "
                            "since then.\n\n",
                            name, profile));
            return;
        }
}

void SourceWriter::write_not_found(std::vector<std::string_view> names) {
    if (names.empty()) return;
    std::sort(names.begin(), names.end());
    output_.section("Sources not found (--include=DIR looks below DIR, too)");
    for (const std::string_view name : names) output_.write(fmt::format("  {}\n", name));
    output_.write("\n");
}

void SourceWriter::write_coverage() {
    Table table(columns_);
    table.fit(annotated_);
    output_.section("Annotated");
    output_.write(table.heading(""));
    output_.write(table.row(annotated_, "in the source lines above"));
}

// Indices of the files that the user means: named exactly so, or ending in that path.
std::vector<std::uint32_t> files_named(const Profile& profile, const std::string& name) {
    std::vector<std::uint32_t> exact, ending;
    for (std::uint32_t i = 0; i < profile.files().size(); ++i) {
        if (profile.files()[i] == name) exact.push_back(i);
        if (profile.files()[i].ends_with("/" + name)) ending.push_back(i);
    }
    if (exact.empty() && ending.empty())
        throw Error(fmt::format(
            "{} is neither an events file nor a source file that the profile has counts of", name));
    return exact.empty() ? ending : exact;
}

}  // namespace

std::optional<fs::path> find_source(const fs::path& name,
                                    const std::vector<std::string>& include_dirs) {
    if (is_readable_file(name)) return name;
    for (const std::string& folder : include_dirs) {
        const fs::path relative = name.relative_path();
        for (auto first = relative.begin(); first != relative.end(); ++first) {
            fs::path candidate = folder;
            for (auto part = first; part != relative.end(); ++part) candidate /= *part;
            if (is_readable_file(candidate)) return candidate;
        }
    }
    return std::nullopt;
}

void write_sources(const Options& options, const Profile& profile, const Columns& columns,
                   const std::vector<std::uint32_t>& files_of_functions, Output& output) {
    std::vector<std::uint32_t> files;
    std::vector<bool> wanted(profile.files().size());
    const auto want = [&](std::uint32_t file) {
        if (wanted[file] || profile.files()[file] == kUnknownFile) return;
        wanted[file] = true;
        files.push_back(file);
    };
    for (const std::string& name : options.sources)
        for (const std::uint32_t file : files_named(profile, name)) want(file);
    const std::size_t named = files.size();
    if (options.automatic)
        for (const std::uint32_t file : files_of_functions) want(file);
    if (files.empty()) return;

    const std::vector<std::vector<SourceLine>> lines = profile.lines(wanted);
    SourceWriter writer(options, columns, output);
    std::vector<std::string_view> not_found;
    for (std::size_t i = 0; i < files.size(); ++i) {
        const std::string_view name = profile.files()[files[i]];
        const std::optional<fs::path> path = find_source(name, options.include_dirs);
        if (path) {
            writer.write(name, *path, lines[files[i]]);
        } else if (i < named) {
            throw Error(
                fmt::format("cannot read source file {}; name its folder with --include", name));
        } else {
            not_found.push_back(name);
        }
    }
    const bool any_found = not_found.size() < files.size();
    writer.write_not_found(std::move(not_found));
    if (any_found) writer.write_coverage();
}

}  // namespace assay::annotate
