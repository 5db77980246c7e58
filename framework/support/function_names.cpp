#include "framework/support/function_names.h"

#include <algorithm>
#include <array>

namespace assay {
namespace {

// Length of the last suffix of a clone with its number, or 0.
std::size_t suffix_length(std::string_view name) {
    // Suffixes of GCC, then of LLVM. `.__part` and `.eh` mark sections of basic blocks, `.__uniq`
    // the hash of a file.
    constexpr std::array<std::string_view, 15> kSuffixes{
        ".constprop", ".isra", ".part",   ".cold",     ".lto_priv",
        ".clone",     ".llvm", ".__part", ".eh",       ".__uniq",
        ".argprom",   ".warm", ".hot",    ".unlikely", ".specialized"};
    std::string_view rest = name.substr(0, name.find_last_not_of("0123456789") + 1);
    if (rest.size() == name.size())
        rest = name;
    else if (rest.ends_with('.'))
        rest.remove_suffix(1);
    for (const std::string_view suffix : kSuffixes)
        if (rest.ends_with(suffix)) return name.size() - rest.size() + suffix.size();
    return 0;
}

std::string_view without_bare_clones(std::string_view name) {
    for (std::size_t length = suffix_length(name); length != 0; length = suffix_length(name))
        name.remove_suffix(length);
    return name;
}

// True for suffixes such as ".60", with which LLVM tells local functions of one name apart.
bool is_bare_number(std::string_view suffix) {
    return suffix.size() > 1 && suffix[0] == '.' &&
           suffix.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

// True if text that a demangler puts in brackets only names clones.
bool is_clone_list(std::string_view text) {
    while (!text.empty()) {
        if (is_bare_number(text)) return true;
        const std::string_view rest = text.substr(0, text.size() - suffix_length(text));
        if (rest.size() != text.size()) {
            text = rest;
            continue;
        }
        const std::size_t dot = text.rfind('.');
        if (dot == std::string_view::npos || !is_bare_number(text.substr(dot))) return false;
        text = text.substr(0, dot);
    }
    return true;
}

constexpr std::string_view kUnnamedNamespace = "(anonymous namespace)";

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_lower_hexadecimal(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'f');
}

}  // namespace

bool is_in_word(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '$' || static_cast<unsigned char>(c) >= 0x80;
}

namespace {

std::size_t digits_at(std::string_view text) {
    std::size_t count = 0;
    while (count < text.size() && is_digit(text[count])) ++count;
    return count;
}

// Length of a hash and its mark at the beginning of `text`, or 0.
std::size_t hash_length(std::string_view text) {
    constexpr std::string_view kOld = "::h";  // followed by 16 digits at the end of the name
    constexpr std::size_t kDigits = 16, kLeast = 8;
    const auto digits_from = [&](std::size_t first) {
        std::size_t end = first;
        while (end < text.size() && end - first <= kDigits && is_lower_hexadecimal(text[end]))
            ++end;
        return end - first;
    };
    if (text.starts_with(kOld))
        return text.size() == kOld.size() + kDigits && digits_from(kOld.size()) == kDigits
                   ? text.size()
                   : 0;
    if (!text.starts_with('[')) return 0;
    const std::size_t digits = digits_from(1);
    return digits >= kLeast && digits <= kDigits && text.substr(1 + digits).starts_with(']')
               ? digits + 2
               : 0;
}

// A part at the beginning of `text` that changes with each build, and its replacement. `before` is
// the preceding text.
struct Numbered {
    std::size_t length = 0;
    std::string_view stand_in;
};
Numbered numbered_part(std::string_view before, std::string_view text) {
    constexpr std::array<std::string_view, 4> kUnnamed{"{anonymous}", "<unnamed>", "_GLOBAL__N_1",
                                                       "(anonymous)"};
    for (const std::string_view each : kUnnamed)
        if (text.starts_with(each)) return {each.size(), kUnnamedNamespace};
    constexpr std::string_view kOldClosure = "{{closure}}";  // older form of Rust
    if (text.starts_with(kOldClosure)) return {kOldClosure.size(), "{closure}"};
    constexpr std::array<std::string_view, 3> kBeforeNumber{"$_", "'lambda", ".func"};
    for (const std::string_view each : kBeforeNumber)
        if (text.starts_with(each)) {
            const std::size_t digits = digits_at(text.substr(each.size()));
            return {each.size() + digits, each};
        }
    if (text.starts_with('.')) {
        const std::size_t length = 1 + digits_at(text.substr(1));
        const bool is_at_end = length == text.size() || text.substr(length) == "]";
        if (length > 1 && is_at_end && !before.empty()) return {length, ""};
    }
    if (text.starts_with('#')) {
        const std::size_t digits = digits_at(text.substr(1));
        if (digits != 0 && text.substr(1 + digits).starts_with('}')) return {1 + digits, ""};
    }
    constexpr std::string_view kTag = "[abi:";
    if (text.starts_with(kTag)) {
        std::size_t end = kTag.size();
        while (end < text.size() && is_in_word(text[end])) ++end;
        if (text.substr(end).starts_with(']')) return {end + 1, ""};
    }
    if (!before.empty()) return {hash_length(text), ""};
    return {};
}

}  // namespace

std::size_t operator_length(char before, std::string_view text) {
    constexpr std::string_view kOperator = "operator";
    if (is_in_word(before) || !text.starts_with(kOperator)) return 0;
    constexpr std::string_view kSigns = "<>=!-+*/%&|^~,()[]";
    constexpr std::array<std::string_view, 10> kBrackets{"<=>", "<<=", ">>=", "->*", "<<",
                                                         ">>",  "<=",  ">=",  "->",  "()"};
    const std::string_view rest = text.substr(kOperator.size());
    for (const std::string_view each : kBrackets)
        if (rest.starts_with(each)) return kOperator.size() + each.size();
    return rest.empty() || kSigns.find(rest[0]) == std::string_view::npos || rest[0] == '('
               ? 0
               : kOperator.size() + 1;
}

namespace {

// The change of the bracket depth after a character.
int depth_change(char c) {
    return c == '(' || c == '<' || c == '[' || c == '{'   ? 1
           : c == ')' || c == '>' || c == ']' || c == '}' ? -1
                                                          : 0;
}

// Removes the return type before an instance of a template. The name must have no parameters.
std::string_view without_result(std::string_view name) {
    if (!name.ends_with('>')) return name;
    std::size_t start = 0;
    int depth = 0;
    for (std::size_t i = 0; i < name.size();) {
        if (const std::size_t length = operator_length(i == 0 ? ' ' : name[i - 1], name.substr(i)))
            i += length;
        else {
            const bool is_arrow = name[i] == '>' && i != 0 && name[i - 1] == '-';
            if (!is_arrow) depth += depth_change(name[i]);
            if (depth < 0) return name;
            ++i;
            if (depth == 0 && name[i - 1] == ' ' && i < name.size() && name[i] != '<' &&
                !name.substr(0, i - 1).ends_with("operator"))
                start = i;
        }
    }
    constexpr std::array<std::string_view, 2> kNoResults{" to ", " for "};  // thunks and guards
    for (const std::string_view each : kNoResults)
        if (name.substr(0, start).ends_with(each)) return name;
    return name.substr(start);
}

// Names of inner functions contain the parameters of their outer function. Returns the parameters
// from `open` on if "::" follows them, or else an empty text.
std::string_view outer_parameters(std::string_view name, std::size_t open) {
    if (open == 0 || !(is_in_word(name[open - 1]) || name[open - 1] == '>')) return {};
    if (name.substr(open).starts_with(kUnnamedNamespace)) return {};
    int depth = 0;
    for (std::size_t i = open; i < name.size(); ++i) {
        if (name[i] == '(') ++depth;
        if (name[i] == ')' && --depth == 0)
            return name.substr(i + 1).starts_with("::") ? name.substr(open, i + 1 - open)
                                                        : std::string_view();
    }
    return {};
}

// Length of the name of a lambda at the beginning of `text`, or 0.
std::size_t lambda_length(std::string_view text) {
    struct Form {
        std::string_view begin;
        char open, close;
    };
    constexpr std::array<Form, 6> kForms{{{"{lambda", '{', '}'},
                                          {"{unnamed type", '{', '}'},
                                          {"<lambda", '<', '>'},
                                          {"(anonymous class)", '(', ')'},
                                          {"$_", '\0', '\0'},
                                          {"'lambda'", '\0', '\0'}}};
    for (const Form& form : kForms) {
        if (!text.starts_with(form.begin)) continue;
        if (form.open == '\0') return form.begin.size();
        int depth = 0;
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (text[i] == form.open) ++depth;
            if (text[i] == form.close && --depth == 0) return i + 1;
        }
        return 0;
    }
    return 0;
}

}  // namespace

