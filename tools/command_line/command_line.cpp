#include "tools/command_line/command_line.h"

#include "framework/support/error.h"
#include "framework/support/text.h"
#include "framework/version.h"
#include "tools/output/output.h"
#include "tools/sources/source_finder.h"

#include <fmt/core.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <type_traits>
#include <utility>

namespace assay {
namespace {

std::string help_text(const CLI::App& app, std::span<const OptionDescription> options) {
    return app.get_description() + "\nOptions:\n\n" + help_table(options) +
           (app.get_footer().empty() ? "" : "\n" + app.get_footer());
}

// CLI11 drops what is empty behind = or between commas, and takes the next argument instead.
void refuse_empty_values(int argc, const char* const* argv) {
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == "--") return;
        if (word.starts_with("--") && word.find('=') == word.size() - 1)
            throw CLI::ValidationError(std::string(word), "the value is empty");
    }
}

// What CLI11 says, but for an option that nobody has: with the nearest one that there is.
std::string unexpected(const CLI::App& app, const CLI::ExtrasError& error) {
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options())
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& word : app.remaining()) {
        if (!word.starts_with("-") || word == "-") continue;
        const std::string option = word.substr(0, word.find('='));
        const std::string meant = nearest(option, names);
        return "unknown option " + option + (meant.empty() ? "" : "; did you mean " + meant + "?");
    }
    return error.what();
}

std::string refuse_empty_value(const std::string& value) {
    return value.empty() ? "the value is empty" : "";
}

}  // namespace

OptionDescription::OptionDescription(std::vector<std::string> option_names,
                                     std::string its_argument, std::string_view text)
    : names(std::move(option_names)),
      argument(std::move(its_argument)),
      help(text.substr(0, text.find('\n'))),
      more(text.substr(std::min(text.size(), help.size() + 1))) {}

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

CommandLine::CommandLine() : app_(std::make_unique<CLI::App>()) {
    app_->set_help_flag("-h,--help", "show the options");
    app_->set_version_flag("--version", version_line(), "show the version");
}

CommandLine::~CommandLine() = default;

void CommandLine::describe(const char* name, const char* purpose, const std::string& footer) {
    app_->name(name);
    app_->description(purpose);
    app_->footer(footer);
}

void CommandLine::add_argument(const char* name, std::string& value, const char* help, Need need) {
    app_->add_option(name, value, help)->required(need == Need::kRequired);
}

void CommandLine::add_arguments(const char* name, std::vector<std::string>& values,
                                const char* help, Need need) {
    app_->add_option(name, values, help)->required(need == Need::kRequired);
}

void CommandLine::add_text(const char* names, std::string& value, const char* type,
                           const char* help, Need need) {
    app_->add_option(names, value, help)
        ->take_last()
        ->check(refuse_empty_value)
        ->type_name(type)
        ->required(need == Need::kRequired);
}

void CommandLine::add_choice(const char* names, std::string& value, const char* choices,
                             const char* help) {
    app_->add_option(names, value, help)
        ->take_last()
        ->check(CLI::IsMember(split(choices, '|')))
        ->type_name(choices);
}

void CommandLine::add_list(const char* names, std::vector<std::string>& values, const char* type,
                           const char* help) {
    const bool split_at_commas = std::string_view(type).ends_with(",...");
    const std::string name = split(names, ',').back();
    const auto take = [&values, name, split_at_commas](const std::vector<std::string>& given) {
        for (const std::string& text : given)
            for (const std::string& value :
                 split_at_commas ? split(text, ',') : std::vector{text}) {
                if (value.empty())
                    throw CLI::ValidationError(fmt::format("{}={}: a value is empty", name, text));
                values.push_back(value);
            }
    };
    app_->add_option_function<std::vector<std::string>>(names, take, help)
        ->allow_extra_args(false)
        ->type_name(type);
}

void CommandLine::add_flag(const char* names, bool& value, const char* help) {
    app_->add_flag(names, value, help);
}

void CommandLine::add_flag(const char* names, std::string& value, const char* help) {
    app_->add_flag(names, value, help);
}

template <class Number>
void CommandLine::add_number(const char* names, Number& value, std::type_identity_t<Number> least,
                             std::type_identity_t<Number> most, const char* type,
                             const char* help) {
    CLI::Option* const option = app_->add_option(names, value, help)
                                    ->take_last()
                                    ->check(CLI::Range(least, most))
                                    ->type_name(type);
    // Which no comparison finds outside of a range.
    if constexpr (std::is_floating_point_v<Number>)
        option->check([least, most](const std::string& text) {
            return std::isnan(std::strtod(text.c_str(), nullptr))
                       ? fmt::format("{} is not a number from {} to {}", text, least, most)
                       : "";
        });
}

