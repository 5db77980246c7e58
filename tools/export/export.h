// assay export: converts events files to formats of other tools.
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

std::vector<Option> options();

// The profile to write, and the indices of the events to write, at least one.
struct Selection {
    const Profile& profile;
    std::vector<std::size_t> events;
};

void write_callgrind(const Selection& selection, Sink& sink);
void write_csv(const Selection& selection, Sink& sink);
void write_firefox(const Selection& selection, Sink& sink);
void write_folded(const Selection& selection, Sink& sink);
// Writes each stack with its counts in both profiles, which must have the same events.
void write_folded_difference(const Profile& old, const Selection& selection, Sink& sink);
void write_json(const Selection& selection, Sink& sink);
// Writes uncompressed data. The caller compresses it.
void write_pprof(const Selection& selection, Sink& sink);
void write_speedscope(const Selection& selection, Sink& sink);

}  // namespace exporting
}  // namespace assay