std::string_view without_clones(std::string_view name) {
    struct Form {
        std::string_view open;
        char close;
    };
    constexpr std::array<Form, 2> kForms{
        {{" [clone ", ']'}, {" (", ')'}}};  // forms of GNU and LLVM
    std::string_view left = name;
    for (bool again = true; again;) {
        again = false;
        for (const Form& form : kForms) {
            const std::size_t open =
                left.ends_with(form.close) ? left.rfind(form.open) : std::string_view::npos;
            if (open == std::string_view::npos) continue;
            std::string_view clones = left.substr(open + form.open.size());
            clones.remove_suffix(1);
            if (clones.empty() || !is_clone_list(clones)) continue;
            left = left.substr(0, open);
            again = true;
        }
    }
    left = without_bare_clones(left);
    return left.empty() ? name : left;
}

std::string without_numbers(std::string_view name) {
    std::string left;
    for (std::size_t i = 0; i < name.size();) {
        const Numbered part = numbered_part(name.substr(0, i), name.substr(i));
        if (part.length == 0) {
            left += name[i++];
            continue;
        }
        left += part.stand_in;
        i += part.length;
    }
    return left.empty() ? std::string(name) : left;
}

std::string_view without_parameters(std::string_view name) {
    constexpr std::array<std::string_view, 8> kBehind{
        "", " const", " volatile", " const volatile", " &", " const &", " &&", " const &&"};
    const std::size_t close = name.rfind(')');
    if (close == std::string_view::npos ||
        std::find(kBehind.begin(), kBehind.end(), name.substr(close + 1)) == kBehind.end())
        return name;
    std::size_t depth = 0, open = close + 1;
    while (open-- > 0) {
        if (name[open] == ')') ++depth;
        if (name[open] == '(' && --depth == 0) break;
    }
    if (open == 0 || open > close) return name;
    const std::string_view left = name.substr(0, open);
    return left.ends_with("operator") ? name : left;
}

