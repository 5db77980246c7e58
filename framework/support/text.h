// Small operations on text that several commands share.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

std::vector<std::string> split(std::string_view text, char separator);
std::string join(std::span<const std::string> parts, std::string_view separator);

// The candidate that `word` most probably was meant to be, or "" if none is near. Upper and lower
// case count as near.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

// 1234567 as 1,234,567.
std::string with_thousands(unsigned long long number);

// What comes from files, so that it cannot change how a terminal behaves and stays on its line:
// control characters but tabs, and bytes that are not UTF-8, become \xHH.
std::string printable(std::string_view text);
// The same of a text that may have several lines.
std::string printable_lines(std::string_view text);

// Control characters that are encoded in two bytes, which terminals obey, count as wrong.
bool is_utf8(std::string_view text);

// Replaces %p by the process id, %n by the program's name, %r by the rank among processes of MPI,
// %q{VAR} by an environment variable and %% by %. Throws Error on anything else behind a %.
std::string expand_file_name(std::string_view pattern, int pid, std::string_view program);

// The system's words for an errno value.
std::string system_reason(int error_number);
// Why no process or thread could be started, with the remedy where a limit is the reason.
std::string reason_of_no_process(int error_number);

}  // namespace assay
