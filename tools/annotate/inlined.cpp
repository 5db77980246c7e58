#include "tools/annotate/inlined.h"

#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <algorithm>
#include <tuple>
#include <utility>

namespace assay::annotate {

namespace {

// Of one function in one file: what a file made to use up memory may have more of.
constexpr std::size_t kMostCounts = std::size_t{1} << 24;
// Of calls: a place takes some ten times the bytes of its key, here and in the maps.
constexpr std::size_t kMostPlaces = kMostBytes / 128;

// `FILE:FUNCTION, in CALLER at CALLING_FILE:LINE`, the calling file only if it is another.
std::string place_text(const InlinedCalls::Place& function, const InlinedCalls::Place& call) {
    const std::string line = call.line == 0 ? "?" : std::to_string(call.line);
    return fmt::format(
        "{}:{}, in {} at {}", printable(function.file), printable(function.function),
        printable(call.function),
        call.file == function.file ? "line " + line : printable(call.file) + ":" + line);
}

// Those above the threshold, in order.
std::vector<InlinedCalls::Row> important(std::vector<InlinedCalls::Row> rows,
                                         const Profile& profile,
                                         const std::vector<SortColumn>& sort) {
    const events::Header& header = profile.header();
    std::erase_if(rows, [&](const InlinedCalls::Row& row) {
        return !is_above_threshold(row.counts, profile.totals(), sort, header);
    });
    const auto text = [](const InlinedCalls::Row& row) {
        return std::tie(row.function.file, row.function.function, row.call.file, row.call.function,
                        row.call.line);
    };
    std::sort(rows.begin(), rows.end(),
              [&](const InlinedCalls::Row& a, const InlinedCalls::Row& b) {
                  return comes_first(a.counts, b.counts, sort, header).value_or(text(a) < text(b));
              });
    return rows;
}

// Nothing if there are no rows.
template <typename Text>
void write_table(std::string_view title, std::string_view heading,
                 const std::vector<InlinedCalls::Row>& rows, const Columns& columns, Output& output,
                 const Text& text_of) {
    if (rows.empty()) return;
    Table table(columns);
    for (const InlinedCalls::Row& row : rows) table.fit(row.counts);
    output.section(title);
    output.write("  " + table.heading(heading));
    for (const InlinedCalls::Row& row : rows)
        output.write("  " + table.row(row.counts, text_of(row)));
    output.write("\n");
}

}  // namespace

InlinedCalls::InlinedCalls(std::vector<Replacement> file_names,
                           std::vector<Replacement> function_names)
    : file_names_(std::move(file_names)), function_names_(std::move(function_names)) {}

void InlinedCalls::start(const events::Header& header) {
    calls_.set_columns(header.events.size());
    callers_.set_columns(header.events.size());
    sites_ = outermost_ = {0};
}

void InlinedCalls::site(const events::Site& site) {
    if (sites_.size() == kMostPlaces)
        throw Error(fmt::format("there are more than {} sites, which no program has", kMostPlaces));
    sites_.push_back(place(site.file, site.function, site.line));
    outermost_.push_back(site.parent == 0 ? place(site.file, site.function, 0)
                                          : outermost_[site.parent]);
    has_inlined_.insert(outermost_.back());
}

void InlinedCalls::location(const events::Location& location) {
    if (sites_.size() == 1) return;
    file_ = location.file;
    function_ = location.function;
    function_place_.reset();
    rows_.clear();
    next_row_ = 0;
}

void InlinedCalls::line(std::uint32_t, Counts counts) {
    if (sites_.size() == 1) return;
    if (rows_.size() + counts.size() > kMostCounts)
        throw Error(fmt::format("{} has more than {} counts, which no function has", function_,
                                kMostCounts));
    rows_.insert(rows_.end(), counts.begin(), counts.end());
    callers_.add(function_of_location(), counts);
}

void InlinedCalls::line_sites(std::uint32_t site, std::uint64_t count) {
    const std::size_t columns = calls_.columns(), first = next_row_ * columns;
    next_row_ += count;
    if (site == 0) return;
    sum_.assign(columns, 0);
    for (std::size_t i = first; i < next_row_ * columns; ++i) sum_[i % columns] += rows_[i];
    const std::uint32_t callee = function_of_location();
    calls_.add(std::uint64_t{callee} << 32 | sites_[site], sum_);
    callers_.add(outermost_[site], sum_);
    for (std::uint64_t& each : sum_) each = 0 - each;
    callers_.add(callee, sum_);
}

std::uint32_t InlinedCalls::function_of_location() {
    if (!function_place_) function_place_ = place(file_, function_, 0);
    return *function_place_;
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

std::vector<InlinedCalls::Row> InlinedCalls::calls(const Profile& profile,
                                                   const std::vector<SortColumn>& sort) const {
    std::vector<Row> rows;
    for (std::size_t i = 0; i < calls_.size(); ++i)
        rows.push_back(
            {text_of(calls_.key(i) >> 32), text_of(calls_.key(i) & UINT32_MAX), calls_.counts(i)});
    return important(std::move(rows), profile, sort);
}

std::vector<InlinedCalls::Row> InlinedCalls::callers(const Profile& profile,
                                                     const std::vector<SortColumn>& sort) const {
    std::vector<Row> rows;
    for (std::size_t i = 0; i < callers_.size(); ++i)
        if (has_inlined_.contains(static_cast<std::uint32_t>(callers_.key(i))))
            rows.push_back({text_of(callers_.key(i)), {}, callers_.counts(i)});
    return important(std::move(rows), profile, sort);
}

void write_inlined(const InlinedCalls& calls, const Profile& profile, const Columns& columns,
                   const std::vector<SortColumn>& sort, Output& output) {
    write_table("Functions with what was inlined into them", "file:function",
                calls.callers(profile, sort), columns, output, [](const InlinedCalls::Row& row) {
                    return printable(row.function.file) + ":" + printable(row.function.function);
                });
    write_table("Inlined functions and where they were inlined",
                "file:function, the caller and the call", calls.calls(profile, sort), columns,
                output,
                [](const InlinedCalls::Row& row) { return place_text(row.function, row.call); });
}

}  // namespace assay::annotate
