// The LRU stack of a thread: the exact number of different lines since the last reference to a
// line.
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

// The sums over all threads.
struct Histograms {
    std::vector<std::uint64_t> distances;  // see Tables; may end with zeros
    std::vector<std::uint64_t> near =
        std::vector<std::uint64_t>(kAgeBuckets * kNearDistances * kCopies);
    std::vector<std::uint64_t> ages = std::vector<std::uint64_t>(kAgeBuckets);
    std::uint64_t never = 0;  // references to lines that were not referenced before
};

// The kernels whose instructions this processor has, the fastest one last.
std::vector<const Kernel*> usable_kernels();
const Kernel& best_kernel();

class Stack {
  public:
    static constexpr std::size_t kBatch = 256;  // touches

    explicit Stack(const Kernel& kernel = best_kernel());

    // References at most kBatch lines one after the other and counts them. Returns the references
    // that reach a limit, in any order, valid until the next call. Throws std::length_error above
    // kMostLines different lines.
    std::span<const Miss> measure(std::span<const Touch> touches,
                                  std::span<const std::uint32_t> limits, Histograms& counted);

    std::uint64_t lines() const { return order_.lines; }

    static constexpr std::uint64_t kMostLines = std::uint64_t{1} << 30;
    static constexpr std::uint64_t kFewestPositions = std::uint64_t{1} << 20;

  private:
    static constexpr std::uint64_t kLinesOfPage = 64, kPagesOfRegion = 512;
    struct Region {
        std::uint64_t key = 0;            // the region's number + 1; 0: free
        std::uint64_t** pages = nullptr;  // the entries of each page, or nullptr
    };
    // Fibonacci hashing: Knuth, The Art of Computer Programming, volume 3, section 6.4.
    std::size_t first_slot(std::uint64_t region) const {
        return region * 0x9E3779B97F4A7C15ULL >> shift_;
    }
    // The entry of the line. Its address never changes.
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
    // Open addressing with a power of two of slots, at most half full. There are few regions
    // because adjacent pages share one, so a look-up is quick.
    std::vector<Region> regions_;
    unsigned shift_;                                         // 64 - the logarithm of the number of
                                                             // slots
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

// Records of all threads. Each thread has its own stack. Counts distances and, by row, misses.
class ThreadStacks {
  public:
    // `limits` are distances in lines, ascending, at least one.
    ThreadStacks(std::uint32_t line_bytes, std::vector<std::uint32_t> limits);

    // Takes the sites that are new since the last call.
    void learn(std::span<const trace_site_t> sites);
    // `contexts` are by record, or empty. Throws std::length_error: see Stack::measure.
    void process(std::uint32_t thread, std::span<const trace_record_t> records,
                 std::span<const std::uint32_t> contexts);
    // The thread has ended: frees its stack.
    void end(std::uint32_t thread);

    const Histograms& histograms() const { return histograms_; }
    // The number of lines that each thread has touched, summed over all threads.
    std::uint64_t lines() const;

    // Calls visit(context, cells) for each context in which the site occurred. Cell i has the
    // number of references with a distance from limit i to below the next limit, and the last cell
    // the references to new lines. For a TRACE_SITE_COUNT, the first cell is the sum of the counts.
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
    // Values of last_byte_ for sites that are no references.
    static constexpr std::uint32_t kOther = UINT32_MAX, kCount = UINT32_MAX - 1;

    // The records of a batch.
    struct Batch {
        const trace_record_t* records;
        const std::uint32_t* contexts;  // null without contexts
    };
    std::uint64_t* cells_of(const Batch& batch, std::uint32_t record);
    void measure(Thread& thread, const Batch& batch, std::size_t touches);

    const unsigned line_shift_;
    const std::vector<std::uint32_t> limits_;
    std::vector<std::uint32_t> last_byte_;  // by site
    assay::ContextRows rows_;
    std::vector<std::uint64_t> cells_;  // by row; one for each limit and one more
    Touch touches_[Stack::kBatch];
    std::unordered_map<std::uint32_t, Thread> threads_;
    Histograms histograms_;
    std::uint64_t lines_ended_ = 0;  // of threads that have ended
};

}  // namespace reuse
