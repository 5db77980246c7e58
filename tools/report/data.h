// The data of a report, as the JSON that page/ shows.
#pragma once

#include "tools/output/sink.h"
#include "tools/profile/profile.h"
#include "tools/report/block_vectors.h"
#include "tools/report/report.h"

#include <optional>

namespace assay::report {

struct Content {
    const Profile& profile;
    const Profile* old;    // null: no difference
    const Groups* groups;  // null: there are none
    std::optional<Phases> phases;
};

void write_data(const Content& content, const Options& options, Sink& sink);

}  // namespace assay::report
