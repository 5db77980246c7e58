#include "tools/export/export.h"

#include "framework/events/file.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/text.h"
#include "tools/command_line/command_line.h"
#include "tools/output/formats.h"
#include "tools/profile/profile_files.h"

#include <fmt/core.h>
#include <fmt/format.h>  // format_to: clang does not find it in the library
#include <unistd.h>
#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <optional>
#include <span>

namespace assay {

namespace exporting {

namespace {

// The parts of profiles that formats with stacks need.
constexpr unsigned kOfStacks = parts::kLines | parts::kInstructions | parts::kContexts;

struct Format {
    std::string_view name;
    void (*write)(const Selection&, Sink&);
    void (*write_difference)(const Profile& old, const Selection&, Sink&);  // null if not supported
    unsigned kept;  // parts of the profile to keep
    bool has_stacks, has_one_event;
    bool is_binary;  // the output is also compressed
    std::string_view readers;
};

constexpr std::array kFormats = {
    Format{"callgrind", write_callgrind, nullptr, kOfStacks, false, false, false,
           "KCachegrind, QCachegrind, callgrind_annotate"},
    Format{"pprof", write_pprof, nullptr, kOfStacks, true, false, true, "go tool pprof and others"},
    Format{"firefox", write_firefox, nullptr, kOfStacks, true, false, false,
           "Firefox Profiler: load the file at https://profiler.firefox.com"},
    Format{"speedscope", write_speedscope, nullptr, kOfStacks, true, false, false,
           "speedscope: load it at https://www.speedscope.app"},
    Format{"folded", write_folded, write_folded_difference, kOfStacks, true, true, false,
           "flamegraph.pl and others; of one event, by default the first"},
    Format{"json", write_json, nullptr, parts::kRows | parts::kGroups, false, false, false,
           "programs: see export-schema.json"},
    Format{"csv", write_csv, nullptr, parts::kLines, false, false, false,
           "spreadsheets, data frames"},
};

struct Options {
    const Format* format = nullptr;
    bool difference = false;          // export two profiles side by side
    std::vector<std::string> events;  // empty: all
    std::string output;               // empty: standard output
    std::vector<std::string> profiles;
};

std::string format_help() {
    std::string out = "Formats, and the tools that read them:\n";
    for (const Format& format : kFormats)
        out += fmt::format("  {:<12}{}\n", format.name, format.readers);
    return out +
           "\nExamples:\n"
           "  assay export --format=callgrind -o prog.callgrind assay.out.1234\n"
           "  assay export --format=folded --event=D1mr FILE | flamegraph.pl > d1.svg\n"
           "  assay export --format=pprof -o prog.pb.gz assay.out.1234\n"
           "  assay export --format=folded --diff OLD NEW | flamegraph.pl > diff.svg\n"
           "\nExit status: 0, or 125 if something could not be read or written.\n";
}

const Format& format_named(const std::string& name) {
    std::vector<std::string> names;
    for (const Format& format : kFormats) {
        if (format.name == name) return format;
        names.emplace_back(format.name);
    }
    const std::string near = nearest(name, names);
    throw Error(fmt::format("--format={}: there is no such format; give one of {}{}", name,
                            join(names, ", "),
                            near.empty() ? "" : fmt::format(" (did you mean {}?)", near)));
}

// Options as given, before their texts are parsed.
struct Arguments {
    std::string format;
    Options options;
};

constexpr const char* kDescription =
    "Converts events files for other tools. Counts of several files are added up.\n\n"
    "  assay export --format=FORMAT [options] FILE...\n";

void add_options(CommandLine& line, Arguments& arguments) {
    line.describe("assay export", kDescription, format_help());
    std::string names, uses;
    for (const Format& format : kFormats) {
        names += (names.empty() ? "" : "|") + std::string(format.name);
        uses +=
            fmt::format("{}{} is for {}.", uses.empty() ? "" : " ", format.name, format.readers);
    }
    line.add_text("--format", arguments.format, names.c_str(),
                  ("write this format\n" + uses).c_str(), Need::kRequired);
    line.add_list("--event", arguments.options.events, "A,B,...",
                  "write only these events, in this order; default: all");
    line.add_flag("--diff", arguments.options.difference,
                  "write the counts of each stack in two files, OLD and NEW; only for folded");
    line.add_text("-o,--out", arguments.options.output, "FILE",
                  "write to FILE; .gz and .zst compress; default: standard output");
    line.add_arguments("FILE", arguments.options.profiles);
}

void check_difference(const Options& options) {
    if (!options.difference) return;
    if (options.format->write_difference == nullptr)
        throw Error(
            fmt::format("--diff: --format={} has one count per stack; only --format=folded has two",
                        options.format->name));
    if (options.profiles.size() != 2)
        throw Error(fmt::format("--diff compares two files, but {} are given: merge others first",
                                options.profiles.size()));
}

std::optional<Options> parse_options(int argc, const char* const* argv) {
    std::optional<Arguments> arguments = parse_arguments(add_options, argc, argv);
    if (!arguments) return std::nullopt;
    arguments->options.format = &format_named(arguments->format);
    if (arguments->options.output == "-") arguments->options.output.clear();
    check_difference(arguments->options);
    return std::move(arguments->options);
}

std::vector<std::size_t> selected_events(const Options& options, const Profile& profile) {
    std::vector<std::string> names;
    for (const events::Event& event : profile.events()) names.push_back(event.name);
    std::vector<std::size_t> selected;
    for (const std::string& name : options.events) {
        const auto found = std::find(names.begin(), names.end(), name);
        if (found == names.end())
            throw Error(fmt::format("--event={}: the profile has no such event; it has {}", name,
                                    join(names, ", ")));
        const auto event = static_cast<std::size_t>(found - names.begin());
        if (std::find(selected.begin(), selected.end(), event) == selected.end())
            selected.push_back(event);
    }
    if (selected.empty()) {
        selected.resize(names.size());
        std::iota(selected.begin(), selected.end(), 0);
        if (options.format->has_one_event) selected.resize(1);
    }
    if (options.format->has_one_event && selected.size() > 1)
        throw Error(fmt::format("--format={} takes one event; give only one with --event",
                                options.format->name));
    return selected;
}

void check_output(const Options& options) {
    if (options.format->is_binary && options.output.empty() && isatty(STDOUT_FILENO) != 0)
        throw Error(fmt::format("--format={} is not for terminals: name a file with -o",
                                options.format->name));
}

}  // namespace

std::vector<Option> options() {
    return options_of(add_options);
}

}  // namespace exporting

int export_main(int argc, char** argv) {
    using namespace exporting;
    const std::optional<Options> options = parse_options(argc, argv);
    if (!options) return 0;
    check_output(*options);
    const Format& format = *options->format;
    Profile profile(format.kept), old(format.kept);
    std::vector<std::string> names = options->profiles;
    if (options->difference) {
        for (const std::string& path : profile_files({names.front()}).paths) old.add_file(path);
        old.finish();
        profile.choose_events(events::choice_of(old.events()));
        names.erase(names.begin());
    }
    for (const std::string& path : profile_files(names).paths) profile.add_file(path);
    profile.finish();
    const Selection selection = {profile, selected_events(*options, profile)};
    if (options->difference) profile.check_same_events(old);
    if (const std::string builds = profile.heads().mixed_builds(); !builds.empty())
        log::remark(builds);
    if (format.has_stacks && !profile.has_contexts() && !profile.calls().empty())
        log::remark(
            fmt::format("{} is a file of Callgrind, which has calls but no stacks: each function "
                        "is exported as a separate stack",
                        join(options->profiles, ", ")));
    Sink sink(options->output, format.is_binary ? Compress::kGzip : Compress::kByName);
    if (options->difference)
        format.write_difference(old, selection, sink);
    else
        format.write(selection, sink);
    sink.finish();
    return 0;
}

}  // namespace assay

namespace assay::exporting {

// Comma-separated values (RFC 4180): one row per function and source line.

void write_csv(const Selection& selection, Sink& sink) {
    const Profile& profile = selection.profile;
    std::string row = "file,line,function";
    for (const std::size_t event : selection.events) row += "," + profile.events()[event].name;
    sink.write(row + "\r\n");
    std::vector<std::uint64_t> counts(profile.events().size());
    for (const Profile::Line& line : profile.lines()) {
        profile.counts().read(line.row, counts);
        const Profile::Place& place = profile.places()[line.place];
        row.clear();
        row += csv_field(profile.text(place.file));
        fmt::format_to(std::back_inserter(row), ",{},", line.line);
        row += csv_field(profile.text(place.function));
        for (const std::size_t event : selection.events)
            fmt::format_to(std::back_inserter(row), ",{}", counts[event]);
        sink.write(row + "\r\n");
    }
}

}  // namespace assay::exporting
