// Blocks of the heap, by address and time. Times are numbers of entries of the allocation log.
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

// What the program has said with assay/client.h, until the buffer arrives among whose records it
// was said.

class MarkerQueues {
  public:
    // `text` is that of the marker's string arguments, a zero byte behind each: the program's,
    // which become printable. The slot must be one that there is.
    void add(const trace::MarkerEvent& event, std::string_view text);

    // The thread of the next marker of a slot up to that buffer, if it is another one.
    std::optional<std::uint32_t> earlier_thread(std::uint32_t slot, std::uint32_t thread,
                                                std::uint32_t buffer) const;
    // Removes the markers of a slot and a thread up to that buffer, which has `count` records. They
    // are valid until the next call.
    std::span<const trace_marker_t> take(std::uint32_t slot, std::uint32_t thread,
                                         std::uint32_t buffer, std::uint64_t count);

  private:
    struct Marker {
        trace::MarkerEvent event;
        std::string name, owner;
    };

    const Marker* next(std::uint32_t slot, std::uint32_t buffer) const;

    std::vector<std::deque<Marker>> slots_;
    std::deque<Marker> taken_;  // what shown_ points to
    std::vector<trace_marker_t> shown_;
};

// When records were made, in instructions of the process: known of some, and estimated in between.

class RecordTimes {
  public:
    // Moments. In a longer run they are further apart: a run of any length takes the same memory.
    static constexpr std::size_t kMost = std::size_t{1} << 18;

    // All records so far were made when the process had executed so many instructions; `record`
    // counts them, whatever they are.
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
        std::uint64_t born, died;  // it is there in between
        std::uint32_t object;
    };
    struct Found {
        std::uint64_t start;
        Block block;
    };

    // Blocks are added in the order of `died`. `depth`: how many other blocks it lies in.
    void add(std::uint64_t start, const Block& block, unsigned depth = 0);
    // The innermost block that contains the address at that time: born before it, and not dead
    // before it.
    std::optional<Found> at(std::uint64_t address, std::uint64_t time) const;
    // The block that dies first of those that contain the address and die at `from` or later.
    std::optional<Found> first_at(std::uint64_t address, std::uint64_t from) const;
    // The block that dies last of all that contain the address.
    std::optional<Found> last_at(std::uint64_t address) const;
    // Removes the blocks that have died by then.
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
