// Comma-separated values (RFC 4180): one row per function and source line.
#include "tools/export/export.h"
#include "tools/output/quoting.h"

#include <fmt/format.h>  // format_to: clang finds none in the library
#include <iterator>

namespace assay::exporting {

void write_csv(const Selection& selection, Sink& sink) {
    const Profile& profile = selection.profile;
    std::string row = "file,line,function";
    for (const std::size_t event : selection.events) row += "," + profile.events()[event].name;
    sink.write(row + "\r\n");
    std::vector<std::uint64_t> counts(profile.events().size());
    for (const Profile::Line& line : profile.lines()) {
        profile.counts().read(line.row, counts);
        const Profile::Place& place = profile.places()[line.place];
        row.clear();
        row += csv_field(profile.text(place.file));
        fmt::format_to(std::back_inserter(row), ",{},", line.line);
        row += csv_field(profile.text(place.function));
        for (const std::size_t event : selection.events)
            fmt::format_to(std::back_inserter(row), ",{}", counts[event]);
        sink.write(row + "\r\n");
    }
}

}  // namespace assay::exporting
