#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

std::vector<std::string> split(std::string_view text, char separator);
std::string join(std::span<const std::string> parts, std::string_view separator);

// The candidate that the user most probably meant by `word`, or "" if none is similar. Case makes
// little difference.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

// 1234567 as 1,234,567.
std::string with_thousands(unsigned long long number);

// Makes text from files safe for a terminal, on one line: control characters except tabs, and bytes
// that are not UTF-8, become \xHH.
std::string printable(std::string_view text);
// The same for a text that may have several lines.
std::string printable_lines(std::string_view text);

// False also for control characters in two bytes, which terminals obey.
bool is_utf8(std::string_view text);

// Replaces %p by the process id, %n by the program's name, %r by the rank among processes of MPI,
// %q{VAR} by an environment variable and %% by %. Throws Error on anything else after a %.
std::string expand_file_name(std::string_view pattern, int pid, std::string_view program);

// The system's words for an errno value.
std::string system_reason(int error_number);
// The reason why no process or thread could be started, with a remedy if the reason is a limit.
std::string reason_of_no_process(int error_number);

}  // namespace assay
