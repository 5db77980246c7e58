// Writes the data of a report as JSON for the scripts in page/.
#pragma once

#include "tools/output/formats.h"
#include "tools/output/output.h"
#include "tools/profile/display_names.h"
#include "tools/profile/groups.h"
#include "tools/profile/profile.h"
#include "tools/report/block_vectors.h"
#include "tools/report/functions.h"
#include "tools/report/limits.h"
#include "tools/report/report.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace assay::report {

struct Content {
    const Profile& profile;
    const Profile* old;    // null without a difference
    const Groups* groups;  // null without groups
    std::optional<Phases> phases;
    Limits limits = {};
};

void write_data(const Content& content, const Options& options, Sink& sink);

// Writes the groups with the largest shares of any event, with their source lines. Threads and
// processes also get their functions. Writes null if `groups` is null. Returns the indices of the
// written groups, in the order of the page.
std::vector<std::uint32_t> write_groups(const Groups* groups, Counts totals,
                                        const FunctionList& functions, const DisplayNames& names,
                                        const Limits& limits, JsonWriter& json);

// Writes the summary that the page opens on. `shown` are the groups of the page. Writes null for a
// difference.
void write_summary(const Content& content, const Options& options, const DisplayNames& names,
                   const std::vector<std::uint32_t>& shown, JsonWriter& json);

// Writes the lists with the most values. Values that are addresses in a file of the profile get
// their names.
void write_values(const Profile& profile, const DisplayNames& names, std::size_t most,
                  JsonWriter& json);

// Writes the series that the page plots. `old` is the old profile of a difference, or null.
void write_series(const Profile& profile, const Profile* old, const DisplayNames& names,
                  JsonWriter& json);

// Styles and scripts of a report. embed.py makes them from page/ and third_party/.

// Consecutive pieces of one text.
extern const std::span<const std::string_view> kStyle, kScript;

}  // namespace assay::report
