// Whose the counts are: groups, with the lines of source that their counts are of, and of threads
// and processes also the functions, for the page.
#pragma once

#include "tools/output/json_writer.h"
#include "tools/profile/groups.h"
#include "tools/report/functions.h"

namespace assay::report {

// Those with the largest shares of any event; null if `groups` is.
void write_groups(const Groups* groups, Counts totals, const FunctionList& functions,
                  JsonWriter& json);

}  // namespace assay::report
