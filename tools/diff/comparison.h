// Reads and compares two profiles, or the profiles of two folders.
#pragma once

#include "tools/diff/changes.h"
#include "tools/diff/diff.h"
#include "tools/profile/display_names.h"
#include "tools/profile/profile.h"

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace assay::diff {

class Comparison {
  public:
    // Adds up the files of each side, and compares the events that all have. Files that can be read
    // only once must have the same events. Throws Error if a file cannot be read, or if the files
    // have no event in common.
    Comparison(const Options& options, std::vector<std::string> old_paths,
               std::vector<std::string> new_paths);

    const std::vector<std::string>& old_paths() const { return old_paths_; }
    const std::vector<std::string>& new_paths() const { return new_paths_; }
    Profile& before() { return before_; }
    Profile& after() { return after_; }
    const Profile& before() const { return before_; }
    const Profile& after() const { return after_; }
    const events::Header& header() const { return before_.header(); }
    Change totals() const { return {"", "", before_.totals(), after_.totals()}; }

    const std::vector<Change>& functions() const { return changes_.rows; }
    // The old name of a file of the new profile; "" if the old profile does not have it.
    std::string_view old_file(std::string_view file);
    // Groups of the kind given with --by.
    const std::vector<Change>& groups() const { return groups_.rows; }
    const Breakdown& breakdown() const { return breakdown_; }
    // The names of functions to show, of both sides.
    const DisplayNames& names() const { return names_; }
    // "a.c:f (was b.c:g)".
    std::string place_text(const Change& change) const;
    // The name of a group.
    std::string group_text(const Change& change) const;

    // Columns and order, as the options choose them.
    const std::vector<std::size_t>& shown() const { return shown_; }
    const std::vector<SortColumn>& sort() const { return sort_; }
    // Changes that reach the threshold, the largest first.
    std::vector<const Change*> important_functions() const;
    std::vector<const Change*> important_groups() const;
    std::vector<const Change*> important_stacks(const std::vector<Change>& stacks) const;

    // Verdicts on the limits, in their order.
    const std::vector<Verdict>& verdicts() const { return verdicts_; }
    // True if the limit with this index applies to something in the profiles.
    bool has_subjects(std::size_t limit) const { return has_subjects_[limit]; }
    bool is_exceeded() const;
    // Differences between the runs, and reasons why the profiles are incomplete.
    std::vector<std::string> warnings() const;

  private:
    void add_names();
    void choose_events(const Options& options);
    void choose_common_events(const std::vector<events::Header>& headers,
                              const std::vector<std::string>& paths,
                              const std::vector<std::pair<std::string, std::string>>& named);
    void choose_columns(const Options& options);
    void check(const Options& options);
    std::vector<Subject> subjects(const Limit& limit);
    std::vector<Subject> files(const std::string& pattern);
    std::vector<Subject> binaries(const std::string& pattern);
    Counts keep(const std::vector<std::uint64_t>& counts);

    std::vector<std::string> old_paths_, new_paths_;
    events::EventChoice events_{.estimates_cycles = true};
    std::vector<std::string> left_out_;  // events that some of the files do not have
    Profile before_, after_;
    Breakdown breakdown_;
    Changes changes_;
    GroupChanges groups_;
    DisplayNames names_;
    std::map<std::string, GroupChanges> other_groups_;  // groups that limits apply to, by kind
    std::vector<std::size_t> shown_;
    std::vector<SortColumn> sort_;
    std::vector<Verdict> verdicts_;
    std::vector<bool> has_subjects_;
    std::deque<std::vector<std::uint64_t>> kept_;
};

// Comparisons of many programs: the profiles of two folders, matched by command.

struct Programs {
    struct Program {
        std::string command;
        std::unique_ptr<Comparison> comparison;
    };
    bool are_many = false;  // true for folders, even with one program
    std::vector<Program> all;
    std::vector<std::string> only_old, only_new;  // commands
    bool are_exceeded() const;
};

// Compares two files or two folders. Several profiles of one command in a folder are added up.
// Throws Error if only one path is a folder, or if no command is in both folders.
Programs compare_programs(const Options& options);

}  // namespace assay::diff
