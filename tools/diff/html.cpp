#include "framework/support/text.h"
#include "tools/diff/writers.h"
#include "tools/output/formats.h"
#include "tools/sources/side_by_side.h"
#include "tools/sources/source_finder.h"

#include <fmt/core.h>
#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace assay::diff {
namespace {

constexpr std::size_t kMostRows = 200, kMostFiles = 12;

std::string text_of(std::string_view text) {
    return html_text(printable(text));
}

std::string_view color_of(std::int64_t difference) {
    return difference > 0 ? " worse" : difference < 0 ? " better" : "";
}

std::string change_cell(const Change& change, std::size_t event) {
    const std::int64_t difference = change.difference(event);
    const std::string relative = relative_text(change.before[event], change.after[event]);
    return fmt::format("<td class=\"num{}\">{}{}</td>", color_of(difference),
                       signed_text(difference), relative.empty() ? "" : " (" + relative + ")");
}

// --- Tables

void write_verdicts(const Comparison& comparison, Sink& sink) {
    if (comparison.verdicts().empty()) return;
    sink.write(
        "<div class=\"panel scroll-x\"><h2>Limits</h2>\n<table class=\"plain\"><tr><th>limit<th>of"
        "<th class=\"num\">old<th class=\"num\">new<th class=\"num\">change<th></tr>\n");
    for (const Verdict& verdict : comparison.verdicts()) {
        const std::string relative = verdict.relative.empty() ? "" : " (" + verdict.relative + ")";
        sink.write(fmt::format(
            "<tr><td class=\"name\">{}<td class=\"name\">{}<td class=\"num\">{}<td class=\"num\">{}"
            "<td class=\"num\">{}{}<td{}</tr>\n",
            text_of(verdict.limit->text),
            text_of(verdict.subject.empty() ? "the program" : verdict.shown), verdict.before,
            verdict.after, verdict.change, relative,
            verdict.is_exceeded ? " class=\"exceeded\">exceeded" : ">within"));
    }
    sink.write("</table></div>\n");
}

void write_totals(const Comparison& comparison, Sink& sink) {
    const Change totals = comparison.totals();
    sink.write(
        "<div class=\"panel scroll-x\"><h2>Totals</h2>\n<table class=\"plain\"><tr><th>event"
        "<th class=\"num\">old<th class=\"num\">new<th class=\"num\">change</tr>\n");
    for (const std::size_t event : comparison.shown())
        sink.write(fmt::format("<tr><td>{}<td class=\"num\">{}<td class=\"num\">{}{}</tr>\n",
                               text_of(comparison.header().events[event].name),
                               with_thousands(totals.before[event]),
                               with_thousands(totals.after[event]), change_cell(totals, event)));
    sink.write("</table></div>\n");
}

template <typename Text>
void write_changes(const Comparison& comparison, const std::vector<const Change*>& changes,
                   std::string_view title, const Text& text, Sink& sink) {
    sink.write(fmt::format("<div class=\"panel scroll-x\"><h2>{}</h2>\n", title));
    if (changes.empty()) return sink.write("<p>No change reaches the threshold.</p></div>\n");
    sink.write("<table class=\"plain\"><tr>");
    for (const std::size_t event : comparison.shown())
        sink.write(
            fmt::format("<th class=\"num\">{}", text_of(comparison.header().events[event].name)));
    sink.write("<th></tr>\n");
    for (std::size_t i = 0; i < std::min(changes.size(), kMostRows); ++i) {
        sink.write("<tr>");
        for (const std::size_t event : comparison.shown())
            sink.write(change_cell(*changes[i], event));
        sink.write(fmt::format("<td class=\"name\">{}</tr>\n", html_text(text(*changes[i]))));
    }
    sink.write("</table>");
    if (changes.size() > kMostRows)
        sink.write(fmt::format("<p class=\"soft\">{} more are not shown.</p>",
                               changes.size() - kMostRows));
    sink.write("</div>\n");
}

// --- Sources

// One side of a source file.
struct Version {
    std::string name, text;
    std::vector<std::string_view> lines;
    std::map<std::size_t, std::vector<std::uint64_t>> counts;  // by index of the line
    std::string problem;
};

// Both versions of the source files with changed functions.
class Sources {
  public:
    Sources(const Options& options, Comparison& comparison)
        : options_(options), comparison_(comparison) {
        choose_events();
        choose_files();
    }

    void write(Sink& sink) {
        if (files_.empty()) return;
        sink.write("<div class=\"panel\"><h2>Sources</h2>\n");
        read_counts(comparison_.before(), &File::old_file, &File::before);
        read_counts(comparison_.after(), &File::new_file, &File::after);
        SourceFinder old_finder(options_.old_sources, comparison_.before().objects()),
            new_finder(options_.new_sources, comparison_.after().objects());
        bool is_first = true;
        for (File& file : files_) {
            read_text(old_finder, file.before);
            read_text(new_finder, file.after);
            write_file(file, is_first, sink);
            is_first = false;
        }
        sink.write("</div>\n");
    }

  private:
    struct File {
        std::optional<std::uint32_t> old_file, new_file;  // numbers in the profiles
        Version before, after;
    };

