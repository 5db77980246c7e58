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
    // The region that was added at that address, of several the last one: all that is left of it.
    void remove(std::uint64_t address);

    // The arena that has this address now.
    std::uint32_t find(std::uint64_t address) const {
        if (pieces_.empty()) return kOutside;
        auto piece = pieces_.upper_bound(address);
        if (piece == pieces_.begin()) return kOutside;
        --piece;
        return address < piece->second.end ? piece->second.arena : kOutside;
    }

    // By number; the first is kOutside.
    struct Name {
        std::string owner, label;
    };
    const std::vector<Name>& names() const { return names_; }

  private:
    // What others have left of a region can be several pieces.
    struct Piece {
        std::uint64_t end;
        std::uint32_t arena;
        std::uint32_t region;  // a number: each that is added has another one
    };
    struct Added {
        std::uint64_t end;
        std::uint32_t region;
    };

    void cut(std::uint64_t address, std::uint64_t end);

    std::map<std::uint64_t, Piece> pieces_;  // by their first address; none overlaps another
    // Those that were added at an address: each is smaller than the one before, which is why that
    // may have something left.
    std::map<std::uint64_t, std::vector<Added>> added_;
    std::uint32_t count_ = 0;
    std::map<std::pair<std::string, std::string>, std::uint32_t, std::less<>> numbers_;
    std::vector<Name> names_{{}};
};

}  // namespace used_bytes
