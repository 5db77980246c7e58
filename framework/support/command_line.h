// The command line of a command. Each option is declared once: its names, the placeholder of its
// value, its help, the commands that have it, and the function that takes its value. Parsing, the
// keys of configuration files, --help, manual pages and the completion in shells all use this
// declaration.
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
    std::string name;    // without dashes; PROFILER.NAME if it is for one profiler only
    std::string value;   // "" for a flag
    std::string origin;  // "FILE:LINE" in a configuration file, "" on the command line
};

// The option as the user wrote it: --name, or "FILE:LINE: name".
std::string describe(const Setting& setting);

// Throws Error: the value is not the `expected` one.
[[noreturn]] void bad_value(const Setting& setting, std::string_view expected);

// The value of an option that is yes or no. Throws Error for any other value.
bool yes_or_no(const Setting& setting);

// A whole number; k or K, M and G stand for thousands, millions and billions. No value if it is not
// a number below 2^64.
std::optional<std::uint64_t> count(std::string_view text);

struct Option {
    std::vector<std::string> names;  // with their dashes; the last is a long name
    std::string argument;            // the placeholder of the value in --help; empty for a flag
    std::string help;                // one line; empty if the option is not for users
    std::string more;                // sentences for the manual page only
    std::function<void(const Setting&)> take;  // takes the value; throws Error
    unsigned commands = ~0U;                   // the commands that have it, one bit each

    // `text` is the help. Sentences for the manual page only follow a newline.
    Option(std::vector<std::string> option_names, std::string its_argument, std::string_view text);

    // The long name without dashes.
    std::string_view name() const { return std::string_view(names.back()).substr(2); }
    // Restricts the option to these commands.
    void of(unsigned those) { commands = those; }
    // The words that the value may be, such as yes and no for `yes|no`. Empty if any value may be
    // given.
    std::vector<std::string> choices() const;
    // True if the value names a file or folder.
    bool takes_file() const;
};

enum class Need : std::uint8_t { kOptional, kRequired };

// The allowed order of options and arguments.
enum class Order : std::uint8_t {
    kAny,
    kOptionsFirst,  // the first argument is a program, and all later words belong to it
};

// Option names are separated by commas: "-o,--out". `type` is the placeholder of the value in
// --help. The referenced values keep their content until parse() finds the option, and must live
// until then.
class CommandLine {
  public:
    // For a command of a family that shares a table of options: its bit in Option::commands.
    explicit CommandLine(unsigned command = ~0U) : command_(command) {}
    CommandLine(const CommandLine&) = delete;
    CommandLine& operator=(const CommandLine&) = delete;

    // `name` is the full name of the command: "assay diff". In the help, `purpose` with the
    // synopsis stands above the options, and `footer`, which may be empty, below them.
    void describe(const char* name, std::string purpose, std::string footer);

    // Adds an argument without a name, after those added before.
    void add_argument(const char* name, std::string& value, Need need = Need::kRequired);
    // One or more values; zero or more if they are not required.
    void add_arguments(const char* name, std::vector<std::string>& values,
                       Need need = Need::kRequired);
    // A program or a trace, followed by its arguments.
    void add_program(std::vector<std::string>& words);

    // The reference is valid until the next option is added.
    Option& add(const char* names, const char* type, std::string_view help,
                std::function<void(const Setting&)> take);

    // If an option is given more than once, the last value counts. The exception is add_list().
    Option& add_text(const char* names, std::string& value, const char* type, std::string_view help,
                     Need need = Need::kOptional);
    // The value is one of `choices`, which are separated by bars: "yes|no".
    Option& add_choice(const char* names, std::string& value, const char* choices,
                       std::string_view help);
    Option& add_yes_no(const char* names, bool& value, std::string_view help);
    // Appends a value each time that the option is given. If `type` ends in ",...", it splits each
    // value at commas.
    Option& add_list(const char* names, std::vector<std::string>& values, const char* type,
                     std::string_view help);
    // A flag has the value yes or no in a configuration file.
    Option& add_flag(const char* names, bool& value, std::string_view help);
    // For the names "--NAME,--no-NAME": the value is "yes" or "no".
    Option& add_switch(const char* names, std::string& value, std::string_view help);
    // For unsigned, std::size_t or double. Refuses values outside the range.
    template <class Number>
    Option& add_number(const char* names, Number& value, std::type_identity_t<Number> least,
                       std::type_identity_t<Number> most, const char* type, std::string_view help);

    // Rules between options, by their long names without dashes. An option with the value "no"
    // counts as not given. If `sentence` is empty, a general sentence is the message.
    void excludes(std::string_view one, std::string_view other, std::string sentence = "");
    void needs(std::string_view one, std::string_view other, std::string sentence = "");
    // True if this is the command with that bit.
    bool is_of(unsigned command) const { return command_ == command; }
    // True if the option was given.
    bool has(std::string_view name) const;

    // `take` receives options that the command does not have, if they are written --NAME=VALUE.
    void take_others(std::function<void(const Setting&)> take) { others_ = std::move(take); }
    // Refuses options of these other commands with "--NAME" and the sentence. In a configuration
    // file they are skipped.
    void refuse_those_of(unsigned commands, std::string sentence) {
        refused_ = commands;
        refusal_ = std::move(sentence);
    }

    // All declared options, including those of other commands.
    std::span<const Option> options() const { return options_; }
    // Finds an option by any of its names, without dashes; the command's own options come first.
    // Null if there is no such option. Valid until the next option is added.
    const Option* find(std::string_view name) const;
    const std::string& name() const { return name_; }
    std::string help() const;

    // `words` begin after the name of the command. parse() stores arguments and returns the
    // options. Throw Error.
    std::vector<Setting> parse(std::span<const std::string> words, Order order = Order::kAny);
    void take(std::span<const Setting> settings);
    // Throws Error if a required option or argument is missing, or a rule is broken.
    void check() const;

  private:
    struct Operand {
        std::string name;
        std::function<bool(const std::string&)> take;  // returns false if there are too many
        bool required, taken = false;
    };
    struct Rule {
        std::string one, other, sentence;
        bool together;  // true: the first needs the second; false: they exclude each other
    };

    bool is_own(const Option& option) const { return option.commands & command_; }
    // True for an option that take_others() receives, which excludes refused ones.
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

// A row of a table for terminals: the names, then from column `width` the help, broken into lines.
std::string help_row(std::string_view names, std::string_view help, std::size_t width);
std::string help_table(std::span<const Option> options);

}  // namespace assay
