#include "tools/profile/call_graph.h"

#include "tools/profile/stack_tree.h"

#include <algorithm>
#include <optional>
#include <span>

namespace assay {

namespace {

class Builder {
  public:
    explicit Builder(const Profile& profile)
        : profile_(profile),
          by_context_(counted_by_context(profile, nullptr)),
          columns_(profile.events().size()),
          counts_(columns_),
          inclusive_(profile.contexts().size() * columns_),
          active_(profile.strings().size()),
          in_contexts_(profile.strings().size()) {
        for (const Profile::Context& context : profile.contexts().subspan(1))
            in_contexts_[context.function] = true;
        const auto calls = std::find_if(profile.events().begin(), profile.events().end(),
                                        [](const auto& event) { return event.unit == "calls"; });
        if (calls != profile.events().end() && !profile.counts_calls())
            calls_event_ = static_cast<std::size_t>(calls - profile.events().begin());
    }

    CallGraph build() {
        add_up();
        order_children();
        walk();
        for (const auto& [recursion, number] : profile_.recursions())
            add_recursion(recursion, number);
        for (const Profile::Line& line : profile_.lines_by_site()) add_line(line);
        if (profile_.has_contexts())
            complete_functions();
        else
            graph_.functions.clear();
        return std::move(graph_);
    }

  private:
    std::span<std::uint64_t> inclusive(std::uint32_t context) {
        return std::span(inclusive_).subspan(context * columns_, columns_);
    }

    // Starts with the last context. Parents precede their contexts, so each context is complete
    // when it is added to its parent.
    void add_up() {
        for (auto i = static_cast<std::uint32_t>(profile_.contexts().size()); i-- > 1;) {
            const Profile::Context& context = profile_.contexts()[i];
            profile_.counts().add_to(inclusive(i), context.row);
            const std::span<std::uint64_t> sum = inclusive(context.parent);
            for (std::size_t event = 0; event < columns_; ++event)
                sum[event] += inclusive(i)[event];
        }
    }

    // Links the children of each context through next_.
    void order_children() {
        first_child_.assign(profile_.contexts().size(), 0);
        next_.assign(profile_.contexts().size(), 0);
        for (auto i = static_cast<std::uint32_t>(profile_.contexts().size()); i-- > 1;) {
            std::uint32_t& first = first_child_[profile_.contexts()[i].parent];
            next_[i] = first;
            first = i;
        }
    }

    // Walks depth first, without recursion, because contexts nest as deeply as the program's calls.
    void walk() {
        std::uint32_t context = first_child_[0];
        while (context != 0) {
            add_call(context);
            ++active_[profile_.contexts()[context].function];
            if (first_child_[context] != 0) {
                context = first_child_[context];
                continue;
            }
            while (context != 0) {
                --active_[profile_.contexts()[context].function];
                if (next_[context] != 0) {
                    context = next_[context];
                    break;
                }
                context = profile_.contexts()[context].parent;
            }
        }
    }

    void add_call(std::uint32_t number) {
        const Profile::Context& context = profile_.contexts()[number];
        const FunctionKey callee = key(context.function);
        const bool is_outermost = active_[context.function] == 0;
        profile_.counts().read(context.row, counts_);
        const std::uint64_t called = calls_event_ ? counts_[*calls_event_] : context.calls;
        add_counts(own_[callee], counts_);
        FunctionCounts& function = graph_.functions[callee];
        if (is_outermost) add_counts(function.inclusive, inclusive(number));
        if (context.parent == 0) {
            calls_from_outside_[callee] += called;
            return;
        }
        Calls& calls = graph_.calls[{key(profile_.contexts()[context.parent].function),
                                     !events::has_place(context.kind), context.object,
                                     context.address, profile_.call_line(context), callee}];
        calls.inclusive.resize(columns_);
        calls.number += called;
        if (is_outermost) add_counts(calls.inclusive, inclusive(number));
    }

