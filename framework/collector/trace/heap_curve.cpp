#include "framework/collector/trace/heap_curve.h"

#include <algorithm>
#include <utility>

namespace assay::collector {

void HeapCurve::allocate(std::uint32_t site, std::uint64_t bytes, std::uint64_t time) {
    change(site, time).live += bytes;
    live_ += bytes;
    note();
}

void HeapCurve::release(std::uint32_t site, std::uint64_t bytes, std::uint64_t time) {
    Site& from = change(site, time);
    bytes = std::min(bytes, from.live);
    from.live -= bytes;
    live_ -= bytes;
    note();
}

// Notes the bytes in use after a change. The first change of a slot is its first peak.
void HeapCurve::note() {
    Slot& slot = slots_.back();
    slot.end_time = now_;
    slot.end_bytes = live_;
    if (!std::exchange(is_new_, false) && live_ <= slot.peak_bytes) return;
    slot.peak_time = now_;
    slot.peak_bytes = live_;
    ++peak_;
}

// Notes the state of a site before its next change. The site had the same bytes at the last peak if
// it has not changed since then.
HeapCurve::Site& HeapCurve::change(std::uint32_t number, std::uint64_t time) {
    now_ = std::max(now_, time);
    while (now_ / width_ >= kMostSlots) halve();
    const auto slot = static_cast<std::uint32_t>(now_ / width_);
    if (!is_open_ || slots_.back().number != slot) {
        close();
        open(slot);
    }
    if (number >= sites_.size()) sites_.resize(number + 1);
    Site& site = sites_[number];
    if (site.slot != slot) {
        site.slot = slot;
        changed_.push_back(number);
    }
    if (site.peak != peak_) {
        site.peak = peak_;
        site.at_peak = site.live;
    }
    return site;
}

void HeapCurve::open(std::uint32_t number) {
    slots_.push_back({number, 0, 0, 0, 0});
    is_open_ = is_new_ = true;
}

void HeapCurve::close() {
    if (!is_open_) return;
    const std::uint32_t slot = slots_.back().number;
    for (const std::uint32_t number : changed_) {
        Site& site = sites_[number];
        add_state(site, 2 * slot, site.peak == peak_ ? site.at_peak : site.live);
        add_state(site, 2 * slot + 1, site.live);
    }
    changed_.clear();
    is_open_ = false;
}

void HeapCurve::add_state(Site& site, std::uint32_t key, std::uint64_t bytes) {
    if ((site.states.empty() ? 0 : site.states.back().bytes) != bytes)
        site.states.push_back({key, bytes});
}

std::uint64_t HeapCurve::bytes_at(const Site& site, std::uint32_t key) {
    const auto after = std::upper_bound(
        site.states.begin(), site.states.end(), key,
        [](std::uint32_t wanted, const State& state) { return wanted < state.key; });
    return after == site.states.begin() ? 0 : std::prev(after)->bytes;
}

// Makes one slot of every two. It has the higher peak and the later end.
void HeapCurve::halve() {
    close();
    width_ *= 2;
    const std::vector<Slot> before = std::exchange(slots_, {});
    std::vector<std::pair<std::uint32_t, std::uint32_t>> kept;  // keys of the peak and of the end
    for (const Slot& slot : before) {
        const std::uint32_t number = slot.number / 2;
        if (slots_.empty() || slots_.back().number != number) {
            slots_.push_back(slot);
            slots_.back().number = number;
            kept.emplace_back(2 * slot.number, 2 * slot.number + 1);
            continue;
        }
        Slot& joined = slots_.back();
        joined.end_time = slot.end_time;
        joined.end_bytes = slot.end_bytes;
        kept.back().second = 2 * slot.number + 1;
        if (slot.peak_bytes <= joined.peak_bytes) continue;
        joined.peak_time = slot.peak_time;
        joined.peak_bytes = slot.peak_bytes;
        kept.back().first = 2 * slot.number;
    }
    for (Site& site : sites_) {
        Site joined;
        for (std::size_t i = 0; i < slots_.size() && !site.states.empty(); ++i) {
            add_state(joined, 2 * slots_[i].number, bytes_at(site, kept[i].first));
            add_state(joined, 2 * slots_[i].number + 1, bytes_at(site, kept[i].second));
        }
        site.states = std::move(joined.states);
        site.slot = UINT32_MAX;
    }
}

void HeapCurve::finish() {
    close();
}

std::vector<HeapCurve::Point> HeapCurve::points() const {
    std::vector<Point> points;
    const auto add = [&](std::uint64_t time, std::uint64_t bytes, std::uint32_t key) {
        // Several changes can have the same time, when a block is moved.
        if (!points.empty()) time = std::max(time, points.back().time + 1);
        points.push_back({time, bytes, key});
    };
    for (const Slot& slot : slots_) {
        add(slot.peak_time, slot.peak_bytes, 2 * slot.number);
        if (slot.end_bytes != slot.peak_bytes)
            add(slot.end_time, slot.end_bytes, 2 * slot.number + 1);
    }
    return points;
}

std::vector<std::uint64_t> HeapCurve::of_site(std::uint32_t site,
                                              const std::vector<Point>& points) const {
    std::vector<std::uint64_t> bytes(points.size());
    for (std::size_t i = 0; i < points.size() && site < sites_.size(); ++i)
        bytes[i] = bytes_at(sites_[site], points[i].key);
    return bytes;
}

std::uint64_t HeapCurve::at_peak(std::uint32_t site) const {
    const auto highest =
        std::max_element(slots_.begin(), slots_.end(),
                         [](const Slot& a, const Slot& b) { return a.peak_bytes < b.peak_bytes; });
    if (highest == slots_.end() || site >= sites_.size()) return 0;
    return bytes_at(sites_[site], 2 * highest->number);
}

}  // namespace assay::collector
