#include "tools/expressions/expressions.h"

#include "framework/support/error.h"

#include <fmt/core.h>

namespace assay {

std::string pcre2_reason(int code) {
    PCRE2_UCHAR text[128];
    pcre2_get_error_message(code, text, sizeof text);
    return reinterpret_cast<const char*>(text);
}

RegularExpression::RegularExpression(std::string_view context, std::string_view pattern,
                                     std::uint32_t options, std::uint32_t most_steps) {
    int error = 0;
    std::size_t offset = 0;
    code_.reset(
        pcre2_compile(pcre2_text(pattern), pattern.size(), options, &error, &offset, nullptr),
        pcre2_code_free);
    if (code_ == nullptr)
        throw Error(fmt::format("{}: {} at character {} of '{}'", context, pcre2_reason(error),
                                offset + 1, pattern));
    context_.reset(pcre2_match_context_create(nullptr), pcre2_match_context_free);
    pcre2_set_match_limit(context_.get(), most_steps);
}

namespace {

constexpr std::uint32_t kMostSteps = 10'000'000;

}  // namespace

Pattern::Pattern(std::string_view option, std::string_view expression)
    : pattern_(expression),
      expression_(fmt::format("{} {}: not a regular expression", option, expression), expression, 0,
                  kMostSteps),
      match_(pcre2_match_data_create(1, nullptr), pcre2_match_data_free) {}

bool Pattern::is_in(std::string_view name) const {
    const int result = pcre2_match(expression_.code(), pcre2_text(name), name.size(), 0, 0,
                                   match_.get(), expression_.context());
    if (result < 0 && result != PCRE2_ERROR_NOMATCH)
        throw Error(fmt::format("{} searched for in '{}': {}", pattern_, name.substr(0, 60),
                                pcre2_reason(result)));
    return result != PCRE2_ERROR_NOMATCH;
}

namespace {

char closing(char delimiter) {
    switch (delimiter) {
        case '{':
            return '}';
        case '(':
            return ')';
        case '[':
            return ']';
        case '<':
            return '>';
        default:
            return delimiter;
    }
}

struct Parts {
    std::string pattern, replacement, flags;
};

// Takes the text before the delimiter. A delimiter with a backslash before it stands for itself.
bool take_part(std::string_view& rest, char delimiter, std::string& part) {
    while (!rest.empty() && rest.front() != delimiter) {
        const bool escaped = rest.front() == '\\' && rest.size() > 1;
        if (escaped && rest[1] != delimiter) part += '\\';
        if (escaped) rest.remove_prefix(1);
        part += rest.front();
        rest.remove_prefix(1);
    }
    if (rest.empty()) return false;
    rest.remove_prefix(1);
    return true;
}

bool take_parts(std::string_view expression, Parts& parts) {
    if (expression.size() < 4 || expression.front() != 's') return false;
    const char open = expression[1], close = closing(open);
    std::string_view rest = expression.substr(2);
    if (!take_part(rest, close, parts.pattern)) return false;
    if (close != open) {
        if (!rest.starts_with(open)) return false;
        rest.remove_prefix(1);
    }
    if (!take_part(rest, close, parts.replacement)) return false;
    parts.flags = rest;
    return true;
}

// Writes Perl's \1 as PCRE2's ${1}.
std::string with_references(std::string_view replacement) {
    std::string out;
    for (std::size_t i = 0; i < replacement.size(); ++i) {
        if (replacement[i] != '\\' || i + 1 == replacement.size()) {
            out += replacement[i];
            continue;
        }
        const char next = replacement[++i];
        if (next >= '1' && next <= '9')
            out.append("${").append(1, next).append("}");
        else
            out.append("\\").append(1, next);
    }
    return out;
}

}  // namespace

struct Replacement::Compiled {
    RegularExpression expression;
    std::string replacement;
    std::uint32_t options =
        PCRE2_SUBSTITUTE_EXTENDED | PCRE2_SUBSTITUTE_UNSET_EMPTY | PCRE2_SUBSTITUTE_OVERFLOW_LENGTH;
};

Replacement::Replacement(std::string_view option, std::string_view expression)
    : expression_(expression) {
    Parts parts;
    if (!take_parts(expression, parts))
        throw Error(
            fmt::format("{}={}: give a search-and-replace expression, as in s/prog[0-9]/progN/",
                        option, expression));
    auto compiled = std::make_shared<Compiled>();
    std::uint32_t options = 0;
    for (const char flag : parts.flags) {
        if (flag == 'g')
            compiled->options |= PCRE2_SUBSTITUTE_GLOBAL;
        else if (flag == 'i')
            options |= PCRE2_CASELESS;
        else if (flag == 'm')
            options |= PCRE2_MULTILINE;
        else if (flag == 's')
            options |= PCRE2_DOTALL;
        else if (flag == 'x')
            options |= PCRE2_EXTENDED;
        else
            throw Error(
                fmt::format("{}={}: after the replacement, only g, i, m, s and x may follow",
                            option, expression));
    }
    // Far more than any expression needs for names of files.
    constexpr std::uint32_t kMostFileSteps = 1'000'000;
    compiled->expression = RegularExpression(fmt::format("{}={}", option, expression),
                                             parts.pattern, options, kMostFileSteps);
    compiled->replacement = with_references(parts.replacement);
    compiled_ = std::move(compiled);
}

std::string Replacement::apply(std::string_view text) const {
    std::string out(text.size() + 256, '\0');
    for (;;) {
        std::size_t size = out.size();
        const int result = pcre2_substitute(
            compiled_->expression.code(), pcre2_text(text), text.size(), 0, compiled_->options,
            nullptr, compiled_->expression.context(), pcre2_text(compiled_->replacement),
            compiled_->replacement.size(), reinterpret_cast<PCRE2_UCHAR*>(out.data()), &size);
        if (result == PCRE2_ERROR_NOMEMORY && size > out.size()) {
            out.resize(size);
            continue;
        }
        if (result < 0)
            throw Error(fmt::format("{} applied to '{}': {}", expression_, text.substr(0, 60),
                                    pcre2_reason(result)));
        out.resize(size);
        return out;
    }
}

std::vector<Replacement> parse_replacements(std::string_view option,
                                            const std::vector<std::string>& expressions) {
    std::vector<Replacement> replacements;
    replacements.reserve(expressions.size());
    for (const std::string& expression : expressions) replacements.emplace_back(option, expression);
    return replacements;
}

std::string replaced(std::string_view text, std::span<const Replacement> replacements) {
    std::string out(text);
    for (const Replacement& replacement : replacements) out = replacement.apply(out);
    return out;
}

}  // namespace assay