    void add_recursion(const Profile::Recursion& recursion, std::uint64_t number) {
        const auto function = [&](std::uint32_t context) {
            return key(profile_.contexts()[context].function);
        };
        Calls& calls =
            graph_.calls[{function(recursion.caller), false, recursion.object, recursion.address,
                          recursion.line, function(recursion.context)}];
        calls.inclusive.resize(columns_);
        calls.number += number;
    }

    void add_line(const Profile::Line& line) {
        const Profile::Place& place = profile_.places()[line.place];
        const FunctionKey function = known_by(place.function_file, place.function);
        profile_.counts().read(line.row, counts_);
        if (profile_.has_contexts()) add_counts(graph_.functions[function].exclusive, counts_);
        for (std::size_t event = 0; event < columns_; ++event)
            if (by_context_[event]) counts_[event] = 0;
        if (any_count(counts_)) add_inlined(profile_.sites_to(line.site), function);
    }

    // Adds the remaining counts of an inlined line to the calls through which it was inlined.
    void add_inlined(const std::vector<std::uint32_t>& path, const FunctionKey& function) {
        for (std::size_t i = 0; i < path.size(); ++i) {
            const Profile::Site& site = profile_.sites()[path[i]];
            const FunctionKey caller = caller_of(site);
            const FunctionKey callee =
                i + 1 < path.size() ? caller_of(profile_.sites()[path[i + 1]]) : function;
            if (active_[caller.name]++ == 0)
                add_counts(graph_.functions[caller].inclusive, counts_);
            Calls& calls = graph_.calls[{caller, true, 0, 0, site.line, callee}];
            calls.inclusive.resize(columns_);
            if (active_[callee.name] == 0) add_counts(calls.inclusive, counts_);
        }
        if (active_[function.name] == 0) add_counts(graph_.functions[function].inclusive, counts_);
        for (const std::uint32_t site : path) --active_[profile_.sites()[site].function];
    }

    void complete_functions() {
        const std::vector<bool> events = broken_down();
        std::map<FunctionKey, std::vector<std::uint64_t>> called;
        for (const auto& [site, calls] : graph_.calls)
            add_counts(called[site.callee], calls.inclusive);
        for (auto& [function, counts] : graph_.functions) {
            counts.exclusive.resize(columns_);
            counts.inclusive.resize(columns_);
            add_outside_of_contexts(function, events, counts);
            std::vector<std::uint64_t> rest = counts.inclusive;
            const auto known = called.find(function);
            for (std::size_t event = 0; known != called.end() && event < columns_; ++event)
                rest[event] -= known->second[event];
            if (!any_count(rest)) continue;
            Calls& calls = graph_.calls[{kOutsideCaller, true, 0, 0, 0, function}];
            calls.number = calls_from_outside_[function];
            calls.inclusive = std::move(rest);
        }
    }

    // Returns the events whose contexts break down the counts of the function's lines. Not all
    // events do: calls, for example, may be counted at the line of the call, and for the context
    // that they enter.
    std::vector<bool> broken_down() {
        std::vector<bool> result = by_context_;
        for (const auto& [function, own] : own_) {
            const std::vector<std::uint64_t>& all = graph_.functions[function].exclusive;
            for (std::size_t event = 0; event < columns_; ++event)
                if (own[event] > (all.empty() ? 0 : all[event])) result[event] = false;
        }
        return result;
    }

    // Adds the counts of lines that exceed the counts of the function's contexts.
    void add_outside_of_contexts(const FunctionKey& function, const std::vector<bool>& events,
                                 FunctionCounts& counts) {
        const auto own = own_.find(function);
        for (std::size_t event = 0; event < columns_; ++event)
            if (events[event])
                counts.inclusive[event] +=
                    counts.exclusive[event] - (own == own_.end() ? 0 : own->second[event]);
    }

    FunctionKey caller_of(const Profile::Site& site) const {
        return known_by(site.file, site.function);
    }

    // Contexts identify functions by name only. Lines of such a function in other files therefore
    // belong to the same function.
    FunctionKey known_by(Strings::Id file, Strings::Id name) const {
        return in_contexts_[name] ? key(name) : FunctionKey{file, name};
    }

