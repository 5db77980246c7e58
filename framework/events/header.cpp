#include "framework/events/header.h"

#include "framework/support/error.h"

#include <algorithm>

namespace assay::events {

namespace {

std::string event_list(const Header& header) {
    std::string names;
    for (const Event& event : header.events)
        names.append(names.empty() ? "" : " ").append(event.name);
    return names;
}

}  // namespace

void check_same_events(const Header& header, const std::string& path, const Header& first,
                       const std::string& first_path, std::string_view remedy) {
    const auto same_name = [](const Event& a, const Event& b) { return a.name == b.name; };
    if (!std::equal(header.events.begin(), header.events.end(), first.events.begin(),
                    first.events.end(), same_name))
        throw Error("the events of " + path + " (" + event_list(header) +
                    ") differ from those of " + first_path + " (" + event_list(first) + "); " +
                    std::string(remedy));
}

}  // namespace assay::events
