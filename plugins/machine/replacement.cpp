#include "plugins/machine/replacement.h"

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>
#include <utility>
#include <vector>

namespace machine {
namespace {

// xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled",
// ACM TOMS 42, 2016).
class Random final : public Policy {
  public:
    Random(std::uint64_t seed, std::uint32_t ways) : state_(seed == 0 ? 1 : seed), ways_(ways) {}

    void hit(std::uint64_t, std::uint32_t, const Access&) override {}
    std::uint32_t victim(std::uint64_t, const Access&) override {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return static_cast<std::uint32_t>((state_ * 0x2545F4914F6CDD1D >> 32) % ways_);
    }
    void fill(std::uint64_t, std::uint32_t, const Access&) override {}

  private:
    std::uint64_t state_;
    std::uint32_t ways_;
};

// Replaces the line whose last reference, or arrival, was the longest ago. A prefetched line comes
// second to the most recently referenced one.
class Oldest final : public Policy {
  public:
    Oldest(std::uint64_t sets, std::uint32_t ways, bool by_arrival)
        : ways_(ways), by_arrival_(by_arrival), times_(sets * ways) {}

    void hit(std::uint64_t set, std::uint32_t way, const Access&) override {
        if (!by_arrival_) times_[set * ways_ + way] = ++now_;
    }
    std::uint32_t victim(std::uint64_t set, const Access&) override {
        const auto first = of(set);
        return static_cast<std::uint32_t>(std::min_element(first, first + ways_) - first);
    }
    void fill(std::uint64_t set, std::uint32_t way, const Access& access) override {
        const auto first = of(set), last = std::max_element(first, first + ways_);
        std::uint64_t& own = times_[set * ways_ + way];
        own = ++now_;
        if (access.prefetch && !by_arrival_ && *last != 0) std::swap(own, *last);
    }
    void leave(std::uint64_t set, std::uint32_t way) override { times_[set * ways_ + way] = 0; }

  private:
    std::vector<std::uint64_t>::iterator of(std::uint64_t set) {
        return times_.begin() + static_cast<std::ptrdiff_t>(set * ways_);
    }

    std::uint32_t ways_;
    bool by_arrival_;
    std::uint64_t now_ = 0;
    std::vector<std::uint64_t> times_;  // 0: free
};

// Replaces the line with the fewest uses since its arrival; among equals, the lowest way.
class LeastFrequent final : public Policy {
  public:
    LeastFrequent(std::uint64_t sets, std::uint32_t ways) : ways_(ways), uses_(sets * ways) {}

    void hit(std::uint64_t set, std::uint32_t way, const Access&) override {
        std::uint32_t& uses = uses_[set * ways_ + way];
        if (uses != UINT32_MAX) ++uses;
    }
    std::uint32_t victim(std::uint64_t set, const Access&) override {
        const auto first = uses_.begin() + static_cast<std::ptrdiff_t>(set * ways_);
        return static_cast<std::uint32_t>(std::min_element(first, first + ways_) - first);
    }
    void fill(std::uint64_t set, std::uint32_t way, const Access&) override {
        uses_[set * ways_ + way] = 1;
    }

  private:
    std::uint32_t ways_;
    std::vector<std::uint32_t> uses_;
};

// A binary tree over the ways. Each node points to the half that was not referenced last (Al-Zoubi,
// Milenkovic and Milenkovic, "Performance evaluation of cache replacement policies for the SPEC
// CPU2000 benchmark suite", ACM Southeast Conference 2004). Node 1 is the root, and node n has the
// children 2n and 2n + 1. A set bit points to the second child.
class TreePlru final : public Policy {
  public:
    TreePlru(std::uint64_t sets, std::uint32_t ways) : ways_(ways), trees_(sets) {}

