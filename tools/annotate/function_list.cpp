#include "tools/annotate/function_list.h"

#include "framework/support/text.h"
#include "tools/annotate/functions.h"
#include "tools/sources/source_finder.h"

#include <fmt/core.h>
#include <algorithm>
#include <optional>
#include <span>

namespace assay::annotate {

namespace {

double share_in_percent(std::uint64_t count, std::size_t event, const Columns& columns) {
    const double total = magnitude(columns.totals[event], columns.header);
    return total == 0 ? 0 : 100 * magnitude(count, columns.header) / total;
}

}  // namespace

InclusiveColumn::InclusiveColumn(const InclusiveCounts& counts, const Columns& columns,
                                 std::size_t event)
    : counts_(counts), columns_(columns), event_(event) {
    if (!counts.any() || columns.header.difference) return;
    constexpr std::size_t kWidthOfShare = 6;  // 100.0%
    width_ =
        columns.cells == Cells::kShares
            ? kWidthOfShare
            : std::max(kWidthOfShare, count_text(columns.totals[event], columns.header).size());
}

std::string InclusiveColumn::text(std::string_view cell) const {
    return width_ == 0 ? "" : fmt::format("{:>{}}  ", cell, width_);
}

std::string InclusiveColumn::cell(std::uint64_t count) const {
    if (width_ == 0) return "";
    count = std::min(count, columns_.totals[event_]);
    if (count == 0) return text(".");
    return text(columns_.cells == Cells::kShares
                    ? fmt::format("{:.1f}%", share_in_percent(count, event_, columns_))
                    : count_text(count, columns_.header));
}

std::string InclusiveColumn::of_line(std::string_view file, std::uint32_t line, Counts own) const {
    return width_ == 0 ? "" : cell(counts_.of_line(file, line, own.empty() ? 0 : own[event_]));
}

std::string InclusiveColumn::of_function(std::string_view name, Counts own) const {
    return width_ == 0 ? "" : cell(counts_.of_function(name, own[event_]));
}

double InclusiveColumn::own_share(std::uint64_t count) const {
    return share_in_percent(count, event_, columns_);
}

double InclusiveColumn::line_share(std::string_view file, std::uint32_t line,
                                   std::uint64_t own) const {
    return share_in_percent(width_ == 0 ? own : counts_.of_line(file, line, own), event_, columns_);
}

FunctionList::FunctionList(const Profile& profile, const std::vector<SortColumn>& sort,
                           const Extent& extent)
    : profile_(profile) {
    for (const std::size_t function : functions_in_order(profile, sort)) {
        if (!is_above_threshold(profile.by_source().counts(function), profile.totals(), sort,
                                profile.header()))
            continue;
        functions_.push_back(function);
    }
    shown_ = std::min(extent.rows, functions_.size());
}

std::vector<std::uint32_t> FunctionList::files(const OwnCode& own) const {
    std::vector<std::uint32_t> own_files, files;
    const auto add = [](std::uint32_t file, std::vector<std::uint32_t>& to) {
        if (std::find(to.begin(), to.end(), file) == to.end()) to.push_back(file);
    };
    for (std::size_t i = 0; i < functions_.size(); ++i) {
        const std::uint32_t file = profile_.by_source().file(functions_[i]);
        if (i < shown_) add(file, files);
        const std::string_view name = profile_.by_source().name_text(functions_[i]);
        const std::optional<Strings::Id> id = profile_.strings().find(name);
        const std::optional<std::uint32_t> binary = id ? profile_.binary_of(*id) : std::nullopt;
        if (own.has(name, profile_.by_source().files()[file],
                    binary ? std::string_view(profile_.objects()[*binary].path) : ""))
            add(file, own_files);
    }
    return own_files.empty() ? files : own_files;
}

void FunctionList::write(const Columns& columns, const InclusiveColumn& inclusive,
                         const DisplayNames& names_of, Output& output) const {
    const FunctionTable& functions = profile_.by_source();
    Table table(columns);
    const std::span<const std::size_t> shown = std::span(functions_).first(shown_);
    for (const std::size_t function : shown) table.fit(functions.counts(function));
    const auto name = [&](std::size_t function) {
        return printable(names_of(functions.name_text(function)));
    };
    const auto file = [&](std::size_t function) {
        const std::string path = printable(functions.file_text(function));
        return is_unknown_file(path) ? path : path.substr(path.rfind('/') + 1);
    };
    constexpr std::string_view kHeading = "function";
    std::size_t names = kHeading.size(), files = 0;
    for (const std::size_t function : shown) {
        names = std::max(names, name(function).size());
        files = std::max(files, file(function).size());
    }
    constexpr std::size_t kMostOfName = 56, kMostOfFile = 24, kLeastOfFile = 12;
    const std::size_t room = table.text_width();
    names = std::min(names, kMostOfName);
    files = std::min({files, kMostOfFile, std::max(room / 4, kLeastOfFile)});
    if (names + 2 + files > room) names = std::max(room, files + 12) - files - 2;
    output.write(inclusive.heading() + table.heading(padded(kHeading, names) + "  file"));
    for (const std::size_t function : shown)
        output.write(
            inclusive.of_function(functions.name_text(function), functions.counts(function)) +
            table.row(functions.counts(function), padded(shortened(name(function), names), names) +
                                                      "  " + shortened(file(function), files)));
    if (functions_.empty()) output.write("no function is above the threshold\n");
    write_left_out(functions_.size() - shown_, output);
    output.write("\n");
}

}  // namespace assay::annotate
