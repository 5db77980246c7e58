#include "framework/collector/profilers/columns.h"

#include "framework/collector/profilers/profiler_handle.h"
#include "framework/support/error.h"

#include <fmt/core.h>
#include <algorithm>
#include <cctype>
#include <map>

namespace assay::collector {
namespace {

using Renamed = std::map<std::string, std::string>;

bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// A formula with its event names replaced. Names may contain a minus, which is an operator too:
// the longest name that fits is meant.
std::string rename_events(const std::string& formula, const Renamed& renamed) {
    std::string out;
    for (std::size_t i = 0; i < formula.size();) {
        const Renamed::value_type* best = nullptr;
        const bool at_word = i == 0 || !is_word(formula[i - 1]);
        for (const auto& entry : renamed) {
            const std::size_t end = i + entry.first.size();
            if (at_word && formula.compare(i, entry.first.size(), entry.first) == 0 &&
                (end == formula.size() || !is_word(formula[end])) &&
                (!best || entry.first.size() > best->first.size()))
                best = &entry;
        }
        out += best ? best->second : std::string(1, formula[i]);
        i += best ? best->first.size() : 1;
    }
    return out;
}

}  // namespace

Columns::Columns(const std::vector<std::unique_ptr<ProfilerHandle>>& profilers) {
    for (const auto& profiler : profilers) {
        first_.push_back(events_.size());
        Renamed renamed;
        std::vector<events::Event> own;
        for (const ProfilerEvent& event : profiler->events()) {
            const bool taken =
                std::any_of(events_.begin(), events_.end(),
                            [&](const events::Event& e) { return e.name == event.name; });
            const std::string name = taken ? profiler->name() + "." + event.name : event.name;
            renamed[event.name] = name;
            own.push_back({name, event.description, event.unit, profiler->name()});
        }
        events_.insert(events_.end(), own.begin(), own.end());
        std::vector<events::Derived>& formulas = derived_.emplace_back();
        for (const ProfilerDerived& figure : profiler->derived())
            formulas.push_back({figure.name, rename_events(figure.formula, renamed), figure.unit});
    }
    if (events_.size() > events::kMaxEvents)
        throw Error(
            fmt::format("the profilers have {} events together, but a file holds at most {}",
                        events_.size(), events::kMaxEvents));
}

}  // namespace assay::collector
