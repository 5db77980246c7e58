// man-page TEMPLATE prints a manual page. It replaces these lines of the template: @OPTIONS NAME@
// by the options of a command, @PROFILER OPTIONS@ by the options of all profilers, @COMMANDS@ and
// @PROFILERS@ by the commands and profilers, and @VERSION@ by the version. Without a template, it
// prints all options and events as Markdown: docs/reference/options.md.
#include "framework/collector/hosted/hosted_profiler.h"
#include "framework/collector/profilers/plugin_search.h"
#include "framework/support/error.h"
#include "framework/support/text.h"
#include "framework/version.h"
#include "tools/cli/commands.h"
#include "tools/output/output.h"

#include <fmt/core.h>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay {
namespace {

// Escapes text for groff, so that readers can copy dashes and quotes into a shell.
std::string in_roff(std::string_view text) {
    std::string out = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
    for (const char c : text) {
        switch (c) {
            case '-':
                out += "\\-";
                break;
            case '\\':
                out += "\\e";
                break;
            case '^':
                out += "\\(ha";
                break;
            case '~':
                out += "\\(ti";
                break;
            default:
                out += c;
        }
    }
    return out;
}

std::string bold(std::string_view text) {
    return "\\fB" + in_roff(text) + "\\fR";
}

std::string italic(std::string_view text) {
    return "\\fI" + in_roff(text) + "\\fR";
}

std::string sentence(std::string text) {
    text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
    return text.ends_with('.') ? text : text + ".";
}

std::string paragraph(const std::string& tag, std::string_view text, std::string_view more = "") {
    return fmt::format(".TP\n{}\n{}\n{}{}", tag, in_roff(sentence(std::string(text))),
                       in_roff(more), more.empty() ? "" : "\n");
}

std::string paragraph(const Option& option) {
    std::vector<std::string> names;
    for (const std::string& name : option.names) names.push_back(bold(name));
    std::string tag = join(names, ", ");
    if (!option.argument.empty())
        tag += bold("=") + (option.choices().empty() ? italic : bold)(option.argument);
    return paragraph(tag, option.help, option.more);
}

std::string paragraphs(const std::vector<Option>& options) {
    std::string text;
    for (const Option& option : options) text += paragraph(option);
    return text;
}

std::string profiler_options_by_name() {
    std::string text;
    for (const collector::FoundPlugin& plugin : collector::find_all_plugins())
        text += fmt::format(".SS {}\n{}", plugin.name, paragraphs(profiler_options(plugin.name)));
    return text;
}

std::string profiler_list() {
    collector::CrashGuard guard;
    std::string text;
    for (const collector::FoundPlugin& plugin : collector::find_all_plugins())
        text += paragraph(bold(plugin.name),
                          collector::load_profiler(plugin.path, "", guard)->description());
    return text;
}

std::string command_list() {
    std::string text;
    for (const Command& command : commands())
        text +=
            paragraph(bold(fmt::format("assay {}", command.name)) + " " + italic(command.arguments),
                      command.summary);
    return text;
}

std::string page_line(std::string line) {
    constexpr std::string_view kOptions = "@OPTIONS ", kVersionMark = "@VERSION@";
    if (line.starts_with(kOptions))
        return paragraphs(
            find_command(line.substr(kOptions.size(), line.size() - kOptions.size() - 1))
                ->options());
    if (line == "@COMMANDS@") return command_list();
    if (line == "@PROFILERS@") return profiler_list();
    if (line == "@PROFILER OPTIONS@") return profiler_options_by_name();
    if (const std::size_t mark = line.find(kVersionMark); mark != std::string::npos)
        line.replace(mark, kVersionMark.size(), kVersion);
    return line + "\n";
}

void print_page(const char* path) {
    std::ifstream page(path);
    if (!page) throw Error(fmt::format("cannot read {}", path));
    for (std::string line; std::getline(page, line);) print_text(page_line(line));
}

// Escapes text for a cell of a table in Markdown.
std::string cell(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '|') out += '\\';
        out += c;
    }
    return out;
}

// Writes tables of options. Options that commands share are described at the first command, and
// only named at the others.
class OptionTables {
  public:
    std::string table(std::string_view command, const std::vector<Option>& options) {
        std::string rows, shared;
        for (const Option& option : options) {
            if (option.help.empty() || option.name() == "help" || option.name() == "version")
                continue;
            const auto [first, is_new] =
                first_.emplace(tag(option) + option.help + option.more, command);
            if (is_new)
                rows += row(option);
            else
                shared += fmt::format(
                    "{}`{}`{}", shared.empty() ? "" : ", ", option.names.back(),
                    first->second == "run" ? "" : fmt::format(" (assay {})", first->second));
        }
        if (!rows.empty()) rows = "\n| option | meaning |\n|---|---|\n" + rows;
        if (!shared.empty()) rows += fmt::format("\nOptions described above: {}.\n", shared);
        return rows;
    }

  private:
    static std::string tag(const Option& option) {
        std::vector<std::string> names;
        for (const std::string& name : option.names) names.push_back("`" + name + "`");
        if (!option.argument.empty())
            names.back().insert(names.back().size() - 1, cell("=" + option.argument));
        return join(names, ", ");
    }
    static std::string row(const Option& option) {
        std::string text = sentence(option.help);
        if (!option.more.empty()) text += " " + option.more;
        return fmt::format("| {} | {} |\n", tag(option), cell(text));
    }

    std::map<std::string, std::string>
        first_;  // the first command with an option, by the option's text
};

std::string profiler_section(OptionTables& tables, const std::string& path) {
    collector::CrashGuard guard;
    const auto profiler = collector::load_profiler(path, "", guard);
    std::string text =
        fmt::format("\n### {}\n\n{}\n", profiler->name(), sentence(profiler->description()));
    text += tables.table(profiler->name(), profiler_options(profiler->name()));
    text += "\n| event | counts |\n|---|---|\n";
    for (const auto& event : profiler->events())
        text += fmt::format("| {} | {} |\n", event.name, cell(event.description));
    return text;
}

std::string options_page() {
    std::string text =
        "# Commands, options and events\n\n"
        "All commands with their options, and all profilers with their options and events. Made "
        "by\n"
        "`man-page` of the build from the tables in the sources; do not edit it. Each command also "
        "has\n"
        "`-h`, `--help` and `--version`.\n";
    OptionTables tables;
    for (const Command& command : commands())
        text += fmt::format("\n## assay {}\n\n    assay {} {}\n\n{}\n{}", command.name,
                            command.name, command.arguments, sentence(std::string(command.summary)),
                            tables.table(command.name, command.options()));
    text += "\n## Profilers\n\nThe options are options of `assay run`.\n";
    for (const auto& plugin : collector::find_all_plugins())
        text += profiler_section(tables, plugin.path);
    return text;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
    try {
        if (argc == 1)
            assay::print_text(assay::options_page());
        else
            assay::print_page(argv[1]);
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "man-page: {}\n", error.what());
        return 1;
    }
}
