#include "tools/expressions/regular_expression.h"

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

}  // namespace assay
