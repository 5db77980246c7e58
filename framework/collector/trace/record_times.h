// When records were made, in instructions of the process: known of some, and estimated in between.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace assay::collector {

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

}  // namespace assay::collector
