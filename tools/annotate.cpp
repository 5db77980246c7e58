#include "tools/annotate.h"

#include "framework/events/formula.h"
#include "framework/support/text.h"
#include "tools/annotate_profile.h"
#include "tools/annotate_sources.h"
#include "tools/annotate_table.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

namespace assay::annotate {

namespace {

// A sort event by its index, and the percentage of its total that makes a function worth showing.
struct SortColumn {
    std::size_t event;
    std::optional<double> percent;
};

std::vector<SortColumn> sort_columns(const Options& options, const events::Header& header) {
    std::vector<SortColumn> columns;
    for (const SortEvent& event : options.sort)
        columns.push_back({event_index("--sort", event.name, header), event.threshold});
    for (std::size_t i = 0; options.sort.empty() && i < header.events.size(); ++i)
        columns.push_back({i, std::nullopt});
    const bool any = std::any_of(columns.begin(), columns.end(), [](const SortColumn& column) {
        return column.percent.has_value();
    });
    if (!any) columns.front().percent = options.threshold;
    return columns;
}

std::string thresholds(const std::vector<SortColumn>& sort, const events::Header& header) {
    std::vector<std::string> parts;
    for (const SortColumn& column : sort)
        if (column.percent)
            parts.push_back(
                fmt::format("{}% of {}", *column.percent, header.events[column.event].name));
    return fmt::format("those with at least {}", join(parts, " or "));
}

// "Name:   value" with the values of all lines of the header in one column; further values of the
// same name below the first.
class Facts {
  public:
    void add(std::string_view name, std::string_view value) { facts_.emplace_back(name, value); }

    void write(Output& output) const {
        std::size_t width = 0;
        for (const auto& [name, value] : facts_) width = std::max(width, name.size() + 1);
        for (const auto& [name, value] : facts_)
            output.write(
                fmt::format("{}  {}\n", padded(name.empty() ? "" : name + ":", width), value));
        output.write("\n");
    }

