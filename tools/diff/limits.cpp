#include "tools/diff/limits.h"

#include "framework/events/formula.h"
#include "framework/support/error.h"
#include "framework/support/function_names.h"
#include "framework/support/plain_names.h"
#include "framework/support/text.h"
#include "tools/diff/changes.h"
#include "tools/table/table.h"

#include <fmt/core.h>
#include <fnmatch.h>
#include <algorithm>
#include <cmath>
#include <utility>

namespace assay::diff {
namespace {

constexpr std::string_view kHow =
    "give EVENT:+NUMBER, EVENT:+NUMBER%, or EVENT@NAME and one of these, as in Ir:+0.5% or "
    "D1mr@parse*:+1000";

[[noreturn]] void refuse(std::string_view text, std::string_view reason) {
    throw Error(fmt::format("--fail-on='{}': {}: {}", text, reason, kHow));
}

// Parses a decimal number exactly, so that rounding does not change the limit.
void parse_number(std::string_view text, std::string_view number, Limit& limit) {
    constexpr unsigned kMostDigits = 15, kMostDecimals = 6;
    const bool is_negative = number.starts_with('-');
    if (is_negative || number.starts_with('+')) number.remove_prefix(1);
    if (number.ends_with('%')) {
        limit.is_percentage = true;
        number.remove_suffix(1);
    }
    unsigned digits = 0;
    bool has_point = false;
    for (const char c : number) {
        if (c == '.' && !has_point) {
            has_point = true;
            continue;
        }
        if (c < '0' || c > '9') refuse(text, "the limit is not a number");
        limit.most = 10 * limit.most + (c - '0');
        if (has_point) ++limit.decimals;
        if (++digits > kMostDigits || limit.decimals > kMostDecimals)
            refuse(text, "the limit has too many digits");
    }
    if (digits == 0) refuse(text, "the limit is not a number");
    if (is_negative) limit.most = -limit.most;
}

std::int64_t power_of_ten(unsigned exponent) {
    std::int64_t power = 1;
    while (exponent-- > 0) power *= 10;
    return power;
}

// The index of an event. Derived figures follow the events.
std::size_t column_of(const Limit& limit, const events::Header& header) {
    std::vector<std::string> names = event_names(header);
    for (const events::Derived& derived : header.derived) names.push_back(derived.name);
    const auto found = std::find(names.begin(), names.end(), limit.event);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    const std::string near = nearest(limit.event, names);
    throw Error(fmt::format(
        "--fail-on='{}': the profiles have no event '{}'; {}", limit.text, limit.event,
        near.empty() ? "they have " + join(names, ", ") : fmt::format("did you mean '{}'?", near)));
}

std::string percentage_text(double before, double after) {
    if (before == after) return "";
    if (before == 0) return "new";
    // Limits are often fractions of a percent.
    return fmt::format("{:+.2f}%", 100 * (after - before) / before);
}

Verdict verdict_of_count(const Limit& limit, const Subject& subject, std::size_t event) {
    const std::uint64_t before = subject.before[event], after = subject.after[event];
    const auto difference = static_cast<std::int64_t>(after - before);
    return {&limit,
            subject.name,
            subject.shown,
            limit.event,
            with_thousands(before),
            with_thousands(after),
            signed_text(difference),
            percentage_text(static_cast<double>(before), static_cast<double>(after)),
            limit.is_exceeded(before, after),
            static_cast<double>(difference)};
}

// No value if the figure has no value in the new profile.
std::optional<Verdict> verdict_of_figure(const Limit& limit, const Subject& subject,
                                         const events::Derived& derived,
                                         const events::Header& header) {
    const events::Formula formula(derived.formula, header.events);
    const std::optional<double> after = formula.value(subject.after),
                                before = formula.value(subject.before);
    if (!after) return std::nullopt;
    const double scale = derived.unit == "%" ? 100 : 1;
    const double old_value = scale * before.value_or(0), new_value = scale * *after;
    return Verdict{
        &limit,
        subject.name,
        subject.shown,
        limit.event,
        derived_text(derived, formula, subject.before),
        derived_text(derived, formula, subject.after),
        fmt::format("{:+.4g}{}", new_value - old_value, derived.unit == "%" ? " points" : ""),
        percentage_text(old_value, new_value),
        limit.is_exceeded(old_value, new_value),
        new_value - old_value};
}

}  // namespace

bool Limit::is_exceeded(std::uint64_t before, std::uint64_t after) const {
    __extension__ using Wide = __int128;  // a count, 15 digits and a factor take at most 122 bits
    const Wide difference = Wide{after} - Wide{before};
    const Wide scaled = difference * power_of_ten(decimals);
    return is_percentage ? scaled * 100 > Wide{most} * Wide{before} : scaled > Wide{most};
}

bool Limit::is_exceeded(double before, double after) const {
    const double value = static_cast<double>(most) / static_cast<double>(power_of_ten(decimals));
    return after - before > (is_percentage ? value / 100 * before : value);
}

Limit parse_limit(std::string_view text) {
    Limit limit;
    limit.text = text;
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) refuse(text, "there is no limit");
    parse_number(text, text.substr(colon + 1), limit);
    std::string_view what = text.substr(0, colon);
    const std::size_t at = what.find('@');
    limit.event = what.substr(0, at);
    if (limit.event.empty()) refuse(text, "there is no event");
    if (at == std::string_view::npos) return limit;
    what.remove_prefix(at + 1);
    // A `=` separates KIND only after a word of letters. Other names, such as those of operators in
    // C++, may contain it.
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";
    const std::size_t equal = what.find_first_not_of(kLetters);
    const bool has_kind = equal != std::string_view::npos && equal != 0 && what[equal] == '=' &&
                          what.substr(0, equal) != "operator";
    limit.kind = has_kind ? what.substr(0, equal) : "function";
    limit.pattern = has_kind ? what.substr(equal + 1) : what;
    if (limit.pattern.empty()) refuse(text, "there is no name after @");
    return limit;
}

