// How much more the new profile may count: what --fail-on says, and what exceeds it.
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
    std::string text;     // as it was given
    std::string event;    // or a derived figure
    std::string kind;     // of what: function, file, binary, or a kind of groups; "": the program
    std::string pattern;  // a glob; "": the program
    // The most that it may change by: so many units of 10 to the power of -`decimals`.
    std::int64_t most = 0;
    unsigned decimals = 0;
    bool is_percentage = false;  // of what the old profile counts

    // Counts, exactly; a difference that is equal to the limit does not exceed it.
    bool is_exceeded(std::uint64_t before, std::uint64_t after) const;
    // Figures.
    bool is_exceeded(double before, double after) const;
};

// EVENT[@[KIND=]GLOB]:LIMIT, where LIMIT is a number with or without a per cent sign. Throws Error.
Limit parse_limit(std::string_view text);
std::vector<Limit> parse_limits(const std::vector<std::string>& texts);

// Names as shells match them: the whole of a name, of which `/` is a character as any other.
bool glob_matches(const std::string& pattern, std::string_view name);
// The whole path, or its last parts.
bool glob_matches_path(const std::string& pattern, std::string_view path);
// With its parameters, or without its signature.
bool glob_matches_function(const std::string& pattern, std::string_view name);

// Something that a limit is of, in both profiles.
struct Subject {
    std::string name;  // "": the program
    Counts before, after;
};

// What became of a limit, for one of its subjects.
struct Verdict {
    const Limit* limit;
    std::string subject;                          // its name
    std::string event;                            // or the derived figure
    std::string before, after, change, relative;  // for people; relative: "+0.5%" or ""
    bool is_exceeded;
    double size;  // of the change, to sort by
};

// "Ir of f (a.c): 1,000 -> 1,020, +20 (+2.0%), more than Ir@f:+1%"
std::string verdict_text(const Verdict& verdict);

// All subjects of the limit that exceed it, the largest changes first; if there are none, the one
// that changed most. Empty if there are no subjects. Throws Error if the profiles have no such
// event.
std::vector<Verdict> check_limit(const Limit& limit, const std::vector<Subject>& subjects,
                                 const events::Header& header);

}  // namespace assay::diff
