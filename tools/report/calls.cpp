#include "tools/report/calls.h"

#include "tools/profile/call_graph.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace assay::report {

namespace {

class CallsDocument {
  public:
    CallsDocument(const WholeProfile& profile, double least_share, JsonWriter& json)
        : profile_(profile), least_share_(least_share), json_(json) {}

    void write() {
        const CallGraph graph = call_graph(profile_);
        json_.begin_object();
        write_functions(graph);
        write_edges(graph);
        json_.end_object();
    }

  private:
    bool is_shown(Counts counts) const {
        for (std::size_t i = 0; i < counts.size(); ++i)
            if (counts[i] != 0 && static_cast<double>(counts[i]) >=
                                      least_share_ * static_cast<double>(profile_.totals()[i]))
                return true;
        return false;
    }

    // The last one is the caller outside.
    void write_functions(const CallGraph& graph) {
        std::vector<std::string> files, names;
        std::vector<Counts> inclusive, exclusive;
        const std::vector<std::uint64_t> none(profile_.events().size());
        const auto add = [&](const FunctionKey& key, Counts with_callees, Counts own) {
            indices_.emplace(key, names.size());
            files.emplace_back(text_of(profile_, key.file));
            names.emplace_back(text_of(profile_, key.name));
            inclusive.push_back(with_callees);
            exclusive.push_back(own);
        };
        for (const auto& [key, counts] : graph.functions)
            if (is_shown(counts.inclusive)) add(key, counts.inclusive, counts.exclusive);
        add(kOutsideCaller, none, none);
        json_.texts("file", files);
        json_.texts("name", names);
        write_columns("inclusive", inclusive);
        write_columns("exclusive", exclusive);
    }

    void write_edges(const CallGraph& graph) {
        const auto sums = calls_of_functions(graph);
        std::vector<std::uint64_t> callers, callees, numbers;
        std::vector<Counts> counts;
        for (const auto& [pair, calls] : sums) {
            const auto caller = indices_.find(pair.first), callee = indices_.find(pair.second);
            if (caller == indices_.end() || callee == indices_.end()) continue;
            const bool is_recursion = std::all_of(calls.inclusive.begin(), calls.inclusive.end(),
                                                  [](std::uint64_t count) { return count == 0; });
            if (!is_recursion && !is_shown(calls.inclusive)) continue;
            callers.push_back(caller->second);
            callees.push_back(callee->second);
            numbers.push_back(calls.number);
            counts.emplace_back(calls.inclusive);
        }
        json_.numbers("caller", callers);
        json_.numbers("callee", callees);
        json_.numbers("number", numbers);
        write_columns("counts", counts);
    }

    // By event.
    void write_columns(std::string_view key, const std::vector<Counts>& rows) {
        json_.key(key);
        json_.begin_array();
        std::vector<std::uint64_t> column(rows.size());
        for (std::size_t event = 0; event < profile_.events().size(); ++event) {
            for (std::size_t i = 0; i < rows.size(); ++i) column[i] = rows[i][event];
            json_.numbers(column);
        }
        json_.end_array();
    }

    const WholeProfile& profile_;
    double least_share_;
    JsonWriter& json_;
    std::map<FunctionKey, std::uint64_t> indices_;
};

}  // namespace

void write_calls(const WholeProfile& profile, double least_share, JsonWriter& json) {
    if (!profile.has_contexts() && profile.calls().empty()) return json.null();
    CallsDocument(profile, least_share, json).write();
}

}  // namespace assay::report
