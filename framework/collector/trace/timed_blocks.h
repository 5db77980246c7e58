// Blocks of the heap by address and time, and markers. Times are numbers of entries of the
// allocation log.
#pragma once

#include "assay/trace_types.h"
#include "framework/trace/segment_layout.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::collector {

// Markers that the program has set (assay/client.h). They wait here for the buffer with the records
// around them.

class MarkerQueues {
  public:
    // `text` has the marker's string arguments, each with a final zero byte. Unprintable characters
    // are replaced. The slot must exist.
    void add(const trace::MarkerEvent& event, std::string_view text);

    // Returns the thread of the slot's next marker up to `buffer`, if it differs from `thread`.
    std::optional<std::uint32_t> earlier_thread(std::uint32_t slot, std::uint32_t thread,
                                                std::uint32_t buffer) const;
    // Removes the markers of a slot and a thread up to `buffer`, which has `count` records. Returns
    // them; they are valid until the next call.
    std::span<const trace_marker_t> take(std::uint32_t slot, std::uint32_t thread,
                                         std::uint32_t buffer, std::uint64_t count);

  private:
    struct Marker {
        trace::MarkerEvent event;
        std::string name, owner;
    };

    const Marker* next(std::uint32_t slot, std::uint32_t buffer) const;

    std::vector<std::deque<Marker>> slots_;
    std::deque<Marker> taken_;  // owns the texts in shown_
    std::vector<trace_marker_t> shown_;
};

// When records were made, in instructions of the process. Some times are known; the others are
// interpolated.

class RecordTimes {
  public:
    // The most moments that are kept. In a longer run they are further apart, so that memory is
    // bounded.
    static constexpr std::size_t kMost = std::size_t{1} << 18;

    // Called with the number of records so far, of all kinds, and with the number of instructions
    // that the process has executed then.
    void note(std::uint64_t record, std::uint64_t time) {
        const auto differs = [&](const Moment& from) {
            return time >= from.time + worthwhile_ || time < from.time;
        };
        if (moments_.size() == kMost) keep_every_second();
        if (moments_.size() > 1 && !differs(moments_[moments_.size() - 2]))
            moments_.back() = {record, time};
        else
            moments_.push_back({record, time});
    }
    std::size_t moments() const { return moments_.size(); }
    std::uint64_t last() const { return moments_.back().time; }
    std::uint64_t of(std::uint64_t record) const {
        const auto behind = std::upper_bound(
            moments_.begin(), moments_.end(), record,
            [](std::uint64_t at, const Moment& moment) { return at < moment.record; });
        if (behind == moments_.end()) return last();
        const Moment& before = *std::prev(behind);
        if (behind->time <= before.time) return before.time;
        return before.time +
               static_cast<std::uint64_t>(static_cast<double>(behind->time - before.time) *
                                          static_cast<double>(record - before.record) /
                                          static_cast<double>(behind->record - before.record));
    }

  private:
    struct Moment {
        std::uint64_t record = 0, time = 0;
    };
    void keep_every_second() {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < moments_.size(); i += 2) moments_[kept++] = moments_[i];
        moments_.resize(kept);
        worthwhile_ *= 2;
    }

    std::uint64_t worthwhile_ = 4096;  // instructions
    std::vector<Moment> moments_{Moment{}};
};

class TimedBlocks {
  public:
    struct Block {
        std::uint64_t end;         // of its memory
        std::uint64_t born, died;  // it exists in between
        std::uint32_t object;
    };
    struct Found {
        std::uint64_t start;
        Block block;
    };

    // Blocks must be added in the order of `died`. `depth` is the number of blocks that contain it.
    void add(std::uint64_t start, const Block& block, unsigned depth = 0);
    // Returns the innermost block that contains the address at this time. The block is born before
    // the time, and does not die before it.
    std::optional<Found> at(std::uint64_t address, std::uint64_t time) const;
    // Returns the block that dies first among those that contain the address and die at `from` or
    // later.
    std::optional<Found> first_at(std::uint64_t address, std::uint64_t from) const;
    // Returns the block that dies last among those that contain the address.
    std::optional<Found> last_at(std::uint64_t address) const;
    // Removes the blocks that have died until then.
    void forget(std::uint64_t until);
    std::size_t size() const { return size_; }

  private:
    // Blocks of one depth that begin at one address follow one another in time.
    using Starts = std::map<std::uint64_t, std::deque<Block>>;
    template <typename Look>
    void look_at(std::uint64_t address, const Look& look) const;

    // By the number of bits of a block's size, and by depth. A block of a group that contains an
    // address therefore begins near it.
    std::map<std::pair<unsigned, unsigned>, Starts> groups_;
    std::size_t size_ = 0;
};

}  // namespace assay::collector
