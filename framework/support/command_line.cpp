#include "framework/support/command_line.h"

#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace assay {
namespace {

std::string alternatives(const std::vector<std::string>& words) {
    const std::vector<std::string> first(words.begin(), words.end() - 1);
    return words.size() < 2 ? join(words, "") : join(first, ", ") + " or " + words.back();
}

void check_not_empty(const Setting& setting) {
    if (setting.value.empty())
        throw Error(fmt::format("{}=: the value is empty", describe(setting)));
}

}  // namespace

std::string describe(const Setting& setting) {
    return setting.origin.empty() ? "--" + setting.name
                                  : fmt::format("{}: {}", setting.origin, setting.name);
}

void bad_value(const Setting& setting, std::string_view expected) {
    throw Error(fmt::format("{}: \"{}\" is not {}", describe(setting), setting.value, expected));
}

bool yes_or_no(const Setting& setting) {
    if (setting.value != "yes" && setting.value != "no") bad_value(setting, "yes or no");
    return setting.value == "yes";
}

std::optional<std::uint64_t> count(std::string_view text) {
    std::uint64_t number = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    const std::string_view unit(stop, end);
    const std::uint64_t factor = unit.empty()                 ? 1
                                 : unit == "k" || unit == "K" ? 1'000
                                 : unit == "M"                ? 1'000'000
                                 : unit == "G"                ? 1'000'000'000
                                                              : 0;
    if (error != std::errc() || factor == 0 || number > UINT64_MAX / factor) return std::nullopt;
    return number * factor;
}

// --- An option

Option::Option(std::vector<std::string> option_names, std::string its_argument,
               std::string_view text)
    : names(std::move(option_names)),
      argument(std::move(its_argument)),
      help(text.substr(0, text.find('\n'))),
      more(text.substr(std::min(text.size(), help.size() + 1))) {}

std::vector<std::string> Option::choices() const {
    const auto is_word = [](char c) { return (c >= 'a' && c <= 'z') || c == '|' || c == '-'; };
    if (argument.find('|') == std::string::npos ||
        !std::all_of(argument.begin(), argument.end(), is_word))
        return {};
    return split(argument, '|');
}

bool Option::takes_file() const {
    return argument.find("FILE") != std::string::npos || argument == "DIR";
}

// --- Declarations

void CommandLine::describe(const char* name, std::string purpose, std::string footer) {
    name_ = name;
    purpose_ = std::move(purpose);
    footer_ = std::move(footer);
}

void CommandLine::add_argument(const char* name, std::string& value, Need need) {
    const auto take = [&value, taken = false](const std::string& word) mutable {
        if (taken) return false;
        value = word;
        return taken = true;
    };
    operands_.push_back({name, take, need == Need::kRequired});
}

void CommandLine::add_arguments(const char* name, std::vector<std::string>& values, Need need) {
    const auto take = [&values](const std::string& word) {
        values.push_back(word);
        return true;
    };
    operands_.push_back({name, take, need == Need::kRequired});
}

void CommandLine::add_program(std::vector<std::string>& words) {
    add_arguments("PROGRAM", words, Need::kOptional);
}

Option& CommandLine::add(const char* names, const char* type, std::string_view help,
                         std::function<void(const Setting&)> take) {
    Option& option = options_.emplace_back(split(names, ','), type, help);
    option.take = std::move(take);
    return option;
}

Option& CommandLine::add_text(const char* names, std::string& value, const char* type,
                              std::string_view help, Need need) {
    const auto take = [&value](const Setting& setting) {
        check_not_empty(setting);
        value = setting.value;
    };
    Option& option = add(names, type, help, take);
    if (need == Need::kRequired) required_.emplace_back(option.name());
    return option;
}

Option& CommandLine::add_choice(const char* names, std::string& value, const char* choices,
                                std::string_view help) {
    const auto take = [&value, words = split(choices, '|')](const Setting& setting) {
        if (std::find(words.begin(), words.end(), setting.value) == words.end())
            bad_value(setting, alternatives(words));
        value = setting.value;
    };
    return add(names, choices, help, take);
}

Option& CommandLine::add_yes_no(const char* names, bool& value, std::string_view help) {
    return add(names, "yes|no", help,
               [&value](const Setting& setting) { value = yes_or_no(setting); });
}

