#include "framework/collector/results/profile_stacks.h"

#include <algorithm>

namespace assay::collector {

namespace {

// Of an entry of the procedure linkage table (symbols/plt.h).
constexpr std::string_view kStub = "@plt";
// Of glibc's dynamic linker: a stub leads there first.
constexpr std::string_view kResolver = "_dl_runtime_resolve";

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
    frames_of_ = &frames_of;
    jumps_ = &jumps;
    for (const Context& context : contexts_) entries_[context.number].context = &context;
    for (std::size_t i = 0; i < root_counts_; ++i)
        add_counts(innermost(0, frames_of(counted_[i].place)), counted_[i].row, false);
    for (const Context& context : contexts_) {
        enter(context, frames_of(context.call), frames_of(context.function));
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

// A function is shown below the only one of the context that has jumped to it directly; if there is
// none, below the only one with an indirect jump. A stub is not in the way of what it leads to.
// Otherwise it is not known which function has jumped there: no function counts too much.
void StackLines::follow_jumps(const Context& context) {
    const FramesOf& frames_of = *frames_of_;
    const Jumps& jumps = *jumps_;
    const std::string_view entered = entries_[context.number].line.function;
    const std::string_view called = frames_of(context.function).back().function;
    std::vector<std::string_view>
        functions;  // that are the one entered or parts of it; then others
    std::set<std::string_view> others;
    for (std::size_t i = context.first_counts; i < context.end_counts; ++i) {
        if (counted_[i].whole || !has_counts(counted_[i].row, false)) continue;
        const std::string_view function = frames_of(counted_[i].place).back().function;
        if (function == called && function != entered) continue;  // the stub
        if (function.starts_with(kResolver)) continue;
        if (!is_of(function, entered))
            others.insert(function);
        else if (std::find(functions.begin(), functions.end(), function) == functions.end())
            functions.push_back(function);
    }
    if (others.empty()) return;
    const std::size_t own = functions.size();
    functions.insert(functions.end(), others.begin(), others.end());
    const auto only = [&](std::string_view to, const auto& leads) {
        std::string_view found;
        for (const std::string_view from : functions) {
            if (from == to || !leads(from)) continue;
            if (!found.empty()) return std::string_view();
            found = from;
        }
        return found;
    };
    std::map<std::string_view, std::string_view>
        from;  // by function, the one that has jumped there
    for (std::size_t i = own; i < functions.size(); ++i) {
        const std::string_view to = functions[i];
        bool direct = false;
        std::string_view source = only(to, [&](std::string_view function) {
            const bool leads = function.ends_with(kStub)
                                   ? function.substr(0, function.size() - kStub.size()) == to
                                   : jumps.contains({function, to});
            direct |= leads;
            return leads;
        });
        if (!direct)
            source = only(to, [&](std::string_view function) {
                return !function.ends_with(kStub) && jumps.contains({function, {}});
            });
        if (!source.empty()) from[to] = source;
    }
    for (const auto& [to, source] : from) {
        std::string_view shown = source;
        for (std::size_t steps = 0; shown.ends_with(kStub) && from.contains(shown); ++steps) {
            if (steps == from.size()) break;
            shown = from[shown];
        }
        if (shown.ends_with(kStub)) continue;  // and it is not known what leads to that
        // Functions that jump to one another in a circle have been entered by another way.
        std::string_view above = shown;
        for (std::size_t steps = 0; from.contains(above) && steps <= from.size(); ++steps)
            above = from[above];
        if (from.contains(above)) continue;
        jumped_from_[{context.number, to}] = is_of(shown, entered) ? entered : shown;
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
    if (!entry.follows_jumps) {
        entries_[context].follows_jumps = true;
        follow_jumps(*entry.context);
    }
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
