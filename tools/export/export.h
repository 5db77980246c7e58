// assay export: events files in the formats that other tools read.
#pragma once

#include "tools/command_line/command_line.h"
#include "tools/output/output.h"
#include "tools/profile/profile.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// The subcommand. argv[0] is its name. Throws Error.
int export_main(int argc, char** argv);

namespace exporting {

// For --help and completion.
std::vector<Option> options();

// What of a profile to write: events by their index, at least one.
struct Selection {
    const Profile& profile;
    std::vector<std::size_t> events;
};

void write_callgrind(const Selection& selection, Sink& sink);
void write_csv(const Selection& selection, Sink& sink);
void write_firefox(const Selection& selection, Sink& sink);
void write_folded(const Selection& selection, Sink& sink);
// Each stack with both counts. The events of both are the same.
void write_folded_difference(const Profile& old, const Selection& selection, Sink& sink);
void write_json(const Selection& selection, Sink& sink);
// Not compressed: the caller does that.
void write_pprof(const Selection& selection, Sink& sink);
void write_speedscope(const Selection& selection, Sink& sink);

}  // namespace exporting
}  // namespace assay
