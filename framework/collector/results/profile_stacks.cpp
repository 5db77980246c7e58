#include "framework/collector/results/profile_stacks.h"

#include <algorithm>

namespace assay::collector {

namespace {

// Of an entry of the procedure linkage table (symbols/plt.h).
constexpr std::string_view kStub = "@plt";

// Whether code of `function` is of the function that was entered, or of a part that the compiler
// has split off it. Else it was jumped to.
bool is_of(std::string_view function, std::string_view entered) {
    if (!function.starts_with(entered)) return false;
    const std::string_view rest = function.substr(entered.size());
    return rest.empty() || rest.starts_with('.') || rest.starts_with(" [clone ");
}

}  // namespace

StackLines::StackLines(const Profile& profile,
                       const std::function<ObjectPlace(std::uint64_t)>& find,
                       std::span<const ObjectPlace> instructions,
                       std::span<const std::uint32_t> others)
    : profile_(profile),
      has_roots_(profile.share_counts != nullptr),
      events_(profile.samples->columns(), kNoEvent) {
    for (std::size_t i = 0; i < profile.columns.size(); ++i) events_[profile.columns[i]] = i;
    const std::span<const trace_context_t> contexts = profile.contexts;
    std::vector<bool> shown(contexts.size());
    const std::vector<ContextCounts::Row> rows = profile.context_counts->sorted_rows();
    for (const ContextCounts::Row& row : rows)
        if (has_counts(row.number)) shown[row.context] = true;
    for (const std::uint32_t context : others) shown[context] = true;
    for (std::size_t i = contexts.size(); i-- > 1;)
        if (shown[i]) shown[contexts[i].parent] = true;
    auto row = rows.begin();
    for (; row != rows.end() && row->context == 0; ++row)
        if (has_roots_ && has_counts(row->number) && row->instruction != ContextCounts::kAnyRow)
            counted_.push_back({instructions[row->instruction], row->number, false});
    root_counts_ = counted_.size();
    for (std::uint32_t i = 1; i < contexts.size(); ++i) {
        if (!shown[i]) continue;
        const Context context = {i, find(contexts[i].call), find(contexts[i].function),
                                 counted_.size(), 0};
        contexts_.push_back(context);
        for (; row != rows.end() && row->context <= i; ++row) {
            if (row->context != i || !has_counts(row->number)) continue;
            const bool whole = row->instruction == ContextCounts::kAnyRow;
            counted_.push_back(
                {whole ? context.function : instructions[row->instruction], row->number, whole});
        }
        contexts_.back().end_counts = counted_.size();
        std::sort(counted_.begin() + static_cast<std::ptrdiff_t>(context.first_counts),
                  counted_.end(),
                  [](const Counted& a, const Counted& b) { return a.place < b.place; });
    }
}

bool StackLines::has_counts(std::uint32_t row, bool calls) const {
    bool found = false;
    profile_.context_counts->each_count(row, [&](std::size_t column, std::uint64_t count) {
        const std::size_t event = events_[column];
        found |= event != kNoEvent && counts_calls(event) == calls && count != 0;
    });
    return found;
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

void StackLines::resolve(const FramesOf& frames_of, const Jumps& jumps) {
    entries_.resize(profile_.contexts.size());
    for (std::size_t i = 0; i < root_counts_; ++i)
        add_counts(innermost(0, frames_of(counted_[i].place)), counted_[i].row, false);
    for (const Context& context : contexts_) {
        enter(context, frames_of(context.call), frames_of(context.function));
        follow_jumps(context, frames_of, jumps);
        for (std::size_t i = context.first_counts; i < context.end_counts; ++i) {
            const Counted& counted = counted_[i];
            if (has_counts(counted.row, true))
                add_counts(line_of(context.number), counted.row, true);
            if (!has_counts(counted.row, false)) continue;
            const std::uint32_t line = counted.whole
                                           ? line_of(context.number)
                                           : innermost(context.number, frames_of(counted.place));
            add_counts(line, counted.row, false);
        }
    }
}

// Breadth first, from the function that was called on, through what was executed in the context. A
// stub is not in the way of what it leads to.
void StackLines::follow_jumps(const Context& context, const FramesOf& frames_of,
                              const Jumps& jumps) {
    const std::string_view entered = entries_[context.number].line.function;
    const std::string_view called = frames_of(context.function).back().function;
    struct Reached {
        std::string_view function, shown;  // `shown`: in which function it is shown
    };
    std::vector<Reached> reached{{entered, entered}};
    std::set<std::string_view> others;
    for (std::size_t i = context.first_counts; i < context.end_counts; ++i) {
        if (counted_[i].whole || !has_counts(counted_[i].row, false)) continue;
        const std::string_view function = frames_of(counted_[i].place).back().function;
        if (function == called || function == entered) continue;
        if (is_of(function, entered))
            reached.push_back({function, entered});
        else
            others.insert(function);
    }
    const auto leads_to = [&](std::string_view from, std::string_view to) {
        const bool is_stub = from.ends_with(kStub);
        return is_stub ? from.substr(0, from.size() - kStub.size()) == to
                       : jumps.contains({from, to});
    };
    for (std::size_t next = 0; !others.empty(); ++next) {
        if (next == reached.size()) {
            // An indirect jump leads there, from a function that is not known.
            const auto first = std::find_if(others.begin(), others.end(), [&](auto other) {
                return std::none_of(others.begin(), others.end(),
                                    [&](auto from) { return leads_to(from, other); });
            });
            if (first == others.end()) return;
            reached.push_back({*first, *first});
            others.erase(first);
        }
        const Reached from = reached[next];
        for (auto other = others.begin(); other != others.end();) {
            if (!leads_to(from.function, *other)) {
                ++other;
                continue;
            }
            jumped_from_[{context.number, *other}] = from.shown;
            reached.push_back({*other, other->ends_with(kStub) ? from.shown : *other});
            other = others.erase(other);
        }
    }
}

void StackLines::enter(const Context& context, std::span<const symbols::Frame> call,
                       std::span<const symbols::Frame> function) {
    const trace_context_t& entered = profile_.contexts[context.number];
    Entry& entry = entries_[context.number];
    entry.line = {.parent = innermost(entered.parent, call),
                  .kind = entered.flags & TRACE_CONTEXT_SIGNAL ? events::StackKind::kHandler
                                                               : events::StackKind::kCall,
                  .call = context.call,
                  .call_line = entered.parent != 0 ? call.front().line : 0,
                  .function = function.back().function};
    entry.through_stub = entry.line.function.ends_with(kStub);
    if (entry.through_stub) entry.line.function.remove_suffix(kStub.size());
}

std::uint32_t StackLines::add_line(const Line& line) {
    lines_.push_back(line);
    counts_.resize(counts_.size() + profile_.columns.size());
    return static_cast<std::uint32_t>(lines_.size());
}

// Calls are counts of the context that they enter, wherever they come from.
void StackLines::add_counts(std::uint32_t line, std::uint32_t row, bool calls) {
    const std::size_t columns = profile_.columns.size();
    profile_.context_counts->each_count(row, [&](std::size_t column, std::uint64_t count) {
        const std::size_t event = events_[column];
        if (event != kNoEvent && counts_calls(event) == calls)
            counts_[(line - 1) * columns + event] += count;
    });
}

std::uint32_t StackLines::line_of(std::uint32_t context) {
    Entry& entry = entries_[context];
    if (entry.number == 0) entry.number = add_line(entry.line);
    return entry.number;
}

// A stub is not in the way of what it leads to, which it need not have the name of: that of memcpy
// leads to one of several functions, and for the first time to the dynamic linker.
std::uint32_t StackLines::line_of(std::uint32_t context, std::string_view function) {
    if (context == 0) {
        const auto [root, is_new] = others_.try_emplace({0, function}, 0);
        if (is_new) root->second = add_line({0, events::StackKind::kJumped, {}, 0, function});
        return root->second;
    }
    const Entry& entry = entries_[context];
    if (is_of(function, entry.line.function)) return line_of(context);
    const auto known = others_.find({context, function});
    if (known != others_.end()) return known->second;
    Line line = entry.line;
    const auto from = jumped_from_.find({context, function});
    if (from != jumped_from_.end())
        line = {line_of(context, from->second), events::StackKind::kJumped, {}, 0, {}};
    else if (!entry.through_stub)
        line = {line_of(context), events::StackKind::kJumped, {}, 0, {}};
    line.function = function;
    const std::uint32_t number = add_line(line);
    return others_[{context, function}] = number;
}

std::uint32_t StackLines::innermost(std::uint32_t context, std::span<const symbols::Frame> frames) {
    if (context == 0 && !has_roots_) return 0;
    std::uint32_t line = line_of(context, frames.back().function);
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
