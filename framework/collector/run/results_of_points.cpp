// What simulation points have counted, each in a process of its own, added up.
#include "framework/collector/run/results.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <utility>

namespace assay::collector {
namespace {

// A row: 0, pc, mapping, and a count for each column. A hotlist: 1, pc, mapping, its number, total,
// error, how many values there are, and each with its count.
enum Kind : std::uint64_t { kRow, kHotlist };
constexpr std::size_t kRowHead = 3, kHotlistHead = 7;

}  // namespace

std::vector<std::uint64_t> Results::counts() const {
    std::vector<std::uint64_t> numbers;
    std::vector<SampleDatabase::Key> keys(counts_.samples.rows());
    counts_.samples.visit_sorted([&](const SampleDatabase::Row& row) {
        keys[row.number] = row.key;
        const std::span<const std::uint64_t> counts = counts_.samples.counts(row.number);
        numbers.insert(numbers.end(), {kRow, row.key.pc, row.key.mapping});
        numbers.insert(numbers.end(), counts.begin(), counts.end());
    });
    counts_.hotlists.for_each(
        [&](std::uint32_t row, std::uint32_t number, const TopValues& values) {
            const events::Hotlist list = values.list();
            numbers.insert(numbers.end(), {kHotlist, keys[row].pc, keys[row].mapping, number,
                                           list.total, list.error, list.values.size()});
            for (const events::HotValue& each : list.values)
                numbers.insert(numbers.end(), {each.value, each.count});
        });
    return numbers;
}

bool Results::add_counts(std::span<const std::uint64_t> counts) {
    while (!counts.empty())
        if (!(counts.front() == kRow ? add_row(counts) : add_hotlist(counts))) return false;
    return true;
}

bool Results::add_row(std::span<const std::uint64_t>& left) {
    const std::size_t columns = counts_.samples.columns();
    if (left.size() < kRowHead + columns) return false;
    const SampleDatabase::Key key{left[1], static_cast<std::uint32_t>(left[2])};
    for (std::size_t column = 0; column < columns; ++column)
        counts_.samples.add(key, column, left[kRowHead + column]);
    left = left.subspan(kRowHead + columns);
    return true;
}

// What of it has no counter in the list any more has the error that is left.
bool Results::add_hotlist(std::span<const std::uint64_t>& left) {
    if (left.size() < kHotlistHead || left[0] != kHotlist) return false;
    const std::uint64_t total = left[4], error = left[5], values = left[6];
    if (values > (left.size() - kHotlistHead) / 2 || counts_.samples.columns() == 0) return false;
    const SampleDatabase::Key key{left[1], static_cast<std::uint32_t>(left[2])};
    TopValues& list =
        counts_.hotlists.of(counts_.samples.add(key, 0, 0), static_cast<std::uint32_t>(left[3]));
    std::uint64_t known = 0;
    for (std::size_t i = 0; i < values; ++i) {
        const std::uint64_t count = left[kHotlistHead + 2 * i + 1];
        list.add(left[kHotlistHead + 2 * i], count);
        known += count;
    }
    list.add_rest(total - std::min(total, known), error);
    left = left.subspan(kHotlistHead + 2 * values);
    return true;
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
