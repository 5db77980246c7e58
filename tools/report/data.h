// The data of a report, as the JSON that page/ shows.
#pragma once

#include "tools/output/sink.h"
#include "tools/profile/group_profile.h"
#include "tools/profile/whole_profile.h"
#include "tools/report/block_vectors.h"
#include "tools/report/report.h"

#include <optional>

namespace assay::report {

struct Content {
    const WholeProfile& profile;
    const WholeProfile* old;     // null: no difference
    const GroupProfile* groups;  // null: there are none
    std::optional<Phases> phases;
};

void write_data(const Content& content, const Options& options, Sink& sink);

}  // namespace assay::report
