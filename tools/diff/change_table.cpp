#include "tools/diff/change_table.h"

#include "framework/support/text.h"

#include <fmt/core.h>
#include <algorithm>
#include <utility>

namespace assay::diff {

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
