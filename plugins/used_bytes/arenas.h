// The memory regions that the program has registered. Those of one owner and label are one arena.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace used_bytes {

class Arenas {
  public:
    // What is in no region.
    static constexpr std::uint32_t kOutside = 0;

    // Where regions overlap, the last one counts.
    void add(std::uint64_t address, std::uint64_t bytes, std::string_view owner,
             std::string_view label);
    // The region that was added at that address.
    void remove(std::uint64_t address);

    // The arena that has this address now.
    std::uint32_t find(std::uint64_t address) const {
        if (regions_.empty()) return kOutside;
        auto region = regions_.upper_bound(address);
        if (region == regions_.begin()) return kOutside;
        --region;
        return address < region->second.end ? region->second.arena : kOutside;
    }

    // By number; the first is kOutside.
    struct Name {
        std::string owner, label;
    };
    const std::vector<Name>& names() const { return names_; }

  private:
    struct Region {
        std::uint64_t end;
        std::uint32_t arena;
    };

    void cut(std::uint64_t address, std::uint64_t end);

    std::map<std::uint64_t, Region> regions_;  // by their first address; none overlaps another
    std::map<std::pair<std::string, std::string>, std::uint32_t, std::less<>> numbers_;
    std::vector<Name> names_{{}};
};

}  // namespace used_bytes
