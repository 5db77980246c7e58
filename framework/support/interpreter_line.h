// The first line of a script, as the kernel reads it (fs/binfmt_script.c, load_script).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

// How many bytes of a file the kernel looks at (BINPRM_BUF_SIZE), and how many interpreters of
// interpreters it accepts (fs/exec.c, exec_binprm).
inline constexpr std::size_t kInterpreterLineBytes = 256;
inline constexpr int kMostInterpreters = 5;

struct InterpreterLine {
    std::string interpreter;
    std::optional<std::string> argument;
};

// `file`: its first kInterpreterLineBytes bytes, or all if it is shorter. Nothing if the kernel
// would not take it for a script.
inline std::optional<InterpreterLine> interpreter_line(std::string_view file) {
    constexpr std::string_view kBlanks = " \t";
    constexpr std::string_view kEnds("\0 \t", 3);
    if (!file.starts_with("#!")) return {};
    file.remove_prefix(2);
    const std::size_t newline = file.find('\n');
    const std::size_t begin = file.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos || begin >= newline) return {};
    // A line that is longer than what was read may not be cut off within the interpreter's name. It
    // ends before the last byte that was read.
    if (newline == std::string_view::npos && file.size() + 2 >= kInterpreterLineBytes) {
        if (file.find_first_of(kEnds, begin) == std::string_view::npos) return {};
        file.remove_suffix(1);
    }
    std::string_view line = file.substr(begin, newline - begin);
    line = line.substr(0, line.find_last_not_of(kBlanks) + 1);
    const std::size_t end = line.find_first_of(kEnds);
    InterpreterLine found{std::string(line.substr(0, end)), {}};
    if (end == std::string_view::npos || line[end] == '\0') return found;
    std::string_view argument = line.substr(end);
    argument.remove_prefix(argument.find_first_not_of(kBlanks));
    found.argument = argument.substr(0, argument.find('\0'));
    return found;
}

}  // namespace assay
