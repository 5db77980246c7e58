
#include "framework/collector/profilers/plugin_search.h"
#include "framework/support/error.h"
#include "framework/support/text.h"
#include "tools/cli/commands.h"
#include "tools/output/output.h"

#include <fmt/core.h>
#include <algorithm>

namespace assay {
namespace {

constexpr std::string_view kPlugin = "--plugin";

// Commands that take options of profilers, followed by a program.
constexpr bool runs_programs(std::string_view command) {
    return command == "run" || command == "sweep";
}

bool has_name(std::span<const Option> options, const std::string& name) {
    return std::any_of(options.begin(), options.end(), [&](const Option& option) {
        return std::find(option.names.begin(), option.names.end(), name) != option.names.end();
    });
}

// Adds the options of a run for commands that pass them on.
std::vector<Option> options_before_arguments(const Command& command) {
    std::vector<Option> options = command.options();
    if (command.name == "run" || !runs_programs(command.name)) return options;
    for (const Option& option : find_command("run")->options())
        if (!has_name(options, option.names.back())) options.push_back(option);
    return options;
}

std::string command_names() {
    std::string names;
    for (const Command& command : commands())
        names.append(names.empty() ? "" : " ").append(command.name);
    return names;
}

// Quotes text for all three shells. Texts for zsh and fish contain no single quotes.
std::string in_quotes(std::string_view text) {
    std::string out = "'";
    for (const char c : text) {
        if (c == '\'')
            out += "'\\''";
        else
            out += c;
    }
    return out += '\'';
}

// --- bash

// Writes a word for each name, --name=CHOICE for each choice, and --name= for other values.
std::string bash_words(std::span<const Option> options) {
    std::string words;
    for (const Option& option : options) {
        const std::vector<std::string> choices = option.choices();
        for (const std::string& name : option.names) {
            const bool is_long = name.starts_with("--");
            if (is_long)
                for (const std::string& choice : choices)
                    words.append(name).append("=").append(choice).append(" ");
            if (choices.empty()) words += name + (is_long && !option.argument.empty() ? "= " : " ");
        }
    }
    return words;
}

// A pattern of options that take the next word as their value.
std::string bash_options_with_value() {
    std::string pattern;
    for (const Option& option : options_before_arguments(*find_command("sweep")))
        if (!option.argument.empty())
            for (const std::string& name : option.names)
                pattern.append(pattern.empty() ? "" : "|").append(name);
    return pattern;
}

// Completes words of the program after the options of a run. By default, COMP_WORDS splits
// --NAME=VALUE into three words.
std::string bash_program() {
    return fmt::format(
        R"sh(# The index of the program that is run, if the word to complete is that or stands behind it.
_assay_program() {{
    local i=1
    case ${{COMP_WORDS[1]}} in run | sweep) i=2 ;; esac
    while [ "$i" -lt "$COMP_CWORD" ]; do
        case ${{COMP_WORDS[i]}} in
            --) echo $((i + 1)); return ;;
            = | :) i=$((i + 2)) ;;
            {}) i=$((i + 1)); [ "${{COMP_WORDS[i]}}" = = ] || i=$((i + 1)) ;;
            -*) i=$((i + 1)) ;;
            *) echo "$i"; return ;;
        esac
    done
    case ${{COMP_WORDS[i]}} in
        -* | = | :) ;;
        *) [ "$i" != "$COMP_CWORD" ] || echo "$i" ;;
    esac
}}
# What --plugin has named so far.
_assay_plugins() {{
    [[ $COMP_LINE =~ [[:space:]]--plugin[=[:space:]][[:space:]]*([^[:space:]]+) ]] &&
        echo "${{BASH_REMATCH[1]}}"
}}
# Completes as for the program alone, as far as bash-completion is there; else, names of files.
_assay_complete_program() {{
    if declare -F _command_offset > /dev/null; then
        _command_offset "$1"
    elif [ "$COMP_CWORD" = "$1" ]; then
        COMPREPLY=($(compgen -c -- "$2") $(compgen -f -- "$2"))
    else
        COMPREPLY=($(compgen -f -- "$2"))
        compopt -o filenames
    fi
}}
)sh",
        bash_options_with_value());
}

