// The lines that one cache or translation buffer holds, and which of them goes next.
#pragma once

#include "plugins/machine/replacement.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace machine {

// What is known of a line beside its number.
enum Flag : std::uint64_t {
    kValid = 1,
    kDirty = 2,       // memory has not got what was written
    kModified = 4,    // its core may write it without asking others
    kWatched = 8,     // another core has lost the line to this one's write
    kPrefetched = 16  // and not referenced since
};

// Lines are numbers of up to 56 bits.
class CacheArray {
  public:
    static constexpr std::uint64_t kFlags = 0xFF;

    // `sets` is a power of two unless the hash is kModulus. `stamped`: lines have stamps. Throws
    // std::bad_alloc, and std::runtime_error if the library of the policy is unusable.
    CacheArray(std::uint64_t sets, std::uint32_t ways, Hash hash, const Replacement& replacement,
               bool stamped = false);

    struct Line {
        std::uint64_t number;
        std::uint64_t flags;
    };

    // The flags of the line, which becomes a referenced one, or null. Valid until the next call.
    std::uint64_t* touch(std::uint64_t line, std::uint64_t pc) {
        const std::uint64_t set = set_of(line);
        std::uint64_t* const first = &entries_[set * ways_];
        const std::uint64_t key = line << kShift | kValid;
        if (order_ != Order::kFixed && (first[0] & kTag) == key) return first;
        for (std::uint32_t way = 0; way < ways_; ++way)
            if ((first[way] & kTag) == key) return referenced(set, way, line, pc);
        return nullptr;
    }
    // The same, and nothing changes.
    std::uint64_t* find(std::uint64_t line) {
        std::uint64_t* const first = &entries_[set_of(line) * ways_];
        const std::uint64_t key = line << kShift | kValid;
        for (std::uint32_t way = 0; way < ways_; ++way)
            if ((first[way] & kTag) == key) return first + way;
        return nullptr;
    }
    // Puts a line in that is not there, with flags; kValid is added. Returns the one that goes.
    std::optional<Line> insert(std::uint64_t line, std::uint64_t flags, std::uint64_t pc,
                               bool prefetch = false);
    // Whether a line that is there can be the one of its set that was referred to last.
    bool can_be_last(std::uint64_t line) {
        return order_ != Order::kRecency || find(line) == &entries_[set_of(line) * ways_];
    }
    // Takes a line out that may be there, and returns its flags, else 0.
    std::uint64_t remove(std::uint64_t line);

    // Calls `visit(line)` for all lines that are there.
    template <typename Visit>
    void each(const Visit& visit) const {
        for (const std::uint64_t entry : entries_)
            if (entry != 0) visit(Line{.number = entry >> kShift, .flags = entry & kFlags});
    }

    // What was noted of a line that is there, zeros at first; of arrays with stamps.
    struct Stamp {
        std::uint64_t time;
        std::uint32_t core;
    };
    Stamp& stamp(const std::uint64_t* entry) {
        return stamps_[static_cast<std::size_t>(entry - entries_.data())];
    }
    std::uint64_t lines() const { return entries_.size(); }

  private:
    static constexpr int kShift = 8;
    static constexpr std::uint64_t kTag = ~(kFlags ^ kValid);

    // Whether the order of a set's lines says which goes: the last. Else they stay where they are,
    // and the policy says it.
    enum class Order { kRecency, kArrival, kFixed };

    std::uint64_t set_of(std::uint64_t line) const {
        if (hash_ == Hash::kXor) line ^= line >> set_bits_ ^ line >> 2 * set_bits_;
        return set_mask_ != 0 || sets_ == 1 ? line & set_mask_ : line % sets_;
    }
    std::uint64_t* referenced(std::uint64_t set, std::uint32_t way, std::uint64_t line,
                              std::uint64_t pc);
    void move_to_front(std::uint64_t set, std::uint32_t way, std::uint32_t place);
    void move_behind_last(std::uint64_t set, std::uint32_t way);

    std::uint32_t ways_;
    Hash hash_;
    Order order_;
    unsigned set_bits_;
    std::uint64_t sets_;
    std::uint64_t set_mask_;              // 0 if their number is no power of two
    std::vector<std::uint64_t> entries_;  // line and flags, set by set
    std::vector<Stamp> stamps_;           // likewise
    std::unique_ptr<Policy> policy_;      // none with an order
};

}  // namespace machine
