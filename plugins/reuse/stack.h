// The LRU stack of a thread: how many different lines were referenced since a line was last,
// exactly.
#pragma once

#include "assay/trace_types.h"
#include "plugins/reuse/tables.h"

#include <assay/context_rows.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace reuse {

// Of all threads; summary.h adds them up.
struct Histograms {
    std::vector<std::uint64_t> distances;  // see Tables; may have zeros at the end
    std::vector<std::uint64_t> near =
        std::vector<std::uint64_t>(kAgeBuckets * kNearDistances * kCopies);
    std::vector<std::uint64_t> ages = std::vector<std::uint64_t>(kAgeBuckets);
    std::uint64_t never = 0;  // references to lines that were not referenced before
};

// Whether this processor has the instructions of a kernel.
bool supported(const Kernel& kernel);
// The fastest of those that it supports.
const Kernel& best_kernel();

class Stack {
  public:
    static constexpr std::size_t kBatch = 256;  // touches

    explicit Stack(const Kernel& kernel = best_kernel());

    // References at most kBatch lines one after the other and counts them. Returns those that reach
    // a limit, in no order, valid until the next call. Throws std::length_error if there are more
    // than kMostLines.
    std::span<const Miss> measure(std::span<const Touch> touches,
                                  std::span<const std::uint32_t> limits, Histograms& counted);

    std::uint64_t lines() const { return order_.lines; }

    static constexpr std::uint64_t kMostLines = std::uint64_t{1} << 30;
    static constexpr std::uint64_t kFewestPositions = std::uint64_t{1} << 20;

  private:
    static constexpr std::uint64_t kLinesOfPage = 64, kPagesOfRegion = 512;
    struct Region {
        std::uint64_t key = 0;            // its number + 1; 0: it is free
        std::uint64_t** pages = nullptr;  // of each page its entries, or nullptr
    };
    // Fibonacci hashing: Knuth, The Art of Computer Programming, volume 3, section 6.4.
    std::size_t first_slot(std::uint64_t region) const {
        return region * 0x9E3779B97F4A7C15ULL >> shift_;
    }
    // Where what is known of the line is, which stays there.
    std::uint64_t* entry(std::uint64_t line) {
        const std::uint64_t page = line / kLinesOfPage, region = page / kPagesOfRegion;
        const Region& found = regions_[first_slot(region)];
        if (found.key != region + 1) [[unlikely]]
            return entry_of(line);
        std::uint64_t* const entries = found.pages[page % kPagesOfRegion];
        return entries != nullptr ? entries + line % kLinesOfPage : entry_of(line);
    }
    std::size_t slot_of(std::uint64_t region) const;
    std::uint64_t* entry_of(std::uint64_t line);
    void grow();
    void make_room();
    void age_top();
    void rebuild(std::uint64_t lines, std::uint64_t positions);

    const Kernel& kernel_;
    // Open addressing, a power of two, at most half full. Few, and so soon found: pages that lie
    // together are in one.
    std::vector<Region> regions_;
    unsigned shift_;                                         // 64 - its logarithm
    std::vector<std::unique_ptr<std::uint64_t*[]>> tables_;  // of the regions
    std::vector<std::unique_ptr<std::uint64_t[]>> pages_;
    Top top_;
    Item items_[kBatch];
    Entries entries_[kBatch];
    Miss misses_[kBatch];
    std::vector<std::uint64_t> words_;
    std::vector<std::uint16_t> after_word_, after_2k_;
    std::vector<std::uint32_t> after_64k_, after_2m_;
    Order order_{};
};

// Records of all threads, each with a stack of its own: distances and, by row, misses.

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
