// The command line of a command. Each option is declared once: its names, what stands for its
// value, its help, the commands that have it, and where the value goes. From this come parsing, the
// keys of configuration files, --help, manual pages and the completion of words in shells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace assay {

// One option that the user gave.
struct Setting {
    std::string name;    // without dashes; for one profiler only: PROFILER.NAME
    std::string value;   // "" of a flag
    std::string origin;  // "FILE:LINE" for a configuration file, "" for the command line
};

// How an option is written: --name, or "FILE:LINE: name".
std::string describe(const Setting& setting);

// Throws Error: the value is not what is `expected`.
[[noreturn]] void bad_value(const Setting& setting, std::string_view expected);

// A value that is yes or no. Throws Error.
bool yes_or_no(const Setting& setting);

// A whole number; k or K, M and G stand for thousands, millions and billions. Nothing if it is not
// one below 2^64.
std::optional<std::uint64_t> count(std::string_view text);

struct Option {
    std::vector<std::string> names;  // with their dashes; the last is a long one
    std::string argument;            // what stands for its value in --help; empty if it takes none
    std::string help;                // one line; empty if it is not for users
    std::string more;                // sentences that only the manual page has
    std::function<void(const Setting&)> take;  // where the value goes; throws Error
    unsigned commands = ~0U;                   // those that have it, a bit for each

    // `text` is the help, and behind a newline what only the manual page has.
    Option(std::vector<std::string> option_names, std::string its_argument, std::string_view text);

    // Without dashes.
    std::string_view name() const { return std::string_view(names.back()).substr(2); }
    // Makes it one of these commands only.
    void of(unsigned those) { commands = those; }
    // Words that the value may be: those of `yes|no`. Empty if it may be anything.
    std::vector<std::string> choices() const;
    // Whether the value is the name of a file or folder.
    bool takes_file() const;
};

enum class Need : std::uint8_t { kOptional, kRequired };

// What may stand where on a command line.
enum class Order : std::uint8_t {
    kAny,           // options and arguments in any order
    kOptionsFirst,  // the first argument is a program, and what follows belongs to it
};

// The names of an option are separated by commas: "-o,--out". `type` is what --help shows in place
// of its value. Values keep what they are until parse() finds the option, and must live until then.
class CommandLine {
  public:
    // Of a command of a family that shares a table of options: its bit in Option::commands.
    explicit CommandLine(unsigned command = ~0U) : command_(command) {}
    CommandLine(const CommandLine&) = delete;
    CommandLine& operator=(const CommandLine&) = delete;

    // `name` is how the command is called: "assay diff". In the help, `purpose` stands above the
    // options and has the synopsis; `footer` stands below them and may be empty.
    void describe(const char* name, std::string purpose, std::string footer);

    // An argument without a name, behind those added before.
    void add_argument(const char* name, std::string& value, Need need = Need::kRequired);
    // One or more of them, or none.
    void add_arguments(const char* name, std::vector<std::string>& values,
                       Need need = Need::kRequired);
    // A program or a trace, and its arguments.
    void add_program(std::vector<std::string>& words);

    // A reference to an option is good until the next is added.
    Option& add(const char* names, const char* type, std::string_view help,
                std::function<void(const Setting&)> take);

    // Of an option that is given more than once, the last value counts; but see add_list().
    Option& add_text(const char* names, std::string& value, const char* type, std::string_view help,
                     Need need = Need::kOptional);
    // One of the words of `choices`, which are separated by bars: "yes|no".
    Option& add_choice(const char* names, std::string& value, const char* choices,
                       std::string_view help);
    Option& add_yes_no(const char* names, bool& value, std::string_view help);
    // Adds a value each time that the option is given; with a type that ends in ",...", as many as
    // are separated by commas.
    Option& add_list(const char* names, std::vector<std::string>& values, const char* type,
                     std::string_view help);
    // In a configuration file, yes or no.
    Option& add_flag(const char* names, bool& value, std::string_view help);
    // Of the names "--NAME,--no-NAME": yes or no.
    Option& add_switch(const char* names, std::string& value, std::string_view help);
    // Of type unsigned, std::size_t or double. What is outside of the range is refused.
    template <class Number>
    Option& add_number(const char* names, Number& value, std::type_identity_t<Number> least,
                       std::type_identity_t<Number> most, const char* type, std::string_view help);

    // Rules, of options by their long names without dashes. An option that is "no" is not given.
    // Without a sentence of its own, each rule has the usual one.
    void excludes(std::string_view one, std::string_view other, std::string sentence = "");
    void needs(std::string_view one, std::string_view other, std::string sentence = "");
    // Whether the option was given.
    bool has(std::string_view name) const;

    // What the command does not have goes there, if it is written --NAME=VALUE.
    void take_others(std::function<void(const Setting&)> take) { others_ = std::move(take); }
    // Options of these other commands are refused, by "--NAME" and the sentence, and in a
    // configuration file left to those commands.
    void refuse_those_of(unsigned commands, std::string sentence) {
        refused_ = commands;
        refusal_ = std::move(sentence);
    }

    // All that are declared, also those of other commands.
    std::span<const Option> options() const { return options_; }
    // By any of its names, without dashes: the command's own one, or else another command's. Null
    // if there is none. Good until the next is added.
    const Option* find(std::string_view name) const;
    const std::string& name() const { return name_; }
    // What --help prints.
    std::string help() const;

    // Each throws Error. The words begin behind the name of the command. parse() takes arguments
    // that have no names, and returns the options.
    std::vector<Setting> parse(std::span<const std::string> words, Order order = Order::kAny);
    void take(std::span<const Setting> settings);
    // Whether all is there that is required, and no rule is broken.
    void check() const;

  private:
    struct Operand {
        std::string name;
        std::function<bool(const std::string&)> take;  // false: there are too many
        bool required, taken = false;
    };
    struct Rule {
        std::string one, other, sentence;
        bool together;  // both, or never both
    };

    bool is_own(const Option& option) const { return option.commands & command_; }
    // Not even one that is refused.
    bool is_other(const Option* option) const {
        return others_ && (!option || !(option->commands & (command_ | refused_)));
    }
    const Option& option_of(std::string_view name) const;
    void take_operand(const std::string& word);
    std::size_t parse_letters(std::span<const std::string> words, std::size_t at,
                              std::vector<Setting>& settings) const;
    std::size_t parse_name(std::span<const std::string> words, std::size_t at,
                           std::vector<Setting>& settings) const;

    unsigned command_, refused_ = 0;
    std::string name_, purpose_, footer_, refusal_;
    std::vector<Option> options_;
    std::vector<Operand> operands_;
    std::vector<Rule> rules_;
    std::vector<std::string> given_, required_;
    std::function<void(const Setting&)> others_;
};

// A row of a table for terminals: the names, and from column `width` on the help, broken into
// lines.
std::string help_row(std::string_view names, std::string_view help, std::size_t width);
// A row for each option.
std::string help_table(std::span<const Option> options);

}  // namespace assay
