// Counts of instructions that are broken down by groups of one kind, as the events file has them.
#pragma once

#include "framework/collector/results/context_counts.h"
#include "framework/events/writer.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace assay::collector {

class GroupedCounts {
  public:
    // `counts`: by any number instead of the context, of `instructions` rows of the database.
    // `number`: which one that is in the end. `columns`: of the database, by event of the file.
    struct Source {
        const ContextCounts& counts;
        std::size_t instructions, database_columns;
        std::span<const std::size_t> columns;
        std::function<std::uint32_t(std::uint32_t)> number;
    };
    explicit GroupedCounts(const Source& source);

    // Those that have counts in the file, sorted.
    const std::vector<std::uint32_t>& numbers() const { return numbers_; }
    // Adds those that have groups although they have no counts by themselves.
    void add_numbers(std::span<const std::uint32_t> more);
    // The group of a number of those, counted from 0.
    std::uint32_t group(std::uint32_t number) const;
    // The counts of a line, which are those of some rows of the database. `first`: the first
    // group's number in the file.
    void write_line(events::Writer& writer, std::span<const std::uint32_t> rows,
                    std::uint32_t first);

  private:
    const ContextCounts* counts_;
    std::size_t width_;                        // events
    std::vector<std::size_t> events_;          // of the file, by column of the database
    std::vector<std::uint32_t> numbers_;       // by group
    std::vector<ContextCounts::Row> rows_;     // by row of the database
    std::vector<std::uint32_t> first_of_row_;  // in those
    std::vector<std::uint64_t> sums_;          // of write_line(), by group and event
    std::vector<std::uint32_t> touched_;
};

}  // namespace assay::collector