    // Shows the counts of the sort events and of exceeded limits.
    void choose_events() {
        constexpr std::size_t kMostEvents = 3;
        events_.push_back(comparison_.sort().front().event);
        for (const Verdict& verdict : comparison_.verdicts())
            for (std::size_t event = 0; event < comparison_.header().events.size(); ++event)
                if (verdict.is_exceeded && events_.size() < kMostEvents &&
                    comparison_.header().events[event].name == verdict.event &&
                    std::find(events_.begin(), events_.end(), event) == events_.end())
                    events_.push_back(event);
    }

    static std::optional<std::uint32_t> index_of(const Profile& profile, std::string_view file) {
        for (std::uint32_t i = 0; i < profile.by_source().files().size(); ++i)
            if (profile.by_source().files()[i] == file && file != kUnknownFile) return i;
        return std::nullopt;
    }

    void choose_files() {
        std::set<std::string_view> seen;
        for (const Change* change : comparison_.important_functions()) {
            if (files_.size() == kMostFiles) break;
            if (!seen.insert(change->file).second) continue;
            File file;
            const std::string_view old_name = change->former.file.empty()
                                                  ? comparison_.old_file(change->file)
                                                  : change->former.file;
            file.old_file = index_of(comparison_.before(), old_name);
            file.new_file = index_of(comparison_.after(), change->file);
            if (!file.old_file && !file.new_file) continue;
            file.before.name = old_name;
            file.after.name = change->file;
            files_.push_back(std::move(file));
        }
    }

    // Throws Error if the profile's file has changed since it was read.
    void read_counts(Profile& profile, std::optional<std::uint32_t> File::*number,
                     Version File::*version) {
        Details details{std::vector<bool>(profile.by_source().files().size()), false};
        for (const File& file : files_)
            if (file.*number) details.files[*(file.*number)] = true;
        profile.read_details(details);
        for (File& file : files_) {
            if (!(file.*number)) continue;
            for (const SourceLine& line : profile.source_lines(*(file.*number)))
                if (line.line != 0) (file.*version).counts[line.line - 1] = line.counts;
        }
    }

    static void read_text(SourceFinder& finder, Version& version) {
        if (version.name.empty()) {
            version.problem = "not in this profile";
            return;
        }
        const SourceFinder::Source source = finder.find(version.name);
        if (source.status != SourceFinder::Status::kFound) {
            version.problem = source.status == SourceFinder::Status::kLeftOut
                                  ? fmt::format("left out: {}", kHowToShow)
                                  : "source not found";
            return;
        }
        std::optional<std::string> text = read_source_or_warn(source.path);
        if (!text) {
            version.problem = "source cannot be read";
            return;
        }
        version.text = std::move(*text);
        version.lines = split_lines(version.text);
    }

    std::uint64_t count(const Version& version, std::size_t line, std::size_t event) const {
        const auto found = version.counts.find(line);
        return found == version.counts.end() ? 0 : found->second[event];
    }

    bool has_changed(const File& file, const LinePair& pair) const {
        return std::any_of(events_.begin(), events_.end(), [&](std::size_t event) {
            return count(file.before, pair.before, event) != count(file.after, pair.after, event);
        });
    }

    void write_file(const File& file, bool is_open, Sink& sink) const {
        sink.write(fmt::format("<details{}><summary><h3>{}</h3></summary>\n",
                               is_open ? " open" : "", text_of(file.after.name)));
        for (const auto& [side, version] :
             {std::pair{"Old", &file.before}, std::pair{"New", &file.after}})
            if (!version->problem.empty())
                sink.write(fmt::format("<p class=\"soft\">{}: {} {}</p>\n", side,
                                       text_of(version->name), text_of(version->problem)));
        const std::vector<LinePair> pairs = side_by_side(file.before.lines, file.after.lines);
        write_pairs(file, pairs, lines_to_show(file, pairs), sink);
        sink.write("</details>\n");
    }

    // Lines whose counts changed, and some around them.
    std::vector<bool> lines_to_show(const File& file, const std::vector<LinePair>& pairs) const {
        constexpr std::size_t kContext = 3;
        std::vector<bool> shown(pairs.size());
        for (std::size_t i = 0; i < pairs.size(); ++i)
            if (has_changed(file, pairs[i]))
                for (std::size_t j = i < kContext ? 0 : i - kContext;
                     j < std::min(pairs.size(), i + kContext + 1); ++j)
                    shown[j] = true;
        return shown;
    }

