#include "tools/list/list.h"

#include "framework/support/error.h"
#include "framework/support/plain_names.h"
#include "framework/support/text.h"
#include "framework/symbols/interval_map.h"
#include "tools/code/object_code.h"
#include "tools/list/function.h"
#include "tools/list/hottest.h"
#include "tools/list/values.h"
#include "tools/profile/profile.h"
#include "tools/table/brief.h"

#include <fmt/core.h>
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace assay::list {
namespace {

using Rows = std::span<const Row>;

bool contains(const Pattern& pattern, std::string_view function) {
    return any_spelling(function, [&](std::string_view name) { return pattern.is_in(name); });
}

// Finds the functions of one object, from its symbols if the code is there, and from the profile.
class FunctionFinder {
  public:
    FunctionFinder(const Profile& profile, Rows rows, ObjectCode& code,
                   const std::optional<Pattern>& wanted)
        : profile_(profile), wanted_(wanted) {
        std::vector<std::uint64_t> addresses(rows.size());
        std::transform(rows.begin(), rows.end(), addresses.begin(),
                       [](const Row& row) { return row.address; });
        ranges_ = code.functions(addresses);
        for (std::uint32_t i = 0; i < ranges_.size(); ++i)
            range_at_.add(ranges_[i].low, ranges_[i].high, i);
        range_at_.seal();
        for (const Row& row : rows) add(row);
    }

    std::vector<Function> take() { return std::move(functions_); }

  private:
    // If the user asks for a function by name, its inlined code is shown for each function that
    // contains it. A function that is wanted itself is shown as a whole.
    bool is_wanted_inlined(const Row& row, const symbols::FunctionRange& range) {
        return wanted_ && row.function != range.name && is_wanted(row.function) &&
               !is_wanted(range.name);
    }

    // The keys point into the profile or the object's symbols, which live longer.
    bool is_wanted(std::string_view name) {
        const auto [known, is_new] = is_wanted_.try_emplace(name, false);
        if (is_new) known->second = contains(*wanted_, name);
        return known->second;
    }

    void add(const Row& row) {
        const std::uint32_t index = range_at_.find(row.address);
        const symbols::FunctionRange* const range =
            index == symbols::IntervalMap::kNone ? nullptr : &ranges_[index];
        const bool inlined = range && is_wanted_inlined(row, *range);
        const auto key = range && !inlined
                             ? std::pair(range->low, std::string_view())
                             : std::pair(range ? range->low : std::uint64_t{0}, row.function);
        const auto [known, is_new] = index_.try_emplace(key, functions_.size());
        if (is_new) {
            Function function{std::string(range && !inlined ? range->name : row.function),
                              std::string(inlined ? range->name : ""), row.object};
            if (range && !inlined) {
                function.low = range->low;
                function.high = range->high;
            }
            function.counts.resize(profile_.totals().size());
            functions_.push_back(std::move(function));
        }
        Function& function = functions_[known->second];
        function.rows.push_back(&row);
        add_counts(function.counts, row.counts(profile_));
    }

    const Profile& profile_;
    const std::optional<Pattern>& wanted_;
    std::map<std::string_view, bool> is_wanted_;
    std::vector<symbols::FunctionRange> ranges_;
    symbols::IntervalMap range_at_;  // indices in ranges_
    std::map<std::pair<std::uint64_t, std::string_view>, std::size_t> index_;
    std::vector<Function> functions_;
};

std::vector<Function> find_functions(const Profile& profile, Rows rows, const Options& options,
                                     const std::vector<std::unique_ptr<ObjectCode>>& code) {
    std::vector<Function> functions;
    for (auto begin = rows.begin(); begin != rows.end();) {
        const auto end = std::find_if(begin, rows.end(),
                                      [&](const Row& row) { return row.object != begin->object; });
        auto found =
            FunctionFinder(profile, {begin, end}, *code[begin->object], options.function).take();
        std::move(found.begin(), found.end(), std::back_inserter(functions));
        begin = end;
    }
    return functions;
}

// False if the profile has only values.
bool have_counts(const std::vector<Function>& functions) {
    return std::any_of(functions.begin(), functions.end(),
                       [](const Function& function) { return any_count(function.counts); });
}

// The events that decide what is listed, the most important one first.
std::vector<std::size_t> sort_events(const Options& options, const events::Header& header) {
    std::vector<std::size_t> sort;
    for (const std::string& name : options.sort)
        sort.push_back(event_index("--sort", name, header));
    for (const std::size_t column : shown_events(options.show, header))
        if (options.sort.empty() && column < header.events.size()) sort.push_back(column);
    return sort.empty() ? shown_events({}, header) : sort;
}

// Selects and sorts the functions to list. Throws Error if there are none.
void choose(std::vector<Function>& functions, const Options& options,
            const std::vector<std::size_t>& sort, const Weight& weight) {
    const double least = options.threshold * weight.total();
    for (Function& function : functions) function.weight = weight.of(function);
    std::erase_if(functions, [&](const Function& function) {
        if (options.function)
            return function.outer.empty() && !contains(*options.function, function.name);
        return function.weight * 100 < least;
    });
    if (functions.empty())
        throw Error(options.function
                        ? "--function: no function of the profile has such a name"
                        : "no function reaches the threshold: give a lower one with --threshold");
    std::stable_sort(functions.begin(), functions.end(), [&](const Function& a, const Function& b) {
        if (a.weight != b.weight) return a.weight > b.weight;
        for (const std::size_t event : sort)
            if (a.counts[event] != b.counts[event]) return a.counts[event] > b.counts[event];
        return std::tie(a.name, a.outer) < std::tie(b.name, b.outer);
    });
}

// None for instructions without any counts.
std::vector<std::size_t> columns_to_show(const Options& options, std::size_t first, bool counted,
                                         const Profile& profile) {
    if (options.full || !options.show.empty()) return shown_events(options.show, profile.header());
    if (!counted) return {};
    return important_events(first, profile.header(), profile.totals());
}

Cells cells(const Options& options) {
    if (!options.percentages) return Cells::kCounts;
    return options.full ? Cells::kCountsAndShares : Cells::kShares;
}

void write_head(const Options& options, const Profile& profile, const ValuePrinter& values,
                bool counted, Output& output) {
    if (options.full) output.section("Instructions");
    output.write(fmt::format("Command:  {}\nFile:     {}\n", printable(profile.header().command),
                             printable(options.profile)));
    for (const std::string& note : values.notes())
        output.write(fmt::format("Note:     {}\n", printable(note)));
    if (const std::size_t series = profile.header().series.size(); series != 0)
        output.write(fmt::format("Note:     {} series: --series lists them\n", series));
    if (!counted)
        output.write("Note:     no counts of instructions: profile with --dump-instr=yes\n");
    if (!profile.header().incomplete.empty())
        output.write(fmt::format("INCOMPLETE, not the counts of a whole run: {}\n",
                                 printable(profile.header().incomplete)));
    output.write("\n");
}

void write_summary(const std::vector<Function>& functions, const Columns& columns,
                   const DisplayNames& names, Output& output) {
    Table table(columns);
    table.fit(columns.totals);
    output.write(table.heading("function"));
    output.write(table.row(columns.totals, "PROGRAM TOTALS"));
    for (const Function& function : functions)
        output.write(table.row(function.counts, printable(text_of(function, names))));
    output.write("\n");
}

// The names of all lists, without repetitions.
std::vector<std::string_view> lists_of(const Profile& profile) {
    std::set<std::string_view> names;
    for (const Profile::Values& values : profile.values()) names.insert(values.list.name);
    return {names.begin(), names.end()};
}

}  // namespace

void list(const Options& options, Output& output) {
    Profile profile(parts::kInstructions | parts::kValues);
    profile.add_file(options.profile);
    profile.finish();
    const Instructions instructions(profile);
    const auto code = open_objects(profile.objects(), options.program);
    std::vector<Function> functions = find_functions(profile, instructions.rows(), options, code);
    const bool counted = have_counts(functions);
    const std::vector<std::size_t> sort = sort_events(options, profile.header());
    const Weight weight(profile, sort.front(), counted);
    choose(functions, options, sort, weight);
    const Columns columns{profile.header(), profile.totals(),
                          columns_to_show(options, sort.front(), counted, profile), cells(options),
                          options.color};

    ValuePrinter values(lists_of(profile), options.plugins, options.values);
    write_head(options, profile, values, counted, output);
    DisplayNames names(options.names);
    names.add(profile);
    for (const Function& function : functions) {
        names.add(function.name);
        names.add(function.outer);
    }
    names.finish();
    if (options.full)
        write_summary(functions, columns, names, output);
    else if (counted)
        write_brief_totals(columns, output);
    Hottest hot;
    Table table(columns);  // if `brief`
    if (options.brief()) {
        hot = hottest(functions, weight, options.threshold, fitting(columns).lines, options.source);
        for (const std::vector<const Row*>& rows : hot.rows)
            for (const Row* const row : rows) table.fit(row->counts(profile));
        output.write(FunctionWriter::heading(table));
    }
    FunctionWriter writer(options, profile, columns, names, values, code, output);
    std::vector<bool> said(code.size());
    for (std::size_t i = 0; i < functions.size(); ++i) {
        if (options.brief() && hot.rows[i].empty()) continue;
        ObjectCode& object = *code[functions[i].object];
        if (options.brief())
            writer.write_rows(functions[i], object, hot.rows[i], table);
        else
            writer.write(functions[i], object);
        if (object.problem().empty() || said[functions[i].object]) continue;
        output.write(
            fmt::format("Warning: no instructions are shown: {}\n\n", printable(object.problem())));
        said[functions[i].object] = true;
    }
    write_left_out(hot.left_out, output, "--function=REGEX and --full");
    output.finish();
}

}  // namespace assay::list

namespace assay {

int list_main(int argc, char** argv) {
    const std::optional<list::Options> options = list::parse_options(argc, argv);
    if (!options) return 0;
    Output output(stdout, options->pager ? Output::Paging::kIfLong : Output::Paging::kNever);
    if (options->series)
        list::list_series(options->profile, options->names, output);
    else
        list::list(*options, output);
    return 0;
}

}  // namespace assay
