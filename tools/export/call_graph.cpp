#include "tools/export/call_graph.h"

#include "tools/export/stacks.h"

#include <algorithm>
#include <optional>
#include <span>

namespace assay::exporting {

namespace {

class Builder {
  public:
    Builder(const WholeProfile& profile, Strings::Id unknown)
        : profile_(profile),
          unknown_(unknown),
          columns_(profile.events().size()),
          inclusive_(profile.contexts().size() * columns_),
          active_(profile.strings().size()) {
        const auto calls = std::find_if(profile.events().begin(), profile.events().end(),
                                        [](const auto& event) { return event.unit == "calls"; });
        if (calls != profile.events().end())
            calls_event_ = static_cast<std::size_t>(calls - profile.events().begin());
    }

    CallGraph build() {
        add_up();
        order_children();
        walk();
        if (profile_.has_sites())
            for (const WholeProfile::Line& line : profile_.lines_by_site()) add_inlined(line);
        return std::move(graph_);
    }

  private:
    std::span<std::uint64_t> inclusive(std::uint32_t context) {
        return std::span(inclusive_).subspan(context * columns_, columns_);
    }

    // Contexts come after their parents, so from the last on each is complete when it is added.
    void add_up() {
        for (auto i = static_cast<std::uint32_t>(profile_.contexts().size()); i-- > 1;) {
            const WholeProfile::Context& context = profile_.contexts()[i];
            profile_.counts().add_to(inclusive(i), context.row);
            const std::span<std::uint64_t> sum = inclusive(context.parent);
            for (std::size_t event = 0; event < columns_; ++event)
                sum[event] += inclusive(i)[event];
        }
    }

    // Lists of children, linked through next_.
    void order_children() {
        first_child_.assign(profile_.contexts().size(), 0);
        next_.assign(profile_.contexts().size(), 0);
        for (auto i = static_cast<std::uint32_t>(profile_.contexts().size()); i-- > 1;) {
            std::uint32_t& first = first_child_[profile_.contexts()[i].parent];
            next_[i] = first;
            first = i;
        }
    }

    // Depth first, without recursion: contexts nest as deeply as the program's calls.
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
        const WholeProfile::Context& context = profile_.contexts()[number];
        if (context.parent == 0) return;
        Calls& calls = graph_[{key(profile_.contexts()[context.parent].function),
                               !events::has_place(context.kind), context.object, context.address,
                               profile_.call_line(context), key(context.function)}];
        calls.inclusive.resize(columns_);
        calls.number += calls_of(context);
        if (active_[context.function] != 0) return;
        for (std::size_t event = 0; event < columns_; ++event)
            calls.inclusive[event] += inclusive(number)[event];
    }

    // Counts that are not counted by context, in the calls through which a line was inlined.
    void add_inlined(const WholeProfile::Line& line) {
        std::vector<std::uint64_t> counts(columns_);
        profile_.counts().read(line.row, counts);
        for (std::size_t event = 0; event < columns_; ++event)
            if (is_counted_by_context(profile_, event)) counts[event] = 0;
        if (std::all_of(counts.begin(), counts.end(), [](std::uint64_t n) { return n == 0; }))
            return;
        const WholeProfile::Place& place = profile_.places()[line.place];
        const std::vector<std::uint32_t> path = profile_.sites_to(line.site);
        for (std::size_t i = 0; i < path.size(); ++i) {
            const WholeProfile::Site& site = profile_.sites()[path[i]];
            const FunctionKey callee = i + 1 < path.size()
                                           ? caller_at(profile_.sites()[path[i + 1]])
                                           : FunctionKey{place.function_file, place.function};
            Calls& calls = graph_[{caller_at(site), true, 0, 0, site.line, callee}];
            calls.inclusive.resize(columns_);
            ++active_[site.function];
            if (active_[callee.name] != 0) continue;
            for (std::size_t event = 0; event < columns_; ++event)
                calls.inclusive[event] += counts[event];
        }
        for (const std::uint32_t site : path) --active_[profile_.sites()[site].function];
    }

    static FunctionKey caller_at(const WholeProfile::Site& site) {
        return {site.file, site.function};
    }

    std::uint64_t calls_of(const WholeProfile::Context& context) const {
        if (!calls_event_) return 1;
        std::vector<std::uint64_t> counts(columns_);
        profile_.counts().read(context.row, counts);
        return counts[*calls_event_];
    }

    FunctionKey key(Strings::Id name) const {
        const std::optional<std::uint32_t> function = profile_.function_named(name);
        return {function ? profile_.functions()[*function].file : unknown_, name};
    }

    const WholeProfile& profile_;
    Strings::Id unknown_;
    std::size_t columns_;
    std::optional<std::size_t> calls_event_;
    std::vector<std::uint64_t> inclusive_;  // by context and event
    std::vector<std::uint32_t> first_child_, next_;
    std::vector<std::uint32_t> active_;  // by function name: how often on the stack
    CallGraph graph_;
};

}  // namespace

CallGraph call_graph(const WholeProfile& profile, Strings::Id unknown) {
    if (!profile.has_contexts() && !profile.has_sites()) return {};
    return Builder(profile, unknown).build();
}

}  // namespace assay::exporting
