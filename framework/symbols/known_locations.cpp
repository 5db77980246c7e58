#include "framework/symbols/known_locations.h"

#include <algorithm>
#include <iterator>

namespace assay::symbols {

void KnownLocations::add(std::span<const Address> addresses, std::span<const Location> locations) {
    std::vector<Address> all_addresses;
    std::vector<Location> all_locations;
    all_addresses.reserve(addresses_.size() + addresses.size());
    all_locations.reserve(addresses_.size() + addresses.size());
    std::size_t old = 0, added = 0;
    while (old < addresses_.size() || added < addresses.size()) {
        const bool take_old = added == addresses.size() ||
                              (old < addresses_.size() && addresses_[old] < addresses[added]);
        all_addresses.push_back(take_old ? addresses_[old] : addresses[added]);
        all_locations.push_back(take_old ? locations_[old++] : locations[added++]);
    }
    addresses_ = std::move(all_addresses);
    locations_ = std::move(all_locations);
}

std::vector<std::uint32_t> KnownLocations::find(std::span<const Address> addresses,
                                                std::span<Location> locations) const {
    std::vector<std::uint32_t> others;
    auto at = addresses_.begin();
    for (std::uint32_t i = 0; i < addresses.size(); ++i) {
        if (at != addresses_.end() && *at < addresses[i]) ++at;  // mostly that is it
        if (at != addresses_.end() && *at < addresses[i])
            at = std::lower_bound(at, addresses_.end(), addresses[i]);
        if (at != addresses_.end() && *at == addresses[i])
            locations[i] = locations_[static_cast<std::size_t>(at - addresses_.begin())];
        else
            others.push_back(i);
    }
    return others;
}

std::vector<Address> KnownLocations::without(std::span<const Address> addresses) const {
    std::vector<Address> others;
    std::set_difference(addresses.begin(), addresses.end(), addresses_.begin(), addresses_.end(),
                        std::back_inserter(others));
    others.erase(std::unique(others.begin(), others.end()), others.end());
    return others;
}

std::vector<Address> selected(std::span<const Address> addresses,
                              std::span<const std::uint32_t> indices) {
    std::vector<Address> result;
    result.reserve(indices.size());
    for (const std::uint32_t index : indices) result.push_back(addresses[index]);
    return result;
}

}  // namespace assay::symbols
