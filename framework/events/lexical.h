// Splits `#! ` lines into words and files into lines, and makes text safe for one line of a file or
// a message.
#pragma once

#include "framework/events/header.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace assay::events {

// Stands for an unknown file or function.
inline constexpr std::string_view kUnknown = "???";

inline bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
inline bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

// Writes control characters as C escapes (\n, \x1b), so that the text stays on one line. Not
// reversible, because backslashes of the text stay unchanged.
std::string one_line(std::string_view text);

// The text in double quotes, with escapes that take_word() undoes.
std::string quoted(std::string_view text);

// The text itself if it is not empty and contains no white space, quote or backslash; otherwise
// quoted().
std::string word(std::string_view text);

// Removes the next word, bare or quoted, from the front of `rest`. No value at the end of the line
// or if a quoted word is malformed.
std::optional<std::string> take_word(std::string_view& rest);

// Removes the text up to the next blank from the front of `rest`. Empty at its end.
std::string_view take_bare(std::string_view& rest);

// Removes `key=WORD` from the front of `rest`. If it is not there, returns no value and removes
// nothing.
std::optional<std::string> take_attribute(std::string_view& rest, std::string_view key);

std::string_view skip_blanks(std::string_view text);

// For messages: at most 60 bytes of the text, on one line.
std::string excerpt(std::string_view text);

// Cuts text that arrives in blocks into lines.
class LineCutter {
  public:
    // Calls consume(line) for each complete line. Returns false at a line of more than
    // kMaxLineBytes and keeps nothing of it except its beginning, see begin().
    template <typename Consume>
    bool feed(std::string_view block, const Consume& consume) {
        while (!block.empty()) {
            const std::size_t end = block.find('\n');
            const std::string_view piece = block.substr(0, end);
            if (partial_.size() + piece.size() > kMaxLineBytes) {
                partial_ += piece.substr(0, kMaxLineBytes - partial_.size());
                return false;
            }
            if (end == std::string_view::npos) {
                partial_ += piece;
                return true;
            }
            if (partial_.empty()) {
                consume(piece);
            } else {
                partial_ += piece;
                consume(partial_);
                partial_.clear();
            }
            block.remove_prefix(end + 1);
        }
        return true;
    }

    // The beginning of the line that is not complete yet.
    std::string_view begin() const { return partial_; }
    // The last line if it lacked its newline, otherwise empty.
    std::string take_rest() { return std::exchange(partial_, {}); }

  private:
    std::string partial_;
};

}  // namespace assay::events
