#include "tools/export/stacks.h"

#include "framework/support/error.h"
#include "tools/export/export.h"

#include <fmt/core.h>
#include <algorithm>

namespace assay::exporting {
namespace {

constexpr std::size_t kHalf = kMostFrames / 2;

}  // namespace

bool is_counted_by_context(const Profile& profile, std::size_t event) {
    return profile.context_totals()[event] != 0;
}

Stacks::Stacks(const Profile& profile)
    : profile_(profile), depths_(profile.contexts().size()), last_outer_(depths_.size()) {
    // Parents precede their contexts.
    for (std::uint32_t context = 1; context < depths_.size(); ++context) {
        const std::uint32_t parent = profile.contexts()[context].parent;
        depths_[context] = depths_[parent] + 1;
        last_outer_[context] = depths_[context] == kHalf ? context : last_outer_[parent];
    }
}

std::vector<std::uint32_t> Stacks::to(std::uint32_t context) const {
    const std::size_t depth = depths_[context];
    const bool all = depth <= kMostFrames;
    std::vector<std::uint32_t> path(all ? depth : kMostFrames + 1);
    const auto fill = [&](std::size_t end, std::size_t count, std::uint32_t from) {
        for (; count != 0; --count, from = profile_.contexts()[from].parent) path[--end] = from;
    };
    fill(path.size(), all ? depth : kHalf, context);
    if (!all) fill(kHalf, kHalf, last_outer_[context]);
    return path;
}

std::string_view file_of(const Profile& profile, Strings::Id function) {
    const auto known = profile.function_named(function);
    return known ? profile.text(profile.functions()[*known].file) : kUnknown;
}

std::string_view unit_of(const events::Event& event, std::string_view otherwise) {
    for (const std::string_view unit :
         {"bytes", "seconds", "milliseconds", "microseconds", "nanoseconds"})
        if (event.unit == unit) return unit;
    return otherwise;
}

std::string source_position(std::string_view file, std::uint32_t line) {
    if (file == kUnknown) return {};
    file.remove_prefix(std::min(file.find_last_of("/\\") + 1, file.size()));
    return std::string(file) + ":" + (line == 0 ? "?" : std::to_string(line));
}

// Folded stacks for Brendan Gregg's flamegraph.pl and many others: `outer;inner;innermost COUNT`.
// Two profiles are written as his difffolded.pl writes them: `outer;inner;innermost OLD NEW`.

namespace {

// Replaces semicolons, which separate frames, and line ends, which end stacks. flamegraph.pl takes
// a number after a final blank as another count.
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

void write_contexts(const Profile& profile, std::size_t event, Sink& sink) {
    const Stacks stacks(profile);
    std::vector<std::uint64_t> counts(profile.events().size());
    for (std::uint32_t context = 1; context < profile.contexts().size(); ++context) {
        profile.counts().read(profile.contexts()[context].row, counts);
        if (counts[event] == 0) continue;
        std::string stack;
        for (const std::uint32_t caller : stacks.to(context)) {
            if (!stack.empty()) stack += ';';
            stack += caller == 0 ? std::string(kLeftOut)
                                 : frame_name(profile.text(profile.contexts()[caller].function));
        }
        sink.write(fmt::format("{} {}\n", stack, counts[event]));
    }
    const std::uint64_t rest = outside(profile, event);
    if (rest != 0) sink.write(fmt::format("{} {}\n", kOutside, rest));
}

void write_functions(const Profile& profile, std::size_t event, Sink& sink) {
    std::vector<std::uint64_t> counts(profile.events().size());
    for (const Profile::Line& line : profile.lines_by_site()) {
        profile.counts().read(line.row, counts);
        if (counts[event] == 0) continue;
        const Profile::Place& place = profile.places()[line.place];
        const std::string position = source_position(profile.text(place.file), line.line);
        std::string stack;
        for (const std::uint32_t site : profile.sites_to(line.site))
            stack += frame_name(profile.text(profile.sites()[site].function)) + ";";
        sink.write(fmt::format("{}{}{}{} {}\n", stack, frame_name(profile.text(place.function)),
                               position.empty() ? "" : ";", frame_name(position), counts[event]));
    }
}

}  // namespace

// Matches stacks by names of functions, because addresses and lines change between versions.
void write_folded_difference(const Profile& old, const Selection& selection, Sink& sink) {
    const Profile& profile = selection.profile;
    const std::size_t event = selection.events.front();
    const std::size_t columns = profile.events().size();
    const std::vector<bool> by_context = counted_by_context(profile, &old);
    StackTree tree(2 * columns, kMostFrames);
    tree.add(old, 0, by_context);
    tree.add(profile, columns, by_context);
    for (std::uint32_t i = 1; i < tree.frames().size(); ++i) {
        const std::vector<std::uint64_t>& counts = tree.frames()[i].counts;
        if (counts[event] == 0 && counts[columns + event] == 0) continue;
        std::string stack;
        for (const std::string_view name : tree.path(i))
            stack += (stack.empty() ? "" : ";") + frame_name(name);
        sink.write(fmt::format("{} {} {}\n", stack, counts[event], counts[columns + event]));
    }
}

void write_folded(const Selection& selection, Sink& sink) {
    const std::size_t event = selection.events.front();
    if (is_counted_by_context(selection.profile, event))
        write_contexts(selection.profile, event, sink);
    else
        write_functions(selection.profile, event, sink);
}

}  // namespace assay::exporting
