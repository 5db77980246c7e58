// Simulates the cache from trace records.
//
// Most references are to the line of their set that was touched last. A small table has this line
// for each set, and its touched bytes, so that these references skip the cache. The results are
// exact: such a reference hits, and does not change the order of its set. When another line takes
// the entry, the bits of the line go to the cache.
//
// The driver filters references to the last line of each set in a smaller table, and reports the
// bytes that they touched.
//
// Other references wait in a queue until their sets are loaded into the cache of the host
// processor. Misses wait in a second queue for the histories of lines.
#pragma once

#include "plugins/used_bytes/accounts.h"
#include "plugins/used_bytes/footprint_cache.h"

#include "assay/trace_types.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace used_bytes {

class Simulator {
  public:
    // Throws std::bad_alloc.
    Simulator(const cache::Geometry& geometry, std::optional<SectionChoice> choice);

    struct Buffer {
        std::uint32_t thread;
        std::span<const trace_record_t> records;
        std::span<const std::uint32_t> contexts;  // one for each record, or empty
        std::span<const trace_marker_t> markers;
        std::span<const std::uint64_t> footprints;  // touched bytes, by set of the driver's filter
        bool warms_up = false;                      // fills the cache without counting
    };
    // `sites` is the whole table; the simulator reads only its new part.
    void process(std::span<const trace_site_t> sites, const Buffer& buffer);
    // Counts the lines that are in the cache when the program ends.
    void finish();

    const Accounts& accounts() const { return accounts_; }
    std::uint32_t line_bytes() const { return cache_.line_bytes(); }

  private:
    // Keeps the table of last lines small enough for the second-level cache of the host.
    static constexpr std::uint64_t kMostRecent = 4096;
    static constexpr std::size_t kQueue = 32;
    static constexpr std::size_t kMostFiltered = 64;

    struct Recent {
        std::uint64_t line = UINT64_MAX;
        std::uint64_t bits = 0;
    };
    static constexpr std::uint32_t kRecentShift = 4;  // log2 of its size
    static_assert(sizeof(Recent) == 1U << kRecentShift && cache::kSmallestLine >= sizeof(Recent));
    // A reference to a line that was not the last of its set. With small lines, `bits` are those of
    // the last line and go to its home. Otherwise they are the bytes of the reference itself, in
    // the word `piece`.
    struct Waiting {
        std::uint64_t line, address, bits;
        std::uint32_t record, piece;
    };
    struct Missing {
        std::size_t place;
        std::uint64_t line, address;
        std::uint32_t record;
        Use used;  // of the replaced line, or kNoLine
    };
    static constexpr Use kNoLine{UINT32_MAX, 0};

    std::uint64_t filtered_sets() const {
        return std::clamp<std::uint64_t>(buffer_->footprints.size(), 1, kMostFiltered);
    }
    void learn();
    void run(std::size_t begin, std::size_t end);
    template <bool kFiltered>
    void run_bmi2(std::size_t begin, std::size_t end);
    template <bool kUsual, bool kFiltered>
    [[gnu::always_inline]] void run_any(std::size_t begin, std::size_t end);
    void large(std::size_t index);
    void wait(const Waiting& waiting);
    void look_up();

    FootprintCache cache_;
    Accounts accounts_;
    std::uint32_t line_shift_;
    bool small_lines_;  // a line has one word of bits

    std::uint64_t recent_mask_;
    std::vector<Recent> recent_;
    // The entries of the lines in the driver's filter, by its sets. Lines that share an entry also
    // share a set of the filter, so the entry keeps the filter's line until the driver reports the
    // end of the line.
    std::array<Recent*, kMostFiltered> filtered_;
    Recent unfiltered_;                  // for sets of the filter without a line
    std::vector<std::uint64_t*> homes_;  // by entry of recent_: where its bits go, or `nothing_`
    std::array<Waiting, kQueue> waiting_;
    std::array<Missing, kQueue> missing_;
    std::size_t waiting_count_ = 0;
    std::uint64_t nothing_ = 0;  // home for entries without a line

    std::span<const trace_site_t> sites_;
    std::vector<std::int8_t> last_offsets_;  // by site
    const Buffer* buffer_ = nullptr;
};

}  // namespace used_bytes
