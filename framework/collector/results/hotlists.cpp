#include "framework/collector/results/hotlists.h"

#include <algorithm>
#include <cmath>

namespace assay::collector {
namespace {

constexpr auto kByCount = [](const auto& a, const auto& b) { return a.count < b.count; };

}  // namespace

void TopValues::add(std::uint64_t value, std::uint64_t weight) {
    if (weight == 0) return;
    total_ += weight;
    auto counter = std::find_if(counters_.begin(), counters_.end(),
                                [&](const Counter& each) { return each.value == value; });
    if (counter == counters_.end() && counters_.size() < kTracked) {
        counters_.push_back({value, weight, 0});
        return;
    }
    if (counter == counters_.end()) {
        counter = std::min_element(counters_.begin(), counters_.end(), kByCount);
        *counter = {value, counter->count, counter->count};
        full_ = true;
    }
    counter->count += weight;
    if (counter != counters_.begin()) std::iter_swap(counter, counter - 1);
}

void TopValues::add_rest(std::uint64_t weight, std::uint64_t error) {
    total_ += weight;
    rest_error_ += std::min(error, weight);
}

// Rounded so that the values are no more than their total.
void TopValues::scale(double factor) {
    const events::Hotlist known = list();
    const auto scaled = [factor](std::uint64_t count) {
        return static_cast<double>(count) * factor;
    };
    counters_.clear();
    full_ = false;
    for (const events::HotValue& each : known.values)
        counters_.push_back({each.value, static_cast<std::uint64_t>(scaled(each.count)), 0});
    rest_error_ = static_cast<std::uint64_t>(std::ceil(scaled(known.error)));
    total_ = static_cast<std::uint64_t>(std::ceil(scaled(known.total)));
}

events::Hotlist TopValues::list() const {
    events::Hotlist list;
    list.total = total_;
    list.error = rest_error_;
    if (full_) list.error += std::min_element(counters_.begin(), counters_.end(), kByCount)->count;
    for (const Counter& each : counters_)
        if (each.count > each.error) list.values.push_back({each.value, each.count - each.error});
    events::sort_by_count(list.values);
    return list;
}

std::vector<events::Hotlist> Hotlists::named(std::uint32_t row,
                                             const std::vector<std::string>& names) const {
    std::vector<events::Hotlist> lists;
    const auto found = rows_.find(row);
    if (found == rows_.end()) return lists;
    for (std::uint32_t list = 0; list < names.size(); ++list) {
        const auto values = found->second.find(list);
        if (names[list].empty() || values == found->second.end()) continue;
        lists.push_back(values->second.list());
        lists.back().name = names[list];
    }
    return lists;
}

}  // namespace assay::collector