  private:
    std::vector<std::pair<std::string, std::string>> facts_;
};

void write_header(const Options& options, const Profile& profile,
                  const std::vector<std::size_t>& shown, const std::vector<SortColumn>& sort,
                  Output& output) {
    const events::Header& header = profile.header();
    const std::vector<std::string> names = event_names(header);
    const auto add_list = [](Facts& facts, std::string_view name, const auto& values) {
        for (const auto& value : values) {
            facts.add(name, value);
            name = "";
        }
    };
    std::vector<std::string> shown_names, sort_names;
    for (const std::size_t event : shown) shown_names.push_back(names[event]);
    for (const SortColumn& column : sort) sort_names.push_back(names[column.event]);

    Facts facts;
    for (const auto& [name, text] : profile.descriptions()) facts.add(name, text);
    add_list(facts, "Command", profile.commands());
    add_list(facts, options.profiles.size() == 1 ? "File" : "Files", options.profiles);
    facts.add("Events recorded", join(names, " "));
    facts.add("Events shown", join(shown_names, " "));
    facts.add("Sorted by", join(sort_names, " "));
    facts.add("Functions", thresholds(sort, header));
    add_list(facts, "Include", options.include_dirs);
    add_list(facts, "Sources named", options.sources);
    facts.add("Sources", options.automatic ? "those of the functions shown" : "only those named");
    output.section("Profile");
    facts.write(output);
    for (const std::string& difference : profile.differences())
        output.write(fmt::format("Warning: counts are added up that were made differently: {}\n",
                                 difference));
    if (!profile.differences().empty()) output.write("\n");
    for (const std::string& reason : profile.incomplete())
        output.write(fmt::format("INCOMPLETE, not the counts of a whole run: {}\n", reason));
    if (!profile.incomplete().empty()) output.write("\n");
}

void write_legend(const Columns& columns, Output& output) {
    std::size_t width = 0;
    for (const std::size_t event : columns.shown)
        if (!columns.header.events[event].description.empty())
            width = std::max(width, columns.header.events[event].name.size());
    if (width == 0) return;
    output.section("Events");
    for (const std::size_t index : columns.shown) {
        const events::Event& event = columns.header.events[index];
        if (event.description.empty()) continue;
        output.write(fmt::format("{}  {}\n", padded(event.name, width), event.description));
    }
    output.write("\n");
}

// A figure that is whole, such as a sum of counts, looks like a count.
std::string plain_number(double value) {
    constexpr double kLargestExact = 0x1p53;
    if (value != std::trunc(value) || std::abs(value) > kLargestExact)
        return fmt::format("{:.3f}", value);
    const auto magnitude = static_cast<unsigned long long>(std::abs(value));
    return (value < 0 ? "-" : "") + with_thousands(magnitude);
}

std::string derived_value(const events::Derived& derived, const Columns& columns) {
    const std::optional<double> value =
        events::Formula(derived.formula, columns.header.events).value(columns.totals);
    if (!value) return "none";
    if (derived.unit == "%") return fmt::format("{:.2f}%", *value * 100);
    return fmt::format("{}{}{}", plain_number(*value), derived.unit.empty() ? "" : " ",
                       derived.unit);
}

void write_totals(const Columns& columns, Output& output) {
    Table table(columns);
    table.fit(columns.totals);
    output.section("Totals");
    output.write(table.heading(""));
    output.write(table.row(columns.totals, "PROGRAM TOTALS") + "\n");
    if (columns.header.derived.empty()) return;
    std::size_t width = 0;
    for (const events::Derived& derived : columns.header.derived)
        width = std::max(width, derived.name.size());
    for (const events::Derived& derived : columns.header.derived)
        output.write(
            fmt::format("{}  {}\n", padded(derived.name, width), derived_value(derived, columns)));
    output.write("\n");
}

bool is_above_threshold(Counts counts, Counts totals, const std::vector<SortColumn>& sort) {
    return std::any_of(sort.begin(), sort.end(), [&](const SortColumn& column) {
        return column.percent && static_cast<double>(counts[column.event]) * 100 >=
                                     *column.percent * static_cast<double>(totals[column.event]);
    });
}

// The functions above the threshold, those with the highest counts first.
std::vector<std::size_t> functions_to_show(const Profile& profile,
                                           const std::vector<SortColumn>& sort) {
    std::vector<std::size_t> functions;
    for (std::size_t i = 0; i < profile.functions().size(); ++i)
        if (is_above_threshold(profile.function_counts(i), profile.totals(), sort))
            functions.push_back(i);
    std::sort(functions.begin(), functions.end(), [&](std::size_t a, std::size_t b) {
        const Counts counts_a = profile.function_counts(a), counts_b = profile.function_counts(b);
        for (const SortColumn& column : sort)
            if (counts_a[column.event] != counts_b[column.event])
                return counts_a[column.event] > counts_b[column.event];
        return profile.functions()[a].name < profile.functions()[b].name;
    });
    return functions;
}

void write_functions(const Profile& profile, const Columns& columns,
                     const std::vector<std::size_t>& functions, Output& output) {
    Table table(columns);
    for (const std::size_t function : functions) table.fit(profile.function_counts(function));
    output.section("Functions");
    output.write(table.heading("file:function"));
    for (const std::size_t function : functions)
        output.write(
            table.row(profile.function_counts(function), profile.functions()[function].name));
    output.write("\n");
}

}  // namespace

void annotate(const Options& options, Output& output) {
    Profile profile(options.automatic || !options.sources.empty());
    for (const std::string& path : options.profiles) profile.add_file(path);

    const events::Header& header = profile.header();
    const Columns columns = {header, profile.totals(), shown_events(options.show, header),
                             options.percentages, options.color};
    const std::vector<SortColumn> sort = sort_columns(options, header);
    write_header(options, profile, columns.shown, sort, output);
    write_legend(columns, output);
    write_totals(columns, output);

    const std::vector<std::size_t> functions = functions_to_show(profile, sort);
    write_functions(profile, columns, functions, output);

    std::vector<std::uint32_t> files;
    files.reserve(functions.size());
    for (const std::size_t function : functions)
        files.push_back(profile.functions()[function].file);
    write_sources(options, profile, columns, files, output);
    output.finish();
}

}  // namespace assay::annotate

namespace assay {

int annotate_main(int argc, char** argv) {
    const std::optional<annotate::Options> options = annotate::parse_options(argc, argv);
    if (!options) return 0;
    annotate::Output output(stdout);
    annotate::annotate(*options, output);
    return 0;
}

}  // namespace assay
