// When records were made, in instructions of the process: known of some, and estimated in between.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

namespace assay::collector {

class RecordTimes {
  public:
    // All records so far were made when the process had executed so many instructions; `record`
    // counts them, whatever they are.
    void note(std::uint64_t record, std::uint64_t time) {
        constexpr std::uint64_t kWorthwhile = 4096;  // instructions
        const auto differs = [&](const Moment& from) {
            return time >= from.time + kWorthwhile || time < from.time;
        };
        if (moments_.size() > 1 && !differs(moments_[moments_.size() - 2]))
            moments_.back() = {record, time};
        else
            moments_.push_back({record, time});
    }
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
    std::vector<Moment> moments_{Moment{}};
};

}  // namespace assay::collector
