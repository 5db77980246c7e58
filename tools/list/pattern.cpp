#include "tools/list/pattern.h"

#include "framework/support/error.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/core.h>
#include <pcre2.h>

namespace assay::list {
namespace {

std::string reason(int code) {
    PCRE2_UCHAR text[128];
    pcre2_get_error_message(code, text, sizeof text);
    return reinterpret_cast<const char*>(text);
}

PCRE2_SPTR bytes(std::string_view text) {
    return reinterpret_cast<PCRE2_SPTR>(text.data());
}

}  // namespace

struct Pattern::Compiled {
    pcre2_code* code = nullptr;
    pcre2_match_data* match = nullptr;
    pcre2_match_context* context = nullptr;

    Compiled() = default;
    ~Compiled() {
        pcre2_match_context_free(context);
        pcre2_match_data_free(match);
        pcre2_code_free(code);
    }
    Compiled(const Compiled&) = delete;
    Compiled& operator=(const Compiled&) = delete;
};

Pattern::Pattern(std::string_view option, std::string_view expression) : expression_(expression) {
    auto compiled = std::make_shared<Compiled>();
    int error = 0;
    std::size_t offset = 0;
    compiled->code =
        pcre2_compile(bytes(expression), expression.size(), 0, &error, &offset, nullptr);
    if (compiled->code == nullptr)
        throw Error(fmt::format("{} {}: no regular expression: {} at character {}", option,
                                expression, reason(error), offset + 1));
    constexpr std::uint32_t kMostSteps = 10'000'000;
    compiled->match = pcre2_match_data_create(1, nullptr);
    compiled->context = pcre2_match_context_create(nullptr);
    pcre2_set_match_limit(compiled->context, kMostSteps);
    compiled_ = std::move(compiled);
}

bool Pattern::is_in(std::string_view name) const {
    const int result = pcre2_match(compiled_->code, bytes(name), name.size(), 0, 0,
                                   compiled_->match, compiled_->context);
    if (result < 0 && result != PCRE2_ERROR_NOMATCH)
        throw Error(fmt::format("{} searched for in '{}': {}", expression_, name.substr(0, 60),
                                reason(result)));
    return result != PCRE2_ERROR_NOMATCH;
}

}  // namespace assay::list
