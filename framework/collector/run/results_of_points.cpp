// What simulation points have counted, each by itself, added up.
#include "framework/collector/run/results.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <algorithm>

namespace assay::collector {

// Values that the other hotlist no longer counts one by one keep its bound for their error.
void Results::add(const Counts& other) {
    std::vector<SampleDatabase::Key> keys(other.samples.rows());
    other.samples.visit_sorted([&](const SampleDatabase::Row& row) {
        keys[row.number] = row.key;
        const std::span<const std::uint64_t> counts = other.samples.counts(row.number);
        for (std::size_t column = 0; column < counts.size(); ++column)
            counts_.samples.add(row.key, column, counts[column]);
    });
    other.hotlists.for_each([&](std::uint32_t row, std::uint32_t number, const TopValues& values) {
        TopValues& sum = counts_.hotlists.of(counts_.samples.add(keys[row], 0, 0), number);
        const events::Hotlist list = values.list();
        std::uint64_t known = 0;
        for (const events::HotValue& each : list.values) {
            sum.add(each.value, each.count);
            known += each.count;
        }
        sum.add_rest(list.total - std::min(list.total, known), list.error);
    });
}

// The profilers themselves have seen one point only.
std::string Results::totals_of_points() const {
    std::string text = fmt::format("=={}==\n", image_.pid);
    for (std::size_t i = 0; i < session_.profilers.size(); ++i) {
        const ProfilerHandle& profiler = *session_.profilers[i];
        if (profiler.lost()) continue;
        const std::vector<std::uint64_t> sums = totals(i);
        for (std::size_t event = 0; event < sums.size(); ++event) {
            if (profiler.leaves_out(event)) continue;
            const events::Event& column = session_.columns.event(session_.columns.first(i) + event);
            text += fmt::format("=={}== {:<10}{:>20}  {}\n", image_.pid, column.name,
                                with_thousands(sums[event]), column.description);
        }
    }
    return text;
}

}  // namespace assay::collector
