#include "tools/annotate/inlined.h"

#include "framework/support/error.h"

#include <fmt/core.h>
#include <algorithm>

namespace assay::annotate {

namespace {

// Of one function in one file: what a file made to use up memory may have more of.
constexpr std::size_t kMostRows = std::size_t{1} << 20;

// `FILE:FUNCTION, in CALLER at CALLING_FILE:LINE`, the calling file only if it is another.
std::string place_text(const InlinedCalls::Place& function, const InlinedCalls::Place& call) {
    const std::string line = call.line == 0 ? "?" : std::to_string(call.line);
    return fmt::format(
        "{}:{}, in {} at {}", printable(function.file), printable(function.function),
        printable(call.function),
        call.file == function.file ? "line " + line : printable(call.file) + ":" + line);
}

}  // namespace

InlinedCalls::InlinedCalls(std::vector<Replacement> file_names,
                           std::vector<Replacement> function_names)
    : file_names_(std::move(file_names)), function_names_(std::move(function_names)) {}

void InlinedCalls::start(const events::Header& header) {
    counts_.set_columns(header.events.size());
    sites_ = {0};
}

void InlinedCalls::site(const events::Site& site) {
    sites_.push_back(place(site.file, site.function, site.line));
}

void InlinedCalls::location(const events::Location& location) {
    if (sites_.size() == 1) return;
    file_ = location.function_file;
    function_ = location.function;
    callee_.reset();
    rows_.clear();
    next_row_ = 0;
}

void InlinedCalls::line(std::uint32_t, Counts counts) {
    if (sites_.size() == 1) return;
    if (rows_.size() / counts.size() == kMostRows)
        throw Error(fmt::format("{} has more than {} lines of counts, which no function has",
                                function_, kMostRows));
    rows_.insert(rows_.end(), counts.begin(), counts.end());
}

void InlinedCalls::line_sites(std::uint32_t site, std::uint64_t count) {
    const std::size_t first = next_row_;
    next_row_ += count;
    if (site == 0) return;
    if (!callee_) callee_ = place(file_, function_, 0);
    const std::size_t columns = counts_.columns();
    const std::size_t row = counts_.row(std::uint64_t{*callee_} << 32 | sites_[site]);
    for (std::size_t i = first; i < next_row_; ++i)
        counts_.add_to_row(row, Counts(rows_).subspan(i * columns, columns));
}

std::uint32_t InlinedCalls::place(std::string_view file, std::string_view function,
                                  std::uint32_t line) {
    const Key key = {names_.id(replaced(file, file_names_)),
                     names_.id(replaced(function, function_names_)), line};
    const auto [entry, is_new] =
        place_indices_.try_emplace(key, static_cast<std::uint32_t>(places_.size()));
    if (is_new) places_.push_back(key);
    return entry->second;
}

InlinedCalls::Place InlinedCalls::text_of(std::uint64_t place) const {
    const auto [file, function, line] = places_[place];
    return {names_[file], names_[function], line};
}

std::vector<std::size_t> InlinedCalls::in_order(const Profile& profile,
                                                const std::vector<SortColumn>& sort) const {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < size(); ++i)
        if (is_above_threshold(counts(i), profile.totals(), sort, profile.header()))
            order.push_back(i);
    const auto text = [&](std::size_t i) {
        const Place function = callee(i), at = caller(i);
        return std::tuple(function.file, function.function, at.file, at.function, at.line);
    };
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return comes_first(counts(a), counts(b), sort, profile.header())
            .value_or(text(a) < text(b));
    });
    return order;
}

void write_inlined(const InlinedCalls& calls, const Profile& profile, const Columns& columns,
                   const std::vector<SortColumn>& sort, Output& output) {
    const std::vector<std::size_t> order = calls.in_order(profile, sort);
    if (order.empty()) return;
    Table table(columns);
    for (const std::size_t i : order) table.fit(calls.counts(i));
    output.section("Inlined functions and where they were inlined");
    output.write("  " + table.heading("file:function, the caller and the call"));
    for (const std::size_t i : order)
        output.write("  " +
                     table.row(calls.counts(i), place_text(calls.callee(i), calls.caller(i))));
    output.write("\n");
}

}  // namespace assay::annotate
