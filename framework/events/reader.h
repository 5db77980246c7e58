// Reads an events file or a Callgrind profile, compressed or not.
#pragma once

#include "framework/events/parser.h"

#include <cstdint>
#include <string>
#include <vector>

namespace assay::events {

// What a file says as a whole; what it counts where goes to a Handler.
struct FileSummary {
    Header header;
    std::vector<std::uint64_t> totals;  // one per event, checked against the summary
};

// Passes the whole file to `handler`. Throws Error if it cannot be read or is malformed or cut
// short; by then `handler` may have received the beginning of it.
FileSummary read_events(const std::string& path, Handler& handler,
                        Accept accept = Accept::kProfiles);

// Whether the file can be opened and begins as one of these does.
bool begins_as_events_file(const std::string& path);

}  // namespace assay::events
