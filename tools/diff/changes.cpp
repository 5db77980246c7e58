#include "tools/diff/changes.h"

#include "framework/events/file.h"
#include "framework/support/error.h"
#include "framework/support/text.h"
#include "tools/profile/profile.h"

#include <fmt/core.h>
#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <tuple>
#include <utility>

namespace assay::diff {
namespace {

auto place(const Change& change) {
    return std::tie(change.file, change.function);
}

// Returns the number of each function in the matching.
std::vector<std::uint32_t> add_functions(Side side, const Profile& profile,
                                         FunctionMatching& matching) {
    std::vector<std::uint32_t> numbers(profile.by_source().size());
    for (std::size_t i = 0; i < numbers.size(); ++i)
        numbers[i] =
            matching.add(side, profile.by_source().file_text(i), profile.by_source().name_text(i));
    return numbers;
}

// Changes with the counts of one profile only. Functions matched as one are added up.
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
    std::vector<std::uint64_t>* sum = nullptr;  // sum of the last row, if it has several functions
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

namespace {

// Removes the line number from the name of a heap block, such as "make (a.c:12)". Any change to the
// source moves lines.
std::string without_line(std::string_view name) {
    if (!name.ends_with(')')) return std::string(name);
    const std::size_t colon = name.rfind(':');
    if (colon == std::string_view::npos) return std::string(name);
    const std::string_view line = name.substr(colon + 1, name.size() - colon - 2);
    if (line.empty() || line.find_first_not_of("0123456789") != std::string_view::npos)
        return std::string(name);
    return std::string(name.substr(0, colon)) + ")";
}

std::string name_of(const Groups& profile, std::uint32_t group) {
    std::vector<std::string> names;
    for (; group != Groups::kNone; group = profile.groups()[group].parent)
        names.push_back(without_line(profile.groups()[group].name));
    std::reverse(names.begin(), names.end());
    return join(names, " > ");
}

void check_kind(const std::string& kind, const Profile& profile) {
    const std::vector<std::string>& kinds = profile.groups().kinds();
    if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) return;
    const std::string hint = kind == "object"                     ? "run with --objects"
                             : kind == "type" || kind == "member" ? "run with --types"
                             : kind == "thread"                   ? "run with --threads"
                             : kinds.empty()                      ? "it has only counts by function"
                                             : "it has counts by " + join(kinds, " and ") + " only";
    throw Error(fmt::format("{} has no counts by {}: {}", profile.paths().front(), kind, hint));
}

}  // namespace

GroupChanges group_changes(const std::string& kind, const Profile& before, const Profile& after) {
    check_kind(kind, before);
    check_kind(kind, after);
    const std::size_t columns = before.totals().size();
    std::map<std::string, std::pair<std::vector<std::uint64_t>, std::vector<std::uint64_t>>> sums;
    const auto add = [&](const Groups& groups, auto side) {
        for (std::uint32_t i = 0; i < groups.groups().size(); ++i) {
            const Groups::Group& group = groups.groups()[i];
            if (group.kind != kind) continue;
            auto& both = sums[name_of(groups, i)];
            both.first.resize(columns);
            both.second.resize(columns);
            std::vector<std::uint64_t>& sum = both.*side;
            for (std::size_t event = 0; event < group.counts.size(); ++event)
                sum[event] += group.counts[event];
        }
    };
    using Both = std::pair<std::vector<std::uint64_t>, std::vector<std::uint64_t>>;
    add(before.groups(), &Both::first);
    add(after.groups(), &Both::second);
    GroupChanges changes;
    for (auto& [name, both] : sums) {
        const std::string& kept = changes.names.emplace_back(name);
        const Counts old_counts = changes.counts.emplace_back(std::move(both.first));
        const Counts new_counts = changes.counts.emplace_back(std::move(both.second));
        changes.rows.push_back({kind, kept, old_counts, new_counts});
    }
    return changes;
}

namespace {

// Deeper frames count for the frame of this depth.
constexpr std::size_t kMostDepth = 256;
// Limits the values kept for a list of a function.
constexpr std::size_t kMostValues = 64;

std::uint64_t count_of(std::uint64_t value, const events::Hotlist& list) {
    const auto found =
        std::find_if(list.values.begin(), list.values.end(),
                     [&](const events::HotValue& each) { return each.value == value; });
    return found == list.values.end() ? 0 : found->count;
}

constexpr std::size_t index(Side side) {
    return static_cast<std::size_t>(side);
}

}  // namespace

Breakdown::Breakdown(std::vector<Replacement> file_names, std::vector<Replacement> function_names)
    : file_names_(std::move(file_names)), function_names_(std::move(function_names)) {}

void Breakdown::start(const events::Header& header) {
    frames_ = {0};
    if (stacks_) return;
    columns_ = header.events.size();
    stacks_ = std::make_unique<StackTree>(2 * columns_, kMostDepth);
}

void Breakdown::location(const events::Location& location) {
    file_ = location.file;
    function_ = location.function;
}

void Breakdown::values(const Instruction&, const events::Hotlist& list) {
    totals_[list.name][index(side_)] += list.total;
    const auto [entry, is_new] = lists_.try_emplace(
        {replaced(file_, file_names_), replaced(function_, function_names_), list.name});
    events::merge(entry->second[index(side_)], list, kMostValues);
}

void Breakdown::stack(const events::Stack& stack, Counts counts) {
    // The reader guarantees that contexts are numbered in sequence and that parents precede their
    // contexts.
    frames_.push_back(stacks_->enter(frames_[stack.parent],
                                     replaced(stack.function, function_names_), stack.kind));
    stacks_->add(frames_.back(), index(side_) * columns_, counts);
    std::vector<bool>& has_frame = has_frame_[index(side_)];
    has_frame.resize(stacks_->frames().size());
    has_frame[frames_.back()] = true;
}

void Breakdown::calls(std::uint32_t context, std::uint64_t number) {
    counts_calls_[index(side_)] = true;
    stacks_->add_calls(frames_[context], index(side_), number);
}

void Breakdown::match(FunctionMatching& functions, bool names) {
    if (stacks_ && names) match_stacks();
    for (auto& [key, lists] : std::exchange(lists_, {})) {
        const auto& [file, function, name] = key;
        const FunctionMatching::Place place =
            functions.shown(functions.add(Side::kOld, file, function));
        auto& both = lists_[{std::string(place.file), std::string(place.function), name}];
        for (std::size_t side = 0; side < both.size(); ++side)
            events::merge(both[side], lists[side], kMostValues);
    }
}

// Contexts are matched by name only, because they have no files.
void Breakdown::match_stacks() {
    FunctionMatching names;
    const std::span<const StackTree::Frame> frames = stacks_->frames();
    std::vector<std::uint32_t> numbers(frames.size());
    for (const Side side : {Side::kOld, Side::kNew})
        for (std::size_t i = 1; i < has_frame_[index(side)].size(); ++i)
            if (has_frame_[index(side)][i])
                numbers[i] = names.add(side, "", stacks_->name(frames[i]));
    names.match();
    auto renamed = std::make_unique<StackTree>(2 * columns_, kMostDepth);
    std::vector<std::uint32_t> frame_of(1);
    for (std::size_t i = 1; i < frames.size(); ++i) {
        frame_of.push_back(renamed->enter(frame_of[frames[i].parent],
                                          names.shown(numbers[i]).function,
                                          StackTree::kind(frames[i])));
        renamed->add(frame_of.back(), 0, frames[i].counts);
        for (std::size_t side = 0; side < frames[i].calls.size(); ++side)
            renamed->add_calls(frame_of.back(), side, frames[i].calls[side]);
    }
    stacks_ = std::move(renamed);
}

std::vector<Change> Breakdown::stack_changes() const {
    if (!has_stacks()) return {};
    std::vector<Change> changes;
    for (const StackTree::Frame& frame : stacks_->frames()) {
        const Counts counts = frame.counts;
        changes.push_back({"", "", counts.first(columns_), counts.last(columns_)});
    }
    return changes;
}

std::vector<ValueChange> Breakdown::value_changes(double percent) const {
    std::vector<ValueChange> changes;
    for (const auto& [key, both] : lists_) {
        const std::string &file = std::get<0>(key), &function = std::get<1>(key),
                          &name = std::get<2>(key);
        const auto& lists = both;
        const auto [old_total, new_total] = totals_.find(name)->second;
        if (old_total == 0 || new_total == 0) continue;
        const double least = percent / 100 * static_cast<double>(old_total);
        const std::uint64_t error = lists[index(Side::kOld)].error + lists[index(Side::kNew)].error;
        const auto add = [&](std::uint64_t value) {
            const ValueChange change = {file,
                                        function,
                                        name,
                                        value,
                                        count_of(value, lists[index(Side::kOld)]),
                                        count_of(value, lists[index(Side::kNew)])};
            if (change.size() > error && static_cast<double>(change.size()) >= least)
                changes.push_back(change);
        };
        for (const events::HotValue& each : lists[index(Side::kOld)].values) add(each.value);
        for (const events::HotValue& each : lists[index(Side::kNew)].values)
            if (count_of(each.value, lists[index(Side::kOld)]) == 0) add(each.value);
    }
    std::stable_sort(
        changes.begin(), changes.end(),
        [](const ValueChange& a, const ValueChange& b) { return a.size() > b.size(); });
    return changes;
}

}  // namespace assay::diff
