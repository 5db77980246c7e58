#include "tools/annotate/sources.h"

#include "framework/support/error.h"
#include "framework/support/text.h"
#include "tools/code/object_code.h"

#include <fmt/core.h>
#include <algorithm>
#include <memory>
#include <set>

namespace assay::annotate {

namespace {

namespace fs = std::filesystem;

// Marks a gap before line `line`, or the end of the lines shown.
std::string gap(std::size_t line) {
    return fmt::format("-- line {} {}\n", line, std::string(40, '-'));
}

class SourceWriter {
  public:
    // `inclusive` is null if all lines with counts are shown.
    SourceWriter(const Options& options, const Profile& profile, const Columns& columns,
                 const Assembly& assembly, const InclusiveColumn* inclusive, std::size_t event,
                 Output& output)
        : options_(options),
          profile_(profile),
          columns_(columns),
          assembly_(assembly),
          inclusive_(inclusive),
          event_(event),
          output_(output),
          known_(columns.totals.size()),
          unknown_(columns.totals.size()),
          unreadable_(columns.totals.size()) {}

    // Writes nothing if no line of the file matters, unless the user named the file.
    void write(const SourceChoice::Source& source);
    // Names files that are missing, if they matter.
    void write_missing(const SourceChoice& choice);
    void write_names(std::string_view title, const std::vector<std::uint32_t>& files);
    // Writes how many counts were annotated, and why others were not.
    void write_coverage(const SourceChoice& choice);

  private:
    void write_title(const SourceChoice::Source& source);
    std::vector<std::size_t> lines_to_show(const std::vector<SourceLine>& lines,
                                           std::size_t lines_of_text, bool all) const;
    void write_ranges(const std::vector<std::string_view>& text, std::span<const SourceLine> lines,
                      const std::vector<std::size_t>& shown, const Table& table);
    std::string text_of(std::size_t line, std::string_view text) const;
    void write_line(const Table& table, const SourceLine& line, std::string_view text);
    void write_instructions(const Table& table, std::uint32_t line);

