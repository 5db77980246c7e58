// Records of all threads, each with a stack of its own: distances and, by row, misses.
#pragma once

#include "plugins/reuse/stack.h"

#include "assay/trace_types.h"

#include <assay/context_rows.hpp>

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace reuse {

class ThreadStacks {
  public:
    // `limits`: distances in lines, ascending, at least one.
    ThreadStacks(std::uint32_t line_bytes, std::vector<std::uint32_t> limits);

    // Sites that are new since the last call.
    void learn(std::span<const trace_site_t> sites);
    // `contexts` by record, or none. Throws std::length_error: see Stack::measure.
    void process(std::uint32_t thread, std::span<const trace_record_t> records,
                 std::span<const std::uint32_t> contexts);
    // Its stack can go.
    void end(std::uint32_t thread);

    const Histograms& histograms() const { return histograms_; }
    // Lines that a thread has touched, the sum over threads.
    std::uint64_t lines() const;

    // Calls visit(context, cells) for each context in which the site was seen: how many references
    // had a distance from limit i on up to the next one, then how many a line that was new. Of a
    // TRACE_SITE_COUNT the first cell is the sum of the counts.
    template <typename Visit>
    void each_context(std::uint32_t site, const Visit& visit) const {
        const std::size_t width = limits_.size() + 1;
        rows_.each(site, [&](std::uint32_t row) {
            visit(rows_.context_of_samples(row), std::span(&cells_[row * width], width));
        });
    }

  private:
    struct Thread {
        Stack stack;
        std::uint64_t last_line = UINT64_MAX;
    };
    // Of sites, besides the number of the last byte of a reference.
    static constexpr std::uint32_t kOther = UINT32_MAX, kCount = UINT32_MAX - 1;

    // Of a batch: where their records are.
    struct Batch {
        const trace_record_t* records;
        const std::uint32_t* contexts;  // nullptr: none
    };
    std::uint64_t* cells_of(const Batch& batch, std::uint32_t record);
    void measure(Thread& thread, const Batch& batch, std::size_t touches);

    const unsigned line_shift_;
    const std::vector<std::uint32_t> limits_;
    std::vector<std::uint32_t> last_byte_;  // by site
    assay::ContextRows rows_;
    std::vector<std::uint64_t> cells_;  // limits and one, by row
    Touch touches_[Stack::kBatch];
    std::unordered_map<std::uint32_t, Thread> threads_;
    Histograms histograms_;
    std::uint64_t lines_ended_ = 0;  // of threads that have ended
};

}  // namespace reuse
