// The words of `#! ` lines, and text made safe for a line of a file or a message.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace assay::events {

// Stands for a file or function that is not known.
inline constexpr std::string_view kUnknown = "???";

inline bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
inline bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

// Control characters as C escapes (\n, \x1b), so that the text stays on one line. Not reversible:
// backslashes of the text stay as they are.
std::string one_line(std::string_view text);

// Between double quotes, with escapes that take_word() undoes.
std::string quoted(std::string_view text);

// As it is if it has no white space, quotes or backslashes and is not empty; else quoted.
std::string word(std::string_view text);

// Removes the next word, bare or quoted, from the front of `rest`. No value at the end of the
// line, or if a quoted word is malformed.
std::optional<std::string> take_word(std::string_view& rest);

// Removes what reaches to the next blank from the front of `rest`; nothing at its end.
std::string_view take_bare(std::string_view& rest);

// Removes `key=WORD` from the front of `rest`. No value, and nothing removed, if that is not there.
std::optional<std::string> take_attribute(std::string_view& rest, std::string_view key);

// Removes leading blanks of `text`.
std::string_view skip_blanks(std::string_view text);

// For messages: at most 60 bytes of the text, on one line.
std::string excerpt(std::string_view text);

}  // namespace assay::events
