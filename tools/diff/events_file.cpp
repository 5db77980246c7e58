#include "framework/events/writer.h"
#include "framework/support/text.h"
#include "tools/diff/writers.h"

#include <algorithm>
#include <cstdint>

namespace assay::diff {
namespace {

// Two's complement, as a file of differences has them.
std::vector<std::uint64_t> differences(const Change& change) {
    std::vector<std::uint64_t> row(change.before.size());
    for (std::size_t i = 0; i < row.size(); ++i)
        row[i] = static_cast<std::uint64_t>(change.difference(i));
    return row;
}

// Contexts that changed, or lead to some that did, by their functions, as these were compared.
// Where the calls are, which is not the same in both profiles, is the address 0 of the only object.
void write_stacks(const Breakdown& breakdown, events::Writer& writer) {
    if (!breakdown.has_stacks()) return;
    const StackTree& stacks = breakdown.stacks();
    const std::vector<Change> changes = breakdown.stack_changes();
    std::vector<bool> shown(changes.size());
    for (std::size_t i = changes.size(); i-- > 1;) {
        if (!std::ranges::equal(changes[i].before, changes[i].after)) shown[i] = true;
        if (shown[i]) shown[stacks.frames()[i].parent] = true;
    }
    std::vector<std::uint32_t> numbers(changes.size());
    std::uint32_t number = 0;
    for (std::uint32_t i = 1; i < changes.size(); ++i) {
        if (!shown[i]) continue;
        numbers[i] = ++number;
        const StackTree::Frame& frame = stacks.frames()[i];
        writer.stack(
            {number, numbers[frame.parent], StackTree::kind(frame), 0, 0, 0, stacks.name(frame)},
            differences(changes[i]));
    }
}

}  // namespace

void write_events_file(const Options& options, const Comparison& comparison) {
    const FunctionProfile &before = comparison.before(), &after = comparison.after();
    events::Header header = before.header();
    header.descriptions = {{"Files compared", options.old_path + "; " + options.new_path}};
    header.command = before.header().command + "; " + after.header().command;
    header.derived.clear();
    header.objects.clear();
    header.series.clear();
    if (comparison.breakdown().has_stacks()) header.objects = {{"[wherever it is called]", ""}};
    header.pid = 0;
    header.incomplete = join(before.incomplete(), "; ");
    if (!header.incomplete.empty() && !after.incomplete().empty()) header.incomplete += "; ";
    header.incomplete += join(after.incomplete(), "; ");
    header.difference = true;
    events::Writer writer(options.out, header);
    for (const Change& change : comparison.functions()) {
        writer.location(change.file, change.function);
        writer.line(0, differences(change));
    }
    write_stacks(comparison.breakdown(), writer);
    writer.finish();
}

}  // namespace assay::diff
