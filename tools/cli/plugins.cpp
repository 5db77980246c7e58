
#include "framework/collector/hosted/hosted_profiler.h"
#include "framework/collector/profilers/plugin_search.h"
#include "framework/collector/run/output_files.h"
#include "framework/support/error.h"
#include "framework/support/text.h"
#include "framework/trace/captures.h"
#include "tools/cli/commands.h"
#include "tools/output/output.h"

#include <fmt/core.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {
namespace {

using collector::CrashGuard;
using collector::ProfilerHandle;

// Prints text, which may come from profilers.
template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
    print_text(printable_lines(fmt::format(format, std::forward<Args>(args)...)));
}

void list_all() {
    const auto found = collector::find_all_plugins();
    if (found.empty()) throw Error("no profilers found: set ASSAY_PLUGIN_PATH to their folder");
    CrashGuard guard;
    std::vector<std::pair<std::string, std::string>> rows;  // option and its help
    for (const auto& plugin : found) {
        auto& [names, text] = rows.emplace_back(plugin.name, "");
        try {
            const auto profiler = collector::load_profiler(plugin.path, "", guard);
            if (profiler->name() != plugin.name) names += ", " + profiler->name();
            text = profiler->description();
        } catch (const Error& e) {
            text = fmt::format("unusable: {}", e.what());
        }
    }
    std::size_t width = 0;
    for (const auto& row : rows) width = std::max(width, row.first.size());
    for (const auto& [names, text] : rows) {
        if (text.empty())
            say("{}\n", names);
        else
            say("{:{}}  {}\n", names, width, text);
    }
    say("\nMore about a profiler: assay plugins NAME\n");
}

std::string_view argument(const collector::ProfilerOption& option) {
    if (option.type == VP_OPTION_PROFILER) return "yes|no";
    if (!option.argument.empty()) return option.argument;
    switch (option.type) {
        case VP_OPTION_YES_NO:
            return "yes|no";
        case VP_OPTION_UNSIGNED:
        case VP_OPTION_COUNT:
            return "N";
        case VP_OPTION_OUTPUT_FILE:
            return "FILE";
        case VP_OPTION_ASSIGNMENT:
            return "KEY=VALUE";
        case VP_OPTION_TEXT:
        case VP_OPTION_PROFILER:
            break;
    }
    return "TEXT";
}

std::string help(const collector::ProfilerOption& option) {
    if (!option.default_value) return option.help;
    return option.help.ends_with('.')
               ? fmt::format("{} Default: {}.", option.help, *option.default_value)
               : fmt::format("{}; default: {}", option.help, *option.default_value);
}

std::vector<Option> described_options(const ProfilerHandle& profiler) {
    std::vector<Option> options;
    for (const auto& option : profiler.options())
        options.emplace_back(std::vector{"--" + option.name}, std::string(argument(option)),
                             help(option));
    return options;
}

void print_options(const ProfilerHandle& profiler) {
    const std::vector<Option> options = described_options(profiler);
    if (!options.empty()) say("\nOptions:\n{}", help_table(options));
}

void print_events(const ProfilerHandle& profiler) {
    if (!profiler.events().empty()) say("\nEvents:\n");
    std::size_t width = 0;
    for (const auto& event : profiler.events()) width = std::max(width, event.name.size());
    for (const auto& event : profiler.events())
        say("  {:{}}  {}{}\n", event.name, width, event.description,
            event.unit.empty() ? "" : fmt::format(" ({})", event.unit));
    if (!profiler.derived().empty()) say("\nFigures:\n");
    for (const auto& figure : profiler.derived())
        say("  {} = {}{}\n", figure.name, figure.formula,
            figure.unit.empty() ? "" : fmt::format(", in {}", figure.unit));
}

// A register is named by kind and number. The kinds are in descending order of their values.
std::string name_without_time(unsigned value) {
    struct Registers {
        unsigned first;
        std::string_view kind;
    };
    static constexpr std::array kRegisters{
        Registers{TRACE_VECTOR0, "vector"}, Registers{TRACE_MMX0, "MMX register"},
        Registers{TRACE_MASK0, "mask register"}, Registers{TRACE_GPR0, "register"},
        Registers{TRACE_ST0, "x87 register"}};
    static constexpr std::array<std::string_view, TRACE_LATENCY + 1> kNames{
        "none",   "effective address", "loaded value", "stored value",  "destination",
        "source", "second source",     "branch taken", "branch target", "latency"};
    if (value < kNames.size()) return std::string(kNames[value]);
    const auto* const found =
        std::find_if(kRegisters.begin(), kRegisters.end(),
                     [value](const Registers& registers) { return value >= registers.first; });
    if (found == kRegisters.end()) return fmt::format("value {}", value);
    return fmt::format("{} {}", found->kind, value - found->first);
}

std::string name_of(std::uint8_t value) {
    return name_without_time(value & ~trace::kReadBefore) +
           (value & trace::kReadBefore ? " before" : "");
}

// Names of the values in all lists, each once.
std::string names_of_values(const trace::ValueLists& lists) {
    std::set<std::uint8_t> values;
    for (const auto& map : lists.lists)
        for (const auto& opcode : map)
            for (const trace::ValueList& list : opcode)
                values.insert(list.values, list.values + list.count);
    std::vector<std::string> names;
    names.reserve(values.size());
    for (const std::uint8_t value : values) names.push_back(name_of(value));
    return names.empty() ? "which instruction was executed" : join(names, ", ");
}

// Prints what the profiler captures without options.
void print_captures(ProfilerHandle& profiler) {
    collector::Image image;
    image.pid = getpid();
    image.program = "assay";
    profiler.set_options(collector::given_to(profiler, {}, image));
    const trace::Spec spec = profiler.start();
    if (spec.captures == 0) return;
    say("\nCaptures by default:\n");
    for (const trace::CaptureRow& row : trace::capture_rows()) {
        if (!(spec.captures & row.capture)) continue;
        const std::string values = row.capture == trace::kCaptureValues
                                       ? ": " + names_of_values(*profiler.wanted_values())
                                       : "";
        say("  {}{}{}\n", row.description, row.parameters ? row.parameters(spec) : "", values);
    }
    profiler.stop();
}

void describe_one(const std::string& name) {
    CrashGuard guard;
    const auto loaded = collector::load_profiler(collector::find_profiler(name, guard), "", guard);
    ProfilerHandle& profiler = *loaded;
    say("{}{}{}\n{}\n", profiler.name(), profiler.description().empty() ? "" : ": ",
        profiler.description(), profiler.path());
    print_options(profiler);
    print_events(profiler);
    print_captures(profiler);
}

}  // namespace

std::vector<Option> profiler_options(const std::string& profiler) {
    CrashGuard guard;
    return described_options(
        *collector::load_profiler(collector::find_profiler(profiler, guard), "", guard));
}

int plugins_main(std::span<const std::string> arguments) {
    if (arguments.empty()) {
        list_all();
    } else if (arguments[0] == "--help" || arguments[0] == "-h") {
        say("assay plugins                lists the profilers that were found\n"
            "assay plugins NAME|PATH...   prints the options, events and captures of each\n");
    } else if (arguments[0] == "--version") {
        print_text(version_line());
    } else {
        for (const std::string& name : arguments) describe_one(name);
    }
    return 0;
}

}  // namespace assay