std::vector<Limit> parse_limits(const std::vector<std::string>& texts) {
    std::vector<Limit> limits;
    limits.reserve(texts.size());
    for (const std::string& text : texts) limits.push_back(parse_limit(text));
    return limits;
}

bool glob_matches(const std::string& pattern, std::string_view name) {
    return fnmatch(pattern.c_str(), std::string(name).c_str(), 0) == 0;
}

bool glob_matches_path(const std::string& pattern, std::string_view path) {
    if (glob_matches(pattern, path)) return true;
    constexpr const char* kSlashes = "/\\";  // including those of Windows
    for (std::size_t slash = path.find_first_of(kSlashes); slash != std::string_view::npos;
         slash = path.find_first_of(kSlashes, slash + 1))
        if (glob_matches(pattern, path.substr(slash + 1))) return true;
    return false;
}

bool glob_matches_function(const std::string& pattern, std::string_view name) {
    const std::string_view function = without_clones(name);
    return glob_matches(pattern, name) || glob_matches(pattern, function) ||
           glob_matches(pattern, without_signature(function)) ||
           glob_matches(pattern, plain_types(function)) ||
           glob_matches(pattern, plain_function(function));
}

std::string verdict_text(const Verdict& verdict) {
    const std::string of =
        verdict.subject.empty() ? "" : fmt::format(" of {}", printable(verdict.shown));
    const std::string relative =
        verdict.relative.empty() ? "" : fmt::format(" ({})", verdict.relative);
    return fmt::format("{}{}: {} -> {}, {}{}, {} {}", verdict.event, of, verdict.before,
                       verdict.after, verdict.change, relative,
                       verdict.is_exceeded ? "exceeds" : "within", verdict.limit->text);
}

std::vector<Verdict> check_limit(const Limit& limit, const std::vector<Subject>& subjects,
                                 const events::Header& header) {
    const std::size_t column = column_of(limit, header), events = header.events.size();
    std::vector<Verdict> verdicts;
    for (const Subject& subject : subjects) {
        std::optional<Verdict> verdict;
        if (column < events)
            verdict = verdict_of_count(limit, subject, column);
        else
            verdict = verdict_of_figure(limit, subject, header.derived[column - events], header);
        if (verdict) verdicts.push_back(std::move(*verdict));
    }
    std::stable_sort(verdicts.begin(), verdicts.end(), [](const Verdict& a, const Verdict& b) {
        return std::pair(a.is_exceeded, a.size) > std::pair(b.is_exceeded, b.size);
    });
    const auto within = std::find_if(verdicts.begin(), verdicts.end(),
                                     [](const Verdict& each) { return !each.is_exceeded; });
    verdicts.erase(std::max(within, verdicts.begin() + (verdicts.empty() ? 0 : 1)), verdicts.end());
    return verdicts;
}

}  // namespace assay::diff
