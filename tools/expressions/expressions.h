// Regular expressions of the user's: patterns that names match, and replacements s/A/B/.
#pragma once

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// Perl regular expressions, by PCRE2.

// As PCRE2's functions take it.
inline PCRE2_SPTR pcre2_text(std::string_view text) {
    return reinterpret_cast<PCRE2_SPTR>(text.data());
}

// What a negative result of one of PCRE2's functions means.
std::string pcre2_reason(int code);

// May be copied: the copies share what is compiled.
class RegularExpression {
  public:
    RegularExpression() = default;
    // `options`: of pcre2_compile(3). A search that takes more steps than `most_steps` fails: some
    // expressions take forever on some texts. Throws Error, which begins with `context`, if the
    // pattern is wrong.
    RegularExpression(std::string_view context, std::string_view pattern, std::uint32_t options,
                      std::uint32_t most_steps);

    const pcre2_code* code() const { return code_.get(); }
    // Has the limit.
    pcre2_match_context* context() const { return context_.get(); }

  private:
    std::shared_ptr<pcre2_code> code_;
    std::shared_ptr<pcre2_match_context> context_;
};

// What the names of functions are searched for.

class Pattern {
  public:
    // A Perl regular expression. `option` is for messages. Throws Error if that is not what it is.
    Pattern(std::string_view option, std::string_view expression);

    // Throws Error if the search takes too long, as some expressions do on some names. Names of
    // any length do no harm: std::regex needs stack for each character.
    bool is_in(std::string_view name) const;

  private:
    std::string pattern_;
    RegularExpression expression_;
    std::shared_ptr<pcre2_match_data> match_;
};

// Search-and-replace expressions as Perl writes them: s/version[0-9]/versionN/g.

class Replacement {
  public:
    // s, then any character as delimiter (or a pair of brackets), a Perl regular expression, a
    // replacement ($1, \1, ${name}, \U, \L, \E), and any of the letters g, i, m, s, x. `option` is
    // for messages. Throws Error if that is not what it is.
    Replacement(std::string_view option, std::string_view expression);

    // Throws Error if the search takes too long, as some expressions do on some texts.
    std::string apply(std::string_view text) const;

  private:
    struct Compiled;
    std::string expression_;
    std::shared_ptr<const Compiled> compiled_;
};

// What an option was given. Throws Error.
std::vector<Replacement> parse_replacements(std::string_view option,
                                            const std::vector<std::string>& expressions);

// All of them, one after the other.
std::string replaced(std::string_view text, std::span<const Replacement> replacements);

}  // namespace assay
