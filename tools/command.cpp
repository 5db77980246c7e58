#include "tools/command.h"

#include "framework/support/error.h"
#include "framework/support/text.h"
#include "tools/output/output.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <utility>

namespace assay {
namespace {

std::string help_text(const CLI::App& app) {
    constexpr std::size_t kNameWidth = 26;
    std::string text = app.get_description() + "\nOptions:\n\n";
    for (const OptionDescription& option : describe_options(app)) {
        std::string names = "  " + join(option.names, ", ");
        const bool is_long = option.names.back().starts_with("--");
        if (!option.argument.empty()) names += (is_long ? "=" : " ") + option.argument;
        text += help_row(std::move(names), option.help, kNameWidth);
    }
    return text + (app.get_footer().empty() ? "" : "\n" + app.get_footer());
}

}  // namespace

std::string help_row(std::string names, std::string_view help, std::size_t width) {
    constexpr std::size_t kLineWidth = 98;
    std::string row, line = std::move(names);
    line.resize(std::max(line.size() + 1, width), ' ');
    for (const std::string& word : split(help, ' ')) {
        if (line.size() + 1 + word.size() > kLineWidth) {
            row += line + "\n";
            line.assign(width, ' ');
        }
        if (!line.ends_with(' ')) line += ' ';
        line += word;
    }
    return row + line + "\n";
}

std::vector<std::string> OptionDescription::choices() const {
    const auto is_word = [](char c) { return (c >= 'a' && c <= 'z') || c == '|' || c == '-'; };
    if (argument.find('|') == std::string::npos ||
        !std::all_of(argument.begin(), argument.end(), is_word))
        return {};
    return split(argument, '|');
}

bool OptionDescription::takes_file() const {
    return argument.find("FILE") != std::string::npos || argument == "DIR";
}

std::vector<OptionDescription> describe_options(const CLI::App& app) {
    std::vector<OptionDescription> descriptions;
    for (const CLI::Option* option : app.get_options()) {
        if (!option->nonpositional()) continue;
        OptionDescription description;
        for (const std::string& name : option->get_snames())
            description.names.push_back("-" + name);
        for (const std::string& name : option->get_lnames())
            description.names.push_back("--" + name);
        const bool is_flag = option->get_expected_max() == 0 || option->get_type_size_max() == 0;
        // CLI11 appends what the argument is checked for.
        const std::string type = option->get_type_name();
        if (!is_flag) description.argument = type.substr(0, type.find(':'));
        description.help = option->get_description();
        descriptions.push_back(std::move(description));
    }
    return descriptions;
}

CLI::Option* add_list(CLI::App& app, const char* names, std::vector<std::string>& list,
                      const char* type, const char* help) {
    return app.add_option(names, list, help)->allow_extra_args(false)->type_name(type);
}

void add_color(CLI::App& app, std::string& color, const char* help) {
    app.add_option("--color", color, help)
        ->check(CLI::IsMember({"auto", "always", "never"}))
        ->type_name("auto|always|never");
}

bool wants_color(std::string_view color) {
    return color == "always" || (color == "auto" && terminal_has_color());
}

void add_pager(CLI::App& app, std::string& pager) {
    app.add_option("--pager", pager,
                   "auto: what is longer than the terminal goes through $PAGER or less")
        ->check(CLI::IsMember({"auto", "no"}))
        ->type_name("auto|no");
}

bool parse_arguments(CLI::App& app, int argc, const char* const* argv) {
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        std::fputs(help_text(app).c_str(), stdout);
        return false;
    } catch (const CLI::ParseError& error) {
        throw Error(
            fmt::format("{}: {}; see {} --help", app.get_name(), error.what(), app.get_name()));
    }
    return true;
}

}  // namespace assay
