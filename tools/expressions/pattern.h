// What the names of functions are searched for.
#pragma once

#include "tools/expressions/regular_expression.h"

#include <memory>
#include <string>
#include <string_view>

namespace assay {

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

}  // namespace assay
