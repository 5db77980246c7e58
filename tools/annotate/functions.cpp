#include "tools/annotate/functions.h"

#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace assay::annotate {

namespace {

// A file with its functions, or a function's name with its files.
struct Group {
    std::uint32_t name;
    std::vector<std::uint64_t> counts;
    std::vector<std::size_t> functions;  // indices in the profile
    std::size_t all;                     // all functions, above the threshold or not
    bool is_single() const { return all == 1; }
};

enum class By : std::uint8_t { kFile, kFunction };

std::uint32_t outer(By by, const Profile& profile, std::size_t function) {
    return by == By::kFile ? profile.by_source().file(function)
                           : profile.by_source().name(function);
}

// Groups above the threshold, unsorted. First adds up counts of all groups in one array: of
// millions of groups, few pass.
std::vector<Group> groups_above_threshold(By by, const Profile& profile,
                                          const std::vector<SortColumn>& sort) {
    const FunctionTable& functions = profile.by_source();
    const std::size_t columns = profile.totals().size();
    const std::size_t names = (by == By::kFile ? functions.files() : functions.names()).size();
    std::vector<std::uint64_t> counts(names * columns);
    std::vector<std::uint32_t> sizes(names), group_of(names);
    std::vector<bool> has_large(names);  // groups with a function above the threshold
    for (std::size_t i = 0; i < functions.size(); ++i) {
        const std::uint32_t name = outer(by, profile, i);
        ++sizes[name];
        const Counts row = functions.counts(i);
        for (std::size_t e = 0; e < columns; ++e) counts[name * columns + e] += row[e];
        // The functions of a difference may cancel each other in their group's sum.
        if (profile.header().difference &&
            is_above_threshold(row, profile.totals(), sort, profile.header()))
            has_large[name] = true;
    }
    std::vector<Group> groups;
    for (std::uint32_t name = 0; name < names; ++name) {
        const Counts sum = Counts(counts).subspan(name * columns, columns);
        if (sizes[name] == 0) continue;
        if (!has_large[name] && !is_above_threshold(sum, profile.totals(), sort, profile.header()))
            continue;
        groups.push_back({name, {sum.begin(), sum.end()}, {}, sizes[name]});
        group_of[name] = static_cast<std::uint32_t>(groups.size());
    }
    for (std::size_t i = 0; i < functions.size(); ++i)
        if (const std::uint32_t group = group_of[outer(by, profile, i)])
            groups[group - 1].functions.push_back(i);
    return groups;
}

std::string_view outer_name(By by, const Profile& profile, const Group& group) {
    return by == By::kFile ? profile.by_source().files()[group.name]
                           : profile.by_source().names()[group.name];
}

// Groups above the threshold, the most important first.
std::vector<Group> groups_to_show(By by, const Profile& profile,
                                  const std::vector<SortColumn>& sort) {
    std::vector<Group> groups = groups_above_threshold(by, profile, sort);
    std::sort(groups.begin(), groups.end(), [&](const Group& a, const Group& b) {
        return comes_first(a.counts, b.counts, sort, profile.header())
            .value_or(outer_name(by, profile, a) < outer_name(by, profile, b));
    });
    return groups;
}

class GroupWriter {
  public:
    GroupWriter(By by, const Profile& profile, const Columns& columns,
                const std::vector<SortColumn>& sort, const DisplayNames& names, Output& output)
        : by_(by),
          profile_(profile),
          columns_(columns),
          sort_(sort),
          names_(names),
          output_(output) {}

    void write() {
        groups_ = groups_to_show(by_, profile_, sort_);
        for (Group& group : groups_) choose_functions(group);
        Table table(columns_);
        for_each([&](const Group& group, Counts running) {
            table.fit(group.counts, running);
            if (!group.is_single())
                for (const std::size_t function : group.functions)
                    table.fit(profile_.by_source().counts(function));
        });
        output_.section(by_ == By::kFile ? "Files and their functions"
                                         : "Functions and their files");
        output_.write("  " + table.heading(by_ == By::kFile ? "file:function" : "function:file") +
                      "\n");
        for_each([&](const Group& group, Counts running) { write_group(table, group, running); });
        if (groups_.empty()) output_.write("  none is above the threshold\n\n");
    }

  private:
    void choose_functions(Group& group) const {
        if (group.is_single()) return;
        std::erase_if(group.functions,
                      [&](std::size_t f) { return !is_shown(profile_.by_source().counts(f)); });
        std::sort(group.functions.begin(), group.functions.end(),
                  [&](std::size_t a, std::size_t b) {
                      return comes_first(profile_.by_source().counts(a),
                                         profile_.by_source().counts(b), sort_, columns_.header)
                          .value_or(inner_name(a) < inner_name(b));
                  });
    }