    FunctionKey key(Strings::Id name) const {
        const std::optional<std::uint32_t> function = profile_.function_named(name);
        return {function ? profile_.functions()[*function].file : kNoFile, name};
    }

    const Profile& profile_;
    std::vector<bool> by_context_;  // by event
    std::size_t columns_;
    std::vector<std::uint64_t> counts_;  // scratch
    std::optional<std::size_t> calls_event_;
    std::vector<std::uint64_t> inclusive_;  // by context and event
    std::vector<std::uint32_t> first_child_, next_;
    std::vector<std::uint32_t> active_;  // by function name: number of active calls
    std::vector<bool> in_contexts_;      // by function name
    std::map<FunctionKey, std::vector<std::uint64_t>> own_;  // own counts in contexts, by function
    std::map<FunctionKey, std::uint64_t> calls_from_outside_;
    CallGraph graph_;
};

// Builds the graph from calls without contexts.
class GraphOfCalls {
  public:
    explicit GraphOfCalls(const Profile& profile)
        : profile_(profile), columns_(profile.events().size()) {}

    CallGraph build() {
        for (const Profile::Function& function : profile_.functions()) add_function(function);
        for (const auto& [call, costs] : profile_.calls()) add_call(call, costs);
        find_cycles();
        std::map<FunctionKey, std::vector<std::uint64_t>>
            from_outside;  // counts of calls into a cycle from outside
        for (auto& [function, counts] : graph_.functions) counts.inclusive = counts.exclusive;
        for (const auto& [site, calls] : graph_.calls) {
            if (cycles_.at(site.caller) == cycles_.at(site.callee)) continue;
            add_counts(graph_.functions[site.caller].inclusive, calls.inclusive);
            add_counts(from_outside[site.callee], calls.inclusive);
        }
        for (auto& [function, counts] : graph_.functions) {
            const auto calls = from_outside.find(function);
            if (calls == from_outside.end() || !is_in_cycle(function)) continue;
            for (std::size_t i = 0; i < columns_; ++i)
                counts.inclusive[i] = std::max(counts.inclusive[i], calls->second[i]);
        }
        return std::move(graph_);
    }

  private:
    void add_function(const Profile::Function& function) {
        std::vector<std::uint64_t> row(columns_);
        for (std::uint32_t place = function.first_place; place < function.end_place; ++place)
            for (const Profile::Line& line : profile_.lines(place)) {
                profile_.counts().read(line.row, row);
                add_counts(graph_.functions[{function.file, function.name}].exclusive, row);
            }
    }

    void add_call(const Profile::KnownCall& call, const Profile::CallCosts& costs) {
        const FunctionKey caller = {call.file, call.function},
                          callee = {call.callee_file, call.callee};
        for (const FunctionKey& each : {caller, callee})
            graph_.functions[each].exclusive.resize(columns_);
        Calls& calls = graph_.calls[{caller, true, 0, 0, call.line, callee}];
        calls.number += costs.number;
        add_counts(calls.inclusive, costs.inclusive);
    }

    // Gives the functions of a cycle the same number: Tarjan's algorithm, without recursion.
    void find_cycles() {
        std::map<FunctionKey, std::vector<FunctionKey>> callees;
        for (const auto& [site, calls] : graph_.calls) callees[site.caller].push_back(site.callee);
        struct Visit {
            FunctionKey function;
            std::size_t next = 0;
        };
        std::map<FunctionKey, std::size_t> order, lowest;
        std::vector<FunctionKey> open;
        std::vector<Visit> visits;
        const auto enter = [&](const FunctionKey& function) {
            order[function] = lowest[function] = order.size();
            open.push_back(function);
            visits.push_back({function});
        };
        for (const auto& entry : graph_.functions) {
            if (!order.contains(entry.first)) enter(entry.first);
            while (!visits.empty()) {
                const FunctionKey function = visits.back().function;
                const std::vector<FunctionKey>& next = callees[function];
                if (visits.back().next < next.size()) {
                    const FunctionKey callee = next[visits.back().next++];
                    if (!order.contains(callee))
                        enter(callee);
                    else if (!cycles_.contains(callee))
                        lowest[function] = std::min(lowest[function], order[callee]);
                    continue;
                }
                visits.pop_back();
                if (!visits.empty()) {
                    std::size_t& outer = lowest[visits.back().function];
                    outer = std::min(outer, lowest[function]);
                }
                if (lowest[function] == order[function]) close_cycle(function, open);
            }
        }
    }

