#include "framework/collector/results/grouped_counts.h"

#include <algorithm>
#include <tuple>

namespace assay::collector {

GroupedCounts::GroupedCounts(const Source& source)
    : counts_(&source.counts),
      width_(source.columns.size()),
      events_(source.database_columns, SIZE_MAX),
      first_of_row_(source.instructions + 1) {
    for (std::size_t i = 0; i < width_; ++i) events_[source.columns[i]] = i;
    const auto has_counts = [&](std::uint32_t row) {
        bool any = false;
        counts_->each_count(row, [&](std::size_t column, std::uint64_t count) {
            any |= events_[column] != SIZE_MAX && count != 0;
        });
        return any;
    };
    for (ContextCounts::Row row : counts_->sorted_rows()) {
        if (row.instruction == ContextCounts::kAnyRow || !has_counts(row.number)) continue;
        row.context = source.number(row.context);
        numbers_.push_back(row.context);
        rows_.push_back(row);
    }
    add_numbers({});
    std::sort(rows_.begin(), rows_.end(),
              [](const ContextCounts::Row& a, const ContextCounts::Row& b) {
                  return std::tie(a.instruction, a.context, a.number) <
                         std::tie(b.instruction, b.context, b.number);
              });
    for (const ContextCounts::Row& row : rows_) ++first_of_row_[row.instruction + 1];
    for (std::size_t i = 1; i < first_of_row_.size(); ++i) first_of_row_[i] += first_of_row_[i - 1];
}

void GroupedCounts::add_numbers(std::span<const std::uint32_t> more) {
    numbers_.insert(numbers_.end(), more.begin(), more.end());
    std::sort(numbers_.begin(), numbers_.end());
    numbers_.erase(std::unique(numbers_.begin(), numbers_.end()), numbers_.end());
    sums_.resize(numbers_.size() * width_);
}

std::uint32_t GroupedCounts::group(std::uint32_t number) const {
    return static_cast<std::uint32_t>(std::lower_bound(numbers_.begin(), numbers_.end(), number) -
                                      numbers_.begin());
}

void GroupedCounts::write_line(events::Writer& writer, std::span<const std::uint32_t> rows,
                               std::uint32_t first) {
    if (rows_.empty()) return;
    touched_.clear();
    for (const std::uint32_t row : rows)
        for (std::uint32_t i = first_of_row_[row]; i < first_of_row_[row + 1]; ++i) {
            const std::uint32_t group = this->group(rows_[i].context);
            touched_.push_back(group);
            counts_->each_count(rows_[i].number, [&](std::size_t column, std::uint64_t count) {
                if (events_[column] != SIZE_MAX) sums_[group * width_ + events_[column]] += count;
            });
        }
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (const std::uint32_t group : touched_) {
        const std::span<std::uint64_t> sums = std::span(sums_).subspan(group * width_, width_);
        writer.counts_of(first + group, sums);
        std::fill(sums.begin(), sums.end(), 0);
    }
}

}  // namespace assay::collector