    const Options& options_;
    const Profile& profile_;
    const Columns& columns_;
    const Assembly& assembly_;
    const InclusiveColumn* const inclusive_;
    const std::size_t event_;  // decides which lines matter
    Output& output_;
    std::string_view name_;                        // of the file being written
    std::vector<SourceInstruction> instructions_;  // of that file
    // Sums of written lines, of written counts without a line, and of sources that cannot be read.
    std::vector<std::uint64_t> known_, unknown_, unreadable_;
};

void SourceWriter::write(const SourceChoice::Source& source) {
    const std::vector<SourceLine> lines = profile_.source_lines(source.file);
    name_ = profile_.by_source().files()[source.file];
    const std::optional<std::string> content = read_source_or_warn(source.path);
    const std::vector<std::string_view> text =
        split_lines(content ? std::string_view(*content) : "");
    const std::vector<std::size_t> shown =
        lines_to_show(lines, text.size(), inclusive_ == nullptr || source.is_named);
    const Counts in_file = profile_.by_source().file_counts(source.file);
    const bool is_missed = !content && !in_file.empty();
    if (inclusive_ != nullptr && shown.empty() && !is_missed) return;
    if (options_.instructions) instructions_ = profile_.source_instructions(source.file);
    write_title(source);
    if (!content) {
        output_.write("Warning: the file cannot be read.\n\n");
        add_counts(unreadable_, profile_.by_source().file_counts(source.file));
        return;
    }

    Table table(columns_);
    for (const SourceLine& line : lines) table.fit(line.counts);
    for (const SourceInstruction& instruction : instructions_) table.fit(instruction.counts);
    if (inclusive_ == nullptr)
        output_.write(table.heading("") + "\n");
    else
        output_.write(inclusive_->heading() + table.heading(" line"));

    auto known = std::span(lines);
    if (!known.empty() && known.front().line == 0) {
        if (inclusive_ == nullptr) {
            write_line(table, known.front(), "<unknown line>");
            output_.write("\n");
        }
        known = known.subspan(1);
    }
    write_ranges(text, known, shown, table);
    output_.write("\n");
    const auto past_end = std::find_if(known.begin(), known.end(), [&](const SourceLine& line) {
        return line.line > text.size();
    });
    if (past_end == known.end()) return;

    if (inclusive_ == nullptr)
        for (const SourceLine& line : std::span(past_end, known.end()))
            write_line(table, line, fmt::format("<line {}, past the end>", line.line));
    output_.write(
        fmt::format("{}Warning: {} has {} lines, but the profile has counts of later lines; it is "
                    "not the file that was compiled.\n\n",
                    inclusive_ == nullptr ? "\n" : "", printable(name_), text.size()));
}

void SourceWriter::write_title(const SourceChoice::Source& source) {
    std::string title = printable(name_);
    if (source.path != name_)
        title += fmt::format(" (found at {})", printable(source.path.string()));
    if (inclusive_ == nullptr)
        output_.section("Source: " + title);
    else
        output_.write("-- " + title + "\n");
    const std::string warning = warning_if_newer(name_, source.path, options_.profiles);
    if (!warning.empty()) output_.write(warning + "\n\n");
}

// Numbers of the lines with counts, or only of those that matter.
std::vector<std::size_t> SourceWriter::lines_to_show(const std::vector<SourceLine>& lines,
                                                     std::size_t lines_of_text, bool all) const {
    // In percent: own counts, and those with all calls from the line.
    constexpr double kOwn = 1, kInclusive = 10;
    std::vector<std::size_t> shown;
    auto next = lines.begin();
    for (std::uint32_t line = 0; line <= lines_of_text; ++line) {
        const SourceLine* found = nullptr;
        if (next != lines.end() && next->line == line) found = &*next++;
        if (line == 0) continue;
        const std::uint64_t own = found ? found->counts[event_] : 0;
        const bool calls = inclusive_ && inclusive_->line_share(name_, line, own) > 0;
        if (all ? found != nullptr || calls
                : inclusive_->own_share(own) >= kOwn ||
                      inclusive_->line_share(name_, line, own) >= kInclusive)
            shown.push_back(line);
    }
    return shown;
}

// Writes the lines `shown` and those around them. Marks gaps.
void SourceWriter::write_ranges(const std::vector<std::string_view>& text,
                                std::span<const SourceLine> lines,
                                const std::vector<std::size_t>& shown, const Table& table) {
    const std::size_t context = options_.context;
    auto counts = lines.begin();
    const auto write_up_to = [&](std::size_t next, std::size_t end) {
        for (; next < end; ++next) {
            while (counts != lines.end() && counts->line < next) ++counts;
            const std::string content = text_of(next, text[next - 1]);
            if (counts != lines.end() && counts->line == next)
                write_line(table, *counts, content);
            else if (inclusive_ == nullptr)
                output_.write(table.empty_row(content));
            else
                output_.write(inclusive_->of_line(name_, static_cast<std::uint32_t>(next), {}) +
                              table.empty_row(content));
        }
    };
    const std::size_t shortest_gap = inclusive_ == nullptr ? 1 : 3;
    std::size_t next = 1;  // the first line not yet written
    for (const std::size_t line : shown) {
        const std::size_t first = std::max(next, line > context ? line - context : std::size_t{1});
        if (first >= next + shortest_gap) {
            output_.write(inclusive_ == nullptr ? gap(first) : "...\n");
            next = first;
        }
        const std::size_t end = std::min(line + context + 1, text.size() + 1);
        write_up_to(next, end);
        next = std::max(next, end);
    }
    if (inclusive_ == nullptr && !shown.empty() && next <= text.size()) output_.write(gap(next));
}

// The text of a line of the source, with its number if not all lines are shown.
std::string SourceWriter::text_of(std::size_t line, std::string_view text) const {
    if (inclusive_ == nullptr) return printable(text);
    constexpr std::size_t kTab = 8;
    std::string expanded;
    for (const char c : printable(text)) {
        if (c == '\t')
            expanded.append(kTab - expanded.size() % kTab, ' ');
        else
            expanded += c;
    }
    return fmt::format("{:>5}  {}", line, expanded);
}

void SourceWriter::write_line(const Table& table, const SourceLine& line, std::string_view text) {
    if (inclusive_ != nullptr) output_.write(inclusive_->of_line(name_, line.line, line.counts));
    output_.write(table.row(line.counts, text));
    add_counts(line.line == 0 ? unknown_ : known_, line.counts);
    if (options_.instructions) write_instructions(table, line.line);
}

// Shows only the address of an instruction whose code cannot be read.
void SourceWriter::write_instructions(const Table& table, std::uint32_t line) {
    const std::vector<SourceInstruction>& all = instructions_;
    auto at = std::lower_bound(
        all.begin(), all.end(), line,
        [](const SourceInstruction& instruction, std::uint32_t l) { return instruction.line < l; });
    for (; at != all.end() && at->line == line; ++at) {
        const auto text = assembly_.text.find({at->object, at->address});
        if (inclusive_ != nullptr) output_.write(inclusive_->blank());
        output_.write(table.row(
            at->counts, fmt::format("    {:>8x}:  {}", at->address,
                                    text == assembly_.text.end() ? "" : printable(text->second))));
    }
}

void SourceWriter::write_missing(const SourceChoice& choice) {
    constexpr double kMatters = 1;  // percent
    constexpr std::size_t kMostNames = 3;
    const auto write = [&](const std::vector<std::uint32_t>& files, std::string_view why) {
        double share = 0;
        std::vector<std::string> names;
        for (const std::uint32_t file : files) {
            share += inclusive_->own_share(profile_.by_source().file_counts(file)[event_]);
            names.push_back(printable(profile_.by_source().files()[file]));
        }
        if (share < kMatters) return;
        const std::size_t others = names.size() - std::min(names.size(), kMostNames);
        names.resize(names.size() - others);
        output_.write(fmt::format("{:.1f}% of {} in files {}:\n  {}{}\n", share,
                                  columns_.header.events[event_].name, why, join(names, "\n  "),
                                  others == 0 ? "" : fmt::format("\n  and {} others", others)));
    };
    write(choice.not_found, "that were not found (--include=DIR searches in DIR)");
    write(choice.left_out, fmt::format("that may be no sources ({})", kHowToShow));
    write(choice.ambiguous, "that have one name after --mod-filename");
}

void SourceWriter::write_names(std::string_view title, const std::vector<std::uint32_t>& files) {
    if (files.empty()) return;
    std::vector<std::string_view> names;
    names.reserve(files.size());
    for (const std::uint32_t file : files) names.push_back(profile_.by_source().files()[file]);
    std::sort(names.begin(), names.end());
    output_.section(title);
    for (const std::string_view name : names) output_.write(fmt::format("  {}\n", printable(name)));
    output_.write("\n");
}

void SourceWriter::write_coverage(const SourceChoice& choice) {
    const std::size_t columns = columns_.totals.size();
    std::vector<std::uint64_t> not_found(columns), left_out(columns), ambiguous(columns),
        nowhere(columns);
    for (const std::uint32_t file : choice.not_found)
        add_counts(not_found, profile_.by_source().file_counts(file));
    for (const std::uint32_t file : choice.left_out)
        add_counts(left_out, profile_.by_source().file_counts(file));
    for (const std::uint32_t file : choice.ambiguous)
        add_counts(ambiguous, profile_.by_source().file_counts(file));
    for (std::uint32_t file = 0; file < profile_.by_source().files().size(); ++file)
        if (is_unknown_file(profile_.by_source().files()[file]))
            add_counts(nowhere, profile_.by_source().file_counts(file));
    std::vector<std::uint64_t> others(columns_.totals.begin(), columns_.totals.end());
    for (std::size_t i = 0; i < columns; ++i)
        others[i] -= known_[i] + unknown_[i] + unreadable_[i] + not_found[i] + left_out[i] +
                     ambiguous[i] + nowhere[i];

    const std::pair<const std::vector<std::uint64_t>&, std::string_view> rows[] = {
        {known_, "annotated: in the source lines above"},
        {unknown_, "annotated: in the files above, line unknown"},
        {unreadable_, "not annotated: source cannot be read"},
        {not_found, "not annotated: source not found"},
        {left_out, "not annotated: nothing says that the file is a source"},
        {ambiguous, "not annotated: different sources have the same name"},
        {others, "not annotated: files below the threshold"},
        {nowhere, "not annotated: file unknown"},
    };
    Table table(columns_);
    for (const auto& row : rows) table.fit(row.first);
    output_.section("Annotated");
    output_.write(table.heading(""));
    for (const auto& [counts, text] : rows)
        if (any_count(counts)) output_.write(table.row(counts, text));
}

// Indices of the files that have this path, or else of those whose paths end in it.
std::vector<std::uint32_t> files_named(const Profile& profile, const std::string& name) {
    std::vector<std::uint32_t> exact, ending;
    for (std::uint32_t i = 0; i < profile.by_source().files().size(); ++i) {
        if (profile.by_source().files()[i] == name) exact.push_back(i);
        if (profile.by_source().files()[i].ends_with("/" + name)) ending.push_back(i);
    }
    if (exact.empty() && ending.empty())
        throw Error(fmt::format(
            "{} is neither an events file nor a source file with counts in the profile", name));
    return exact.empty() ? ending : exact;
}

bool same_content(const fs::path& a, const fs::path& b) {
    std::error_code error;
    if (fs::equivalent(a, b, error)) return true;
    const std::optional<std::string> text = read_source_or_warn(a);
    return text && text == read_source_or_warn(b);
}

// Fills a SourceChoice.
class Chooser {
  public:
    Chooser(const Options& options, const Profile& profile)
        : profile_(profile), finder_(options.where, profile.objects()) {}

