// Folded stacks (Brendan Gregg's flamegraph.pl and many others): `outer;inner;innermost COUNT`.
#include "framework/support/error.h"
#include "tools/export/export.h"
#include "tools/export/stacks.h"

#include <fmt/core.h>
#include <algorithm>

namespace assay::exporting {

namespace {

// Semicolons separate frames, and line ends stacks.
std::string frame_name(std::string_view name) {
    std::string out(name);
    std::replace(out.begin(), out.end(), ';', ':');
    std::replace_if(
        out.begin(), out.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    return out;
}

void write_contexts(const WholeProfile& profile, std::size_t event, Sink& sink) {
    std::vector<std::uint64_t> counts(profile.events().size());
    for (std::uint32_t context = 1; context < profile.contexts().size(); ++context) {
        profile.counts().read(profile.contexts()[context].row, counts);
        if (counts[event] == 0) continue;
        std::string stack;
        for (const std::uint32_t caller : path_to(profile, context)) {
            if (!stack.empty()) stack += ';';
            stack += caller == 0 ? std::string(kLeftOut)
                                 : frame_name(profile.text(profile.contexts()[caller].function));
        }
        sink.write(fmt::format("{} {}\n", stack, counts[event]));
    }
    const std::uint64_t rest = outside(profile, event);
    if (rest != 0) sink.write(fmt::format("{} {}\n", kOutside, rest));
}

void write_functions(const WholeProfile& profile, std::size_t event, Sink& sink) {
    std::vector<std::uint64_t> counts(profile.events().size());
    for (const WholeProfile::Line& line : profile.lines()) {
        profile.counts().read(line.row, counts);
        if (counts[event] == 0) continue;
        const WholeProfile::Place& place = profile.places()[line.place];
        const std::string position = source_position(profile.text(place.file), line.line);
        sink.write(fmt::format("{}{}{} {}\n", frame_name(profile.text(place.function)),
                               position.empty() ? "" : ";", frame_name(position), counts[event]));
    }
}

}  // namespace

void write_folded(const Selection& selection, Sink& sink) {
    const std::size_t event = selection.events.front();
    if (is_counted_by_context(selection.profile, event))
        write_contexts(selection.profile, event, sink);
    else
        write_functions(selection.profile, event, sink);
}

}  // namespace assay::exporting
