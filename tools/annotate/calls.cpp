#include "tools/annotate/calls.h"

#include "framework/support/text.h"
#include "tools/profile/call_graph.h"
#include "tools/profile/stack_tree.h"
#include "tools/table/table.h"

#include <fmt/core.h>
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace assay::annotate {
namespace {

void write_number_of_calls(std::uint64_t calls, JsonWriter& json) {
    json.key("calls");
    if (calls == 0)
        json.null();
    else
        json.number(calls);
}

std::string times(std::uint64_t calls) {
    return calls == 0 ? "" : fmt::format(" ({}x)", with_thousands(calls));
}

}  // namespace

CallTable::CallTable(const Profile& profile, const Columns& columns,
                     const std::vector<SortColumn>& sort, const DisplayNames& names,
                     const Extent& extent)
    : columns_(columns), sort_(sort), names_(names), extent_(extent) {
    CallGraph graph = call_graph(profile);
    const auto text = [&](Strings::Id id) { return text_of(profile, id); };
    std::map<FunctionKey, std::size_t> indices;
    for (auto& [key, counts] : graph.functions) {
        if (!is_shown(counts.inclusive)) continue;
        indices.emplace(key, functions_.size());
        functions_.push_back({text(key.file),
                              text(key.name),
                              std::move(counts.exclusive),
                              std::move(counts.inclusive),
                              {},
                              {}});
    }
    for (const auto& [pair, calls] : calls_of_functions(graph)) {
        if (!is_call_shown(calls.inclusive)) continue;
        const auto& [caller, callee] = pair;
        if (const auto found = indices.find(caller); found != indices.end())
            functions_[found->second].callees.push_back(
                {text(callee.file), text(callee.name), calls.number, calls.inclusive});
        if (const auto found = indices.find(callee); found != indices.end())
            functions_[found->second].callers.push_back(
                {text(caller.file), text(caller.name), calls.number, calls.inclusive});
    }
    for (Function& function : functions_) {
        put_in_order(function.callers);
        std::reverse(function.callers.begin(), function.callers.end());
        put_in_order(function.callees);
    }
    std::sort(functions_.begin(), functions_.end(), [&](const Function& a, const Function& b) {
        // A view for one screen begins with the functions that cost most by themselves, and not
        // with the main function and those that lead from there.
        const bool all = extent_.full;
        return comes_first(all ? a.inclusive : a.exclusive, all ? b.inclusive : b.exclusive, sort_,
                           columns_.header)
            .value_or(std::tie(a.file, a.name) < std::tie(b.file, b.name));
    });
}

bool CallTable::is_shown(Counts counts) const {
    return is_above_threshold(counts, columns_.totals, sort_, columns_.header);
}

// Shows calls without counts also: they mark recursive functions.
bool CallTable::is_call_shown(Counts counts) const {
    return is_shown(counts) || !any_count(counts);
}

void CallTable::put_in_order(std::vector<Call>& calls) const {
    std::sort(calls.begin(), calls.end(), [&](const Call& a, const Call& b) {
        return comes_first(a.counts, b.counts, sort_, columns_.header)
            .value_or(std::tie(a.file, a.function) < std::tie(b.file, b.function));
    });
}

std::string CallTable::name_text(std::string_view file, std::string_view function) const {
    if (function == kOutside) return printable(function);
    return printable(file) + ":" + printable(names_(function));
}

void CallTable::write_calls(std::string_view mark, const std::vector<Call>& calls,
                            const Table& table, Output& output) const {
    for (const Call& call : calls) {
        output.write(table.row(call.counts,
                               fmt::format("{}   {}{}", mark, name_text(call.file, call.function),
                                           times(call.number))));
    }
}

void CallTable::write(Output& output) const {
    Table table(columns_);
    for (const Function& function : functions_) {
        table.fit(function.inclusive);
        table.fit(function.exclusive);
        for (const auto* calls : {&function.callers, &function.callees})
            for (const Call& call : *calls) table.fit(call.counts);
    }
    if (extent_.full) output.section("Functions with their callers and callees");
    const std::string space = extent_.full ? "\n" : "";
    output.write("< caller, * function with all that it calls, = itself, > callee\n" + space);
    output.write(table.heading("file:function") + space);
    std::size_t rows = 0, lines = 0;
    for (const Function& function : functions_) {
        constexpr std::size_t kOwnLines = 3;
        lines += kOwnLines + function.callers.size() + function.callees.size();
        if (rows == extent_.rows || (lines > extent_.lines && rows != 0)) break;
        ++rows;
        write_calls("<", function.callers, table, output);
        output.write(table.row(function.inclusive, "* " + name_text(function.file, function.name)));
        output.write(table.row(function.exclusive, "=   itself"));
        write_calls(">", function.callees, table, output);
        output.write("\n");
    }
    if (functions_.empty()) output.write("  none is above the threshold\n\n");
    write_left_out(functions_.size() - rows, output);
}

void CallTable::write_json_calls(std::string_view key, const std::vector<Call>& calls,
                                 JsonWriter& json) const {
    json.objects(key, calls, [&](const Call& call) {
        json.text("file", call.file);
        json.text("function", call.function);
        write_number_of_calls(call.number, json);
        write_counts("counts", columns_.header, columns_.shown, call.counts, json);
    });
}

void CallTable::write_json(JsonWriter& json) const {
    json.objects("calls", functions_, [&](const Function& function) {
        json.text("file", function.file);
        json.text("function", function.name);
        write_counts("inclusive", columns_.header, columns_.shown, function.inclusive, json);
        write_counts("exclusive", columns_.header, columns_.shown, function.exclusive, json);
        write_json_calls("callers", function.callers, json);
        write_json_calls("callees", function.callees, json);
    });
}

namespace {

// Deeper frames, such as those of a long recursion, count for the frame of this depth.
constexpr std::size_t kMostDepth = 512;
// Limits the width of a line.
constexpr std::size_t kMostIndentation = 24;

// How a function was entered if no call led to it. The text is empty for the first function of a
// thread.
std::string_view entry(const StackTree::Frame& frame) {
    if (frame.handler) return "interrupted";
    if (frame.parent == 0) return "";
    return frame.inlined ? "inlined" : frame.jumped ? "jumped" : "";
}

}  // namespace

TreeTable::TreeTable(const Profile& profile, const Columns& columns,
                     const std::vector<SortColumn>& sort, const DisplayNames& names,
                     const Extent& extent)
    : columns_(columns), names_(names), tree_(columns.totals.size(), kMostDepth), extent_(extent) {
    tree_.add(profile, 0, counted_by_context(profile, nullptr));
    keep_exclusive();
    tree_.make_inclusive();
    choose(sort);
}

void TreeTable::keep_exclusive() {
    for (const StackTree::Frame& frame : tree_.frames())
        exclusive_.insert(exclusive_.end(), frame.counts.begin(), frame.counts.end());
}

// Frames above the threshold. An inner frame never counts more than its outer frame, and follows
// it. A frame that is left out is therefore left out with its whole subtree.
std::vector<std::uint32_t> TreeTable::most_important(const std::vector<SortColumn>& sort) {
    std::vector<std::uint32_t> found;
    for (std::uint32_t i = 1; i < tree_.frames().size(); ++i)
        if (is_above_threshold(inclusive(i), columns_.totals, sort, columns_.header))
            found.push_back(i);
    if (found.size() <= extent_.rows) return found;
    const std::vector<SortColumn> first = {sort.front()};
    std::stable_sort(found.begin(), found.end(), [&](std::uint32_t a, std::uint32_t b) {
        return comes_first(inclusive(a), inclusive(b), first, columns_.header).value_or(false);
    });
    left_out_ = found.size() - extent_.rows;
    found.resize(extent_.rows);
    return found;
}

void TreeTable::choose(const std::vector<SortColumn>& sort) {
    const auto frames = tree_.frames();
    std::vector<std::vector<std::uint32_t>> children(frames.size());
    for (const std::uint32_t i : most_important(sort)) children[frames[i].parent].push_back(i);
    std::vector<std::uint32_t> waiting = {0};
    while (!waiting.empty()) {
        const std::uint32_t frame = waiting.back();
        waiting.pop_back();
        if (frame != 0) shown_.push_back(frame);
        std::vector<std::uint32_t>& inner = children[frame];
        // `waiting` is a stack, so the most important frame goes on it last.
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
    text += printable(names_(tree_.name(frame)));
    if (!entry(frame).empty()) text += fmt::format(" [{}]", entry(frame));
    text += times(frame.calls[0]);
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
    if (extent_.full) output.section("Calling contexts");
    const std::string space = extent_.full ? "\n" : "";
    output.write("left: with all that is called from there; right: the function itself\n" + space);
    output.write(row(with_inner.heading("  "), own.heading("function")) + space);
    for (const std::uint32_t frame : shown_)
        output.write(
            row(with_inner.row(inclusive(frame), "  "), own.row(exclusive(frame), text(frame))));
    if (shown_.empty()) output.write("  none is above the threshold\n");
    write_left_out(left_out_, output);
    output.write("\n");
}

void TreeTable::write_json(JsonWriter& json) const {
    json.objects("tree", shown_, [&](const std::uint32_t number) {
        const StackTree::Frame& frame = tree_.frames()[number];
        json.number("depth", frame.depth - 1);
        json.text("function", tree_.name(frame));
        json.text("entry", entry(frame).empty() ? "call" : entry(frame));
        write_number_of_calls(frame.calls[0], json);
        write_counts("inclusive", columns_.header, columns_.shown, inclusive(number), json);
        write_counts("exclusive", columns_.header, columns_.shown, exclusive(number), json);
    });
}

}  // namespace assay::annotate
