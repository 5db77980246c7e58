// Replacement policies with a state for each line or set. They choose the line to replace.
#pragma once

#include "plugins/machine/columns.h"
#include "plugins/machine/machine.h"

#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace machine {

// An order of the ways of a set, at most 16, as the digits of one number. Changes move no memory
// and need no branch.
class WayOrder {
  public:
    static constexpr std::uint32_t kMost = 16;  // ways

    explicit WayOrder(std::uint32_t ways = kMost)
        : digits_(ways == kMost ? kAll : kAll | ~std::uint64_t{0} << kBits * ways) {}

    std::uint32_t front() const { return digits_ & 0xF; }
    // The second way, if there are two.
    std::uint32_t second() const { return digits_ >> kBits & 0xF; }
    // Moves the last of `ways` ways to the front and returns it.
    std::uint32_t take_last(std::uint32_t ways) {
        const unsigned last = kBits * (ways - 1);
        const std::uint64_t way = digits_ >> last & 0xF;
        const std::uint64_t before = (std::uint64_t{1} << last) - 1;
        digits_ = (digits_ & ~(before << kBits | 0xF)) | (digits_ & before) << kBits | way;
        return static_cast<std::uint32_t>(way);
    }
    void move_to_front(std::uint32_t way) {
        const unsigned shift = shift_of(way);
        const std::uint64_t before = digits_ & ((std::uint64_t{1} << shift) - 1);
        digits_ = (digits_ & ~std::uint64_t{0xF} << shift) | before << kBits | way;
    }
    // Moves the way behind the last of `ways` ways.
    void move_to_back(std::uint32_t way, std::uint32_t ways) {
        const unsigned shift = shift_of(way), last = kBits * (ways - 1);
        const std::uint64_t before = (std::uint64_t{1} << shift) - 1;
        const std::uint64_t until_last = (std::uint64_t{1} << last) - 1;
        const std::uint64_t behind_last = ~(until_last << kBits | 0xF);
        digits_ = (digits_ & (before | behind_last)) | (digits_ >> kBits & until_last & ~before) |
                  std::uint64_t{way} << last;
    }
    void swap_first_two() {
        digits_ =
            (digits_ & ~std::uint64_t{0xFF}) | (digits_ >> kBits & 0xF) | (digits_ & 0xF) << kBits;
    }

  private:
    static constexpr unsigned kBits = 4;
    static constexpr std::uint64_t kAll = 0xFEDCBA9876543210;
    static constexpr std::uint64_t kOnes = 0x1111111111111111;

    // The position of the way's digit: the lowest digit that is 0 after subtracting the way from
    // all (Warren, Hacker's Delight, second edition, section 6-1).
    unsigned shift_of(std::uint32_t way) const {
        const std::uint64_t left = digits_ ^ way * kOnes;
        return static_cast<unsigned>(std::countr_zero((left - kOnes) & ~left & 8 * kOnes)) &
               ~(kBits - 1);
    }

    std::uint64_t digits_;
};

// The instruction and the core that refer to a line or cause a prefetch.
struct Referrer {
    std::uint64_t pc = 0;  // of the instruction
    Kind kind = Kind::kRead;
    std::uint32_t core = 0;
};
// The program's thread whose references are being simulated by the calling thread. Only libraries
// of the user ask for it: as a member of Referrer it would cost time in all caches.
inline thread_local std::uint32_t referring_thread = 0;

// The cache that a policy or prefetcher belongs to.
struct PolicyPlace {
    std::string name;
    std::uint32_t level = 0;  // 0: a translation buffer
    std::uint32_t line_bytes = 1;
    bool may_bypass = false;
};

class Policy {
  public:
    static constexpr std::uint32_t kBypass = UINT32_MAX;

    struct Access {
        std::uint64_t line = 0;
        Referrer by;
        bool prefetch = false;
        bool dirty = false;  // of the line that comes
    };

    Policy() = default;
    virtual ~Policy() = default;
    Policy(const Policy&) = delete;
    Policy& operator=(const Policy&) = delete;

    virtual void hit(std::uint64_t set, std::uint32_t way, const Access& access) = 0;
    // Called only if all ways of the set are in use. kBypass: the line does not come.
    virtual std::uint32_t victim(std::uint64_t set, const Access& access) = 0;
    virtual void fill(std::uint64_t set, std::uint32_t way, const Access& access) = 0;
    // The line has been replaced or invalidated.
    virtual void leave(std::uint64_t, std::uint32_t) {}
};

// True if there is a built-in policy of that name.
bool is_policy(const std::string& name);
std::vector<std::string> policy_names();
// Why the policy cannot have this number of ways, in a few words, or "".
std::string complaint(const Replacement& replacement, std::uint32_t ways);
// True if repeating the most recent reference to a set leaves its state unchanged.
bool forgets_repetition(const Replacement& replacement);

// Null if there is no built-in policy of that name.
std::unique_ptr<Policy> built_in_policy(const Replacement& replacement, std::uint64_t sets,
                                        std::uint32_t ways);

}  // namespace machine
