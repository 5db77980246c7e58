#include "tools/report/functions.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace assay::report {
namespace {

Column sum_of(const Profile& profile, const Profile::Function& function) {
    Column sum(profile.events().size());
    for (std::uint32_t place = function.first_place; place < function.end_place; ++place)
        for (const Profile::Line& line : profile.lines(place))
            profile.counts().add_to(sum, line.row);
    return sum;
}

std::vector<std::uint32_t> add_all(const Profile& profile, Side side, FunctionMatching& matching) {
    std::vector<std::uint32_t> numbers;
    for (const Profile::Function& function : profile.functions())
        numbers.push_back(
            matching.add(side, profile.text(function.file), profile.text(function.name)));
    return numbers;
}

}  // namespace

FunctionList::FunctionList(const Profile& profile, const Profile* old)
    : columns_(profile.events().size()), calls_(call_graph(profile)) {
    const std::vector<std::uint32_t> numbers = add_all(profile, Side::kNew, matching_);
    std::vector<std::uint32_t> old_numbers;
    if (old) {
        has_old_ = true;
        old_numbers = add_all(*old, Side::kOld, matching_);
        matching_.match();
    }
    add(profile, numbers, &Row::counts, row_of_);
    add_inclusive(profile, calls_, &Row::inclusive, row_of_);
    if (old) {
        add(*old, old_numbers, &Row::old, row_of_old_);
        add_inclusive(*old, call_graph(*old), &Row::old_inclusive, row_of_old_);
    }
    sort(profile.totals());
}

// Adds functions. Functions with the same place become one row.
void FunctionList::add(const Profile& profile, const std::vector<std::uint32_t>& numbers,
                       Column Row::*counts, std::vector<std::uint32_t>& row_of) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const FunctionMatching::Place place = matching_.shown(numbers[i]);
        const auto [entry, is_new] = indices_.try_emplace({place.file, place.function},
                                                          static_cast<std::uint32_t>(rows_.size()));
        if (is_new)
            rows_.push_back({place.file, place.function, matching_.former(numbers[i]),
                             Column(columns_), Column(columns_)});
        const Column more = sum_of(profile, profile.functions()[i]);
        Column& sum = rows_[entry->second].*counts;
        std::transform(more.begin(), more.end(), sum.begin(), sum.begin(), std::plus<>());
        row_of.push_back(entry->second);
    }
}

void FunctionList::add_inclusive(const Profile& profile, const CallGraph& graph,
                                 Column Row::*counts, const std::vector<std::uint32_t>& row_of) {
    const std::vector<Column> inclusive = inclusive_counts(profile, graph);
    has_inclusive_ &= !inclusive.empty();
    for (std::size_t i = 0; i < inclusive.size(); ++i) {
        Column& sum = rows_[row_of[i]].*counts;
        sum.resize(columns_);
        add_counts(sum, inclusive[i]);
    }
}

// Sorts the rows, and adapts the numbers that refer to them.
void FunctionList::sort(Counts totals) {
    std::vector<double> shares;
    shares.reserve(rows_.size());
    for (const Row& row : rows_)
        shares.push_back(
            std::max(largest_share(row.counts, totals), largest_share(row.old, totals)));
    std::vector<std::uint32_t> order(rows_.size()), rank(rows_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return shares[a] > shares[b]; });
    std::vector<Row> sorted;
    sorted.reserve(rows_.size());
    for (const std::uint32_t index : order) {
        rank[index] = static_cast<std::uint32_t>(sorted.size());
        sorted.push_back(std::move(rows_[index]));
    }
    rows_ = std::move(sorted);
    for (std::uint32_t& row : row_of_) row = rank[row];
    for (std::uint32_t& row : row_of_old_) row = rank[row];
    for (auto& [place, row] : indices_) row = rank[row];
}

std::optional<std::uint32_t> FunctionList::find(std::string_view file,
                                                std::string_view name) const {
    const auto found = indices_.find({file, name});
    return found == indices_.end() ? std::nullopt : std::optional(found->second);
}

void FunctionList::add_names(DisplayNames& names) const {
    for (const Row& row : rows_) {
        names.add(row.name);
        if (!row.former.function.empty()) names.add(row.former.function);
    }
}

