// The lines in one cache or translation buffer, and the choice of the line to replace.
#pragma once

#include "plugins/machine/prefetcher.h"
#include "plugins/machine/replacement.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace machine {

// The state of a line.
enum Flag : std::uint64_t {
    kValid = 1,
    kDirty = 2,       // memory does not have the written data
    kModified = 4,    // its core may write it without asking other cores
    kWatched = 8,     // another core has lost the line to a write by this one
    kPrefetched = 16  // prefetched and not referenced since
};

// Line numbers have up to 56 bits.
class CacheArray {
  public:
    static constexpr std::uint64_t kFlags = 0xFF;

    // `sets` is a power of two unless the hash is kModulus. `stamped`: lines have stamps. Throws
    // std::bad_alloc, and std::runtime_error if the policy's library is unusable.
    CacheArray(std::uint64_t sets, std::uint32_t ways, Hash hash, const Replacement& replacement,
               bool stamped = false, const PolicyPlace& place = {});

    struct Line {
        std::uint64_t number;
        std::uint64_t flags;
    };

    // References the line. Returns its flags, or null if the line is not there. The pointer is
    // valid as long as the line is there.
    std::uint64_t* touch(std::uint64_t line, const Referrer& by) {
        const std::uint64_t set = set_of(line);
        const std::uint32_t way = way_of(set, line);
        if (way == kNowhere) return nullptr;
        if (order_ == Order::kRecency)
            orders_[set].move_to_front(way);
        else if (order_ == Order::kPolicy)
            policy_->hit(set, way, {.line = line, .by = by});
        return &entries_[set * ways_ + way];
    }
    // The same, without changing anything.
    std::uint64_t* find(std::uint64_t line) {
        const std::uint64_t set = set_of(line);
        const std::uint32_t way = way_of(set, line);
        return way == kNowhere ? nullptr : &entries_[set * ways_ + way];
    }
    // References a line that find() has found, as touch() does.
    void touch_found(const std::uint64_t* entry, std::uint64_t line, const Referrer& by) {
        const std::uint64_t set = set_of(line);
        const auto place = static_cast<std::uint64_t>(entry - entries_.data());
        policy_->hit(set, static_cast<std::uint32_t>(place - set * ways_),
                     {.line = line, .by = by});
    }
    struct Inserted {
        Line gone;             // the replaced line; its flags are 0 if no line was replaced
        std::uint64_t* entry;  // the pointer that touch() would return; null: bypassed
    };
    // Inserts a line that is not there, with these flags and kValid.
    Inserted insert(std::uint64_t line, std::uint64_t flags, const Referrer& by,
                    bool prefetch = false);
    // Calls Prefetcher::fill and leave from now on. It must live longer.
    void watch(Prefetcher& prefetcher) { watchers_.push_back(&prefetcher); }
    // True if the line, which is there, can be the most recent one of its set.
    bool can_be_last(std::uint64_t line) const {
        const std::uint64_t set = set_of(line);
        return order_ != Order::kRecency || orders_[set].front() == way_of(set, line);
    }
    // Removes a line. Returns its flags, or 0 if it is not there.
    std::uint64_t remove(std::uint64_t line);

    // The place of a line that is there.
    std::uint32_t place_of(const std::uint64_t* entry) const {
        return static_cast<std::uint32_t>(entry - entries_.data());
    }
    // Puts a line where another array of the same shape has put it. Returns the flags of the line
    // that was there, or 0. Does not keep the order of replacement.
    std::uint64_t place(std::uint32_t place, std::uint64_t line) {
        const std::uint64_t set = set_of(line);
        const std::uint64_t before = entries_[place];
        entries_[place] = line << kShift | kValid;
        digests_[set * row_ + place - set * ways_] = digest(line);
        return before & kFlags;
    }

    // Calls `visit(line)` for all lines.
    template <typename Visit>
    void each(const Visit& visit) const {
        for (const std::uint64_t entry : entries_)
            if (entry != 0) visit(line_of(entry));
    }

    // A note about a line that is there, zero at first. Only in arrays with stamps.
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
    static constexpr std::uint32_t kNowhere = UINT32_MAX;
    static constexpr std::uint32_t kRow = 16;  // bytes that are compared at once

    // How the line to replace is chosen: by the order of references or of arrivals, or by the
    // policy.
    enum class Order { kRecency, kArrival, kPolicy };

    static Line line_of(std::uint64_t entry) {
        return {.number = entry >> kShift, .flags = entry & kFlags};
    }
    std::uint64_t set_of(std::uint64_t line) const {
        if (hash_ == Hash::kXor) line ^= line >> set_bits_ ^ line >> 2 * set_bits_;
        return set_mask_ != 0 || sets_ == 1 ? line & set_mask_ : line % sets_;
    }
    // A byte of the line that distinguishes it quickly from most others. Fibonacci hashing: Knuth,
    // The Art of Computer Programming, volume 3, section 6.4.
    static std::uint8_t digest(std::uint64_t line) {
        return static_cast<std::uint8_t>(line * 0x9E3779B97F4A7C15 >> 56);
    }
    // A bit for each byte of a row: 1 if the byte has this value.
    static std::uint32_t equal_bytes(const std::uint8_t* row, std::uint8_t value) {
#if defined(__SSE2__)
        const __m128i wanted = _mm_set1_epi8(static_cast<char>(value));
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row));
        return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, wanted)));
#else
        std::uint32_t found = 0;
        for (unsigned i = 0; i < kRow; i += 8) {
            constexpr std::uint64_t kEach = 0x0101010101010101, kLow = 0x7f * kEach;
            std::uint64_t bytes;
            std::memcpy(&bytes, row + i, sizeof bytes);
            bytes ^= value * kEach;
            const std::uint64_t zero = ~(((bytes & kLow) + kLow) | bytes | kLow);  // 0x80 or 0
            // Bit 7 of byte n goes to bit n of the highest byte.
            found |= static_cast<std::uint32_t>((zero >> 7) * 0x0102040810204080 >> 56) << i;
        }
        return found;
#endif
    }
    std::uint32_t way_of(std::uint64_t set, std::uint64_t line) const {
        const std::uint8_t wanted = digest(line);
        const std::uint64_t key = line << kShift | kValid;
        const std::uint8_t* const digests = &digests_[set * row_];
        const std::uint64_t* const entries = &entries_[set * ways_];
        for (std::uint32_t first = 0; first < row_; first += kRow) {
            std::uint32_t alike = equal_bytes(digests + first, wanted);
            for (; alike != 0; alike &= alike - 1) {
                const std::uint32_t way =
                    first + static_cast<std::uint32_t>(std::countr_zero(alike));
                if (way < ways_ && (entries[way] & kTag) == key) return way;
            }
        }
        return kNowhere;
    }
    // The way for a new line: a free one, or else the policy's victim.
    std::uint32_t way_by_policy(std::uint64_t set, const Policy::Access& access);

    std::uint32_t ways_;
    std::uint32_t row_;  // bytes of a set's digests: a multiple of kRow
    Hash hash_;
    Order order_;
    unsigned set_bits_;
    std::uint64_t sets_;
    std::uint64_t set_mask_;              // 0 if the number of sets is no power of two
    std::vector<std::uint64_t> entries_;  // line and flags, set by set; 0: free
    std::vector<std::uint8_t> digests_;   // of entries_
    std::vector<WayOrder> orders_;        // by set
    std::vector<Stamp> stamps_;           // by entry
    std::unique_ptr<Policy> policy_;
    std::vector<Prefetcher*> watchers_;
};

}  // namespace machine
