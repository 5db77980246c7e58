#include "framework/events/reader.h"

#include "framework/events/file.h"
#include "framework/support/error.h"

namespace assay::events {

Profile read_events(const std::string& path, Handler& handler) {
    Parser parser(path, handler);
    read_file(path, [&parser](std::string_view block) { parser.feed(block); });
    parser.finish();
    return {parser.header(), parser.totals()};
}

bool begins_as_events_file(const std::string& path) {
    try {
        const std::string beginning = beginning_of_file(path, 5);
        return beginning == "desc:" || beginning.starts_with("cmd:");
    } catch (const Error&) {
        return false;
    }
}

}  // namespace assay::events