    void hit(std::uint64_t set, std::uint32_t way, const Access&) override {
        std::uint64_t& tree = trees_[set];
        for (std::uint32_t node = ways_ + way; node > 1; node /= 2) {
            const std::uint64_t parent = std::uint64_t{1} << node / 2;
            tree = node % 2 == 0 ? tree | parent : tree & ~parent;
        }
    }
    std::uint32_t victim(std::uint64_t set, const Access&) override {
        std::uint32_t node = 1;
        while (node < ways_) node = 2 * node + (trees_[set] >> node & 1);
        return node - ways_;
    }
    void fill(std::uint64_t set, std::uint32_t way, const Access& access) override {
        hit(set, way, access);
    }

  private:
    std::uint32_t ways_;
    std::vector<std::uint64_t> trees_;
};

// Each way has a bit that a reference sets. When all are set, the other ways' bits are cleared
// (Malamy, Patel and Hayes, US patent 5,353,425, 1994). Replaces the lowest way with a clear bit.
class BitPlru final : public Policy {
  public:
    BitPlru(std::uint64_t sets, std::uint32_t ways)
        : all_(ways == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << ways) - 1), used_(sets) {}

    void hit(std::uint64_t set, std::uint32_t way, const Access&) override {
        const std::uint64_t bit = std::uint64_t{1} << way;
        used_[set] |= bit;
        if (used_[set] == all_) used_[set] = bit;
    }
    // A single way's bit is always set.
    std::uint32_t victim(std::uint64_t set, const Access&) override {
        const std::uint64_t unused = ~used_[set] & all_;
        return unused == 0 ? 0 : static_cast<std::uint32_t>(std::countr_zero(unused));
    }
    void fill(std::uint64_t set, std::uint32_t way, const Access& access) override {
        hit(set, way, access);
    }

  private:
    std::uint64_t all_;
    std::vector<std::uint64_t> used_;
};

// Re-reference interval prediction with two bits and hit priority (Jaleel, Theobald, Steely and
// Emer, "High performance cache replacement using re-reference interval prediction", ISCA 2010).
class Rrip : public Policy {
  public:
    Rrip(std::uint64_t sets, std::uint32_t ways) : ways_(ways), predicted_(sets * ways, kDistant) {}

    void hit(std::uint64_t set, std::uint32_t way, const Access&) override {
        predicted_[set * ways_ + way] = 0;
    }
    std::uint32_t victim(std::uint64_t set, const Access&) override {
        std::uint8_t* const first = &predicted_[set * ways_];
        std::uint8_t* const most = std::max_element(first, first + ways_);
        const auto older = static_cast<std::uint8_t>(kDistant - *most);
        for (std::uint32_t way = 0; way < ways_; ++way)
            first[way] = static_cast<std::uint8_t>(first[way] + older);
        return static_cast<std::uint32_t>(most - first);
    }

  protected:
    static constexpr std::uint8_t kLong = 2, kDistant = 3;

    void predict(std::uint64_t set, std::uint32_t way, std::uint8_t interval) {
        predicted_[set * ways_ + way] = interval;
    }
    // BRRIP: one line in 32 gets the earlier prediction. The paper chooses it at random.
    std::uint8_t bimodal() { return ++filled_ % 32 == 0 ? kLong : kDistant; }

    const std::uint32_t ways_;

  private:
    std::vector<std::uint8_t> predicted_;
    std::uint64_t filled_ = 0;
};

class Srrip final : public Rrip {
  public:
    using Rrip::Rrip;
    void fill(std::uint64_t set, std::uint32_t way, const Access&) override {
        predict(set, way, kLong);
    }
};

class Brrip final : public Rrip {
  public:
    using Rrip::Rrip;
    void fill(std::uint64_t set, std::uint32_t way, const Access&) override {
        predict(set, way, bimodal());
    }
};

// Set dueling: in each 1/32 of the sets (in each two sets if there are fewer than 64), the first
// set follows SRRIP and the second BRRIP. The other sets follow the policy with fewer misses.
class Drrip final : public Rrip {
  public:
    Drrip(std::uint64_t sets, std::uint32_t ways)
        : Rrip(sets, ways), stretch_(std::max<std::uint64_t>(sets / 32, 2)) {}

