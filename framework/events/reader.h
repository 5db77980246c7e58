// Reads an events file or a Callgrind profile, compressed or not.
#pragma once

#include "framework/events/parser.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace assay::events {

// What a file says as a whole; what it counts where goes to a Handler.
struct FileSummary {
    Header header;
    std::vector<std::uint64_t> totals;  // one per event, checked against the summary
};

// The events that a handler is to receive, by name and in this order; no names: all events. A file
// without one of them reaches the handler as it is, and so does a file with further events, unless
// `leaves_out_others`.
struct EventChoice {
    std::vector<std::string> names;
    bool leaves_out_others = false;
};
EventChoice choice_of(std::span<const Event> events);

// Passes the whole file to `handler`. Throws Error if it cannot be read or is malformed or cut
// short; by then `handler` may have received the beginning of it.
FileSummary read_events(const std::string& path, Handler& handler,
                        Accept accept = Accept::kProfiles, const EventChoice& choice = {});

// The head alone, as Handler::start() receives it.
Header read_header(const std::string& path);

// Whether the file can be opened and begins as one of these does.
bool begins_as_events_file(const std::string& path);

}  // namespace assay::events