std::string bash_script() {
    std::string cases;
    for (const Command& command : commands())
        cases += fmt::format("        {}) words={} ;;\n", command.name,
                             in_quotes(bash_words(options_before_arguments(command))));
    return fmt::format(R"sh(# bash completion for assay
{}_assay() {{
    local current=${{COMP_LINE:0:COMP_POINT}} command=${{COMP_WORDS[1]}} words program files=
    local assay=${{1:-assay}} named profiler
    current=${{current##*[[:space:]]}}
    if [ "$COMP_CWORD" = 1 ] && [[ $current != -* ]]; then
        COMPREPLY=($(compgen -W '{}' -- "$current"))
        return
    fi
    case $command in
{}        *) words={} command=run ;;
    esac
    COMPREPLY=()
    if [[ $command == run || $command == sweep ]]; then
        program=$(_assay_program)
        if [ -n "$program" ]; then
            _assay_complete_program "$program" "$current"
            return
        fi
        if [[ $current == --plugin=* || ${{COMP_WORDS[COMP_CWORD - 1]}} == --plugin ]]; then
            named=$current words=
            case $current in
                *,*) named=${{current%,*}}, ;;
                *) named=${{current%%[!-]*}}; [[ $current != --plugin=* ]] || named=--plugin= ;;
            esac
            for profiler in $(command "$assay" completion --profilers 2> /dev/null); do
                words+=" $named$profiler"
            done
        elif [[ $current == -* ]]; then
            named=$(_assay_plugins)
            [ -z "$named" ] || words+=" $(command "$assay" completion bash "$named" 2> /dev/null)"
        fi
    elif [[ " ${{COMP_WORDS[*]:0:COMP_CWORD}} " == *' -- '* ]]; then
        COMPREPLY=($(compgen -f -- "$current"))
        compopt -o filenames
        return
    fi
    case $current in
        --*=*)
            COMPREPLY=($(compgen -W "$words" -- "$current"))
            [ "${{COMPREPLY[0]}}" != "${{current%%=*}}=" ] || COMPREPLY=()
            if [ ${{#COMPREPLY[@]}} = 0 ]; then
                COMPREPLY=($(compgen -f -P "${{current%%=*}}=" -- "${{current#*=}}"))
                [[ $COMP_WORDBREAKS != *=* ]] || files=yes
            fi
            # Readline replaces only what stands behind the = if that separates words.
            case $COMP_WORDBREAKS in
                *=*) COMPREPLY=("${{COMPREPLY[@]#"${{current%%=*}}="}}") ;;
            esac ;;
        -*) COMPREPLY=($(compgen -W "$words" -- "$current")) ;;
        *) [ "$command" != completion ] || COMPREPLY=($(compgen -W 'bash zsh fish' -- "$current"))
           [ "${{COMP_WORDS[COMP_CWORD - 1]}}" != --plugin ] ||
               COMPREPLY=($(compgen -W "$words" -- "$current"))
           [ ${{#COMPREPLY[@]}} -gt 0 ] || {{ COMPREPLY=($(compgen -f -- "$current")); files=yes; }} ;;
    esac
    # Readline escapes what is special in names of files only, as = is.
    [ -z "$files" ] || compopt -o filenames
    if [[ ${{COMPREPLY[0]}} == *= ]] || [ -d "${{COMPREPLY[0]}}" ]; then compopt -o nospace; fi
}}
complete -F _assay assay
)sh",
                       bash_program(), command_names(), cases,
                       in_quotes(bash_words(find_command("run")->options())));
}

// --- zsh

// Escapes text for _arguments, where [] and : have a meaning.
std::string zsh_text(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
        out += c;
    }
    return out;
}

std::string zsh_specification(const Option& option, const std::string& name) {
    std::string specification = name;
    if (!option.argument.empty()) specification += name.starts_with("--") ? "=-" : "+";
    specification += "[" + zsh_text(option.help) + "]";
    if (!option.argument.empty()) {
        specification += ":" + zsh_text(option.argument) + ":";
        const std::vector<std::string> choices = option.choices();
        if (!choices.empty())
            specification += "(" + join(choices, " ") + ")";
        else if (name == kPlugin)
            specification += "_assay_profilers";
        else if (option.takes_file())
            specification += "_files";
    }
    return "*" + specification;
}

