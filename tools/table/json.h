// Columns of counts in JSON.
#pragma once

#include "framework/events/header.h"
#include "tools/output/json_writer.h"
#include "tools/profile/count_store.h"

#include <cstddef>
#include <vector>

namespace assay {

// Names, descriptions and units of the columns shown, under the key "events".
void write_event_list(const events::Header& header, const std::vector<std::size_t>& shown,
                      JsonWriter& json);
// Those of the columns shown; a figure that has no value there is null.
void write_counts(const events::Header& header, const std::vector<std::size_t>& shown,
                  Counts counts, JsonWriter& json);

}  // namespace assay
