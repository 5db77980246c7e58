// Counts by calling context: one column per event of all profilers.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace assay::collector {

class ContextCounts {
  public:
    explicit ContextCounts(std::size_t columns) : columns_(columns) {}

    void add(std::uint32_t context, std::size_t column, std::uint64_t weight) {
        std::vector<std::uint64_t>& row = rows_.try_emplace(context).first->second;
        row.resize(columns_);
        row[column] += weight;
    }
    // Of all columns; empty if there are none.
    std::span<const std::uint64_t> counts(std::uint32_t context) const {
        const auto row = rows_.find(context);
        return row == rows_.end() ? std::span<const std::uint64_t>() : row->second;
    }
    bool empty() const { return rows_.empty(); }

  private:
    std::size_t columns_;
    std::unordered_map<std::uint32_t, std::vector<std::uint64_t>> rows_;
};

}  // namespace assay::collector
