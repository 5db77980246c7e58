// The locations of an object's addresses that have been resolved before they were asked for.
// All addresses that are given are sorted.
#pragma once

#include "framework/symbols/interval_map.h"
#include "framework/symbols/symbolizer.h"

#include <cstdint>
#include <span>
#include <vector>

namespace assay::symbols {

class KnownLocations {
  public:
    bool empty() const { return addresses_.empty(); }
    // One for each of `addresses`, none of which is known yet.
    void add(std::span<const Address> addresses, std::span<const Location> locations);
    // Sets the locations of those of `addresses` that are known. Returns the indices of the others.
    std::vector<std::uint32_t> find(std::span<const Address> addresses,
                                    std::span<Location> locations) const;
    // Those of `addresses` that are not known, once each.
    std::vector<Address> without(std::span<const Address> addresses) const;

  private:
    std::vector<Address> addresses_;
    std::vector<Location> locations_;
};

// Those at `indices`.
std::vector<Address> selected(std::span<const Address> addresses,
                              std::span<const std::uint32_t> indices);

}  // namespace assay::symbols