std::string zsh_script() {
    std::string names, cases;
    for (const Command& command : commands()) {
        names +=
            fmt::format("        {}\n",
                        in_quotes(fmt::format("{}:{}", command.name, zsh_text(command.summary))));
        cases += fmt::format("        {})\n            options=(\n", command.name);
        for (const Option& option : options_before_arguments(command))
            for (const std::string& name : option.names)
                cases += "                " + in_quotes(zsh_specification(option, name)) + "\n";
        cases += "            ) ;;\n";
    }
    return fmt::format(R"sh(#compdef assay
# zsh completion for assay
_assay_profilers() {{
    local -a found
    found=(${{(f)"$(command $assay completion --profilers 2> /dev/null)"}})
    compset -P '*,'
    compadd -qS '' -a found
}}
_assay() {{
    local -a names options
    local assay=$words[1] named=${{words[(r)--plugin=*]#--plugin=}}
    names=(
{})
    if (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then
        _describe command names
        return
    fi
    local command=$words[2]
    if (( $+names[(r)$command:*] )); then
        shift words
        (( CURRENT-- ))
    else
        command=run
    fi
    case $command in
{}    esac
    if [[ $command == completion ]]; then
        _values shell bash zsh fish
    elif [[ $command == run || $command == sweep ]]; then
        [[ -z $named || $PREFIX == --plugin=* ]] ||
            options+=(${{(f)"$(command $assay completion zsh $named 2> /dev/null)"}})
        _arguments -S $options '*::program: _normal'
    else
        _arguments -S $options '*:file:_files'
    fi
}}
if [ "$funcstack[1]" = _assay ]; then _assay "$@"; else compdef _assay assay; fi
)sh",
                       names, cases);
}

// --- fish

std::string fish_option(const Option& option) {
    std::string out;
    for (const std::string& name : option.names)
        out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (!option.argument.empty()) {
        out += " -r";
        const std::vector<std::string> choices = option.choices();
        if (!choices.empty())
            out += " -f -a " + in_quotes(join(choices, " "));
        else if (option.names.back() == kPlugin)
            out += " -f -a '(__assay_profilers)'";
        else if (!option.takes_file())
            out += " -f";
    }
    return out + " -d " + in_quotes(option.help);
}

std::string fish_script() {
    const std::string names = command_names();
    std::string out = R"sh(# fish completion for assay
function __assay_profilers
    set -l assay (commandline -opc)[1]
    set -l before (commandline -ct | string replace -r '^--plugin=' '' | string match -r '.*,')
    printf "$before%s\\n" (command $assay completion --profilers 2> /dev/null)
end
function __assay_options
    set -l words (commandline -opc)
    set -l named (string replace -f -r '^--plugin=' '' -- $words)
    test -n "$named[1]"; and command $words[1] completion fish $named[1] 2> /dev/null
end
)sh";
    for (const Command& command : commands()) {
        out += fmt::format("complete -c assay -n __fish_use_subcommand -a {} -d {}\n", command.name,
                           in_quotes(command.summary));
        // Without a subcommand, the options are those of a run.
        const std::string condition =
            command.name == "run"
                ? fmt::format(
                      "not __fish_seen_subcommand_from {}; or __fish_seen_subcommand_from run",
                      names)
                : fmt::format("__fish_seen_subcommand_from {}", command.name);
        for (const Option& option : options_before_arguments(command))
            out += fmt::format("complete -c assay -n {}{}\n", in_quotes(condition),
                               fish_option(option));
    }
    out += fmt::format("complete -c assay -n {} -a '(__assay_options)'\n",
                       in_quotes("not __fish_seen_subcommand_from " + names +
                                 "; or __fish_seen_subcommand_from run sweep"));
    return out +
           "complete -c assay -n '__fish_seen_subcommand_from completion' -f -a "
           "'bash zsh fish'\n";
}

// Writes --NAME=VALUE and its help, one per line.
std::string fish_words(std::span<const Option> options) {
    std::string lines;
    for (const Option& option : options) {
        const std::string name = option.names.front() + "=";
        std::vector<std::string> choices = option.choices();
        if (choices.empty()) choices.emplace_back();
        for (const std::string& choice : choices)
            lines += name + choice + "\t" + option.help + "\n";
    }
    return lines;
}

std::string zsh_specifications(std::span<const Option> options) {
    std::string lines;
    for (const Option& option : options)
        lines += zsh_specification(option, option.names.front()) + "\n";
    return lines;
}

// Options of profilers for the scripts. A name in `names` may be incomplete.
std::string options_of_profilers(std::string_view shell, const std::string& names) {
    std::string out;
    for (const std::string& name : split(names, ',')) {
        const std::vector<Option> options = profiler_options(name);
        out += shell == "bash"  ? bash_words(options)
               : shell == "zsh" ? zsh_specifications(options)
                                : fish_words(options);
    }
    return out;
}

std::string profiler_names() {
    std::string names;
    for (const auto& plugin : collector::find_all_plugins()) names += plugin.name + "\n";
    return names;
}

}  // namespace

std::string completion_script(std::string_view shell) {
    if (shell == "bash") return bash_script();
    if (shell == "zsh") return zsh_script();
    if (shell == "fish") return fish_script();
    throw Error(fmt::format("completion: unknown shell {}; name bash, zsh or fish", shell));
}

int completion_main(int argc, char** argv) {
    const std::string_view shell = argc == 2 || argc == 3 ? argv[1] : "--help";
    if (argc == 3) {
        print_text(options_of_profilers(shell, argv[2]));
        return 0;
    }
    if (shell == "--profilers") {
        print_text(profiler_names());
        return 0;
    }
    if (shell == "--help" || shell == "-h") {
        print(
            "assay completion SHELL   prints a script for bash, zsh or fish\n\n"
            "The script asks for the profilers and their options with:\n\n"
            "  assay completion --profilers\n"
            "  assay completion SHELL NAME,...\n\n"
            "Installed with assay. Without installing it:\n\n"
            "  eval \"$(assay completion bash)\"      in ~/.bashrc\n"
            "  eval \"$(assay completion zsh)\"       in ~/.zshrc, behind compinit\n"
            "  assay completion fish | source       in ~/.config/fish/config.fish\n");
        return 0;
    }
    print_text(shell == "--version" ? version_line() : completion_script(shell));
    return 0;
}

}  // namespace assay
