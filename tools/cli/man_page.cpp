// Builds a manual page: man-page TEMPLATE. Of the template, a line "@OPTIONS NAME@" stands for the
// options of that command or profiler, "@COMMANDS@" for the commands, and @VERSION@ for the
// version.
#include "framework/support/error.h"
#include "framework/support/text.h"
#include "framework/version.h"
#include "tools/cli/commands.h"
#include "tools/cli/plugins.h"
#include "tools/output/output.h"

#include <fmt/core.h>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace assay {
namespace {

// As groff shows it in the characters that it has: dashes and the like can be copied into a shell.
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

std::string options(const std::string& name) {
    const Command* command = find_command(name);
    std::string text;
    for (const Option& option : command ? command->options() : profiler_options(name))
        text += paragraph(option);
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
    constexpr std::string_view kOptions = "@OPTIONS ", kCommands = "@COMMANDS@",
                               kVersionMark = "@VERSION@";
    if (line.starts_with(kOptions))
        return options(line.substr(kOptions.size(), line.size() - kOptions.size() - 1));
    if (line == kCommands) return command_list();
    if (const std::size_t mark = line.find(kVersionMark); mark != std::string::npos)
        line.replace(mark, kVersionMark.size(), kVersion);
    return line + "\n";
}

void print_page(const char* path) {
    std::ifstream page(path);
    if (!page) throw Error(fmt::format("cannot read {}", path));
    for (std::string line; std::getline(page, line);) print_text(page_line(line));
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
    try {
        if (argc != 2) throw assay::Error("usage: man-page TEMPLATE");
        assay::print_page(argv[1]);
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "man-page: {}\n", error.what());
        return 1;
    }
}
