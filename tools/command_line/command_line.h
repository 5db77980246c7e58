// What a subcommand takes on its command line. CLI11 understands it; its headers, which take longer
// to compile than most of the tools, are included by command_line.cpp alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace CLI {
class App;
}

namespace assay {

struct SourceOptions;

struct OptionDescription {
    std::vector<std::string> names;  // with their dashes
    std::string argument;            // what stands for it in --help; empty if there is none
    std::string help;                // one line
    std::string more;                // sentences that only the manual page has

    OptionDescription(std::vector<std::string> option_names, std::string its_argument,
                      std::string_view text);

    // Words that the argument may be: those of `yes|no`. Empty if it may be anything.
    std::vector<std::string> choices() const;
    // Whether the argument is the name of a file or folder.
    bool takes_file() const;
};

enum class Need : std::uint8_t { kOptional, kRequired };

// The names of an option are separated by commas: "-o,--out". `type` is what stands for its
// argument in --help. Its `help` may have sentences for the manual page behind a newline. Values
// keep what they are until parse() finds the option, and must live until then.
class CommandLine {
  public:
    // With -h, --help and --version.
    CommandLine();
    ~CommandLine();
    CommandLine(const CommandLine&) = delete;
    CommandLine& operator=(const CommandLine&) = delete;

    // `name` is how the command is called: "assay diff". In the help, `purpose` stands above the
    // options and has the synopsis; `footer` stands below them and may be empty.
    void describe(const char* name, const char* purpose, const std::string& footer);

    // An argument without a name, behind those added before.
    void add_argument(const char* name, std::string& value, const char* help,
                      Need need = Need::kRequired);
    // One or more of them.
    void add_arguments(const char* name, std::vector<std::string>& values, const char* help,
                       Need need = Need::kRequired);

    // Of an option that is given more than once, the last value counts; but see add_list().
    void add_text(const char* names, std::string& value, const char* type, const char* help,
                  Need need = Need::kOptional);
    // One of the words of `choices`, which are separated by bars: "yes|no".
    void add_choice(const char* names, std::string& value, const char* choices, const char* help);
    // Adds an argument to `values` each time that it is given; with a type that ends in ",...", as
    // many as are separated by commas.
    void add_list(const char* names, std::vector<std::string>& values, const char* type,
                  const char* help);
    void add_flag(const char* names, bool& value, const char* help);
    // Each name has the text in braces behind it: "--color{yes},--no-color{no}".
    void add_flag(const char* names, std::string& value, const char* help);
    // Of type unsigned, std::size_t or double. What is outside of the range is refused.
    template <class Number>
    void add_number(const char* names, Number& value, std::type_identity_t<Number> least,
                    std::type_identity_t<Number> most, const char* type, const char* help);

    // --color and --pager, which are the same everywhere but for when there are colours and what
    // they say.
    void add_color(std::string& color, const char* help);
    void add_pager(std::string& pager);

    // --include, --source-extensions and --map, which are the same for all that show sources.
    void add_source_search(SourceOptions& where);

    std::vector<OptionDescription> options() const;
    // False if --help or --version was asked for and has been printed. Throws Error if the
    // arguments are wrong.
    bool parse(int argc, const char* const* argv);

  private:
    std::unique_ptr<CLI::App> app_;
};

// What --version prints.
std::string version_line();

// A row of a table for terminals: the names, and from column `width` on the help, broken into
// lines.
std::string help_row(std::string_view names, std::string_view help, std::size_t width);
// A row for each option.
std::string help_table(std::span<const OptionDescription> options);

// Whether an argument of --color asks for colours on standard output.
bool wants_color(std::string_view color);

// The options of the subcommand whose command line `add_options` tells.
template <class Arguments>
std::vector<OptionDescription> options_of(void (*add_options)(CommandLine&, Arguments&)) {
    Arguments arguments;
    CommandLine line;
    add_options(line, arguments);
    return line.options();
}

// What is written on it. No value if --help or --version was asked for and has been printed. Throws
// Error.
template <class Arguments>
std::optional<Arguments> parse_arguments(void (*add_options)(CommandLine&, Arguments&), int argc,
                                         const char* const* argv) {
    std::optional<Arguments> arguments(std::in_place);
    CommandLine line;
    add_options(line, *arguments);
    if (!line.parse(argc, argv)) arguments.reset();
    return arguments;
}

}  // namespace assay
