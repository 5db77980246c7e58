#include "tools/diff/changes.h"

#include "framework/support/text.h"

#include <fmt/core.h>
#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

namespace assay::diff {
namespace {

auto place(const Change& change) {
    return std::tie(change.file, change.function);
}

// The number that each function of the profile has in the matching.
std::vector<std::uint32_t> add_functions(Side side, const Profile& profile,
                                         FunctionMatching& matching) {
    std::vector<std::uint32_t> numbers(profile.by_source().size());
    for (std::size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = matching.add(side, profile.by_source().files()[profile.by_source().file(i)],
                                  profile.by_source().names()[profile.by_source().name(i)]);
    return numbers;
}

// Of one profile only. Rows of one place become one.
std::vector<Change> functions_of(const Profile& profile, Counts Change::*counts,
                                 const std::vector<std::uint32_t>& numbers, Changes& changes) {
    std::vector<Change> functions(numbers.size(), Change{{}, {}, changes.zeros, changes.zeros});
    for (std::size_t i = 0; i < functions.size(); ++i) {
        const FunctionMatching::Place place = changes.functions.shown(numbers[i]);
        functions[i].file = place.file;
        functions[i].function = place.function;
        functions[i].former = changes.functions.former(numbers[i]);
        functions[i].*counts = profile.by_source().counts(i);
    }
    std::sort(functions.begin(), functions.end(),
              [](const Change& a, const Change& b) { return place(a) < place(b); });
    std::size_t kept = 0;
    std::vector<std::uint64_t>* sum = nullptr;  // of the last row kept, if it is of several
    for (std::size_t i = 0; i < functions.size(); ++i) {
        if (i == 0 || place(functions[i]) != place(functions[kept - 1])) {
            functions[kept++] = functions[i];
            sum = nullptr;
            continue;
        }
        Counts& row = functions[kept - 1].*counts;
        if (sum == nullptr) sum = &changes.sums.emplace_back(row.begin(), row.end());
        const Counts more = functions[i].*counts;
        std::transform(more.begin(), more.end(), sum->begin(), sum->begin(), std::plus<>());
        row = *sum;
    }
    functions.resize(kept);
    return functions;
}

}  // namespace

Changes changes_of(const Profile& before, const Profile& after, bool match) {
    Changes changes;
    changes.zeros.resize(before.totals().size());
    const std::vector<std::uint32_t> old_numbers =
                                         add_functions(Side::kOld, before, changes.functions),
                                     new_numbers =
                                         add_functions(Side::kNew, after, changes.functions);
    if (match) changes.functions.match();
    const std::vector<Change> gone = functions_of(before, &Change::before, old_numbers, changes),
                              come = functions_of(after, &Change::after, new_numbers, changes);
    changes.rows.reserve(std::max(gone.size(), come.size()));
    auto old = gone.begin();
    auto now = come.begin();
    while (old != gone.end() || now != come.end()) {
        const bool has_old = old != gone.end() && (now == come.end() || place(*old) <= place(*now));
        const bool has_now = now != come.end() && (!has_old || place(*old) == place(*now));
        changes.rows.push_back(has_old ? *old : *now);
        if (has_now) changes.rows.back().after = now->after;
        if (has_old) ++old;
        if (has_now) ++now;
    }
    return changes;
}

std::uint64_t size_of(std::int64_t difference) {
    const auto bits = static_cast<std::uint64_t>(difference);
    return difference < 0 ? 0 - bits : bits;
}

std::string signed_text(std::int64_t difference) {
    const char* const sign = difference < 0 ? "-" : difference > 0 ? "+" : "";
    return sign + with_thousands(size_of(difference));
}

std::string relative_text(std::uint64_t before, std::uint64_t after) {
    if (before == after) return "";
    if (before == 0) return "new";
    if (after == 0) return "gone";
    const double percent = 100 * (static_cast<double>(after) - static_cast<double>(before)) /
                           static_cast<double>(before);
    return fmt::format("{:+.1f}%", percent);
}

std::vector<const Change*> important(const std::vector<Change>& changes,
                                     const std::vector<SortColumn>& sort, Counts old_totals) {
    std::vector<const Change*> chosen;
    for (const Change& change : changes) {
        const bool enough = std::any_of(sort.begin(), sort.end(), [&](const SortColumn& column) {
            const auto size = static_cast<double>(size_of(change.difference(column.event)));
            return column.percent && size > 0 &&
                   100 * size >= *column.percent * static_cast<double>(old_totals[column.event]);
        });
        if (enough) chosen.push_back(&change);
    }
    std::stable_sort(chosen.begin(), chosen.end(), [&](const Change* a, const Change* b) {
        for (const SortColumn& column : sort) {
            const std::uint64_t size_a = size_of(a->difference(column.event)),
                                size_b = size_of(b->difference(column.event));
            if (size_a != size_b) return size_a > size_b;
        }
        return false;
    });
    return chosen;
}

ChangeTable::ChangeTable(const events::Header& header, std::vector<std::size_t> shown, bool color)
    : header_(header), shown_(std::move(shown)), widths_(shown_.size()), color_(color) {
    for (std::size_t i = 0; i < shown_.size(); ++i)
        widths_[i].count = header.events[shown_[i]].name.size();
}

void ChangeTable::fit(const Change& change) {
    for (std::size_t i = 0; i < shown_.size(); ++i) {
        const std::size_t event = shown_[i];
        fit_count(i, signed_text(change.difference(event)));
        const std::string relative = relative_text(change.before[event], change.after[event]);
        widths_[i].relative = std::max(widths_[i].relative, relative.size());
    }
}

void ChangeTable::fit(Counts counts) {
    for (std::size_t i = 0; i < shown_.size(); ++i) fit_count(i, with_thousands(counts[shown_[i]]));
}

std::string ChangeTable::heading(std::string_view text) const {
    std::string out;
    for (std::size_t i = 0; i < shown_.size(); ++i)
        append(out, i, header_.events[shown_[i]].name, "", "");
    return out.append(text).append("\n");
}

std::string ChangeTable::row(Counts counts, std::string_view text) const {
    std::string out;
    for (std::size_t i = 0; i < shown_.size(); ++i)
        append(out, i, with_thousands(counts[shown_[i]]), "", "");
    return out.append(text).append("\n");
}

std::string ChangeTable::row(const Change& change, std::string_view text) const {
    constexpr std::string_view kMore = "\033[31m", kLess = "\033[32m";  // ECMA-48
    std::string out;
    for (std::size_t i = 0; i < shown_.size(); ++i) {
        const std::size_t event = shown_[i];
        const std::int64_t difference = change.difference(event);
        const bool plain = !color_ || difference == 0;
        append(out, i, signed_text(difference),
               relative_text(change.before[event], change.after[event]),
               plain            ? std::string_view()
               : difference > 0 ? kMore
                                : kLess);
    }
    return out.append(text).append("\n");
}

void ChangeTable::fit_count(std::size_t column, const std::string& text) {
    widths_[column].count = std::max(widths_[column].count, text.size());
}

void ChangeTable::append(std::string& out, std::size_t column, std::string_view count,
                         std::string_view relative, std::string_view color) const {
    out += color;
    out += fmt::format("{:>{}}  {:>{}}", count, widths_[column].count, relative,
                       widths_[column].relative);
    if (!color.empty()) out += "\033[0m";
    out += "   ";
}

}  // namespace assay::diff
