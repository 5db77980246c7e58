#include "tools/report/data.h"

#include "tools/profile/profile_files.h"
#include "tools/report/functions.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::report {

namespace {

class GroupsDocument {
  public:
    GroupsDocument(const Groups& groups, Counts totals, const FunctionList& functions,
                   const DisplayNames& names, const Limits& limits, JsonWriter& json)
        : groups_(groups),
          totals_(totals),
          functions_(functions),
          names_(names),
          limits_(limits),
          json_(json) {}

    std::vector<std::uint32_t> write() {
        choose_groups();
        json_.begin_object();
        write_kinds();
        write_shown();
        write_lines();
        write_functions();
        json_.end_object();
        return std::move(shown_);
    }

  private:
    struct Line {
        std::size_t group;  // index in shown_
        Groups::Line line;
        double share;
    };

    double share(Counts counts) const { return largest_share(counts, totals_); }

    // Outer groups precede their inner groups, which cannot have larger shares.
    void choose_groups() {
        const std::vector<Groups::Group>& groups = groups_.groups();
        std::vector<double> shares;
        shares.reserve(groups.size());
        for (const Groups::Group& group : groups) shares.push_back(share(group.counts));
        shown_.resize(groups.size());
        std::iota(shown_.begin(), shown_.end(), 0);
        std::stable_sort(shown_.begin(), shown_.end(),
                         [&](std::uint32_t a, std::uint32_t b) { return shares[a] > shares[b]; });
        shown_.resize(std::min(shown_.size(), limits_.groups));
    }

    // Writes the kinds with the sum of all their groups, including those left out.
    void write_kinds() {
        const std::vector<Groups::Group>& groups = groups_.groups();
        json_.begin_array("kinds");
        for (const std::string& kind : groups_.kinds()) {
            std::vector<std::uint64_t> sum(totals_.size());
            bool stands_alone = false;  // types show their members
            for (const Groups::Group& group : groups) {
                const bool is_outer = group.parent == Groups::kNone;
                if (group.kind != kind || (!is_outer && groups[group.parent].kind == kind))
                    continue;
                stands_alone |= is_outer;
                for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += group.counts[i];
            }
            if (!stands_alone) continue;
            json_.begin_object();
            json_.text("name", kind);
            json_.numbers("counts", sum);
            json_.end_object();
        }
        json_.end_array();
    }

    void write_shown() {
        std::map<std::uint32_t, std::uint64_t> indices;
        std::vector<std::string> kinds, names;
        std::vector<std::uint64_t> parents;  // index + 1; 0 for outermost groups
        std::vector<Counts> counts;
        for (const std::uint32_t number : shown_) {
            const Groups::Group& group = groups_.groups()[number];
            indices.emplace(number, indices.size());
            kinds.push_back(group.kind);
            names.push_back(names_.of_group(group));
            parents.push_back(group.parent == Groups::kNone ? 0 : indices.at(group.parent) + 1);
            counts.emplace_back(group.counts);
        }
        json_.number("leftOut", groups_.groups().size() - shown_.size());
        json_.texts("kind", kinds);
        json_.texts("name", names);
        json_.numbers("parent", parents);
        json_.begin_array("attributes");
        for (const std::uint32_t number : shown_) write_attributes(groups_.groups()[number]);
        json_.end_array();
        json_.begin_array("callers");
        for (const std::uint32_t number : shown_) {
            json_.begin_array();
            for (const std::string& caller : groups_.groups()[number].callers)
                json_.text(names_(caller));
            json_.end_array();
        }
        json_.end_array();
        write_rows("counts", counts, totals_.size(), json_);
    }

    // Leaves out numbers that refer to lines of the events file.
    void write_attributes(const Groups::Group& group) {
        json_.begin_object();
        for (const auto& [key, value] : group.attributes)
            if (key != "stack" && key != "binary")
                json_.text(key, key == "type" ? names_.of_type(value) : value);
        json_.end_object();
    }

    void write_lines() {
        std::vector<Line> lines;
        for (std::size_t i = 0; i < shown_.size(); ++i)
            for (Groups::Line& line : groups_.lines(shown_[i])) {
                const double of_total = share(line.counts);
                lines.push_back({i, std::move(line), of_total});
            }
        std::stable_sort(lines.begin(), lines.end(),
                         [](const Line& a, const Line& b) { return a.share > b.share; });
        const std::size_t left_out = lines.size() - std::min(lines.size(), limits_.group_lines);
        lines.resize(lines.size() - left_out);
        std::vector<std::string> texts;
        enum class Of : std::uint8_t { kFile, kFunction };
        std::map<std::pair<Of, Strings::Id>, std::uint64_t> indices;
        const auto index_of = [&](Of of, Strings::Id id) {
            const auto [found, is_new] = indices.try_emplace({of, id}, texts.size());
            const std::string_view text = groups_.text(id);
            if (is_new) texts.push_back(of == Of::kFile ? std::string(text) : names_(text));
            return found->second;
        };
        std::vector<std::uint64_t> groups, files, functions, numbers;
        std::vector<Counts> counts;
        for (const Line& each : lines) {
            groups.push_back(each.group);
            files.push_back(index_of(Of::kFile, each.line.file));
            functions.push_back(index_of(Of::kFunction, each.line.function));
            numbers.push_back(each.line.line);
            counts.emplace_back(each.line.counts);
        }
        json_.begin_object("lines");
        json_.number("leftOut", left_out);
        json_.texts("texts", texts);
        json_.numbers("group", groups);
        json_.numbers("file", files);
        json_.numbers("function", functions);
        json_.numbers("line", numbers);
        write_rows("counts", counts, totals_.size(), json_);
        json_.end_object();
    }

    // Writes the functions that a thread or a process executes. The lines above may be incomplete,
    // so they cannot give these counts.
    void write_functions() {
        std::vector<std::uint64_t> groups, functions;
        Columns counts(totals_.size());
        for (std::size_t i = 0; i < shown_.size() && groups.size() < limits_.group_functions; ++i) {
            const std::string& kind = groups_.groups()[shown_[i]].kind;
            if (kind != "thread" && !FileGroups::is_kind(kind)) continue;
            std::map<std::uint32_t, Column> sums;
            for (const Groups::Line& line : groups_.lines(shown_[i])) {
                const auto row =
                    functions_.find(groups_.text(line.file), groups_.text(line.function));
                if (!row || *row >= limits_.functions) continue;
                Column& sum = sums.try_emplace(*row, totals_.size()).first->second;
                std::transform(sum.begin(), sum.end(), line.counts.begin(), sum.begin(),
                               std::plus<>());
            }
            for (const auto& [row, sum] : sums) {
                groups.push_back(i);
                functions.push_back(row);
                counts.add(sum);
            }
        }
        json_.begin_object("functions");
        json_.numbers("group", groups);
        json_.numbers("function", functions);
        counts.write("counts", json_);
        json_.end_object();
    }

    const Groups& groups_;
    const Counts totals_;
    const FunctionList& functions_;
    const DisplayNames& names_;
    const Limits& limits_;
    JsonWriter& json_;
    std::vector<std::uint32_t> shown_;  // by descending share
};

}  // namespace

std::vector<std::uint32_t> write_groups(const Groups* groups, Counts totals,
                                        const FunctionList& functions, const DisplayNames& names,
                                        const Limits& limits, JsonWriter& json) {
    if (groups == nullptr) {
        json.null();
        return {};
    }
    return GroupsDocument(*groups, totals, functions, names, limits, json).write();
}

}  // namespace assay::report
