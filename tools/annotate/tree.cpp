#include "tools/annotate/tree.h"

#include "framework/support/text.h"
#include "tools/table/json.h"

#include <fmt/core.h>
#include <algorithm>

namespace assay::annotate {

namespace {

// Deeper ones, as of a long recursion, count for the frame of this depth.
constexpr std::size_t kMostDepth = 512;
// A page has no room for more.
constexpr std::size_t kMostIndentation = 24;

// How a function was entered, unless by a call. What a thread begins with comes from nowhere.
std::string_view entry(const StackTree::Frame& frame) {
    if (frame.handler) return "interrupted";
    if (frame.parent == 0) return "";
    return frame.inlined ? "inlined" : frame.jumped ? "jumped" : "";
}

}  // namespace

TreeTable::TreeTable(const WholeProfile& profile, const Columns& columns,
                     const std::vector<SortColumn>& sort)
    : columns_(columns), tree_(columns.totals.size(), kMostDepth) {
    tree_.add(profile, 0, counted_by_context(profile, nullptr));
    keep_exclusive();
    tree_.make_inclusive();
    choose(sort);
}

void TreeTable::keep_exclusive() {
    for (const StackTree::Frame& frame : tree_.frames())
        exclusive_.insert(exclusive_.end(), frame.counts.begin(), frame.counts.end());
}

// A frame never counts more than the one that it is in, so what is left out is whole subtrees.
void TreeTable::choose(const std::vector<SortColumn>& sort) {
    const auto frames = tree_.frames();
    std::vector<std::vector<std::uint32_t>> children(frames.size());
    for (std::uint32_t i = 1; i < frames.size(); ++i)
        if (is_above_threshold(inclusive(i), columns_.totals, sort, columns_.header))
            children[frames[i].parent].push_back(i);
    std::vector<std::uint32_t> waiting = {0};
    while (!waiting.empty()) {
        const std::uint32_t frame = waiting.back();
        waiting.pop_back();
        if (frame != 0) shown_.push_back(frame);
        std::vector<std::uint32_t>& inner = children[frame];
        // The first is the last to wait.
        std::sort(inner.begin(), inner.end(), [&](std::uint32_t a, std::uint32_t b) {
            return comes_first(inclusive(b), inclusive(a), sort, columns_.header)
                .value_or(tree_.name(frames[b]) < tree_.name(frames[a]));
        });
        waiting.insert(waiting.end(), inner.begin(), inner.end());
    }
}

std::string TreeTable::text(std::uint32_t number) const {
    const StackTree::Frame& frame = tree_.frames()[number];
    const std::size_t depth = frame.depth - 1;
    std::string text(std::min(depth, kMostIndentation), ' ');
    if (depth > kMostIndentation) text += fmt::format("+{} ", depth - kMostIndentation);
    text += printable(tree_.name(frame));
    if (!entry(frame).empty()) text += fmt::format(" [{}]", entry(frame));
    if (frame.depth == kMostDepth) text += " [and what it calls]";
    return text;
}

void TreeTable::write(Output& output) const {
    Table with_inner(columns_), own(columns_);
    for (const std::uint32_t frame : shown_) {
        with_inner.fit(inclusive(frame));
        own.fit(exclusive(frame));
    }
    const auto row = [&](std::string inner_row, const std::string& own_row) {
        inner_row.pop_back();  // the end of the line
        return inner_row + own_row;
    };
    output.section("Calling contexts");
    output.write("left: with all that is called from there; right: the function itself\n\n");
    output.write(row(with_inner.heading("  "), own.heading("function")) + "\n");
    for (const std::uint32_t frame : shown_)
        output.write(
            row(with_inner.row(inclusive(frame), "  "), own.row(exclusive(frame), text(frame))));
    if (shown_.empty()) output.write("  none is above the threshold\n");
    output.write("\n");
}

void TreeTable::write_json(JsonWriter& json) const {
    json.key("tree");
    json.begin_array();
    for (const std::uint32_t number : shown_) {
        const StackTree::Frame& frame = tree_.frames()[number];
        json.begin_object();
        json.number("depth", frame.depth - 1);
        json.text("function", tree_.name(frame));
        json.text("entry", entry(frame).empty() ? "call" : entry(frame));
        json.key("inclusive");
        write_counts(columns_.header, columns_.shown, inclusive(number), json);
        json.key("exclusive");
        write_counts(columns_.header, columns_.shown, exclusive(number), json);
        json.end_object();
    }
    json.end_array();
}

}  // namespace assay::annotate
