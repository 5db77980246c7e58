#include "framework/collector/results/profile_stacks.h"

#include <algorithm>

namespace assay::collector {

namespace {

// A call can go through a stub of the procedure linkage table, which gives the context its name.
std::string_view without_stub(std::string_view name) {
    constexpr std::string_view kStub = "@plt";
    if (name.ends_with(kStub)) name.remove_suffix(kStub.size());
    return name;
}

// Whether code of `function` is of the function that a context is of, or of a part that the
// compiler has split off it. Else it was jumped to, and what it inlines is not the context's.
bool is_of(std::string_view function, std::string_view context) {
    context = without_stub(context);
    if (!function.starts_with(context)) return false;
    const std::string_view rest = function.substr(context.size());
    return rest.empty() || rest.starts_with('.') || rest.starts_with(" [clone ");
}

}  // namespace

StackLines::StackLines(const Profile& profile,
                       const std::function<ObjectPlace(std::uint64_t)>& find,
                       std::span<const ObjectPlace> instructions)
    : profile_(profile) {
    const std::span<const trace_context_t> contexts = profile.contexts;
    std::vector<bool> shown(contexts.size());
    const std::vector<ContextCounts::Row> rows = profile.context_counts->sorted_rows();
    for (const ContextCounts::Row& row : rows)
        if (has_counts(row.number)) shown[row.context] = true;
    for (std::size_t i = contexts.size(); i-- > 1;)
        if (shown[i]) shown[contexts[i].parent] = true;
    auto row = rows.begin();
    for (std::uint32_t i = 1; i < contexts.size(); ++i) {
        if (!shown[i]) continue;
        const Context context = {i, find(contexts[i].call), find(contexts[i].function),
                                 counted_.size(), 0};
        contexts_.push_back(context);
        for (; row != rows.end() && row->context <= i; ++row) {
            if (row->context != i || !has_counts(row->number)) continue;
            counted_.push_back({row->instruction == ContextCounts::kAnyRow
                                    ? context.function
                                    : instructions[row->instruction],
                                row->number});
        }
        contexts_.back().end_counts = counted_.size();
        std::sort(counted_.begin() + static_cast<std::ptrdiff_t>(context.first_counts),
                  counted_.end(),
                  [](const Counted& a, const Counted& b) { return a.place < b.place; });
    }
}

bool StackLines::has_counts(std::uint32_t row) const {
    const std::span<const std::uint64_t> counts = profile_.context_counts->counts(row);
    return std::any_of(profile_.columns.begin(), profile_.columns.end(),
                       [&](std::size_t column) { return counts[column] != 0; });
}

std::vector<ObjectPlace> StackLines::places() const {
    std::vector<ObjectPlace> places;
    for (const Context& context : contexts_) {
        places.push_back(context.call);
        places.push_back(context.function);
    }
    for (const Counted& counted : counted_) places.push_back(counted.place);
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    return places;
}

void StackLines::resolve(const FramesOf& frames_of) {
    std::vector<std::uint32_t> numbers(profile_.contexts.size());
    for (const Context& context : contexts_) {
        const trace_context_t& entered = profile_.contexts[context.number];
        const std::span<const symbols::Frame> call = frames_of(context.call);
        const std::uint32_t caller = numbers[entered.parent];
        const std::uint32_t line =
            add_line({innermost(caller, call),
                      entered.flags & TRACE_CONTEXT_SIGNAL ? events::StackKind::kHandler
                                                           : events::StackKind::kCall,
                      context.call, is_in(call, caller) ? call.front().line : 0,
                      frames_of(context.function).back().function});
        numbers[context.number] = line;
        for (std::size_t i = context.first_counts; i < context.end_counts; ++i) {
            add_counts(line, counted_[i].row, true);
            add_counts(innermost(line, frames_of(counted_[i].place)), counted_[i].row, false);
        }
    }
}

std::uint32_t StackLines::add_line(const Line& line) {
    lines_.push_back(line);
    counts_.resize(counts_.size() + profile_.columns.size());
    return static_cast<std::uint32_t>(lines_.size());
}

// Calls are counts of the context that they enter, wherever they come from.
void StackLines::add_counts(std::uint32_t line, std::uint32_t row, bool calls) {
    const std::size_t columns = profile_.columns.size();
    const std::span<const std::uint64_t> from = profile_.context_counts->counts(row);
    for (std::size_t i = 0; i < columns; ++i)
        if ((profile_.header.events[i].unit == "calls") == calls)
            counts_[(line - 1) * columns + i] += from[profile_.columns[i]];
}

bool StackLines::is_in(std::span<const symbols::Frame> frames, std::uint32_t line) const {
    return line != 0 && is_of(frames.back().function, lines_[line - 1].function);
}

std::uint32_t StackLines::innermost(std::uint32_t line, std::span<const symbols::Frame> frames) {
    if (!is_in(frames, line)) return line;
    for (std::size_t i = frames.size() - 1; i-- > 0;)
        line = inlined(line, frames[i + 1].line, frames[i].function);
    return line;
}

std::uint32_t StackLines::inlined(std::uint32_t parent, std::uint32_t call_line,
                                  std::string_view function) {
    const auto [known, is_new] = inlined_.try_emplace({parent, call_line, function}, 0);
    if (is_new)
        known->second = add_line({parent, events::StackKind::kInlined, {}, call_line, function});
    return known->second;
}

void StackLines::write(events::Writer& writer) const {
    const std::size_t columns = profile_.columns.size();
    for (std::size_t i = 0; i < lines_.size(); ++i) {
        const Line& line = lines_[i];
        writer.stack({.number = static_cast<std::uint32_t>(i + 1),
                      .parent = line.parent,
                      .kind = line.kind,
                      .object = line.call.object,
                      .address = line.call.address,
                      .line = line.call_line,
                      .function = line.function},
                     std::span(counts_).subspan(i * columns, columns));
    }
}

}  // namespace assay::collector