    // Returns true if the source of the file was found.
    bool choose(std::uint32_t file, SourceFinder::By by) {
        std::vector<fs::path> paths;
        bool is_left_out = false;
        for (const std::string& name : profile_.by_source().original_names(file)) {
            SourceFinder::Source source = finder_.find(name, by);
            is_left_out |= source.status == SourceFinder::Status::kLeftOut;
            if (source.status == SourceFinder::Status::kFound)
                paths.push_back(std::move(source.path));
        }
        if (paths.empty()) {
            (is_left_out ? choice.left_out : choice.not_found).push_back(file);
            return false;
        }
        const bool same = std::all_of(paths.begin() + 1, paths.end(), [&](const fs::path& path) {
            return same_content(paths.front(), path);
        });
        if (same)
            choice.found.push_back({file, paths.front(), by == SourceFinder::By::kUser});
        else
            choice.ambiguous.push_back(file);
        return true;
    }

    SourceChoice choice;

  private:
    const Profile& profile_;
    SourceFinder finder_;
};

}  // namespace

SourceChoice choose_sources(const Options& options, const Profile& profile,
                            const std::vector<std::uint32_t>& files_shown) {
    Chooser chooser(options, profile);
    std::vector<bool> chosen(profile.by_source().files().size());
    const auto is_new = [&](std::uint32_t file) {
        if (chosen[file] || is_unknown_file(profile.by_source().files()[file])) return false;
        chosen[file] = true;
        return true;
    };
    for (const std::string& name : options.sources)
        for (const std::uint32_t file : files_named(profile, name))
            if (is_new(file) && !chooser.choose(file, SourceFinder::By::kUser))
                throw Error(
                    fmt::format("cannot read source file {}; name its folder with "
                                "--include",
                                profile.by_source().files()[file]));
    if (options.automatic)
        for (const std::uint32_t file : files_shown)
            if (is_new(file)) chooser.choose(file, SourceFinder::By::kProfile);
    return std::move(chooser.choice);
}

Assembly assembly_of(const Profile& profile, const SourceChoice& choice) {
    Assembly assembly;
    const Disassembler disassembler(Syntax::kAtt);
    std::map<std::uint32_t, std::unique_ptr<ObjectCode>> code;
    std::set<std::uint32_t> files;  // in the profile's order
    for (const SourceChoice::Source& source : choice.found) files.insert(source.file);
    for (const std::uint32_t file : files)
        for (const SourceInstruction& at : profile.source_instructions(file)) {
            assembly.has_counts = true;
            std::unique_ptr<ObjectCode>& object = code[at.object];
            if (!object) {
                object = std::make_unique<ObjectCode>(profile.objects()[at.object], "");
                if (!object->problem().empty()) assembly.problems.push_back(object->problem());
            }
            const std::span<const std::uint8_t> bytes = object->bytes(at.address);
            if (!bytes.empty())
                assembly.text.try_emplace(
                    {at.object, at.address},
                    disassembler.print(bytes, at.address, object->elf()).text);
        }
    return assembly;
}

void write_sources(const Options& options, const Profile& profile, const Columns& columns,
                   const SourceChoice& choice, const Assembly& assembly,
                   const InclusiveColumn* inclusive, std::size_t event, Output& output) {
    SourceWriter writer(options, profile, columns, assembly, inclusive, event, output);
    for (const SourceChoice::Source& source : choice.found) writer.write(source);
    if (inclusive != nullptr) {
        writer.write_missing(choice);
    } else {
        writer.write_names("Sources not found (--include=DIR tries the ends of their names in DIR)",
                           choice.not_found);
        writer.write_names(
            fmt::format("Left out: nothing says that these are sources ({})", kHowToShow),
            choice.left_out);
        writer.write_names("Not annotated: several different sources have become one name",
                           choice.ambiguous);
        if (!choice.found.empty()) writer.write_coverage(choice);
    }
    for (const std::string& problem : assembly.problems)
        output.write(fmt::format("\nWarning: no instructions are shown: {}\n", printable(problem)));
    if (options.instructions && !assembly.has_counts && !choice.found.empty())
        output.write(
            "\nWarning: the profile has no counts of instructions there; run the program "
            "with --dump-instr=yes\n");
}

}  // namespace assay::annotate
