// Regular expressions from the user: patterns that names match, and replacements s/A/B/.
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

inline PCRE2_SPTR pcre2_text(std::string_view text) {
    return reinterpret_cast<PCRE2_SPTR>(text.data());
}

// The meaning of a negative result of PCRE2's functions.
std::string pcre2_reason(int code);

// Copies share the compiled expression.
class RegularExpression {
  public:
    RegularExpression() = default;
    // `options` are those of pcre2_compile(3). A search of more than `most_steps` steps fails,
    // because some expressions take forever on some texts. Throws Error, whose message begins with
    // `context`, if the pattern is wrong.
    RegularExpression(std::string_view context, std::string_view pattern, std::uint32_t options,
                      std::uint32_t most_steps);

    const pcre2_code* code() const { return code_.get(); }
    // Contains the limit of steps.
    pcre2_match_context* context() const { return context_.get(); }

  private:
    std::shared_ptr<pcre2_code> code_;
    std::shared_ptr<pcre2_match_context> context_;
};

// A pattern to find names of functions.
class Pattern {
  public:
    // A Perl regular expression. `option` appears in messages. Throws Error if the expression is
    // wrong.
    Pattern(std::string_view option, std::string_view expression);

    // Throws Error if the search takes too long, as some expressions do on some names. The length
    // of names is not limited, unlike with std::regex, which needs stack for each character.
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
    // replacement ($1, \1, ${name}, \U, \L, \E), and any of the letters g, i, m, s, x. `option`
    // appears in messages. Throws Error if the expression is wrong.
    Replacement(std::string_view option, std::string_view expression);

    // Throws Error if the search takes too long, as some expressions do on some texts.
    std::string apply(std::string_view text) const;

  private:
    struct Compiled;
    std::string expression_;
    std::shared_ptr<const Compiled> compiled_;
};

// Parses the values of an option. Throws Error.
std::vector<Replacement> parse_replacements(std::string_view option,
                                            const std::vector<std::string>& expressions);

// Applies all replacements in their order.
std::string replaced(std::string_view text, std::span<const Replacement> replacements);

}  // namespace assay
