// The data of a report, as the JSON that page/ shows.
#pragma once

#include "tools/output/formats.h"
#include "tools/output/output.h"
#include "tools/profile/groups.h"
#include "tools/profile/profile.h"
#include "tools/report/block_vectors.h"
#include "tools/report/functions.h"
#include "tools/report/report.h"

#include <optional>
#include <span>
#include <string_view>

namespace assay::report {

struct Content {
    const Profile& profile;
    const Profile* old;    // null: no difference
    const Groups* groups;  // null: there are none
    std::optional<Phases> phases;
};

void write_data(const Content& content, const Options& options, Sink& sink);

// Whose the counts are: groups, with the lines of source that their counts are of, and of threads
// and processes also the functions, for the page.

// Those with the largest shares of any event; null if `groups` is.
void write_groups(const Groups* groups, Counts totals, const FunctionList& functions,
                  JsonWriter& json);

// The values of a profile's instructions, and its series, for the page.

// The lists that have seen the most. What is an address in one of the profile's files has its name
// there.
void write_values(const Profile& profile, JsonWriter& json);

// The series of a profile, as the page plots them.

// `old`: of a report on a difference, whose series stand beside those of the profile; else null.
void write_series(const Profile& profile, const Profile* old, JsonWriter& json);

// What a report consists of besides its data; made from page/ and third_party/ by embed.py.

// In pieces that follow one another.
extern const std::span<const std::string_view> kStyle, kScript;

}  // namespace assay::report
