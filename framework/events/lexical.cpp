#include "framework/events/lexical.h"

#include <algorithm>

namespace assay::events {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

bool is_control(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
}

void append_escaped(std::string& out, char c) {
    switch (c) {
        case '\n':
            out += "\\n";
            return;
        case '\t':
            out += "\\t";
            return;
        case '\r':
            out += "\\r";
            return;
        default:
            break;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += "\\x";
    out += kHexDigits[byte >> 4];
    out += kHexDigits[byte & 15];
}

std::optional<char> take_escape(std::string_view& rest) {
    if (rest.empty()) return std::nullopt;
    const char kind = rest.front();
    rest.remove_prefix(1);
    switch (kind) {
        case '"':
        case '\\':
            return kind;
        case 'n':
            return '\n';
        case 't':
            return '\t';
        case 'r':
            return '\r';
        case 'x':
            break;
        default:
            return std::nullopt;
    }
    if (rest.size() < 2) return std::nullopt;
    const auto high = kHexDigits.find(rest[0]);
    const auto low = kHexDigits.find(rest[1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(2);
    return static_cast<char>(high << 4 | low);
}

// `rest` begins after the opening quote.
std::optional<std::string> take_quoted(std::string_view& rest) {
    std::string text;
    while (!rest.empty()) {
        const char c = rest.front();
        rest.remove_prefix(1);
        if (c == '"') return text;
        if (c != '\\') {
            text += c;
            continue;
        }
        const std::optional<char> escaped = take_escape(rest);
        if (!escaped) return std::nullopt;
        text += *escaped;
    }
    return std::nullopt;
}

}  // namespace

std::string one_line(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (const char c : text) {
        if (is_control(c))
            append_escaped(out, c);
        else
            out += c;
    }
    return out;
}

std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (is_control(c)) {
            append_escaped(out, c);
            continue;
        }
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out += '"';
}

std::string word(std::string_view text) {
    const bool bare = !text.empty() && std::none_of(text.begin(), text.end(), [](char c) {
        return is_control(c) || c == ' ' || c == '"' || c == '\\';
    });
    return bare ? std::string(text) : quoted(text);
}

std::optional<std::string> take_word(std::string_view& rest) {
    rest = skip_blanks(rest);
    if (rest.empty()) return std::nullopt;
    if (rest.front() == '"') {
        rest.remove_prefix(1);
        return take_quoted(rest);
    }
    const std::string text(rest.substr(0, rest.find_first_of(" \t")));
    rest.remove_prefix(text.size());
    return text;
}

std::string_view take_bare(std::string_view& rest) {
    rest = skip_blanks(rest);
    const std::string_view text = rest.substr(0, rest.find_first_of(" \t\r"));
    rest.remove_prefix(text.size());
    return text;
}

std::optional<std::string> take_attribute(std::string_view& rest, std::string_view key) {
    std::string_view behind = skip_blanks(rest);
    if (!behind.starts_with(key) || behind.substr(key.size(), 1) != "=") return std::nullopt;
    behind.remove_prefix(key.size() + 1);
    std::optional<std::string> value = take_word(behind);
    if (value) rest = behind;
    return value;
}

std::string_view skip_blanks(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r"), text.size()));
    return text;
}

std::string excerpt(std::string_view text) {
    constexpr std::size_t kLongest = 60;
    if (text.size() <= kLongest) return one_line(text);
    return one_line(text.substr(0, kLongest)) + "...";
}

}  // namespace assay::events
