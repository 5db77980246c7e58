#include "tools/report/sources.h"

#include "framework/support/log.h"
#include "framework/support/text.h"
#include "tools/sources/side_by_side.h"
#include "tools/sources/source_finder.h"

#include <fmt/core.h>
#include <algorithm>
#include <span>

namespace assay::report {

namespace {

constexpr std::size_t kContextLines = 6;  // lines of source shown around lines with counts

// Marks a line and the lines around it.
void mark(std::size_t index, std::vector<bool>& lines) {
    const std::size_t first = index < kContextLines ? 0 : index - kContextLines;
    for (std::size_t i = first; i < std::min(lines.size(), index + kContextLines + 1); ++i)
        lines[i] = true;
}

}  // namespace

Sources::Sources(const Content& content, const Options& options, FunctionList& functions,
                 Assembly& assembly, JsonWriter& json)
    : content_(content),
      options_(options),
      functions_(functions),
      assembly_(assembly),
      json_(json),
      finder_(options.where, content.profile.objects()),
      old_finder_(options.old_where,
                  content.old ? content.old->objects() : std::vector<events::Object>()) {}

void Sources::write() {
    collect();
    const Counts totals = content_.profile.totals();
    std::vector<std::pair<double, File*>> order;
    for (auto& [name, file] : files_)
        order.emplace_back(
            std::max(largest_share(file.sum, totals), largest_share(file.old_sum, totals)), &file);
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    json_.begin_array("sources");
    std::size_t lines = 0;
    for (const auto& [share, file] : order) {
        lines += file->now.rows.size() + file->old.rows.size();
        if (lines > content_.limits.source_lines) break;
        write_file(*file);
    }
    json_.end_array();
    if (!left_out_.empty()) say_what_is_left_out();
}

void Sources::collect() {
    add(content_.profile, false);
    if (content_.old)
        add(*content_.old, true);
    else
        add_callees();
}

// Adds the counts of called and inlined functions to the lines that call them.
void Sources::add_callees() {
    for (const auto& [site, calls] : functions_.calls().calls) {
        if (site.line == 0 || site.caller == kOutsideCaller || site.caller.file == kNoFile)
            continue;
        const auto file = files_.find(content_.profile.text(site.caller.file));
        if (file == files_.end()) continue;
        add_counts(file->second.callees[site.line], calls.inclusive);
    }
}

void Sources::add(const Profile& profile, bool is_old) {
    for (std::uint32_t i = 0; i < profile.functions().size(); ++i) {
        const Profile::Function& function = profile.functions()[i];
        const std::uint32_t row = is_old ? functions_.row_of_old(i) : functions_.row_of(i);
        for (std::uint32_t place = function.first_place; place < function.end_place; ++place) {
            const Strings::Id id = profile.places()[place].file;
            std::string_view name = profile.text(id);
            if (is_old) name = functions_.file_of_old(name);
            // If two old files became one new file, only the first is shown beside it, because line
            // numbers belong to one file.
            auto found = files_.try_emplace(name).first;
            if (is_old && found->second.old.profile && found->second.old.name != id)
                found = files_.try_emplace(profile.text(id)).first;
            File& file = found->second;
            Version& version = is_old ? file.old : file.now;
            Column& sum = is_old ? file.old_sum : file.sum;
            file.name = found->first;
            version.profile = &profile;
            version.name = id;
            sum.resize(profile.events().size());
            for (const Profile::Line& line : profile.lines(place)) {
                version.rows.push_back({line.line, row, line.row});
                profile.counts().add_to(sum, line.row);
            }
        }
    }
    for (auto& [name, file] : files_) {
        std::vector<Row>& rows = is_old ? file.old.rows : file.now.rows;
        std::stable_sort(rows.begin(), rows.end(),
                         [](const Row& a, const Row& b) { return a.line < b.line; });
    }
}

void Sources::say_what_is_left_out() const {
    constexpr std::size_t kMostNamed = 8;
    const std::size_t named = std::min(left_out_.size(), kMostNamed);
    std::string names = join(std::span(left_out_).first(named), ", ");
    if (named < left_out_.size()) names += fmt::format(" and {} more", left_out_.size() - named);
    log::problem(
        fmt::format("left out of the report, because nothing says that they are sources: {}; {}",
                    names, kHowToShow));
}

void Sources::read(Version& version, SourceFinder& finder,
                   const std::vector<std::string>& profiles) {
    if (!version.profile) return;
    const std::string name(version.profile->text(version.name));
    using Status = SourceFinder::Status;
    const SourceFinder::Source source =
        is_unknown_file(name) ? SourceFinder::Source{Status::kNotFound, {}} : finder.find(name);
    Text& text = version.text;
    text.status = source.status;
    if (source.status == Status::kLeftOut &&
        std::find(left_out_.begin(), left_out_.end(), name) == left_out_.end())
        left_out_.push_back(name);
    if (source.status != Status::kFound || source_bytes_ >= content_.limits.source_bytes) return;
    text.content = read_source_or_warn(source.path);
    if (!text.content) return;
    text.lines = split_lines(*text.content);
    text.path = source.path.string();
    text.warning = warning_if_newer(name, source.path, profiles);
}

void Sources::write_file(File& file) {
    read(file.now, finder_, options_.profiles);
    read(file.old, old_finder_, {options_.old_profile});
    json_.begin_object();
    json_.text("name", file.name);
    write_version(file.now);
    write_callees(file);
    json_.key("assembly");
    if (file.now.profile)
        assembly_.write(file.now.name, json_);
    else
        json_.null();
    if (content_.old) {
        json_.begin_object("old");
        if (file.old.profile) json_.text("name", file.old.profile->text(file.old.name));
        write_version(file.old);
        json_.end_object();
    }
    write_texts(file);
    json_.end_object();
    file.now = file.old = {};  // frees the texts, which are large
}

// Writes a version without its text. A file that a profile does not have has no lines.
void Sources::write_version(const Version& version) {
    std::vector<std::uint64_t> lines, functions;
    const std::size_t events = content_.profile.events().size();
    Columns counts(events);
    Column row(events);
    for (const Row& each : version.rows) {
        version.profile->counts().read(each.counts, row);
        counts.add(row);
        lines.push_back(each.line);
        functions.push_back(each.function);
    }
    json_.boolean("isThere", version.profile != nullptr);
    json_.numbers("lines", lines);
    json_.numbers("functions", functions);
    counts.write("counts", json_);
    json_.boolean("leftOut", version.text.status == SourceFinder::Status::kLeftOut);
    json_.boolean("found", version.text.status == SourceFinder::Status::kFound);
    if (version.text.content) {
        json_.text("path", version.text.path);
        json_.text("warning", version.text.warning);
        json_.number("length", version.text.lines.size());
    }
}

// Writes lines with the counts of what is called there, without those of the lines themselves.
void Sources::write_callees(const File& file) {
    if (file.callees.empty()) return;
    std::vector<std::uint64_t> lines;
    Columns counts(content_.profile.events().size());
    for (const auto& [line, sum] : file.callees) {
        lines.push_back(line);
        counts.add(sum);
    }
    json_.begin_object("callees");
    json_.numbers("lines", lines);
    counts.write("counts", json_);
    json_.end_object();
}

// Writes the lines of the text around counts of either version. Writes the old text and the pairs
// of lines only if the text has changed.
void Sources::write_texts(const File& file) {
    const Text &now = file.now.text, &old = file.old.text;
    std::vector<bool> shown(now.lines.size()), old_shown(old.lines.size());
    const auto mark_rows = [](const Version& version, std::vector<bool>& marked) {
        for (const Row& row : version.rows)
            if (row.line != 0 && row.line <= marked.size() + kContextLines)
                mark(row.line - 1, marked);
    };
    mark_rows(file.now, shown);
    const bool is_same = now.content && old.content && *now.content == *old.content;
    if (is_same || (now.content && !old.content)) mark_rows(file.old, shown);
    std::vector<LinePair> pairs;
    if (now.content && old.content && !is_same) {
        mark_rows(file.old, old_shown);
        pairs = side_by_side(old.lines, now.lines);
        for (const LinePair& pair : pairs) {
            if (pair.before == LinePair::kNone || pair.after == LinePair::kNone) continue;
            const bool is_shown = old_shown[pair.before] || shown[pair.after];
            old_shown[pair.before] = shown[pair.after] = is_shown;
        }
    } else if (!now.content) {
        mark_rows(file.old, old_shown);
    }
    if (now.content) {
        json_.key("pieces");
        write_pieces(now, shown);
    }
    if (!old.content || is_same) return;
    json_.key("oldPieces");
    write_pieces(old, old_shown);
    if (!now.content) return;
    // Each run has the first lines, from 1 (0 if missing), its length, and whether the texts are
    // equal.
    json_.begin_array("pairs");
    for (auto begin = pairs.begin(); begin != pairs.end();) {
        const auto is_equal = [&](const LinePair& pair) {
            return pair.before != LinePair::kNone && pair.after != LinePair::kNone &&
                   old.lines[pair.before] == now.lines[pair.after];
        };
        const bool has_old = begin->before != LinePair::kNone,
                   has_now = begin->after != LinePair::kNone, equal = is_equal(*begin);
        const auto end = std::find_if(begin, pairs.end(), [&](const LinePair& pair) {
            return (pair.before != LinePair::kNone) != has_old ||
                   (pair.after != LinePair::kNone) != has_now || is_equal(pair) != equal;
        });
        json_.begin_array();
        json_.number(has_old ? begin->before + 1 : 0);
        json_.number(has_now ? begin->after + 1 : 0);
        json_.number(static_cast<std::uint64_t>(end - begin));
        json_.number(equal ? 1 : 0);
        json_.end_array();
        begin = end;
    }
    json_.end_array();
}

// Writes pieces of the text: the number of the first line, and the lines.
void Sources::write_pieces(const Text& text, const std::vector<bool>& shown) {
    json_.begin_array();
    bool is_open = false;
    const auto set_open = [&](bool open, std::size_t index) {
        if (open && !is_open) {
            json_.begin_array();
            json_.number(index + 1);
            json_.begin_array();
        } else if (!open && is_open) {
            json_.end_array();
            json_.end_array();
        }
        is_open = open;
    };
    for (std::size_t i = 0; i < shown.size(); ++i) {
        set_open(shown[i], i);
        if (!shown[i]) continue;
        json_.text(text.lines[i]);
        source_bytes_ += text.lines[i].size();
    }
    set_open(false, 0);
    json_.end_array();
}

}  // namespace assay::report