    void close_cycle(const FunctionKey& first, std::vector<FunctionKey>& open) {
        const std::size_t number = sizes_.size();
        sizes_.push_back(0);
        for (bool is_last = false; !is_last; open.pop_back()) {
            is_last = open.back() == first;
            cycles_[open.back()] = number;
            ++sizes_[number];
        }
    }

    bool is_in_cycle(const FunctionKey& function) const { return sizes_[cycles_.at(function)] > 1; }

    const Profile& profile_;
    std::size_t columns_;
    std::map<FunctionKey, std::size_t> cycles_;
    std::vector<std::size_t> sizes_;  // number of functions by cycle
    CallGraph graph_;
};

}  // namespace

std::string_view text_of(const Profile& profile, Strings::Id id) {
    return id == kNoFile ? "???" : id == kOutsideName ? kOutside : profile.text(id);
}

CallGraph call_graph(const Profile& profile) {
    if (!profile.has_contexts() && !profile.calls().empty()) return GraphOfCalls(profile).build();
    if (!profile.has_contexts() && !profile.has_sites()) return {};
    return Builder(profile).build();
}

namespace {

using CountsOfAll = std::vector<std::vector<std::uint64_t>>;

// Adds each line to its function and to the functions into which the line was inlined.
CountsOfAll inclusive_by_site(const Profile& profile) {
    std::map<FunctionKey, std::size_t> indices;
    for (std::size_t i = 0; i < profile.functions().size(); ++i)
        indices.emplace(FunctionKey{profile.functions()[i].file, profile.functions()[i].name}, i);
    CountsOfAll sums(indices.size(), std::vector<std::uint64_t>(profile.events().size()));
    std::vector<std::size_t> entered;
    const auto enter = [&](const FunctionKey& key) {
        if (const auto found = indices.find(key); found != indices.end())
            entered.push_back(found->second);
    };
    for (const Profile::Line& line : profile.lines_by_site()) {
        const Profile::Place& place = profile.places()[line.place];
        entered.clear();
        enter({place.function_file, place.function});
        for (std::uint32_t i = line.site; i != 0; i = profile.sites()[i].parent)
            enter({profile.sites()[i].file, profile.sites()[i].function});
        std::sort(entered.begin(), entered.end());
        entered.erase(std::unique(entered.begin(), entered.end()), entered.end());
        for (const std::size_t function : entered)
            profile.counts().add_to(sums[function], line.row);
    }
    return sums;
}

}  // namespace

CountsOfAll inclusive_counts(const Profile& profile, const CallGraph& graph) {
    if (graph.functions.empty())
        return profile.has_sites() ? inclusive_by_site(profile) : CountsOfAll();
    CountsOfAll sums;
    for (const Profile::Function& function : profile.functions()) {
        std::vector<std::uint64_t>& sum = sums.emplace_back(profile.events().size());
        for (std::uint32_t place = function.first_place; place < function.end_place; ++place)
            for (const Profile::Line& line : profile.lines(place))
                profile.counts().add_to(sum, line.row);
        const auto found = graph.functions.find({function.file, function.name});
        for (std::size_t i = 0; found != graph.functions.end() && i < sum.size(); ++i)
            sum[i] = std::max(sum[i], found->second.inclusive[i]);
    }
    return sums;
}

std::map<std::pair<FunctionKey, FunctionKey>, Calls> calls_of_functions(const CallGraph& graph) {
    std::map<std::pair<FunctionKey, FunctionKey>, Calls> sums;
    for (const auto& [site, calls] : graph.calls) {
        Calls& sum = sums[{site.caller, site.callee}];
        sum.number += calls.number;
        add_counts(sum.inclusive, calls.inclusive);
    }
    return sums;
}

}  // namespace assay
