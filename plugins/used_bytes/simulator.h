// The cache, fed with trace records.
//
// Most references are to a line that was the last one touched of its set; for them there is a small
// table, by set, of the last line and which of its bytes were touched, and the cache is not looked
// at. Nothing is lost by it: such a reference finds its line and changes nothing in the order of
// its set. A line's bits go to the cache when another line takes the entry.
//
// The driver leaves out references to the lines that were the last ones of their sets in a smaller
// table, and tells which bytes they touched.
//
// The other references wait in a queue for their sets to arrive in the processor's own cache; and
// those that find their line missing, in another one for what is known of lines.
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
        std::span<const std::uint32_t> contexts;  // by record
        std::span<const trace_marker_t> markers;
        std::span<const std::uint64_t> footprints;  // by set of the driver's filter
        bool warms_up = false;                      // the cache: nothing is counted
    };
    // `sites` is the whole table, of which the simulator already knows the beginning.
    void process(std::span<const trace_site_t> sites, const Buffer& buffer);
    // The program has ended: what is in the cache counts as well.
    void finish();

    const Accounts& accounts() const { return accounts_; }
    std::uint32_t line_bytes() const { return cache_.line_bytes(); }

  private:
    // The table of last lines should stay in the processor's second-level cache.
    static constexpr std::uint64_t kMostRecent = 4096;
    static constexpr std::size_t kQueue = 32;
    static constexpr std::size_t kMostFiltered = 64;

    struct Recent {
        std::uint64_t line = UINT64_MAX;
        std::uint64_t bits = 0;
    };
    static constexpr std::uint32_t kRecentShift = 4;  // of its size
    static_assert(sizeof(Recent) == 1U << kRecentShift && cache::kSmallestLine >= sizeof(Recent));
    // A reference to another line than the last one. `bits`: of that line, which go to its home; of
    // lines that have several words of them, the reference's own, for the word `piece`.
    struct Waiting {
        std::uint64_t line, address, bits;
        std::uint32_t record, piece;
    };
    struct Missing {
        std::size_t place;
        std::uint64_t line, address;
        std::uint32_t record;
        Use used;  // of the line that was there; kNoLine if there was none
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
    bool small_lines_;  // one word of bits is enough for them

    std::uint64_t recent_mask_;
    std::vector<Recent> recent_;
    // Those that the driver's filter has, by its sets. Two lines of one entry are also in one set
    // of the filter: an entry has the filter's line until that is told to be no more.
    std::array<Recent*, kMostFiltered> filtered_;
    Recent unfiltered_;                  // what has no line yet
    std::vector<std::uint64_t*> homes_;  // of the recent lines' bits, as far as looked up
    std::array<Waiting, kQueue> waiting_;
    std::array<Missing, kQueue> missing_;
    std::size_t waiting_count_ = 0;
    std::uint64_t nothing_ = 0;  // the home of no line

    std::span<const trace_site_t> sites_;
    std::vector<std::int8_t> last_offsets_;  // by site
    const Buffer* buffer_ = nullptr;
};

}  // namespace used_bytes
