#include "tools/diff/comparison.h"

#include "framework/events/file.h"
#include "framework/events/reader.h"
#include "framework/support/error.h"
#include "framework/support/text.h"
#include "tools/profile/profile_files.h"
#include "tools/table/table.h"

#include <fmt/core.h>
#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <span>
#include <system_error>
#include <utility>

namespace assay::diff {
namespace {

void check_profile(const Profile& profile, const std::string& path) {
    if (profile.header().difference)
        throw Error(fmt::format("{} is a difference already; give two profiles", path));
    for (const std::uint64_t total : profile.totals())
        if (total > std::numeric_limits<std::int64_t>::max())
            throw Error(fmt::format("{}: a total exceeds 63 bits, which differences have", path));
}

unsigned parts_for(const Options& options) {
    unsigned kept = parts::kFunctions;
    const auto add = [&](const std::string& kind) {
        if (kind == "binary")
            kept |= parts::kInstructions | parts::kValues;
        else if (!kind.empty() && kind != "function" && kind != "file")
            kept |= parts::kGroups | parts::kContexts;
    };
    for (const Limit& limit : options.limits) add(limit.kind);
    if (!options.by.empty()) kept |= parts::kGroups | parts::kContexts;
    return kept;
}

std::string runs_text(std::size_t count) {
    return count == 1 ? "a run" : fmt::format("{} runs", count);
}

}  // namespace

Comparison::Comparison(const Options& options, std::vector<std::string> old_paths,
                       std::vector<std::string> new_paths)
    : old_paths_(std::move(old_paths)),
      new_paths_(std::move(new_paths)),
      before_(parts_for(options), options.file_names, options.function_names),
      after_(parts_for(options), options.file_names, options.function_names),
      breakdown_(options.file_names, options.function_names),
      names_(options.names) {
    choose_events(options);
    const auto read = [&](Side side, const std::vector<std::string>& paths, Profile& profile) {
        breakdown_.begin(side);
        profile.choose_events(events_);
        profile.pass_on(breakdown_);
        profile.accept_differences();
        for (const std::string& path : paths) profile.add_file(path);
        profile.finish();
        check_profile(profile, paths.front());
    };
    read(Side::kOld, old_paths_, before_);
    // Both sides share the columns of the breakdown.
    if (events_.names.empty()) events_ = events::choice_of(header().events);
    after_.require_events_of(before_);
    read(Side::kNew, new_paths_, after_);
    changes_ = changes_of(before_, after_, options.match);
    breakdown_.match(changes_.functions, options.match);
    if (!options.by.empty()) groups_ = group_changes(options.by, before_, after_);
    add_names();
    choose_columns(options);
    check(options);
}

void Comparison::add_names() {
    for (const Change& change : changes_.rows) {
        names_.add(change.function);
        if (!change.former.function.empty()) names_.add(change.former.function);
    }
    if (breakdown_.has_stacks())
        for (const StackTree::Frame& frame : breakdown_.stacks().frames().subspan(1))
            names_.add(breakdown_.stacks().name(frame));
    names_.finish();
}

// Chooses the events to compare. Files that can be read only once must have the same events.
void Comparison::choose_events(const Options& options) {
    std::vector<std::pair<std::string, std::string>> named;  // option, event
    for (const std::string& event : options.show) named.emplace_back("--show", event);
    for (const SortEvent& event : options.sort) named.emplace_back("--sort", event.name);
    for (const Limit& limit : options.limits) named.emplace_back("--fail-on", limit.event);
    std::vector<std::string> paths = old_paths_;
    paths.insert(paths.end(), new_paths_.begin(), new_paths_.end());
    if (!std::all_of(paths.begin(), paths.end(), events::can_be_read_again)) return;
    std::vector<events::Header> headers;
    std::transform(paths.begin(), paths.end(), std::back_inserter(headers),
                   [&](const std::string& path) { return events::read_header(path, events_); });
    choose_common_events(headers, paths, named);
    // Files of former releases do not estimate cycles, and the formula can need an event that only
    // one side has.
    const std::vector<std::string>& kept = events_.names;
    events_.estimates_cycles =
        std::all_of(headers.begin(), headers.end(), [&](events::Header& header) {
            const auto is_estimate = [](const events::Event& event) {
                return !event.formula.empty();
            };
            const auto cycles =
                std::find_if(header.events.begin(), header.events.end(), is_estimate);
            if (cycles == header.events.end()) return false;
            const std::string formula = cycles->formula;
            std::erase_if(header.events, [&](const events::Event& event) {
                return !kept.empty() &&
                       std::find(kept.begin(), kept.end(), event.name) == kept.end();
            });
            return events::is_computable(formula, header.events);
        });
}

// Chooses the events that all files have. Throws Error if there are none, or if one that the user
// named is not among them.
void Comparison::choose_common_events(
    const std::vector<events::Header>& headers, const std::vector<std::string>& paths,
    const std::vector<std::pair<std::string, std::string>>& named) {
    const auto has = [](const auto& events, const std::string& name) {
        return std::any_of(events.begin(), events.end(),
                           [&](const events::Event& event) { return event.name == name; });
    };
    std::vector<events::Event> common, left_out;
    for (const events::Header& header : headers)
        for (const events::Event& event : header.events) {
            const auto without = std::find_if(
                headers.begin(), headers.end(),
                [&](const events::Header& other) { return !has(other.events, event.name); });
            std::vector<events::Event>& to = without == headers.end() ? common : left_out;
            if (has(to, event.name)) continue;
            to.push_back(event);
            if (without == headers.end()) continue;
            for (const auto& [option, wanted] : named)
                if (event.name == wanted)
                    throw Error(fmt::format(
                        "{}={}: {} has no event '{}'; name events that both sides have", option,
                        wanted, paths[static_cast<std::size_t>(without - headers.begin())],
                        wanted));
        }
    if (common.empty())
        throw Error(fmt::format("{} and {} have no event in common", old_paths_.front(),
                                new_paths_.front()));
    events_ = events::choice_of(common);
    events_.leaves_out_others = true;
    for (const events::Event& event : left_out)
        if (event.name != events::kCycles) left_out_.push_back(event.name);
}

void Comparison::choose_columns(const Options& options) {
    shown_ = shown_events(options.show, header());
    for (const std::size_t column : shown_)
        if (column >= header().events.size())
            throw Error(fmt::format("--show: '{}' is calculated from counts; show events",
                                    shown_name(column, header())));
    sort_ = sort_columns(options.sort, options.threshold, header());
    if (options.by.empty()) return;
    // Leaves out events that no group counts.
    std::vector<std::size_t> counted;
    for (std::size_t event = 0; event < header().events.size(); ++event)
        if (std::any_of(groups_.rows.begin(), groups_.rows.end(), [&](const Change& change) {
                return change.before[event] != 0 || change.after[event] != 0;
            }))
            counted.push_back(event);
    if (counted.empty()) return;
    if (options.show.empty()) shown_ = counted;
    if (options.sort.empty()) sort_ = {{counted.front(), options.threshold}};
}

std::string_view Comparison::old_file(std::string_view file) {
    for (std::uint32_t i = 0; i < before_.by_source().files().size(); ++i)
        if (changes_.functions.file(before_.by_source().files()[i]) == file)
            return before_.by_source().files()[i];
    return {};
}

std::vector<const Change*> Comparison::important_functions() const {
    return important(changes_.rows, sort_, before_.totals());
}

std::vector<const Change*> Comparison::important_groups() const {
    return important(groups_.rows, sort_, before_.totals());
}

std::vector<const Change*> Comparison::important_stacks(const std::vector<Change>& stacks) const {
    return important(stacks, sort_, before_.totals());
}

// --- Limits

void Comparison::check(const Options& options) {
    // A run that was cut short counts less than a whole run.
    for (const Profile* profile : {&before_, &after_})
        if (!options.limits.empty() && !profile->incomplete().empty())
            throw Error(fmt::format("{}: limits apply only to counts of whole runs",
                                    profile->incomplete().front()));
    has_subjects_.reserve(options.limits.size());
    for (const Limit& limit : options.limits) {
        const std::vector<Subject> all = subjects(limit);
        has_subjects_.push_back(!all.empty());
        for (Verdict& verdict : check_limit(limit, all, header()))
            verdicts_.push_back(std::move(verdict));
    }
}

bool Comparison::is_exceeded() const {
    return std::any_of(verdicts_.begin(), verdicts_.end(),
                       [](const Verdict& verdict) { return verdict.is_exceeded; });
}

std::vector<Subject> Comparison::subjects(const Limit& limit) {
    if (limit.kind.empty()) return {{"", before_.totals(), after_.totals()}};
    if (limit.kind == "file") return files(limit.pattern);
    if (limit.kind == "binary") return binaries(limit.pattern);
    std::vector<Subject> found;
    if (limit.kind == "function") {
        for (const Change& change : changes_.rows)
            if (glob_matches_function(limit.pattern, change.function) ||
                (!change.former.function.empty() &&
                 glob_matches_function(limit.pattern, change.former.function)))
                found.push_back({std::string(change.file) + ":" + std::string(change.function),
                                 change.before, change.after,
                                 std::string(change.file) + ":" + names_(change.function)});
        return found;
    }
    const auto [groups, is_new] = other_groups_.try_emplace(limit.kind);
    if (is_new) groups->second = group_changes(limit.kind, before_, after_);
    for (const Change& change : groups->second.rows)
        if (glob_matches(limit.pattern, change.function))
            found.push_back(
                {std::string(change.function), change.before, change.after, group_text(change)});
    return found;
}

std::vector<Subject> Comparison::files(const std::string& pattern) {
    std::map<std::string_view, std::pair<std::vector<std::uint64_t>, std::vector<std::uint64_t>>>
        sums;
    std::string_view last;  // rows are sorted by file
    bool matches = glob_matches_path(pattern, last);
    for (const Change& change : changes_.rows) {
        if (change.file != last) {
            last = change.file;
            matches = glob_matches_path(pattern, last);
        }
        if (!matches) continue;
        auto& [before, after] = sums[change.file];
        add_counts(before, change.before);
        add_counts(after, change.after);
    }
    std::vector<Subject> found;
    found.reserve(sums.size());
    for (const auto& [file, both] : sums)
        found.push_back({std::string(file), keep(both.first), keep(both.second)});
    return found;
}

// Matches binaries by file name, because two versions are seldom built in the same folder.
std::vector<Subject> Comparison::binaries(const std::string& pattern) {
    using Sums = std::map<std::string, std::vector<std::uint64_t>>;
    Sums before, after;
    const auto add = [&](const Profile& profile, Sums& sums) {
        profile.check_instructions();
        for (const Profile::Instruction& at : profile.instructions()) {
            const std::string& object = profile.objects()[at.object].path;
            if (!glob_matches_path(pattern, object)) continue;
            std::vector<std::uint64_t>& sum = sums[std::string(base_name(object))];
            sum.resize(profile.totals().size());
            profile.counts().add_to(sum, at.row);
        }
    };
    add(before_, before);
    add(after_, after);
    for (const auto& entry : before) after.try_emplace(entry.first, header().events.size());
    std::vector<Subject> found;
    for (const auto& [name, counts] : after) {
        std::vector<std::uint64_t>& old_counts = before[name];
        old_counts.resize(counts.size());
        found.push_back({name, keep(old_counts), keep(counts)});
    }
    return found;
}

Counts Comparison::keep(const std::vector<std::uint64_t>& counts) {
    return kept_.emplace_back(counts);
}

// --- Texts

std::vector<std::string> Comparison::warnings() const {
    std::vector<std::string> warnings;
    for (const Profile* profile : {&before_, &after_})
        for (const std::string& reason : profile->incomplete())
            warnings.push_back("INCOMPLETE, not the counts of a whole run: " + reason);
    if (!left_out_.empty())
        warnings.push_back(
            fmt::format("Warning: events that only some of the files have are left out: {}",
                        join(left_out_, ", ")));
    if (old_paths_.size() != new_paths_.size())
        warnings.push_back(fmt::format(
            "Warning: {} of OLD {} compared with {} of NEW", runs_text(old_paths_.size()),
            old_paths_.size() == 1 ? "is" : "are", runs_text(new_paths_.size())));
    const auto& old_ones = before_.heads().descriptions();
    for (const auto& [name, text] : after_.heads().descriptions()) {
        const auto other =
            std::find_if(old_ones.begin(), old_ones.end(),
                         [&name = name](const auto& each) { return each.first == name; });
        if (other != old_ones.end() && other->second != text && is_setting(name))
            warnings.push_back(
                fmt::format("Warning: the profiles were made differently: {}: \"{}\" and \"{}\"",
                            name, other->second, text));
    }
    return warnings;
}

std::string Comparison::place_text(const Change& change) const {
    const std::string name = names_(change.function),
                      former_name =
                          change.former.function.empty() ? "" : names_(change.former.function),
                      former = FunctionMatching::former_text({change.file, name},
                                                             {change.former.file, former_name});
    return printable(change.file) + ":" + printable(name) +
           (former.empty() ? "" : " (was " + printable(former) + ")");
}

std::string Comparison::group_text(const Change& change) const {
    return change.file == "object" ? names_.of_site(change.function)
                                   : names_.of_type(change.function);
}

namespace {

namespace fs = std::filesystem;

// Returns the command without the program's folder, which differs between versions.
std::string command_of(const Options& options, const std::string& path) {
    const std::string command = events::read_header(path).command;
    const std::size_t end = std::min(command.find(' '), command.size());
    const std::size_t slash = command.rfind('/', end);
    const std::string name =
        slash == std::string::npos || slash > end ? command : command.substr(slash + 1);
    return replaced(name, options.commands);
}

bool is_folder(const std::string& path) {
    std::error_code error;
    return fs::is_directory(path, error);
}

// The events files in a folder, by command. The files of a command are sorted by name.
using Folder = std::map<std::string, std::vector<std::string>>;
Folder read_folder(const Options& options, const std::string& path) {
    std::error_code error;
    std::vector<std::string> names;
    for (fs::directory_iterator file(path, error); !error && file != fs::directory_iterator();
         file.increment(error))
        if (file->is_regular_file(error) && events::begins_as_events_file(file->path()))
            names.push_back(file->path());
    if (error) throw Error(fmt::format("cannot read folder {}: {}", path, error.message()));
    if (names.empty()) throw Error(fmt::format("folder {} has no events files", path));
    std::sort(names.begin(), names.end());
    Folder folder;
    for (std::string& name : names) folder[command_of(options, name)].push_back(std::move(name));
    return folder;
}

// Throws Error for a limit that applies to no program: it is probably misspelt.
void check_limits(const Options& options, const Programs& programs) {
    for (std::size_t i = 0; i < options.limits.size(); ++i) {
        const Limit& limit = options.limits[i];
        if (std::none_of(
                programs.all.begin(), programs.all.end(),
                [&](const Programs::Program& each) { return each.comparison->has_subjects(i); }))
            throw Error(fmt::format("--fail-on='{}': neither side has a {} called {}", limit.text,
                                    limit.kind, limit.pattern));
    }
}

}  // namespace

bool Programs::are_exceeded() const {
    return std::any_of(all.begin(), all.end(),
                       [](const Program& each) { return each.comparison->is_exceeded(); });
}

Programs compare_programs(const Options& options) {
    Programs programs;
    const bool is_old_folder = is_folder(options.old_path),
               is_new_folder = is_folder(options.new_path);
    if (is_old_folder != is_new_folder)
        throw Error(fmt::format("{} is a folder and {} is not: give two files, or two folders",
                                is_old_folder ? options.old_path : options.new_path,
                                is_old_folder ? options.new_path : options.old_path));
    programs.are_many = is_old_folder;
    const auto add = [&](const std::vector<std::string>& before,
                         const std::vector<std::string>& after, std::string command) {
        auto comparison = std::make_unique<Comparison>(options, before, after);
        if (command.empty()) command = comparison->after().header().command;
        programs.all.push_back({std::move(command), std::move(comparison)});
    };
    if (!is_old_folder) {
        add(profile_files({options.old_path}).paths, profile_files({options.new_path}).paths, "");
    } else {
        const Folder before = read_folder(options, options.old_path),
                     after = read_folder(options, options.new_path);
        for (const auto& [command, paths] : before) {
            const auto found = after.find(command);
            if (found == after.end())
                programs.only_old.push_back(command);
            else
                add(paths, found->second, command);
        }
        for (const auto& entry : after)
            if (!before.contains(entry.first)) programs.only_new.push_back(entry.first);
        if (programs.all.empty())
            throw Error(
                fmt::format("{} and {} have no common command; --mod-command=s/A/B/ makes "
                            "different commands equal",
                            options.old_path, options.new_path));
    }
    check_limits(options, programs);
    return programs;
}

}  // namespace assay::diff
