#include "framework/support/text.h"

#include "framework/support/error.h"
#include "framework/support/mpi_rank.h"

#include <fmt/core.h>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace assay {
namespace {

char lower(char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

// Levenshtein's distance without regard to case. Two swapped neighbouring letters count as one
// mistake.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    const auto same = [&](std::size_t i, std::size_t j) {
        return lower(a[i - 1]) == lower(b[j - 1]);
    };
    for (std::size_t i = 1; i <= a.size(); ++i) {
        before.swap(last);
        last.swap(row);
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min({last[j - 1] + !same(i, j), last[j] + 1, row[j - 1] + 1});
            if (i > 1 && j > 1 && same(i, j - 1) && same(i - 1, j))
                row[j] = std::min(row[j], before[j - 2] + 1);
        }
    }
    return row[b.size()];
}

// The text between the braces of %q{VAR}, and where it ends.
std::string_view variable_name(std::string_view pattern, std::size_t at) {
    const std::size_t close = pattern.find('}', at);
    if (at >= pattern.size() || pattern[at] != '{' || close == std::string_view::npos)
        throw Error(fmt::format("file name {}: write %q{{VARIABLE}}", pattern));
    return pattern.substr(at + 1, close - at - 1);
}

// The length of the UTF-8 character (RFC 3629) at the beginning of the text; 0 without one. C1
// control characters, which terminals obey, count as no character.
std::size_t character_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const auto continues = [&](std::size_t i) {
        return i < text.size() && (byte(i) & 0xC0) == 0x80;
    };
    const unsigned char first = byte(0);
    if (first < 0x80) return 1;
    if (first >= 0xC2 && first < 0xE0)
        return continues(1) && !(first == 0xC2 && byte(1) < 0xA0) ? 2 : 0;
    if (first >= 0xE0 && first < 0xF0) {
        if (!continues(1) || !continues(2)) return 0;
        const bool overlong = first == 0xE0 && byte(1) < 0xA0;
        const bool surrogate = first == 0xED && byte(1) >= 0xA0;
        return overlong || surrogate ? 0 : 3;
    }
    if (first >= 0xF0 && first < 0xF5) {
        if (!continues(1) || !continues(2) || !continues(3)) return 0;
        const bool overlong = first == 0xF0 && byte(1) < 0x90;
        const bool too_large = first == 0xF4 && byte(1) >= 0x90;
        return overlong || too_large ? 0 : 4;
    }
    return 0;
}

bool is_plain(char c) {
    return (c >= ' ' && c < 0x7f) || c == '\t';
}

// Replaces bytes by \xHH that are neither in a multibyte character nor accepted by `stays`.
template <typename Stays>
std::string escaped(std::string_view text, const Stays& stays) {
    if (std::all_of(text.begin(), text.end(), stays)) return std::string(text);
    std::string out;
    while (!text.empty()) {
        const std::size_t length = character_length(text);
        if (length > 1 || (length == 1 && stays(text.front()))) {
            out += text.substr(0, length);
            text.remove_prefix(length);
        } else {
            out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
            text.remove_prefix(1);
        }
    }
    return out;
}

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    for (;;) {
        const std::size_t at = text.find(separator);
        parts.emplace_back(text.substr(0, at));
        if (at == std::string_view::npos) return parts;
        text.remove_prefix(at + 1);
    }
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
    std::string joined;
    for (const std::string& part : parts) {
        if (&part != parts.data()) joined += separator;
        joined += part;
    }
    return joined;
}

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
    std::string best;
    std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
    for (const std::string& candidate : candidates) {
        const std::size_t d = distance(word, candidate);
        if (d >= best_distance) continue;
        best_distance = d;
        best = candidate;
    }
    return best;
}

std::string with_thousands(unsigned long long number) {
    std::string digits = std::to_string(number);
    for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
    return digits;
}

std::string printable(std::string_view text) {
    return escaped(text, is_plain);
}

std::string printable_lines(std::string_view text) {
    return escaped(text, [](char c) { return is_plain(c) || c == '\n'; });
}

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const std::size_t length = character_length(text);
        if (length == 0) return false;
        text.remove_prefix(length);
    }
    return true;
}

std::string expand_file_name(std::string_view pattern, int pid, std::string_view program) {
    std::string out;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        if (pattern[i] != '%') {
            out += pattern[i];
            continue;
        }
        const char kind = ++i < pattern.size() ? pattern[i] : '\0';
        if (kind == 'p') {
            out += std::to_string(pid);
        } else if (kind == 'n') {
            out += program;
        } else if (kind == 'r') {
            const std::string rank = mpi_rank();
            if (rank.empty())
                throw Error(fmt::format(
                    "file name {}: %r is the rank of an MPI process, and this process has no rank",
                    pattern));
            out += rank;
        } else if (kind == '%') {
            out += '%';
        } else if (kind == 'q') {
            const std::string name(variable_name(pattern, i + 1));
            const char* value = std::getenv(name.c_str());
            if (!value)
                throw Error(fmt::format("file name {}: the environment variable {} is not set",
                                        pattern, name));
            out += value;
            i += name.size() + 2;
        } else {
            throw Error(
                fmt::format("file name {}: after %, write p, n, r, q{{VARIABLE}} or %", pattern));
        }
    }
    return out;
}

std::string system_reason(int error_number) {
    return std::error_code(error_number, std::generic_category()).message();
}

std::string reason_of_no_process(int error_number) {
    if (error_number != EAGAIN) return system_reason(error_number);
    return "raise the limit of processes (ulimit -u, --pids-limit of a container)";
}

}  // namespace assay
