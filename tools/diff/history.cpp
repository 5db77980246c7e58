#include "tools/diff/history.h"

#include "framework/events/reader.h"
#include "framework/support/error.h"
#include "framework/support/text.h"
#include "tools/diff/comparison.h"

#include <fmt/core.h>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <utility>

namespace assay::diff {
namespace {

namespace fs = std::filesystem;

bool is_digit_at(std::string_view text, std::size_t i) {
    return i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0;
}

// Takes the digits at `at`, without leading zeros.
std::string_view take_digits(std::string_view text, std::size_t& at) {
    while (is_digit_at(text, at) && text[at] == '0' && is_digit_at(text, at + 1)) ++at;
    const std::size_t begin = at;
    while (is_digit_at(text, at)) ++at;
    return text.substr(begin, at - begin);
}

std::string version_name(const std::string& path) {
    return printable(fs::path(path).filename().string());
}

// Functions that changed by at least the threshold, the largest change first.
std::vector<std::string> grown_functions(const Comparison& comparison, std::size_t event) {
    constexpr std::size_t kMost = 5;
    const std::vector<const Change*> changes = comparison.important_functions();
    std::vector<std::string> functions;
    for (const Change* change : std::span(changes).first(std::min(kMost, changes.size())))
        functions.push_back(fmt::format("{} ({})  {}", signed_text(change->difference(event)),
                                        relative_text(change->before[event], change->after[event]),
                                        comparison.place_text(*change)));
    if (changes.size() > kMost)
        functions.push_back(fmt::format("and {} more; see assay diff", changes.size() - kMost));
    return functions;
}

void add_step(const Programs::Program& program, const std::string& before, const std::string& after,
              Histories& histories) {
    const Comparison& comparison = *program.comparison;
    const std::size_t event = comparison.shown().front();
    const Change totals = comparison.totals();
    ProgramHistory& history = histories[program.command];
    history.event = comparison.header().events[event].name;
    std::vector<VersionCounts>& versions = history.versions;
    if (versions.empty() || versions.back().name != version_name(before))
        versions.push_back({version_name(before), totals.before[event], "", {}});
    versions.push_back({version_name(after), totals.after[event],
                        relative_text(totals.before[event], totals.after[event]),
                        grown_functions(comparison, event)});
}

// A line with a mark between the lowest and the highest count.
std::string mark(double height) {
    constexpr std::size_t kWidth = 40;
    std::string line(kWidth, ' ');
    line[static_cast<std::size_t>(std::lround(height * (kWidth - 1)))] = '*';
    return line;
}

void write_program_history(const std::string& command, const ProgramHistory& history,
                           Output& output) {
    std::size_t name_width = 0, count_width = 0;
    for (const VersionCounts& version : history.versions) {
        name_width = std::max(name_width, version.name.size());
        count_width = std::max(count_width, with_thousands(version.count).size());
    }
    output.section(fmt::format("{} of {}", history.event, printable(command)));
    for (const VersionCounts& version : history.versions) {
        output.write(fmt::format("{:<{}}  {:>{}}  {:>8}  |{}|\n", version.name, name_width,
                                 with_thousands(version.count), count_width, version.change,
                                 mark(history.height(version))));
        for (const std::string& function : version.functions)
            output.write(fmt::format("    {}\n", function));
    }
    output.write("\n");
}

}  // namespace

double ProgramHistory::height(const VersionCounts& version) const {
    const auto [lowest, highest] = std::minmax_element(
        versions.begin(), versions.end(),
        [](const VersionCounts& a, const VersionCounts& b) { return a.count < b.count; });
    if (lowest->count == highest->count) return 0;
    return static_cast<double>(version.count - lowest->count) /
           static_cast<double>(highest->count - lowest->count);
}

bool is_earlier(std::string_view a, std::string_view b) {
    std::size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
        if (is_digit_at(a, i) && is_digit_at(b, j)) {
            const std::string_view left = take_digits(a, i), right = take_digits(b, j);
            if (left.size() != right.size()) return left.size() < right.size();
            if (left != right) return left < right;
        } else {
            if (a[i] != b[j]) return a[i] < b[j];
            ++i, ++j;
        }
    }
    return std::pair(a.size() - i, a) < std::pair(b.size() - j, b);
}