namespace {

// The name of a lambda without its parameters: "{lambda(int)#2}" as "{lambda#2}".
std::string numbered_lambda(std::string_view lambda) {
    const std::size_t open = lambda.find('('), close = lambda.rfind(')');
    if (open == 0 || open == std::string_view::npos || close == std::string_view::npos ||
        close < open)
        return std::string(lambda);
    return std::string(lambda.substr(0, open)).append(lambda.substr(close + 1));
}

}  // namespace

std::string without_signature(std::string_view name, Lambdas lambdas) {
    // Limits the search for closing brackets, which would otherwise take quadratic time.
    constexpr std::size_t kMostBrackets = 64;
    const std::string_view bare = without_parameters(name);
    const std::string_view function = bare.size() == name.size() ? name : without_result(bare);
    std::string left;
    std::size_t brackets = 0;
    for (std::size_t i = 0; i < function.size();) {
        const std::string_view rest = function.substr(i);
        std::size_t length = 0;
        if (brackets < kMostBrackets && (rest[0] == '{' || rest[0] == '<' || rest[0] == '(' ||
                                         rest[0] == '$' || rest[0] == '\'')) {
            ++brackets;
            length = lambda_length(rest);
            if (length != 0)
                left += lambdas == Lambdas::kAlike ? "{lambda}"
                                                   : numbered_lambda(rest.substr(0, length));
            // Clang and LLVM write the parameters of a lambda after its name.
            if (length == 0 && rest[0] == '(') {
                length = outer_parameters(function, i).size();
                if (length != 0) left = std::string(without_result(left));
            }
        }
        if (length == 0 && rest.starts_with(" >")) length = 1;
        if (length == 0) left += function[i++];
        i += length;
    }
    return left.empty() ? std::string(name) : left;
}

std::string without_hashes(std::string_view name) {
    // A bound of an array, as in "int[16777216]", has fewer digits.
    constexpr std::size_t kLeastLength = 12;
    std::string left;
    for (std::size_t i = 0; i < name.size();) {
        const std::size_t length =
            i != 0 && (name[i] == ':' || name[i] == '[') ? hash_length(name.substr(i)) : 0;
        if (length < kLeastLength)
            left += name[i++];
        else
            i += length;
    }
    return left;
}

std::string without_template_arguments(std::string_view name) {
    constexpr std::string_view kGoShapes = "[go.shape.", kGoAny = "[...]";
    std::string left;
    std::size_t depth = 0;  // bracket depth in removed arguments
    std::size_t kept = 0;   // open brackets that stay, such as those of Rust's <T as Trait>::f
    for (std::size_t i = 0; i < name.size();) {
        const std::string_view rest = name.substr(i);
        if (const std::size_t length = operator_length(i == 0 ? ' ' : name[i - 1], rest)) {
            if (depth == 0) left += rest.substr(0, length);
            i += length;
            continue;
        }
        const bool is_arrow = rest[0] == '>' && i != 0 && name[i - 1] == '-';
        if (depth == 0 && (rest.starts_with(kGoShapes) || rest.starts_with(kGoAny))) {
            const std::size_t close = rest.find(']');
            if (close != std::string_view::npos) {
                i += close + 1;
                continue;
            }
        }
        ++i;
        if (rest[0] == '<') {
            const bool stays =
                depth == 0 &&
                (left.empty() || !(is_in_word(left.back()) || left.back() == ':' ||
                                   left.back() == '}' || left.ends_with("operator()")));
            if (!stays) {
                ++depth;
                continue;
            }
            ++kept;
        } else if (rest[0] == '>' && !is_arrow) {
            if (depth > 0) {
                --depth;
                continue;
            }
            if (kept == 0) return std::string(name);
            --kept;
        }
        if (depth == 0) left += rest[0];
    }
    if (depth != 0 || kept != 0 || left.empty()) return std::string(name);
    // Rust writes Type::method and <Type>::method.
    const std::size_t close = left.starts_with('<') ? left.find('>') : std::string::npos;
    if (close != std::string::npos && close < left.find('<', 1) && close < left.find(" as ") &&
        left.compare(close, 3, ">::") == 0) {
        left.erase(close, 1);
        left.erase(0, 1);
    }
    // Removing arguments from Rust's Vec::<T>::new leaves four colons, or two at the end of a name.
    for (std::size_t at = left.find("::::"); at != std::string::npos; at = left.find("::::", at))
        left.erase(at, 2);
    if (left.ends_with("::") && left.size() > 2) left.resize(left.size() - 2);
    return left;
}

}  // namespace assay
