#include "tools/expressions/pattern.h"

#include "framework/support/error.h"

#include <fmt/core.h>

namespace assay {
namespace {

constexpr std::uint32_t kMostSteps = 10'000'000;

}  // namespace

Pattern::Pattern(std::string_view option, std::string_view expression)
    : pattern_(expression),
      expression_(fmt::format("{} {}: no regular expression", option, expression), expression, 0,
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

}  // namespace assay
