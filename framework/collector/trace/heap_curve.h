// The bytes of the heap that are in use over time, in all and by allocation site. A bounded number
// of points represents a run of any length: the run is divided into slots of equal length, and each
// slot keeps the values at its peak and at its end. The highest peak of the run is therefore exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay::collector {

class HeapCurve {
  public:
    static constexpr std::size_t kMostSlots = 256;

    // A point of the curve. Times are in instructions of the process.
    struct Point {
        std::uint64_t time, bytes;  // of all sites
        std::uint32_t key;          // for of_site()
    };

    // A site, which is the number of a data object, has more or fewer bytes in use. Times that are
    // lower than an earlier one count as that one.
    void allocate(std::uint32_t site, std::uint64_t bytes, std::uint64_t time);
    void release(std::uint32_t site, std::uint64_t bytes, std::uint64_t time);
    // Call it after the last change.
    void finish();

    // The points in the order of their times, all different. Empty without an allocation.
    std::vector<Point> points() const;
    // The bytes of a site at these points.
    std::vector<std::uint64_t> of_site(std::uint32_t site, const std::vector<Point>& points) const;
    // The bytes of a site when the heap was largest.
    std::uint64_t at_peak(std::uint32_t site) const;

  private:
    // Keys order the states of a run: 2 * slot for the peak of a slot, and 2 * slot + 1 for its
    // end.
    struct State {
        std::uint32_t key;
        std::uint64_t bytes;
    };
    struct Site {
        std::uint64_t live = 0;
        std::uint64_t at_peak = 0;  // in the current slot; of an earlier peak if `peak` is another
        std::uint32_t peak = 0;     // number of the last peak before the last change
        std::uint32_t slot = UINT32_MAX;  // the last slot with a change
        std::vector<State> states;        // where the bytes have changed
    };
    struct Slot {
        std::uint32_t number;
        std::uint64_t peak_time, peak_bytes, end_time, end_bytes;
    };

    Site& change(std::uint32_t site, std::uint64_t time);
    void note();
    void open(std::uint32_t number);
    void close();
    void halve();
    static void add_state(Site& site, std::uint32_t key, std::uint64_t bytes);
    static std::uint64_t bytes_at(const Site& site, std::uint32_t key);

    std::vector<Site> sites_;             // by number
    std::vector<std::uint32_t> changed_;  // sites that have changed in the current slot
    std::vector<Slot> slots_;             // those with changes
    bool is_open_ = false;                // the last slot
    bool is_new_ = false;                 // the last slot has no change yet
    std::uint64_t width_ = 1024;          // of a slot, in instructions
    std::uint64_t now_ = 0, live_ = 0;
    std::uint32_t peak_ = 0;  // number of the current slot's peak
};

}  // namespace assay::collector
