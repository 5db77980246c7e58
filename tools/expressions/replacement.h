// Search-and-replace expressions as Perl writes them: s/version[0-9]/versionN/g.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

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
