#include "framework/collector/results/stack_lines.h"

#include <algorithm>
#include <utility>

namespace assay::collector {

namespace {

// Ends the names of entries of the procedure linkage table (symbols/object_symbols.h).
constexpr std::string_view kStub = "@plt";
// The function of glibc's dynamic linker that a stub calls first.
constexpr std::string_view kResolver = "_dl_runtime_resolve";

// True if `function` is the function that was entered, or a part that the compiler has split off
// it. Other functions were reached by a jump.
bool is_of(std::string_view function, std::string_view entered) {
    if (!function.starts_with(entered)) return false;
    const std::string_view rest = function.substr(entered.size());
    return rest.empty() || rest.starts_with('.') || rest.starts_with(" [clone ");
}

// Returns for each node of a graph that is entered at node 0 the innermost node that lies on every
// path to it. `sources` has the predecessors of each node. Node 0 counts as the predecessor of a
// node without predecessors. The algorithm is that of Cooper, Harvey and Kennedy ("A Simple, Fast
// Dominance Algorithm", 2001).
std::vector<std::size_t> immediate_dominators(
    const std::vector<std::vector<std::size_t>>& sources) {
    const std::size_t nodes = sources.size();
    std::vector<std::vector<std::size_t>> targets(nodes);
    for (std::size_t to = 1; to < nodes; ++to) {
        for (const std::size_t from : sources[to]) targets[from].push_back(to);
        if (sources[to].empty()) targets[0].push_back(to);
    }
    std::vector<std::size_t> order{0}, position(nodes, nodes);  // breadth first
    position[0] = 0;
    for (std::size_t next = 0; next < order.size(); ++next) {
        for (const std::size_t to : targets[order[next]]) {
            if (position[to] != nodes) continue;
            position[to] = order.size();
            order.push_back(to);
        }
    }
    std::vector<std::size_t> above(nodes);
    for (const std::size_t node : order) above[node] = nodes;  // not known yet
    above[0] = 0;
    for (bool changes = true; std::exchange(changes, false);) {
        for (const std::size_t to : std::span(order).subspan(1)) {
            std::size_t common = sources[to].empty() ? 0 : nodes;
            for (std::size_t from : sources[to]) {
                if (position[from] == nodes || above[from] == nodes) continue;
                while (common != nodes && common != from) {
                    if (position[common] > position[from])
                        common = above[common];
                    else
                        from = above[from];
                }
                common = from;
            }
            changes |= std::exchange(above[to], common) != common;
        }
    }
    return above;
}

}  // namespace

StackLines::StackLines(const Profile& profile, CountedCode& code,
                       std::span<const std::uint32_t> others)
    : profile_(profile),
      instructions_(code.places_of_rows()),
      events_(profile.counts->samples.columns(), kNoEvent) {
    for (std::size_t i = 0; i < profile.columns.size(); ++i) events_[profile.columns[i]] = i;
    const std::span<const trace_context_t> contexts = profile.contexts;
    std::vector<bool> shown(contexts.size());
    const std::vector<GroupCounts::Row> rows = profile.counts->contexts.counts.sorted_rows();
    for (const GroupCounts::Row& row : rows)
        if (has_counts(row.number)) shown[row.group] = true;
    for (const std::uint32_t context : others) shown[context] = true;
    for (std::size_t i = contexts.size(); i-- > 1;)
        if (shown[i]) shown[contexts[i].parent] = true;
    contexts_.reserve(static_cast<std::size_t>(std::count(shown.begin(), shown.end(), true)));
    counted_.reserve(rows.size());
    auto row = rows.begin();
    for (; row != rows.end() && row->group == 0; ++row)
        if (profile_.all_have_contexts && has_counts(row->number) &&
            row->instruction != GroupCounts::kAnyRow)
            counted_.push_back({row->instruction, row->number});
    root_counts_ = counted_.size();
    for (const ContextCalls& calls : profile.calls)
        if (profile.is_recursive(calls)) sites_.push_back(code.place_of(calls.site));
    for (const Profile::Jumped& jumped : profile.jumped)
        jumped_.push_back(code.place_of(jumped.pc));
    for (std::uint32_t i = 1; i < contexts.size(); ++i) {
        if (!shown[i]) continue;
        const Context context = {i, code.place_of(contexts[i].call),
                                 code.place_of(contexts[i].function), counted_.size(), 0};
        contexts_.push_back(context);
        for (; row != rows.end() && row->group <= i; ++row) {
            if (row->group != i || !has_counts(row->number)) continue;
            counted_.push_back({row->instruction, row->number});
        }
        contexts_.back().end_counts = counted_.size();
        std::sort(counted_.begin() + static_cast<std::ptrdiff_t>(context.first_counts),
                  counted_.end(), [&](const Counted& a, const Counted& b) {
                      return place_of(a, context.function) < place_of(b, context.function);
                  });
    }
}

bool StackLines::has_counts(std::uint32_t row, bool calls) const {
    bool found = false;
    profile_.counts->contexts.counts.each_count(row, [&](std::size_t column, std::uint64_t count) {
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
    for (const Counted& counted : counted_)
        if (!counted.whole()) places.push_back(instructions_[counted.instruction]);
    for (const auto* more : {&sites_, &jumped_})
        places.insert(places.end(), more->begin(), more->end());
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    return places;
}

void StackLines::resolve(CountedCode& code) {
    const CountedCode::Jumps jumps = code.jumps_between_functions();
    entries_.resize(profile_.contexts.size());
    std::vector<std::span<const symbols::Frame>> known(instructions_.size());
    const auto frames_of = [&](const Counted& counted) {
        std::span<const symbols::Frame>& found = known[counted.instruction];
        if (found.empty()) found = code.frames_of(instructions_[counted.instruction]);
        return found;
    };
    for (std::size_t i = 0; i < root_counts_; ++i)
        add_counts(innermost(0, frames_of(counted_[i])), counted_[i].row, false);
    std::vector<std::span<const symbols::Frame>> frames;  // frames by counts of a context
    for (const Context& context : contexts_) {
        const std::span<const symbols::Frame> function = code.frames_of(context.function);
        enter(context, code.frames_of(context.call), function);
        frames.clear();
        for (std::size_t i = context.first_counts; i < context.end_counts; ++i)
            frames.push_back(counted_[i].whole() ? function : frames_of(counted_[i]));
        follow_jumps(context, function.back().function, frames, jumps);
        for (std::size_t i = context.first_counts; i < context.end_counts; ++i) {
            const Counted& counted = counted_[i];
            if (has_counts(counted.row, true))
                add_counts(line_of(context.number), counted.row, true);
            if (!has_counts(counted.row, false)) continue;
            const std::uint32_t line =
                counted.whole() ? line_of(context.number)
                                : innermost(context.number, frames[i - context.first_counts]);
            add_counts(line, counted.row, false);
        }
    }
    count_calls(code);
}

std::uint32_t StackLines::entered_by_calls(std::uint32_t context) const {
    const Entry& entry = entries_[context];
    if (entry.number != 0) return entry.number;
    for (const Other& other : entry.others)
        if (other.line != 0 && other.from.empty() && !other.function.starts_with(kResolver))
            return other.line;
    return 0;
}

void StackLines::count_calls(CountedCode& code) {
    auto site = sites_.begin();
    for (const ContextCalls& calls : profile_.calls) {
        const bool is_recursive = profile_.is_recursive(calls);
        const ObjectPlace place = is_recursive ? *site++ : ObjectPlace{};
        const std::uint32_t line = entered_by_calls(calls.context);
        if (line == 0 || calls.number == 0) continue;
        if (!is_recursive) {
            calls_[line - 1] += calls.number;
            continue;
        }
        const std::span<const symbols::Frame> call = code.frames_of(place);
        const std::uint32_t caller = innermost(calls.caller, call);
        if (caller != 0) recursions_[{line, caller, place, call.front().line}] += calls.number;
    }
    for (std::size_t i = 0; i < jumped_.size(); ++i) {
        const Profile::Jumped& jumped = profile_.jumped[i];
        const std::string_view function = code.frames_of(jumped_[i]).back().function;
        std::uint32_t line = 0;
        if (jumped.context == 0) {
            const auto root = roots_.find(function);
            if (root != roots_.end()) line = root->second;
        } else {
            for (const Other& other : entries_[jumped.context].others)
                if (other.function == function) line = other.line;
        }
        if (line != 0 && lines_[line - 1].kind == events::StackKind::kJumped)
            calls_[line - 1] += jumped.number;
    }
}

// Shows each function below the innermost function that every path to it passes: its immediate
// dominator in the graph of jumps. Every function then has the counts of only those functions that
// cannot be reached without it. An edge of the graph is a direct jump in any context. If a function
// has no such edge, all indirect jumps are edges to it. Stubs are not shown as intermediate
// functions.
void StackLines::follow_jumps(const Context& context, std::string_view called,
                              std::span<const std::span<const symbols::Frame>> frames,
                              const CountedCode::Jumps& jumps) {
    const std::string_view entered = entries_[context.number].line.function;
    std::string_view last;
    std::set<std::string_view> parts, others;  // of the function entered, and functions jumped to
    for (std::size_t i = context.first_counts; i < context.end_counts; ++i) {
        const std::string_view function = frames[i - context.first_counts].back().function;
        if (function.data() == last.data() || counted_[i].whole()) continue;
        if (!has_counts(counted_[i].row, false)) continue;
        last = function;
        if (function == called && function != entered) continue;  // the stub
        if (function.starts_with(kResolver)) continue;
        (is_of(function, entered) ? parts : others).insert(function);
    }
    if (others.empty()) return;
    std::vector<std::string_view> functions{entered};
    functions.insert(functions.end(), others.begin(), others.end());
    std::vector<std::vector<std::size_t>> sources(functions.size());
    const auto add_sources = [&](std::size_t to, const auto& leads) {
        if (std::any_of(parts.begin(), parts.end(), leads)) sources[to].push_back(0);
        for (std::size_t from = 1; from < functions.size(); ++from)
            if (from != to && leads(functions[from])) sources[to].push_back(from);
    };
    for (std::size_t to = 1; to < functions.size(); ++to) {
        add_sources(to, [&](std::string_view from) {
            return from.ends_with(kStub)
                       ? from.substr(0, from.size() - kStub.size()) == functions[to]
                       : jumps.contains({from, functions[to]});
        });
        if (!sources[to].empty()) continue;
        add_sources(to, [&](std::string_view from) {
            return !from.ends_with(kStub) && jumps.contains({from, {}});
        });
    }
    const std::vector<std::size_t> above = immediate_dominators(sources);
    for (std::size_t to = 1; to < functions.size(); ++to) {
        std::size_t from = above[to];
        while (from != 0 && functions[from].ends_with(kStub)) from = above[from];
        const bool is_known = from != 0 || (!parts.empty() && !sources[to].empty());
        entries_[context.number].others.push_back(
            {functions[to], is_known ? functions[from] : std::string_view()});
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
    calls_.push_back(0);
    return static_cast<std::uint32_t>(lines_.size());
}

// Adds calls to the context that they enter.
void StackLines::add_counts(std::uint32_t line, std::uint32_t row, bool calls) {
    const std::size_t columns = profile_.columns.size();
    profile_.counts->contexts.counts.each_count(row, [&](std::size_t column, std::uint64_t count) {
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

// A function that was called through a stub has the stub's caller as its parent. The names can
// differ: the stub of memcpy leads to one of several functions, and at first to the dynamic linker.
std::uint32_t StackLines::line_of(std::uint32_t context, std::string_view function) {
    if (context == 0) {
        std::uint32_t& root = roots_[function];
        if (root == 0) root = add_line({0, events::StackKind::kJumped, {}, 0, function});
        return root;
    }
    Entry& entry = entries_[context];
    if (is_of(function, entry.line.function)) return line_of(context);
    std::size_t other = 0;
    while (other < entry.others.size() && entry.others[other].function != function) ++other;
    if (other == entry.others.size()) entry.others.push_back({function, {}});
    if (entry.others[other].line != 0) return entry.others[other].line;
    Line line = entry.line;
    if (!entry.others[other].from.empty())
        line = {line_of(context, entry.others[other].from), events::StackKind::kJumped, {}, 0, {}};
    else if (!entry.through_stub)
        line = {line_of(context), events::StackKind::kJumped, {}, 0, {}};
    line.function = function;
    return entry.others[other].line = add_line(line);
}

std::uint32_t StackLines::innermost(std::uint32_t context, std::span<const symbols::Frame> frames) {
    if (context == 0 && !profile_.all_have_contexts) return 0;
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
    std::vector<std::uint64_t> own(columns);
    auto counts = counts_.begin();
    for (std::size_t i = 0; i < lines_.size(); ++i) {
        const Line& line = lines_[i];
        std::copy_n(counts, columns, own.begin());
        counts += static_cast<std::ptrdiff_t>(columns);
        writer.stack({.number = static_cast<std::uint32_t>(i + 1),
                      .parent = line.parent,
                      .kind = line.kind,
                      .object = line.call.object,
                      .address = line.call.address,
                      .line = line.call_line,
                      .function = line.function},
                     own);
    }
    if (profile_.calls.empty()) return;
    writer.calls(calls_);
    for (const auto& [key, number] : recursions_) {
        const auto& [line, caller, site, source_line] = key;
        writer.recursion({line, caller, site.object, site.address, source_line}, number);
    }
}

}  // namespace assay::collector
