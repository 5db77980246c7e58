#include "tools/diff/diff.h"

#include "framework/events/writer.h"
#include "framework/support/error.h"
#include "framework/support/text.h"
#include "tools/annotate/functions.h"
#include "tools/annotate/json.h"
#include "tools/annotate/profile.h"
#include "tools/annotate/table.h"

#include <fmt/format.h>
#include <algorithm>
#include <limits>
#include <map>

namespace assay::diff {

namespace {

using annotate::Counts;
using annotate::Profile;

// A function in both profiles; zeros where one does not have it.
struct Change {
    std::string_view file, function;
    std::vector<std::uint64_t> before, after;

    std::int64_t difference(std::size_t event) const {
        return static_cast<std::int64_t>(after[event] - before[event]);
    }
};

void check(const Profile& profile, const std::string& path) {
    if (profile.header().difference)
        throw Error(fmt::format("{} is a difference already; give two profiles", path));
    for (const std::uint64_t total : profile.totals())
        if (total > std::numeric_limits<std::int64_t>::max())
            throw Error(fmt::format("{}: a total exceeds 63 bits, which differences have", path));
}

// Sorted by file and function, so that what is written does not depend on the order of the input.
std::vector<Change> changes_of(const Profile& before, const Profile& after) {
    std::map<std::pair<std::string_view, std::string_view>, Change> changes;
    const auto add = [&](const Profile& profile, std::vector<std::uint64_t> Change::*counts) {
        for (std::size_t i = 0; i < profile.function_count(); ++i) {
            const std::string_view file = profile.files()[profile.function_file(i)];
            const std::string_view function = profile.names()[profile.function_name(i)];
            const std::vector<std::uint64_t> zeros(profile.totals().size());
            const auto [entry, is_new] =
                changes.try_emplace({file, function}, Change{file, function, zeros, zeros});
            const Counts row = profile.function_counts(i);
            (entry->second.*counts).assign(row.begin(), row.end());
        }
    };
    add(before, &Change::before);
    add(after, &Change::after);
    std::vector<Change> sorted;
    sorted.reserve(changes.size());
    for (auto& [place, change] : changes) sorted.push_back(std::move(change));
    return sorted;
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

// Two columns for each event: by how much it changed, and what part of what it was that is.
class ChangeTable {
  public:
    ChangeTable(const events::Header& header, std::vector<std::size_t> shown, bool color)
        : header_(header), shown_(std::move(shown)), widths_(shown_.size()), color_(color) {
        for (std::size_t i = 0; i < shown_.size(); ++i)
            widths_[i].count = header.events[shown_[i]].name.size();
    }

    void fit(const Change& change) {
        for (std::size_t i = 0; i < shown_.size(); ++i) {
            const std::size_t event = shown_[i];
            fit_count(i, signed_text(change.difference(event)));
            const std::string relative = relative_text(change.before[event], change.after[event]);
            widths_[i].relative = std::max(widths_[i].relative, relative.size());
        }
    }
    void fit(Counts counts) {
        for (std::size_t i = 0; i < shown_.size(); ++i)
            fit_count(i, with_thousands(counts[shown_[i]]));
    }

    std::string heading(std::string_view text) const {
        std::string out;
        for (std::size_t i = 0; i < shown_.size(); ++i)
            append(out, i, header_.events[shown_[i]].name, "", "");
        return out.append(text).append("\n");
    }
    std::string row(Counts counts, std::string_view text) const {
        std::string out;
        for (std::size_t i = 0; i < shown_.size(); ++i)
            append(out, i, with_thousands(counts[shown_[i]]), "", "");
        return out.append(text).append("\n");
    }
    std::string row(const Change& change, std::string_view text) const {
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

  private:
    void fit_count(std::size_t column, const std::string& text) {
        widths_[column].count = std::max(widths_[column].count, text.size());
    }
    void append(std::string& out, std::size_t column, std::string_view count,
                std::string_view relative, std::string_view color) const {
        out += color;
        out += fmt::format("{:>{}}  {:>{}}", count, widths_[column].count, relative,
                           widths_[column].relative);
        if (!color.empty()) out += "\033[0m";
        out += "   ";
    }

    struct Width {
        std::size_t count = 0, relative = 0;
    };
    const events::Header& header_;
    std::vector<std::size_t> shown_;
    std::vector<Width> widths_;
    bool color_;
};

using annotate::SortColumn;

std::vector<SortColumn> sort_columns(const Options& options, const events::Header& header) {
    annotate::Options like;
    like.sort = options.sort;
    like.threshold = options.threshold;
    return annotate::sort_columns(like, header);
}

// Those that changed enough, the largest changes first.
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

std::vector<std::size_t> shown_columns(const Options& options, const events::Header& header) {
    std::vector<std::size_t> shown = annotate::shown_events(options.show, header);
    for (const std::size_t column : shown)
        if (column >= header.events.size())
            throw Error(fmt::format("--show: '{}' is calculated from counts; show events",
                                    annotate::shown_name(column, header)));
    return shown;
}

void write_header(const Options& options, const Profile& before, const Profile& after,
                  Output& output) {
    output.section("Difference");
    const auto describe = [&](std::string_view name, const std::string& path,
                              const Profile& profile) {
        output.write(fmt::format("{}  {}  ({})\n", name, printable(path),
                                 printable(profile.header().command)));
        for (const std::string& reason : profile.incomplete())
            output.write(
                fmt::format("INCOMPLETE, not the counts of a whole run: {}\n", printable(reason)));
    };
    describe("Old:", options.old_path, before);
    describe("New:", options.new_path, after);
    const auto& old_ones = before.descriptions();
    for (const auto& [name, text] : after.descriptions()) {
        const auto other =
            std::find_if(old_ones.begin(), old_ones.end(),
                         [&name = name](const auto& each) { return each.first == name; });
        if (other != old_ones.end() && other->second != text)
            output.write(
                fmt::format("Warning: the profiles were made differently: {}: \"{}\" and "
                            "\"{}\"\n",
                            printable(name), printable(other->second), printable(text)));
    }
    output.write("\n");
}

void write_table(const Options& options, const Profile& before, const Profile& after,
                 const std::vector<Change>& changes, Output& output) {
    const events::Header& header = before.header();
    const std::vector<std::size_t> shown = shown_columns(options, header);
    const std::vector<SortColumn> sort = sort_columns(options, header);
    write_header(options, before, after, output);

    const Change total = {"",
                          "",
                          {before.totals().begin(), before.totals().end()},
                          {after.totals().begin(), after.totals().end()}};
    ChangeTable totals(header, shown, options.color);
    totals.fit(total);
    totals.fit(before.totals());
    totals.fit(after.totals());
    output.section("Totals");
    output.write(totals.heading(""));
    output.write(totals.row(before.totals(), "old"));
    output.write(totals.row(after.totals(), "new"));
    output.write(totals.row(total, "changed") + "\n");

    const std::vector<const Change*> chosen = important(changes, sort, before.totals());
    ChangeTable table(header, shown, options.color);
    for (const Change* change : chosen) table.fit(*change);
    output.section("Functions that changed");
    if (chosen.empty()) output.write("none by as much as the threshold\n");
    if (!chosen.empty()) output.write(table.heading("file:function"));
    for (const Change* change : chosen)
        output.write(
            table.row(*change, printable(change->file) + ":" + printable(change->function)));
}

// As cg_diff writes them: one line of each function, of line 0.
void write_file(const Options& options, const Profile& before, const Profile& after,
                const std::vector<Change>& changes) {
    events::Header header = before.header();
    header.descriptions = {{"Files compared", options.old_path + "; " + options.new_path}};
    header.command = before.header().command + "; " + after.header().command;
    header.derived.clear();
    header.objects.clear();
    header.pid = 0;
    header.incomplete = join(before.incomplete(), "; ");
    if (!header.incomplete.empty() && !after.incomplete().empty()) header.incomplete += "; ";
    header.incomplete += join(after.incomplete(), "; ");
    header.difference = true;
    events::Writer writer(options.out, header);
    std::vector<std::uint64_t> row(header.events.size());
    for (const Change& change : changes) {
        writer.location(change.file, change.function);
        for (std::size_t i = 0; i < row.size(); ++i)
            row[i] = static_cast<std::uint64_t>(change.difference(i));
        writer.line(0, row);
    }
    writer.finish();
}

void write_json(const Options& options, const Profile& before, const Profile& after,
                const std::vector<Change>& changes) {
    const events::Header& header = before.header();
    const std::vector<std::size_t> shown = shown_columns(options, header);
    Sink sink("");
    JsonWriter json(sink);
    const auto write_both = [&](Counts old_counts, Counts new_counts) {
        json.key("old");
        annotate::write_counts(header, shown, old_counts, json);
        json.key("new");
        annotate::write_counts(header, shown, new_counts, json);
    };
    json.begin_object();
    json.text("format", "assay-diff");
    json.number("version", 1);
    json.text("oldFile", options.old_path);
    json.text("newFile", options.new_path);
    annotate::write_event_list(header, shown, json);
    json.key("totals");
    json.begin_object();
    write_both(before.totals(), after.totals());
    json.end_object();
    json.key("functions");
    json.begin_array();
    for (const Change* change :
         important(changes, sort_columns(options, header), before.totals())) {
        json.begin_object();
        json.text("file", change->file);
        json.text("function", change->function);
        write_both(change->before, change->after);
        json.end_object();
    }
    json.end_array();
    json.end_object();
    sink.write("\n");
    sink.finish();
}

}  // namespace

void diff(const Options& options, Output& output) {
    Profile before(options.file_names, options.function_names),
        after(options.file_names, options.function_names);
    before.add_file(options.old_path);
    after.add_file(options.new_path);
    check(before, options.old_path);
    check(after, options.new_path);
    events::check_same_events(after.header(), options.new_path, before.header(), options.old_path);
    const std::vector<Change> changes = changes_of(before, after);
    if (!options.out.empty()) return write_file(options, before, after, changes);
    if (options.json) return write_json(options, before, after, changes);
    write_table(options, before, after, changes, output);
    output.finish();
}

}  // namespace assay::diff

namespace assay {

int diff_main(int argc, char** argv) {
    const std::optional<diff::Options> options = diff::parse_options(argc, argv);
    if (!options) return 0;
    Output output(stdout, options->pager ? Output::Paging::kIfLong : Output::Paging::kNever);
    diff::diff(*options, output);
    return 0;
}

}  // namespace assay
