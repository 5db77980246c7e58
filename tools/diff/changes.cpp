#include "tools/diff/changes.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace assay::diff {

using annotate::Profile;
using annotate::SortColumn;

std::vector<Change> changes_of(const Profile& before, const Profile& after,
                               const CloneNames& clones) {
    std::map<std::pair<std::string_view, std::string_view>, Change> changes;
    const auto add = [&](const Profile& profile, std::vector<std::uint64_t> Change::*counts) {
        for (std::size_t i = 0; i < profile.function_count(); ++i) {
            const std::string_view file = profile.files()[profile.function_file(i)];
            const std::string_view function =
                clones.compared(profile.names()[profile.function_name(i)]);
            const std::vector<std::uint64_t> zeros(profile.totals().size());
            const auto [entry, is_new] =
                changes.try_emplace({file, function}, Change{file, function, zeros, zeros});
            const Counts row = profile.function_counts(i);
            std::vector<std::uint64_t>& sum = entry->second.*counts;
            std::transform(row.begin(), row.end(), sum.begin(), sum.begin(), std::plus<>());
        }
    };
    add(before, &Change::before);
    add(after, &Change::after);
    std::vector<Change> sorted;
    sorted.reserve(changes.size());
    for (auto& [place, change] : changes) sorted.push_back(std::move(change));
    return sorted;
}

std::uint64_t size_of(std::int64_t difference) {
    const auto bits = static_cast<std::uint64_t>(difference);
    return difference < 0 ? 0 - bits : bits;
}

std::vector<const Change*> important(const std::vector<Change>& changes,
                                     const std::vector<SortColumn>& sort, Counts old_totals) {
    std::vector<const Change*> chosen;
    for (const Change& change : changes) {
        const bool enough = std::any_of(sort.begin(), sort.end(), [&](const SortColumn& column) {
            const auto size = static_cast<double>(size_of(change.difference(column.event)));
            return column.percent && size > 0 &&
                   100 * size >= *column.percent * static_cast<double>(old_totals[column.event]);
        });
        if (enough) chosen.push_back(&change);
    }
    std::stable_sort(chosen.begin(), chosen.end(), [&](const Change* a, const Change* b) {
        for (const SortColumn& column : sort) {
            const std::uint64_t size_a = size_of(a->difference(column.event)),
                                size_b = size_of(b->difference(column.event));
            if (size_a != size_b) return size_a > size_b;
        }
        return false;
    });
    return chosen;
}

}  // namespace assay::diff
