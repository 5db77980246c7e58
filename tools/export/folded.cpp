// Folded stacks (Brendan Gregg's flamegraph.pl and many others): `outer;inner;innermost COUNT`. Of
// two profiles as his difffolded.pl writes them: `outer;inner;innermost OLD NEW`.
#include "framework/support/error.h"
#include "tools/export/export.h"
#include "tools/export/stacks.h"
#include "tools/profile/stack_tree.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <map>

namespace assay::exporting {

namespace {

// Semicolons separate frames, and line ends stacks. A number behind a blank at the end of a stack
// is one more count for flamegraph.pl.
std::string frame_name(std::string_view name) {
    std::string out(name);
    std::replace(out.begin(), out.end(), ';', ':');
    std::replace_if(
        out.begin(), out.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    const std::size_t blank = out.find_last_not_of("0123456789.");
    if (blank != std::string::npos && blank + 1 < out.size() &&
        (out[blank] == ' ' || out[blank] == '\t'))
        out[blank] = '_';
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

// By the names of functions, as places move between versions.
void write_context_difference(const WholeProfile& old, const WholeProfile& profile,
                              std::size_t event, Sink& sink) {
    const std::size_t columns = profile.events().size();
    StackTree tree(2 * columns, kMostFrames);
    tree.add(old, 0);
    tree.add(profile, columns);
    for (std::uint32_t i = 1; i < tree.frames().size(); ++i) {
        const std::vector<std::uint64_t>& counts = tree.frames()[i].counts;
        if (counts[event] == 0 && counts[columns + event] == 0) continue;
        std::string stack;
        for (const std::string_view name : tree.path(i))
            stack += (stack.empty() ? "" : ";") + frame_name(name);
        sink.write(fmt::format("{} {} {}\n", stack, counts[event], counts[columns + event]));
    }
    const std::uint64_t before = outside(old, event), after = outside(profile, event);
    if (before != 0 || after != 0) sink.write(fmt::format("{} {} {}\n", kOutside, before, after));
}

void write_function_difference(const WholeProfile& old, const WholeProfile& profile,
                               std::size_t event, Sink& sink) {
    std::map<std::pair<std::string_view, std::string_view>, std::array<std::uint64_t, 2>> counts;
    std::vector<std::uint64_t> row(profile.events().size());
    for (const WholeProfile* side : {&old, &profile})
        for (const WholeProfile::Line& line : side->lines()) {
            side->counts().read(line.row, row);
            const WholeProfile::Place& place = side->places()[line.place];
            counts[{side->text(place.function_file), side->text(place.function)}]
                  [side == &old ? 0 : 1] += row[event];
        }
    for (const auto& [function, both] : counts)
        if (both[0] != 0 || both[1] != 0)
            sink.write(fmt::format("{};{} {} {}\n", frame_name(function.first),
                                   frame_name(function.second), both[0], both[1]));
}

}  // namespace

void write_folded_difference(const WholeProfile& old, const Selection& selection, Sink& sink) {
    const std::size_t event = selection.events.front();
    if (is_counted_by_context(old, event) || is_counted_by_context(selection.profile, event))
        write_context_difference(old, selection.profile, event, sink);
    else
        write_function_difference(old, selection.profile, event, sink);
}

void write_folded(const Selection& selection, Sink& sink) {
    const std::size_t event = selection.events.front();
    if (is_counted_by_context(selection.profile, event))
        write_contexts(selection.profile, event, sink);
    else
        write_functions(selection.profile, event, sink);
}

}  // namespace assay::exporting