Option& CommandLine::add_list(const char* names, std::vector<std::string>& values, const char* type,
                              std::string_view help) {
    const bool at_commas = std::string_view(type).ends_with(",...");
    const auto take = [&values, at_commas](const Setting& setting) {
        for (const std::string& value :
             at_commas ? split(setting.value, ',') : std::vector{setting.value}) {
            if (value.empty())
                throw Error(fmt::format("{}={}: a value is empty", assay::describe(setting),
                                        setting.value));
            values.push_back(value);
        }
    };
    return add(names, type, help, take);
}

Option& CommandLine::add_flag(const char* names, bool& value, std::string_view help) {
    return add(names, "", help, [&value](const Setting& setting) {
        value = setting.value.empty() || yes_or_no(setting);
    });
}

Option& CommandLine::add_switch(const char* names, std::string& value, std::string_view help) {
    return add(names, "", help, [&value](const Setting& setting) {
        const bool not_at_all = setting.name.starts_with("no-");
        if (setting.value.empty())
            value = not_at_all ? "no" : "yes";
        else
            value = yes_or_no(setting) != not_at_all ? "yes" : "no";
    });
}

template <class Number>
Option& CommandLine::add_number(const char* names, Number& value,
                                std::type_identity_t<Number> least,
                                std::type_identity_t<Number> most, const char* type,
                                std::string_view help) {
    const auto take = [&value, least, most](const Setting& setting) {
        Number number{};
        const char* const end = setting.value.data() + setting.value.size();
        const auto [stop, error] = std::from_chars(setting.value.data(), end, number);
        // The comparisons are false for NaN.
        if (error != std::errc() || stop != end || !(number >= least && number <= most))
            bad_value(setting, fmt::format("a number from {} to {}", least, most));
        value = number;
    };
    return add(names, type, help, take);
}

template Option& CommandLine::add_number(const char*, unsigned&, unsigned, unsigned, const char*,
                                         std::string_view);
template Option& CommandLine::add_number(const char*, std::size_t&, std::size_t, std::size_t,
                                         const char*, std::string_view);
template Option& CommandLine::add_number(const char*, double&, double, double, const char*,
                                         std::string_view);

void CommandLine::excludes(std::string_view one, std::string_view other, std::string sentence) {
    if (sentence.empty())
        sentence =
            fmt::format("--{} cannot be combined with --{}; leave one of them out", one, other);
    rules_.push_back({std::string(one), std::string(other), std::move(sentence), false});
}

void CommandLine::needs(std::string_view one, std::string_view other, std::string sentence) {
    if (sentence.empty()) sentence = fmt::format("--{} is for --{}: give both", one, other);
    rules_.push_back({std::string(one), std::string(other), std::move(sentence), true});
}

// --- Parsing

bool CommandLine::has(std::string_view name) const {
    return std::find(given_.begin(), given_.end(), name) != given_.end();
}

// The command's own option comes before one that it refuses, and that before others.
const Option* CommandLine::find(std::string_view name) const {
    const Option* found = nullptr;
    for (const Option& option : options_)
        for (const std::string& each : option.names) {
            if (std::string_view(each).substr(each.starts_with("--") ? 2 : 1) != name) continue;
            if (is_own(option)) return &option;
            if (!found || option.commands & refused_) found = &option;
        }
    return found;
}

const Option& CommandLine::option_of(std::string_view word) const {
    const Option* const found = find(word.substr(word.starts_with("--") ? 2 : 1));
    if (found) return *found;
    std::vector<std::string> names;
    for (const Option& option : options_)
        if (!option.help.empty() && is_own(option)) names.push_back(option.names.back());
    const std::string meant = nearest(word, names);
    throw Error(fmt::format("unknown option {}{}", word,
                            meant.empty() ? "" : "; did you mean " + meant + "?"));
}

// "-q", "-o FILE", "-oFILE" or several flags in one word. Returns the index of the next word.
std::size_t CommandLine::parse_letters(std::span<const std::string> words, std::size_t at,
                                       std::vector<Setting>& settings) const {
    const std::string& word = words[at];
    for (std::size_t i = 1; i < word.size(); ++i) {
        const std::string letter{'-', word[i]};
        const Option& option = option_of(i == 1 && !find(letter.substr(1)) ? word : letter);
        Setting setting{std::string(option.name()), "", ""};
        if (!option.argument.empty()) {
            setting.value = word.substr(i + 1);
            if (setting.value.empty() && ++at == words.size())
                throw Error(
                    fmt::format("{} needs a value: {} {}", letter, letter, option.argument));
            if (setting.value.empty()) setting.value = words[at];
            i = word.size();
        }
        settings.push_back(std::move(setting));
    }
    return at + 1;
}