template void CommandLine::add_number(const char*, unsigned&, unsigned, unsigned, const char*,
                                      const char*);
template void CommandLine::add_number(const char*, std::size_t&, std::size_t, std::size_t,
                                      const char*, const char*);
template void CommandLine::add_number(const char*, double&, double, double, const char*,
                                      const char*);

void CommandLine::add_color(std::string& color, const char* help) {
    add_choice("--color", color, "auto|always|never", help);
}

void CommandLine::add_pager(std::string& pager) {
    add_choice("--pager", pager, "auto|no",
               "send what is longer than the terminal through $PAGER or less; default: auto");
}

void CommandLine::add_source_search(SourceOptions& where) {
    add_list("-I,--include", where.include_dirs, "DIR",
             "look for sources in this folder, too, by the ends of their paths; may be repeated");
    add_list("--source-extensions", where.extensions, "EXT,...",
             "files of these extensions are sources, too, wherever they are\n"
             "Of files that a profile names, only those are shown that have the extension of a "
             "source, or are below the working directory or an --include folder, or are named by "
             "debug information of the profile's programs.");
    app_->add_option_function<std::vector<std::string>>(
            "--map",
            [&where](const std::vector<std::string>& given) {
                where.moved = parse_moved("--map", given);
            },
            "sources that were compiled in folder OLD are in NEW now\n"
            "May be repeated: the first that has a source counts.")
        ->allow_extra_args(false)
        ->type_name("OLD=NEW");
}

std::vector<OptionDescription> CommandLine::options() const {
    std::vector<OptionDescription> descriptions;
    for (const CLI::Option* option : std::as_const(*app_).get_options()) {
        if (!option->nonpositional()) continue;
        std::vector<std::string> names;
        for (const std::string& name : option->get_snames()) names.push_back("-" + name);
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
        const bool is_flag = option->get_expected_max() == 0 || option->get_type_size_max() == 0;
        // CLI11 appends what the argument is checked for.
        const std::string type = option->get_type_name();
        descriptions.emplace_back(std::move(names), is_flag ? "" : type.substr(0, type.find(':')),
                                  option->get_description());
    }
    // The constructor has added --help and --version.
    std::rotate(descriptions.begin(), descriptions.begin() + 2, descriptions.end());
    return descriptions;
}

bool CommandLine::parse(int argc, const char* const* argv) {
    try {
        refuse_empty_values(argc, argv);
        app_->parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        print_text(help_text(*app_, options()));
        return false;
    } catch (const CLI::CallForVersion& version) {
        print_text(version.what());
        return false;
    } catch (const CLI::ExtrasError& error) {
        throw Error(fmt::format("{}: {}; see {} --help", app_->get_name(), unexpected(*app_, error),
                                app_->get_name()));
    } catch (const CLI::ParseError& error) {
        throw Error(
            fmt::format("{}: {}; see {} --help", app_->get_name(), error.what(), app_->get_name()));
    }
    return true;
}

std::string version_line() {
    return std::string("assay ") + kVersion + "\n";
}

std::string help_row(std::string_view names, std::string_view help, std::size_t width) {
    constexpr std::size_t kLineWidth = 80;
    std::string row(names), line;
    // At least two blanks stand between them.
    if (names.size() + 2 > width)
        row += "\n" + std::string(width, ' ');
    else
        row.resize(width, ' ');
    for (const std::string& word : split(help, ' ')) {
        if (!line.empty() && width + line.size() + 1 + word.size() > kLineWidth) {
            row += line + "\n" + std::string(width, ' ');
            line.clear();
        }
        line += (line.empty() ? "" : " ") + word;
    }
    return row + line + "\n";
}

std::string help_table(std::span<const OptionDescription> options) {
    constexpr std::size_t kNameWidth = 26;
    std::string table;
    for (const OptionDescription& option : options) {
        std::string names = "  " + join(option.names, ", ");
        if (!option.argument.empty()) names += "=" + option.argument;
        table += help_row(names, option.help, kNameWidth);
    }
    return table;
}

bool wants_color(std::string_view color) {
    return color == "always" || (color == "auto" && terminal_has_color());
}

}  // namespace assay
