// What assay annotate and assay diff show, as JSON: docs/annotate-schema.json,
// docs/diff-schema.json.
#pragma once

#include "tools/annotate/assembly.h"
#include "tools/annotate/functions.h"
#include "tools/annotate/inlined.h"
#include "tools/annotate/sources.h"
#include "tools/output/json_writer.h"

#include <cstddef>
#include <vector>

namespace assay::annotate {

// Names, descriptions and units of the columns shown, under the key "events".
void write_event_list(const events::Header& header, const std::vector<std::size_t>& shown,
                      JsonWriter& json);
// Those of the columns shown; a figure that has no value there is null.
void write_counts(const events::Header& header, const std::vector<std::size_t>& shown,
                  Counts counts, JsonWriter& json);

// What has been read.
struct Content {
    const FunctionProfile& profile;
    const InlinedCalls& inlined;
    const SourceChoice& choice;
    const Assembly& assembly;
};

void write_json(const Options& options, const Content& content, const Columns& columns,
                const std::vector<SortColumn>& sort, Sink& sink);

}  // namespace assay::annotate