    void write_pairs(const File& file, const std::vector<LinePair>& pairs,
                     const std::vector<bool>& shown, Sink& sink) const {
        if (std::find(shown.begin(), shown.end(), true) == shown.end())
            return sink.write("<p class=\"soft\">No line in the file has changed counts.</p>\n");
        sink.write("<div class=\"scroll-x\"><table class=\"sides\"><tr>");
        for (const std::string_view side : {"old", "new"}) {
            for (const std::size_t event : events_)
                sink.write(fmt::format("<th class=\"num\">{} {}",
                                       text_of(comparison_.header().events[event].name), side));
            sink.write(fmt::format("<th><th>{}", side));
        }
        sink.write("</tr>\n");
        bool is_gap = false;
        for (std::size_t i = 0; i < pairs.size(); ++i) {
            if (!shown[i]) {
                is_gap = true;
                continue;
            }
            if (is_gap && i != 0)
                sink.write(fmt::format("<tr class=\"gap\"><td colspan=\"{}\">...</tr>\n",
                                       2 * events_.size() + 4));
            is_gap = false;
            const LinePair& pair = pairs[i];
            const bool is_same = pair.before != LinePair::kNone && pair.after != LinePair::kNone &&
                                 file.before.lines[pair.before] == file.after.lines[pair.after];
            sink.write(is_same ? "<tr>" : "<tr class=\"changed\">");
            write_side(file.before, pair.before, file.after, pair.after, "", sink);
            write_side(file.after, pair.after, file.before, pair.before, "change", sink);
            sink.write("</tr>\n");
        }
        sink.write("</table></div>\n");
    }

    void write_side(const Version& version, std::size_t line, const Version& other,
                    std::size_t other_line, std::string_view colored, Sink& sink) const {
        for (const std::size_t event : events_) {
            const std::uint64_t here = count(version, line, event);
            const auto difference =
                static_cast<std::int64_t>(here - count(other, other_line, event));
            sink.write(fmt::format("<td class=\"num{}\">{}",
                                   colored.empty() ? std::string_view() : color_of(difference),
                                   here == 0 ? "" : with_thousands(here)));
        }
        if (line == LinePair::kNone) return sink.write("<td class=\"line\"><td class=\"text\">");
        sink.write(fmt::format("<td class=\"line\">{}<td class=\"text\">{}", line + 1,
                               text_of(version.lines[line])));
    }

    const Options& options_;
    Comparison& comparison_;
    std::vector<std::size_t> events_;
    std::vector<File> files_;
};

// --- The page

void write_program(const Options& options, const Programs& programs,
                   const Programs::Program& program, std::size_t number, Sink& sink) {
    Comparison& comparison = *program.comparison;
    sink.write(fmt::format("<section id=\"p{}\">\n", number));
    if (programs.are_many) sink.write(fmt::format("<h2>{}</h2>\n", text_of(program.command)));
    sink.write(fmt::format("<p class=\"soft\">Old: {}<br>New: {}</p>\n",
                           text_of(join(comparison.old_paths(), ", ")),
                           text_of(join(comparison.new_paths(), ", "))));
    for (const std::string& warning : comparison.warnings())
        sink.write(fmt::format("<p class=\"warning\">{}</p>\n", text_of(warning)));
    write_verdicts(comparison, sink);
    write_totals(comparison, sink);
    if (options.by.empty()) {
        write_changes(
            comparison, comparison.important_functions(), "Functions that changed",
            [&](const Change& change) { return comparison.place_text(change); }, sink);
        Sources(options, comparison).write(sink);
    } else {
        write_changes(
            comparison, comparison.important_groups(), "What changed by " + html_text(options.by),
            [&](const Change& change) { return printable(comparison.group_text(change)); }, sink);
    }
    sink.write("</section>\n");
}

void write_summary(const Programs& programs, Sink& sink) {
    const Comparison& first = *programs.all.front().comparison;
    sink.write("<div class=\"panel scroll-x\"><h2>Programs</h2>\n<table class=\"plain\"><tr>");
    for (const std::size_t event : first.shown())
        sink.write(fmt::format("<th class=\"num\">{}", text_of(first.header().events[event].name)));
    sink.write("<th><th></tr>\n");
    for (std::size_t i = 0; i < programs.all.size(); ++i) {
        const Comparison& comparison = *programs.all[i].comparison;
        sink.write("<tr>");
        for (const std::size_t event : first.shown())
            sink.write(change_cell(comparison.totals(), event));
        sink.write(fmt::format(
            "<td class=\"name\"><a href=\"#p{}\">{}</a><td class=\"exceeded\">{}"
            "</tr>\n",
            i, text_of(programs.all[i].command), comparison.is_exceeded() ? "exceeded" : ""));
    }
    sink.write("</table>\n");
    for (const auto& [side, commands] :
         {std::pair{"old", &programs.only_old}, std::pair{"new", &programs.only_new}})
        for (const std::string& command : *commands)
            sink.write(fmt::format("<p class=\"soft\">Only {}: {}</p>\n", side, text_of(command)));
    sink.write("</div>\n");
}

}  // namespace

void write_html(const Options& options, Programs& programs, Sink& sink) {
    const std::string title = programs.are_many ? fmt::format("{} programs", programs.all.size())
                                                : text_of(programs.all.front().command);
    begin_page(title + " - assay diff", kStyle, false, sink);
    sink.write(fmt::format("<div class=\"top\"><div><h1>{}</h1></div></div>\n<main>\n", title));
    if (programs.are_many) write_summary(programs, sink);
    for (std::size_t i = 0; i < programs.all.size(); ++i)
        write_program(options, programs, programs.all[i], i, sink);
    sink.write("</main>\n</body>\n</html>\n");
}

}  // namespace assay::diff