void FunctionList::write(const DisplayNames& names_of, std::size_t most, JsonWriter& json) const {
    const std::size_t shown = std::min(rows_.size(), most);
    std::vector<std::string> files, names, former;
    Columns counts(columns_), old(columns_), callees(columns_), old_callees(columns_);
    // Most functions have no callees, so their counts alone compress to nothing.
    const auto less = [](Column inclusive, const Column& own) {
        for (std::size_t i = 0; i < own.size(); ++i) inclusive[i] -= std::min(inclusive[i], own[i]);
        return inclusive;
    };
    for (std::size_t i = 0; i < shown; ++i) {
        const Row& row = rows_[i];
        const std::string former_name =
            row.former.function.empty() ? "" : names_of(row.former.function);
        files.emplace_back(row.file);
        names.push_back(names_of(row.name));
        former.push_back(FunctionMatching::former_text({row.file, names.back()},
                                                       {row.former.file, former_name}));
        counts.add(row.counts);
        old.add(row.old);
        if (!has_inclusive_) continue;
        callees.add(row.inclusive.empty() ? Column(columns_) : less(row.inclusive, row.counts));
        old_callees.add(row.old_inclusive.empty() ? Column(columns_)
                                                  : less(row.old_inclusive, row.old));
    }
    json.begin_object("functions");
    json.number("leftOut", rows_.size() - shown);
    json.texts("file", files);
    json.texts("name", names);
    counts.write("counts", json);
    if (has_old_) {
        json.texts("former", former);
        old.write("old", json);
    }
    if (has_inclusive_) callees.write("callees", json);
    if (has_inclusive_ && has_old_) old_callees.write("oldCallees", json);
    json.end_object();
}

namespace {

class CallsDocument {
  public:
    CallsDocument(const Profile& profile, const CallGraph& graph, double least_share,
                  const DisplayNames& names, JsonWriter& json)
        : profile_(profile), graph_(graph), least_share_(least_share), names_(names), json_(json) {}

    void write() {
        json_.begin_object();
        write_functions();
        write_edges();
        json_.end_object();
    }

  private:
    bool is_shown(Counts counts) const {
        for (std::size_t i = 0; i < counts.size(); ++i)
            if (counts[i] != 0 && static_cast<double>(counts[i]) >=
                                      least_share_ * static_cast<double>(profile_.totals()[i]))
                return true;
        return false;
    }

    // The last function is the caller outside.
    void write_functions() {
        std::vector<std::string> files, names;
        std::vector<Counts> inclusive, exclusive;
        const std::vector<std::uint64_t> none(profile_.events().size());
        const auto add = [&](const FunctionKey& key, Counts with_callees, Counts own) {
            indices_.emplace(key, names.size());
            files.emplace_back(text_of(profile_, key.file));
            names.push_back(names_(text_of(profile_, key.name)));
            inclusive.push_back(with_callees);
            exclusive.push_back(own);
        };
        for (const auto& [key, counts] : graph_.functions)
            if (is_shown(counts.inclusive)) add(key, counts.inclusive, counts.exclusive);
        add(kOutsideCaller, none, none);
        json_.texts("file", files);
        json_.texts("name", names);
        write_rows("inclusive", inclusive, none.size(), json_);
        write_rows("exclusive", exclusive, none.size(), json_);
    }

    void write_edges() {
        const auto sums = calls_of_functions(graph_);
        std::vector<std::uint64_t> callers, callees, numbers;
        std::vector<Counts> counts;
        for (const auto& [pair, calls] : sums) {
            const auto caller = indices_.find(pair.first), callee = indices_.find(pair.second);
            if (caller == indices_.end() || callee == indices_.end()) continue;
            const bool is_recursion = !any_count(calls.inclusive);
            if (!is_recursion && !is_shown(calls.inclusive)) continue;
            callers.push_back(caller->second);
            callees.push_back(callee->second);
            numbers.push_back(calls.number);
            counts.emplace_back(calls.inclusive);
        }
        json_.numbers("caller", callers);
        json_.numbers("callee", callees);
        json_.numbers("number", numbers);
        write_rows("counts", counts, profile_.events().size(), json_);
    }

    const Profile& profile_;
    const CallGraph& graph_;
    double least_share_;
    const DisplayNames& names_;
    JsonWriter& json_;
    std::map<FunctionKey, std::uint64_t> indices_;
};

}  // namespace

void write_calls(const Profile& profile, const CallGraph& graph, double least_share,
                 const DisplayNames& names, JsonWriter& json) {
    if (!profile.has_contexts() && profile.calls().empty()) return json.null();
    CallsDocument(profile, graph, least_share, names, json).write();
}

}  // namespace assay::report
