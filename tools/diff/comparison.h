// Two profiles, or those of two folders, read and compared.
#pragma once

#include "tools/diff/changes.h"
#include "tools/diff/diff.h"
#include "tools/profile/profile.h"

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace assay::diff {

class Comparison {
  public:
    // The files of each side are added up. Throws Error if one cannot be read, or if their events
    // differ; where the options name events, those that all files have are compared.
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
    // What a file of the new profile is called in the old one; "" if it has none.
    std::string_view old_file(std::string_view file);
    // Groups of the kind that --by names.
    const std::vector<Change>& groups() const { return groups_.rows; }
    const Breakdown& breakdown() const { return breakdown_; }

    // Columns and order that the options ask for.
    const std::vector<std::size_t>& shown() const { return shown_; }
    const std::vector<SortColumn>& sort() const { return sort_; }
    // Those that changed by as much as the threshold, the largest changes first.
    std::vector<const Change*> important_functions() const;
    std::vector<const Change*> important_groups() const;
    std::vector<const Change*> important_stacks(const std::vector<Change>& stacks) const;

    // Of each limit, in their order.
    const std::vector<Verdict>& verdicts() const { return verdicts_; }
    // Whether there was anything that the limit is of.
    bool has_subjects(std::size_t limit) const { return has_subjects_[limit]; }
    bool is_exceeded() const;
    // In what way the two were made differently, and what makes them incomplete.
    std::vector<std::string> warnings() const;

  private:
    void choose_events(const Options& options);
    void choose_columns(const Options& options);
    void check(const Options& options);
    std::vector<Subject> subjects(const Limit& limit);
    std::vector<Subject> files(const std::string& pattern);
    std::vector<Subject> binaries(const std::string& pattern);
    Counts keep(const std::vector<std::uint64_t>& counts);

    std::vector<std::string> old_paths_, new_paths_;
    events::EventChoice events_;
    std::vector<std::string> left_out_;  // events that some of the files do not have
    Profile before_, after_;
    Breakdown breakdown_;
    Changes changes_;
    GroupChanges groups_;
    std::map<std::string, GroupChanges> other_groups_;  // that limits are of, by kind
    std::vector<std::size_t> shown_;
    std::vector<SortColumn> sort_;
    std::vector<Verdict> verdicts_;
    std::vector<bool> has_subjects_;
    std::deque<std::vector<std::uint64_t>> kept_;
};

// "a.c:f (was b.c:g)".
std::string place_text(const Change& change);

// Many programs at once: the profiles of two folders, matched by what was run.

struct Programs {
    struct Program {
        std::string command;
        std::unique_ptr<Comparison> comparison;
    };
    bool are_many = false;  // of folders, even if there is one
    std::vector<Program> all;
    std::vector<std::string> only_old, only_new;  // commands
    bool are_exceeded() const;
};

// Of two files, or of two folders: several profiles of one command are added up. Throws Error if
// one is a folder and the other is not, or if no command is in both.
Programs compare_programs(const Options& options);

}  // namespace assay::diff
