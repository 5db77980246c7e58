// Reads an events file or a Callgrind profile, compressed or not.
#pragma once

#include "framework/events/parser.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace assay::events {

// The summary of a whole file. A Handler receives the counts of places.
struct FileSummary {
    Header header;
    std::vector<std::uint64_t> totals;  // one per event, checked against the summary
};

// The events that a handler receives, in this order; all events if there are no names. If the file
// lacks one of them, or has others and `leaves_out_others` is false, the handler receives the
// file's own events.
struct EventChoice {
    std::vector<std::string> names;
    bool leaves_out_others = false;
    // Puts the event kCycles before the others if the chosen events suffice for its formula.
    bool estimates_cycles = false;
};
// The choice that leads to these events.
EventChoice choice_of(std::span<const Event> events);

// Passes the whole file to `handler`. Throws Error if the file cannot be read, is malformed or is
// cut short. The handler may have received its beginning by then.
FileSummary read_events(const std::string& path, Handler& handler,
                        Accept accept = Accept::kProfiles, const EventChoice& choice = {});

// Reads only the header, as Handler::start() receives it.
Header read_header(const std::string& path, const EventChoice& choice = {});

// True if the file can be opened and begins as an events file or a Callgrind profile does.
bool begins_as_events_file(const std::string& path);

}  // namespace assay::events