    void fill(std::uint64_t set, std::uint32_t way, const Access&) override {
        const bool srrip_leads = set % stretch_ == 0, brrip_leads = set % stretch_ == 1;
        if (srrip_leads && selector_ < kMostOfSelector) ++selector_;
        if (brrip_leads && selector_ > 0) --selector_;
        const bool srrip = srrip_leads || (!brrip_leads && selector_ < (kMostOfSelector + 1) / 2);
        predict(set, way, srrip ? kLong : bimodal());
    }

  private:
    static constexpr std::uint32_t kMostOfSelector = 1023;  // ten bits
    std::uint64_t stretch_;
    std::uint32_t selector_ = 0;
};

// SHiP-PC (Wu, Jaleel, Hasenplaugh, Martonosi, Steely and Emer, "SHiP: signature-based hit
// predictor for high performance caching", MICRO 2011). 14 bits of the pc select a 3-bit counter,
// which tells whether lines that such instructions brought in were hit again.
class Ship final : public Rrip {
  public:
    Ship(std::uint64_t sets, std::uint32_t ways)
        : Rrip(sets, ways), lines_(sets * ways), counters_(kSignatures, 1) {}

    void hit(std::uint64_t set, std::uint32_t way, const Access& access) override {
        Rrip::hit(set, way, access);
        Line& line = lines_[set * ways_ + way];
        line.reused = true;
        if (counters_[line.signature] < 7) ++counters_[line.signature];
    }
    void fill(std::uint64_t set, std::uint32_t way, const Access& access) override {
        const auto signature =
            static_cast<std::uint16_t>((access.by.pc ^ access.by.pc >> 14) % kSignatures);
        lines_[set * ways_ + way] = {signature, false};
        predict(set, way, counters_[signature] == 0 ? kDistant : kLong);
    }
    void leave(std::uint64_t set, std::uint32_t way) override {
        const Line& line = lines_[set * ways_ + way];
        if (!line.reused && counters_[line.signature] > 0) --counters_[line.signature];
    }

  private:
    static constexpr std::size_t kSignatures = 1 << 14;
    struct Line {
        std::uint16_t signature = 0;
        bool reused = false;
    };
    std::vector<Line> lines_;
    std::vector<std::uint8_t> counters_;
};

constexpr std::array kNames = {"lru",      "fifo",  "random", "lfu",   "plru",
                               "bit-plru", "srrip", "brrip",  "drrip", "ship"};

}  // namespace

bool is_policy(const std::string& name) {
    return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::vector<std::string> policy_names() {
    return {kNames.begin(), kNames.end()};
}

std::string complaint(const Replacement& replacement, std::uint32_t ways) {
    if (replacement.policy == "plru" && (ways > 32 || !std::has_single_bit(ways)))
        return "plru needs a power of two of ways, 32 at most";
    if (replacement.policy == "bit-plru" && ways > 64) return "bit-plru has 64 ways at most";
    return "";
}

bool forgets_repetition(const Replacement& replacement) {
    for (const char* name : {"lru", "fifo", "random", "plru", "bit-plru"})
        if (replacement.policy == name) return true;
    return false;
}

std::unique_ptr<Policy> built_in_policy(const Replacement& replacement, std::uint64_t sets,
                                        std::uint32_t ways) {
    const std::string& name = replacement.policy;
    if (name == "lru") return std::make_unique<Oldest>(sets, ways, false);
    if (name == "fifo") return std::make_unique<Oldest>(sets, ways, true);
    if (name == "random") return std::make_unique<Random>(replacement.seed, ways);
    if (name == "lfu") return std::make_unique<LeastFrequent>(sets, ways);
    if (name == "plru") return std::make_unique<TreePlru>(sets, ways);
    if (name == "bit-plru") return std::make_unique<BitPlru>(sets, ways);
    if (name == "srrip") return std::make_unique<Srrip>(sets, ways);
    if (name == "brrip") return std::make_unique<Brrip>(sets, ways);
    if (name == "drrip") return std::make_unique<Drrip>(sets, ways);
    if (name == "ship") return std::make_unique<Ship>(sets, ways);
    return nullptr;
}

}  // namespace machine
