// Limits on changes of counts, given with --fail-on.
#pragma once

#include "framework/events/header.h"
#include "tools/profile/count_store.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::diff {

struct Limit {
    std::string text;     // as given
    std::string event;    // name of an event or of a derived figure
    std::string kind;     // function, file, binary or a kind of groups; "": the program
    std::string pattern;  // a glob; "": the program
    // The largest change allowed, in units of 10 to the power of -`decimals`.
    std::int64_t most = 0;
    unsigned decimals = 0;
    bool is_percentage = false;  // in percent of the old count

    // For counts. Computes exactly; a change equal to the limit does not exceed it.
    bool is_exceeded(std::uint64_t before, std::uint64_t after) const;
    // For derived figures.
    bool is_exceeded(double before, double after) const;
};

// EVENT[@[KIND=]GLOB]:LIMIT, where LIMIT is a number with or without a per cent sign. Throws Error.
Limit parse_limit(std::string_view text);
std::vector<Limit> parse_limits(const std::vector<std::string>& texts);

// Matches a whole name as shells do, except that wildcards also match `/`.
bool glob_matches(const std::string& pattern, std::string_view name);
// Matches the whole path or its last parts.
bool glob_matches_path(const std::string& pattern, std::string_view path);
// Matches the name with its parameters, or without its signature.
bool glob_matches_function(const std::string& pattern, std::string_view name);

// A function, file or group that a limit applies to, with its counts in both profiles.
struct Subject {
    std::string name;  // "": the program
    Counts before, after;
    std::string shown = name;  // the name to show
};

// The result of a limit for one subject.
struct Verdict {
    const Limit* limit;
    std::string subject, shown;                   // names of the subject
    std::string event;                            // event or derived figure
    std::string before, after, change, relative;  // formatted; `relative` is "+0.5%" or ""
    bool is_exceeded;
    double size;  // size of the change, for sorting
};

// "Ir of f (a.c): 1,000 -> 1,020, +20 (+2.0%), more than Ir@f:+1%"
std::string verdict_text(const Verdict& verdict);

// Returns the subjects that exceed the limit, the largest changes first. If no subject exceeds it,
// returns the subject with the largest change. Empty without subjects. Throws Error if the profiles
// do not have the event.
std::vector<Verdict> check_limit(const Limit& limit, const std::vector<Subject>& subjects,
                                 const events::Header& header);

}  // namespace assay::diff
