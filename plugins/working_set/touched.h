// Counts the lines and pages that each thread touches for the first time, in an interval and in the
// run. Also writes the reports at the end of a run.
#pragma once

#include "plugins/common/page_map.h"

#include "assay/trace_types.h"

#include <assay/context_rows.hpp>
#include <assay/series.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace working_set {

// The events, counted by site and context.
enum Event : std::uint32_t { kLines, kPages, kNewLines, kNewPages, kEvents };
using Counts = std::array<std::uint64_t, kEvents>;

// The size of a working set: the lines and pages touched in an interval.
struct Size {
    std::uint64_t lines = 0, pages = 0;
};

class Touched {
  public:
    // The limit of intervals kept for a thread. Later intervals are only counted.
    static constexpr std::size_t kMostIntervals = 65536;
    static constexpr unsigned kPageShift = 12;

    // `line_bytes` is a power of two from 64 to 4096.
    explicit Touched(std::uint32_t line_bytes);

    // Takes the whole table of sites; reads those that are new since the last call.
    void learn(std::span<const trace_site_t> sites);
    // `contexts` has one for each record, or is empty.
    void process(std::uint32_t thread, std::span<const trace_record_t> records,
                 std::span<const std::uint32_t> contexts);

    struct Thread {
        std::vector<Size> sizes;     // of the complete intervals
        Size now;                    // of the current interval
        std::uint32_t interval = 1;  // number of the current interval
        std::uint64_t left_out = 0;  // intervals beyond kMostIntervals
    };
    // By thread number.
    std::map<std::uint32_t, Thread> threads() const;
    const Counts& totals() const { return totals_; }

    // Calls visit(context, counts) for each context in which the site touched anything first.
    template <typename Visit>
    void each_context(std::uint32_t site, const Visit& visit) const {
        rows_.each(site,
                   [&](std::uint32_t row) { visit(rows_.context_of_samples(row), counts_[row]); });
    }

  private:
    // The touched lines of a page in an interval of a thread.
    struct Page {
        std::uint64_t lines = 0;  // a bit for each touched line
        std::uint32_t interval = 0;
    };
    struct Own : Thread {
        pages::PageMap<Page> pages;
    };
    static constexpr std::uint32_t kOther = UINT32_MAX, kInterval = UINT32_MAX - 1;

    void touch(Own& own, std::uint64_t address, std::uint32_t context, std::uint32_t site);
    void count(Event event, std::uint32_t context, std::uint32_t site);
    static void end_interval(Own& own);

    const unsigned line_shift_;
    std::vector<std::uint32_t> last_byte_;  // by site: offset of the last byte, kOther or kInterval
    std::map<std::uint32_t, Own> threads_;
    pages::PageMap<std::uint64_t> ever_;  // by page: lines touched by any thread
    assay::ContextRows rows_;
    std::vector<Counts> counts_;  // by row
    Counts totals_{};
};

std::string summarise(const Touched& touched, std::uint32_t line_bytes,
                      std::uint64_t interval_size);

// Rows of `thread,instructions,lines,pages`: a thread, its executed instructions before the
// interval, and its working set. Only complete intervals are included.
std::string csv(const Touched& touched, std::uint64_t interval_size);

// The working sets of one thread over time, for the events file.
assay::Series series(std::uint32_t number, const Touched::Thread& thread,
                     std::uint64_t interval_size);

}  // namespace working_set