// "--NAME", "--NAME=VALUE" or "--NAME VALUE". Returns the index of the next word.
std::size_t CommandLine::parse_name(std::span<const std::string> words, std::size_t at,
                                    std::vector<Setting>& settings) const {
    const std::string_view word = words[at];
    const std::size_t equals = word.find('=');
    const bool has_value = equals != std::string_view::npos;
    const std::string_view dashed = word.substr(0, equals);
    Setting setting{std::string(dashed.substr(2)), "", ""};
    if (has_value) setting.value = word.substr(equals + 1);
    // The options of profilers are not known yet. They need the equals sign.
    const bool of_others = is_other(find(setting.name));
    const Option* const option = of_others ? nullptr : &option_of(dashed);
    const std::string type = option ? option->argument : "VALUE";
    const bool is_switch = option && option->names.back().starts_with("--no-");
    if (type.empty() && has_value && !is_switch)
        throw Error(fmt::format("{} takes no value", dashed));
    if (!type.empty() && !has_value) {
        if (of_others || at + 1 == words.size())
            throw Error(fmt::format("{} needs a value: {}={}", dashed, dashed, type));
        setting.value = words[++at];
    }
    settings.push_back(std::move(setting));
    return at + 1;
}

void CommandLine::take_operand(const std::string& word) {
    for (Operand& operand : operands_)
        if (operand.take(word)) {
            operand.taken = true;
            return;
        }
    throw Error(fmt::format("{} is one argument too many", word));
}

std::vector<Setting> CommandLine::parse(std::span<const std::string> words, Order order) {
    std::vector<Setting> settings;
    std::size_t i = 0;
    bool only_operands = false;
    while (i < words.size()) {
        const std::string& word = words[i];
        if (only_operands || !word.starts_with("-") || word == "-") {
            take_operand(word);
            only_operands |= order == Order::kOptionsFirst;
            ++i;
        } else if (word == "--") {
            only_operands = true;
            ++i;
        } else if (word.starts_with("--")) {
            i = parse_name(words, i, settings);
        } else {
            i = parse_letters(words, i, settings);
        }
    }
    return settings;
}

void CommandLine::take(std::span<const Setting> settings) {
    for (const Setting& setting : settings) {
        if (is_other(find(setting.name))) {
            others_(setting);
            continue;
        }
        const Option& option = option_of("--" + setting.name);
        const bool is_refused = !is_own(option);
        if (is_refused && !setting.origin.empty()) continue;
        if (is_refused) throw Error(fmt::format("{} {}", assay::describe(setting), refusal_));
        const std::string name(option.name());
        std::erase(given_, name);
        if (setting.value != "no") given_.push_back(name);
        if (option.take) option.take(setting);
    }
}

void CommandLine::check() const {
    for (const Operand& operand : operands_)
        if (operand.required && !operand.taken)
            throw Error(fmt::format("{} is required", operand.name));
    for (const std::string& name : required_)
        if (!has(name)) throw Error(fmt::format("--{} is required", name));
    for (const Rule& rule : rules_)
        if (has(rule.one) && has(rule.other) != rule.together) throw Error(rule.sentence);
}

// --- Help

std::string CommandLine::help() const {
    std::vector<Option> shown;
    for (const Option& option : options_)
        if (!option.help.empty() && is_own(option)) shown.push_back(option);
    return fmt::format("{}\nOptions:\n\n{}{}{}", purpose_, help_table(shown),
                       footer_.empty() ? "" : "\n", footer_);
}

std::string help_row(std::string_view names, std::string_view help, std::size_t width) {
    constexpr std::size_t kLineWidth = 80;
    std::string row(names), line;
    // At least two blanks separate names and help.
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

std::string help_table(std::span<const Option> options) {
    constexpr std::size_t kNameWidth = 26;
    std::string table;
    for (const Option& option : options) {
        std::string names = "  " + join(option.names, ", ");
        if (!option.argument.empty()) names += "=" + option.argument;
        table += help_row(names, option.help, kNameWidth);
    }
    return table;
}

}  // namespace assay
