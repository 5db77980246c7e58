#include "tools/summary/summary.h"

#include "framework/support/text.h"
#include "tools/output/output.h"
#include "tools/profile/own_view.h"
#include "tools/profile/profile.h"
#include "tools/profile/profile_files.h"
#include "tools/summary/findings.h"

#include <fmt/core.h>
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::summary {

namespace {

// Ends a row of a table. The last column can be empty and leave blanks.
std::string ended(std::string row) {
    row.erase(row.find_last_not_of(' ') + 1);
    return row + "\n";
}

std::string place_text(const Finding& finding) {
    const std::string file = finding.file.substr(finding.file.rfind('/') + 1);
    return finding.line == 0 || file.empty() ? file : fmt::format("{}:{}", file, finding.line);
}

std::string cell(std::string_view text, std::size_t width) {
    return padded(shortened(printable(text), width), width);
}

void write_head(const Findings& found, std::size_t width, Output& output) {
    const std::size_t others = found.commands.size() - 1;
    if (!found.commands.empty())
        output.write(shortened(printable(found.commands.front()), width - 20) +
                     (others == 0 ? "\n"
                                  : fmt::format(" and {} other command{}\n", others,
                                                others == 1 ? "" : "s")));
    const std::string number = with_thousands(found.total);
    if (found.are_cycles_estimated) {
        output.write(
            number + " " +
            wrapped("estimated cycles = " + printable(found.meaning), width, number.size() + 1, 4) +
            "\n");
        std::vector<std::string> parts;
        for (const CycleShare& part : found.cycles)
            parts.push_back(fmt::format("{:.0f} % {}", part.share, part.name));
        output.write("  " + wrapped(join(parts, ", "), width, 2, 2, " ") + "\n");
    } else {
        output.write(
            fmt::format("{} {} ({})\n", number, found.total_name, printable(found.meaning)));
    }
    for (const std::string& remark : found.remarks)
        output.write(wrapped(remark, width, 0, 0, " ") + "\n");
    for (const std::string& reason : found.incomplete)
        output.write(
            fmt::format("INCOMPLETE, not the counts of a whole run: {}\n", printable(reason)));
    output.write("\n");
}

std::string row_text(Of of, const Finding& row, std::size_t width) {
    const std::size_t place = std::min(width / 5, std::size_t{20});
    switch (of) {
        case Of::kFunctions: {
            const std::string begin = cell(row.name, std::min(width / 3, std::size_t{34})) + "  " +
                                      cell(place_text(row), place) + "  ";
            const std::string why = printable(row.text);
            // On a narrow terminal, the reason is enough without the caller.
            const bool fits = begin.size() + why.size() <= width;
            return begin + (fits ? why : why.substr(0, why.find(", called by ")));
        }
        case Of::kLines:
            return cell(place_text(row), place) + "  " + printable(row.text);
        case Of::kData:
            break;
    }
    return shortened(printable(row.name), width);
}

void write_section(const Section& section, std::size_t width, Output& output) {
    constexpr std::size_t kShare = 10;  // characters before the text
    output.write(section.title + "\n");
    if (!section.remark.empty()) output.write("  " + section.remark + "\n");
    for (const Finding& row : section.rows)
        output.write(ended(fmt::format(
            "  {:4.1f} %  {}", row.share,
            first_characters(row_text(section.of, row, width - kShare), width - kShare))));
    output.write("\n");
}

void write_findings(const Findings& found, Output& output) {
    const std::size_t width = std::max(width_of_page(), std::size_t{40});
    write_head(found, width, output);
    for (const Section& section : found.sections) write_section(section, width, output);
    output.write("Next\n");
    for (const Step& step : found.next)
        output.write(fmt::format("  {}    {}\n", step.command, step.purpose));
}

// The next commands show the same view. Objects have no own view.
void show_own(const OwnOptions& own, std::vector<Step>& next) {
    constexpr std::string_view kAnnotate = "assay annotate ", kBy = "assay annotate --by";
    std::string options;
    for (const std::string& path : own.paths) options += fmt::format("--own={} ", path);
    if (options.empty()) options = "--only-own ";
    for (Step& step : next)
        if (step.command.starts_with(kAnnotate) && !step.command.starts_with(kBy))
            step.command.insert(kAnnotate.size(), options);
}

// True if the profile counts lines of Python: their functions have a file then.
bool has_python_lines(const Profile& profile) {
    const auto& functions = profile.functions();
    return std::any_of(functions.begin(), functions.end(), [&](const Profile::Function& function) {
        return profile.text(function.name).starts_with("py::") &&
               !is_unknown_file(profile.text(function.file));
    });
}

// Adds the lines of Python after the functions. They have what the interpreter did for them.
void add_python_lines(Findings own, Findings& found) {
    for (Section& section : own.sections) {
        if (section.of != Of::kLines || section.title != "Lines") continue;
        section.title = "Lines of Python, with what the interpreter did for them";
        found.sections.insert(found.sections.begin() + 1, std::move(section));
        show_own({}, found.next);
        return;
    }
}

constexpr const char* kPurpose =
    "Shows on one screen what is slow in a profile, and why: functions and lines by estimated\n"
    "cycles, and the data that miss the caches.\n\n"
    "  assay summary [FILE...]\n";

constexpr const char* kExamples =
    "Without FILE, it shows the newest profile of the folder.\n\n"
    "Exit status: 0, or 125 if something could not be read or written.\n";

struct Arguments {
    std::vector<std::string> files;
    std::string names = "short";
    OwnOptions own;
};

void add_options(CommandLine& line, Arguments& arguments) {
    line.describe("assay summary", kPurpose, kExamples);
    line.add_arguments("FILE", arguments.files, Need::kOptional);
    add_own(line, arguments.own);
    add_names(line, arguments.names);
}

}  // namespace

std::vector<Option> options() {
    return options_of(add_options);
}

void write(const std::vector<std::string>& paths, NameStyle style, const OwnOptions& own,
           Output& output) {
    const ProfileFiles files = profile_files(paths);
    Profile profile(parts::kLines | parts::kContexts | parts::kGroups);
    for (const std::string& path : files.paths) profile.add_file(path);
    profile.finish();
    std::optional<OwnView> view;
    Profile of_view(parts::kLines | parts::kContexts);
    const bool adds_python = !own.wanted() && has_python_lines(profile);
    if (own.wanted() || adds_python) {
        view.emplace(files.paths, OwnCode(own.paths));
        of_view.add_file(view->path());
        of_view.finish();
    }
    DisplayNames names(style);
    names.add(profile);
    if (view) names.add(of_view);
    names.finish();
    Findings found = findings(own.wanted() ? of_view : profile, profile.groups(), names, paths);
    if (own.wanted()) show_own(own, found.next);
    if (adds_python) add_python_lines(findings(of_view, profile.groups(), names, paths), found);
    write_findings(found, output);
}

}  // namespace assay::summary

namespace assay {

int summary_main(int argc, char** argv) {
    const auto arguments = parse_arguments(summary::add_options, argc, argv);
    if (!arguments) return 0;
    std::vector<std::string> paths = arguments->files;
    if (paths.empty()) paths.push_back(newest_profile());
    Output output(stdout);
    summary::write(paths, name_style(arguments->names), arguments->own, output);
    output.finish();
    return 0;
}

}  // namespace assay