std::vector<std::string> versions_in(const std::string& folder) {
    std::vector<std::string> paths;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
        if (entry->path().filename().string().starts_with('.')) continue;
        if (entry->is_directory() || events::begins_as_events_file(entry->path()))
            paths.push_back(entry->path());
    }
    if (error) throw Error(fmt::format("cannot read folder {}: {}", folder, error.message()));
    if (paths.size() < 2)
        throw Error(fmt::format(
            "{} has {}: a history needs at least two, each an events file or a folder of them",
            folder, paths.empty() ? "no version" : "one version"));
    std::sort(paths.begin(), paths.end(), [](const std::string& a, const std::string& b) {
        return is_earlier(fs::path(a).filename().native(), fs::path(b).filename().native());
    });
    return paths;
}

Histories histories_of(const Options& given, const std::vector<std::string>& versions) {
    Histories histories;
    for (std::size_t i = 1; i < versions.size(); ++i) {
        Options options = given;
        options.old_path = versions[i - 1];
        options.new_path = versions[i];
        for (const Programs::Program& program : compare_programs(options).all)
            add_step(program, versions[i - 1], versions[i], histories);
    }
    return histories;
}

void write_history(const Histories& histories, Output& output) {
    for (const auto& [command, history] : histories)
        write_program_history(command, history, output);
    output.finish();
}

namespace {

struct HistoryArguments {
    std::vector<std::string> folders, commands;
    std::string event, threshold, format = "text", out, pager = "auto";
};

constexpr const char* kHistoryPurpose =
    "Shows the counts of a series of versions, as a table and a plot, and names the\n"
    "version in which a function grew or shrank. DIR has an events file, or a folder of\n"
    "events files, for each version. Names give the order: numbers count by their value.\n\n"
    "  assay history [options] DIR\n";

constexpr const char* kHistoryExamples =
    "Examples:\n\n"
    "  assay history counts/\n"
    "  assay history --show=D1mr --threshold=1 counts/\n"
    "  assay history --format=html -o history.html counts/\n"
    "  assay --out=counts/$(git rev-list --count HEAD)-$(git rev-parse --short HEAD) -- ./work\n\n"
    "Exit status: 0, or 125 if something could not be read, understood or written.\n";

void add_history_options(CommandLine& line, HistoryArguments& arguments) {
    line.describe("assay history", kHistoryPurpose, kHistoryExamples);
    line.add_arguments("DIR", arguments.folders);
    line.add_text("--show", arguments.event, "EVENT", "show this event; default: the first one");
    line.add_text("--threshold", arguments.threshold, "P",
                  "name functions that changed by at least P % of the program's count, 0 to 20; "
                  "default: 0.1");
    line.add_choice("--format", arguments.format, "text|html",
                    "write text for a terminal, or a page of HTML; default: text");
    line.add_text("-o,--out", arguments.out, "FILE",
                  "write the page to a file instead of standard output");
    line.add_list("--mod-command", arguments.commands, "s/A/B/",
                  "change commands by a Perl search-and-replace expression before the profiles of "
                  "a program are matched; may be repeated");
    add_pager(line, arguments.pager);
}

}  // namespace

std::vector<Option> history_options() {
    return options_of(add_history_options);
}

}  // namespace assay::diff

namespace assay {

int history_main(int argc, char** argv) {
    const auto arguments = parse_arguments(diff::add_history_options, argc, argv);
    if (!arguments) return 0;
    if (arguments->folders.size() != 1)
        throw Error(fmt::format("history takes one folder, not {}: assay history DIR",
                                arguments->folders.size()));
    diff::Options options;
    if (!arguments->threshold.empty())
        options.threshold = parse_threshold("--threshold", arguments->threshold);
    options.commands = parse_replacements("--mod-command", arguments->commands);
    if (!arguments->event.empty()) {
        options.show = {arguments->event};
        options.sort = {{arguments->event, std::nullopt}};
    }
    const bool is_page = arguments->format == "html";
    if (!is_page && !arguments->out.empty())
        throw Error("--format=text is for terminals: leave out -o, or use --format=html");
    const diff::Histories histories =
        diff::histories_of(options, diff::versions_in(arguments->folders.front()));
    if (is_page) {
        Sink sink(arguments->out);
        diff::write_history_page(histories, sink);
        sink.finish();
        return 0;
    }
    Output output(stdout,
                  arguments->pager == "auto" ? Output::Paging::kIfLong : Output::Paging::kNever);
    diff::write_history(histories, output);
    return 0;
}

}  // namespace assay
