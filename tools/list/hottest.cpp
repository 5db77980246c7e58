#include "tools/list/hottest.h"

#include "tools/table/table.h"

#include <algorithm>

namespace assay::list {

Weight::Weight(const Profile& profile, std::size_t event, bool counted)
    : profile_(profile), event_(event), counted_(counted) {
    if (counted)
        total_ = magnitude(profile.totals()[event], profile.header());
    else
        for (const Profile::Values& values : profile.values())
            total_ += static_cast<double>(values.list.total);
}

double Weight::of(const Row& row) const {
    if (counted_) return magnitude(row.counts(profile_)[event_], profile_.header());
    double values = 0;
    for (const Profile::Values* const each : row.values)
        values += static_cast<double>(each->list.total);
    return values;
}

double Weight::of(const Function& function) const {
    if (counted_) return magnitude(function.counts[event_], profile_.header());
    double values = 0;
    for (const Row* const row : function.rows) values += of(*row);
    return values;
}

Hottest hottest(std::span<const Function> functions, const Weight& weight, double threshold,
                std::size_t lines, bool with_sources) {
    struct Candidate {
        double weight;
        std::size_t function;
        const Row* row;
    };
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < functions.size(); ++i)
        for (const Row* const row : functions[i].rows)
            if (const double of_row = weight.of(*row);
                of_row > 0 && of_row * 100 >= threshold * weight.total())
                candidates.push_back({of_row, i, row});
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.weight > b.weight; });

    Hottest found{std::vector<std::vector<const Row*>>(functions.size())};
    std::size_t chosen = 0;
    for (; chosen < candidates.size(); ++chosen) {
        const Candidate& next = candidates[chosen];
        std::vector<const Row*>& rows = found.rows[next.function];
        const bool is_near = std::any_of(rows.begin(), rows.end(), [&](const Row* row) {
            constexpr std::uint64_t kBytes = 8;  // usually too few instructions for a gap
            return next.row->address - row->address + kBytes <= 2 * kBytes;
        });
        // A row that is not near others needs the name of a function, or a mark for the gap.
        const std::size_t needed =
            1 + next.row->values.size() + (with_sources ? 1 : 0) + (is_near ? 0 : 1);
        if (needed > lines && chosen != 0) break;
        lines -= std::min(lines, needed);
        rows.push_back(next.row);
    }
    found.left_out = candidates.size() - chosen;
    for (std::vector<const Row*>& rows : found.rows)
        std::sort(rows.begin(), rows.end(),
                  [](const Row* a, const Row* b) { return a->address < b->address; });
    return found;
}

}  // namespace assay::list