    bool is_shown(Counts counts) const {
        return is_above_threshold(counts, columns_.totals, sort_, columns_.header);
    }

    template <typename Function>
    void for_each(const Function& function) const {
        std::vector<std::uint64_t> running(columns_.totals.size());
        for (const Group& group : groups_) {
            for (std::size_t i = 0; i < running.size(); ++i) running[i] += group.counts[i];
            function(group, running);
        }
    }

    void write_group(const Table& table, const Group& group, Counts running) const {
        const std::string mark = by_ == By::kFile ? "< " : "> ";
        const std::string_view outer = outer_name(by_, profile_, group);
        const std::string name = printable(by_ == By::kFile ? outer : names_(outer));
        if (group.is_single()) {
            output_.write(mark + table.row(group.counts,
                                           name + ":" + inner_text(group.functions[0]), running));
        } else {
            output_.write(mark + table.row(group.counts, name + ":", running));
            for (const std::size_t function : group.functions)
                output_.write("  " + table.row(profile_.by_source().counts(function),
                                               "  " + inner_text(function)));
        }
        output_.write("\n");
    }

    std::string_view inner_name(std::size_t function) const {
        return by_ == By::kFile ? profile_.by_source().name_text(function)
                                : profile_.by_source().file_text(function);
    }

    std::string inner_text(std::size_t function) const {
        const std::string_view name = inner_name(function);
        return printable(by_ == By::kFile ? names_(name) : name);
    }

    By by_;
    const Profile& profile_;
    const Columns& columns_;
    const std::vector<SortColumn>& sort_;
    const DisplayNames& names_;
    Output& output_;
    std::vector<Group> groups_;
};

}  // namespace

std::vector<std::uint32_t> files_to_show(const Profile& profile,
                                         const std::vector<SortColumn>& sort) {
    std::vector<std::uint32_t> files;
    for (const Group& group : groups_to_show(By::kFile, profile, sort)) files.push_back(group.name);
    return files;
}

std::vector<std::size_t> functions_in_order(const Profile& profile,
                                            const std::vector<SortColumn>& sort) {
    std::vector<std::size_t> functions(profile.by_source().size());
    std::iota(functions.begin(), functions.end(), 0);
    const auto name = [&](std::size_t function) {
        return std::pair(profile.by_source().file_text(function),
                         profile.by_source().name_text(function));
    };
    std::sort(functions.begin(), functions.end(), [&](std::size_t a, std::size_t b) {
        return comes_first(profile.by_source().counts(a), profile.by_source().counts(b), sort,
                           profile.header())
            .value_or(name(a) < name(b));
    });
    return functions;
}

void write_functions(const Profile& profile, const Columns& columns,
                     const std::vector<SortColumn>& sort, const DisplayNames& names,
                     Output& output) {
    GroupWriter(By::kFile, profile, columns, sort, names, output).write();
    GroupWriter(By::kFunction, profile, columns, sort, names, output).write();
}

namespace {

// Limits the counts kept for one function, against files made to use up memory.
constexpr std::size_t kMostCounts = std::size_t{1} << 24;
// Limits the places of calls. A place takes about ten times the bytes of its key, including the
// maps.
constexpr std::size_t kMostPlaces = kMostBytes / 128;

// `FILE:FUNCTION, in CALLER at CALLING_FILE:LINE`; without CALLING_FILE if it is the same file.
std::string place_text(const InlinedCalls::Place& function, const InlinedCalls::Place& call,
                       const DisplayNames& names) {
    const std::string line = call.line == 0 ? "?" : std::to_string(call.line);
    return fmt::format(
        "{}:{}, in {} at {}", printable(function.file), printable(names(function.function)),
        printable(names(call.function)),
        call.file == function.file ? "line " + line : printable(call.file) + ":" + line);
}

// Rows above the threshold, the most important first.
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

// Writes nothing if there are no rows.
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

std::vector<InlinedCalls::Row> InlinedCalls::inlined(const Profile& profile,
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

void InlinedCalls::add_names(DisplayNames& names) const {
    for (const auto& [file, function, line] : places_) names.add(names_[function]);
}

void write_inlined(const InlinedCalls& calls, const Profile& profile, const Columns& columns,
                   const std::vector<SortColumn>& sort, const DisplayNames& names, Output& output) {
    write_table("Functions including code that was inlined into them", "file:function",
                calls.callers(profile, sort), columns, output, [&](const InlinedCalls::Row& row) {
                    return printable(row.function.file) + ":" +
                           printable(names(row.function.function));
                });
    write_table(
        "Inlined functions and where they were inlined", "file:function, the caller and the call",
        calls.inlined(profile, sort), columns, output,
        [&](const InlinedCalls::Row& row) { return place_text(row.function, row.call, names); });
}

}  // namespace assay::annotate
