// Perl regular expressions, by PCRE2.
#pragma once

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace assay {

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

}  // namespace assay
