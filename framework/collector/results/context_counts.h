// Counts by calling context and instruction: one column per event of all profilers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace assay::collector {

class ContextCounts {
  public:
    // Stands for all instructions of a context.
    static constexpr std::uint32_t kAnyRow = UINT32_MAX;
    // Beyond this many rows, what is new counts for its context as a whole. There can be as many
    // as contexts times instructions.
    static constexpr std::size_t kMostRows = 4 * 1024 * 1024;

    struct Row {
        std::uint32_t context;
        std::uint32_t instruction;  // the sample database's row, or kAnyRow
        std::uint32_t number;       // for counts()
    };

    explicit ContextCounts(std::size_t columns, std::size_t most = kMostRows)
        : columns_(columns), most_(most) {}

    void add(std::uint32_t context, std::uint32_t instruction, std::size_t column,
             std::uint64_t weight) {
        row(context, instruction)[column] += weight;
    }
    // The row's counts, to be added to. Valid until the next call.
    std::span<std::uint64_t> row(std::uint32_t context, std::uint32_t instruction) {
        if (rows_.size() >= most_ && !rows_.contains(key(context, instruction)))
            instruction = kAnyRow;
        const auto [found, is_new] =
            rows_.try_emplace(key(context, instruction), static_cast<std::uint32_t>(rows_.size()));
        if (is_new) counts_.resize(counts_.size() + columns_);
        return std::span(counts_).subspan(found->second * columns_, columns_);
    }
    std::span<const std::uint64_t> counts(std::uint32_t row) const {
        return std::span(counts_).subspan(row * columns_, columns_);
    }
    // Replaces each count by `change(column, count)`.
    template <typename Change>
    void change_counts(const Change& change) {
        for (std::size_t i = 0; i < counts_.size(); ++i)
            counts_[i] = change(i % columns_, counts_[i]);
    }
    bool empty() const { return rows_.empty(); }
    // By context, then by instruction.
    std::vector<Row> sorted_rows() const {
        std::vector<Row> sorted;
        sorted.reserve(rows_.size());
        for (const auto& [at, number] : rows_)
            sorted.push_back(
                {static_cast<std::uint32_t>(at >> 32), static_cast<std::uint32_t>(at), number});
        std::sort(sorted.begin(), sorted.end(), [](const Row& a, const Row& b) {
            return std::tie(a.context, a.instruction) < std::tie(b.context, b.instruction);
        });
        return sorted;
    }

  private:
    static std::uint64_t key(std::uint32_t context, std::uint32_t instruction) {
        return std::uint64_t{context} << 32 | instruction;
    }

    std::size_t columns_, most_;
    std::unordered_map<std::uint64_t, std::uint32_t> rows_;  // by key()
    std::vector<std::uint64_t> counts_;
};

}  // namespace assay::collector
