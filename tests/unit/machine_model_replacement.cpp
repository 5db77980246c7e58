#include "machine_model_cache.h"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace model {
namespace {

std::uint64_t now() {
    static std::uint64_t time = 0;
    return ++time;
}

// The lowest way of those for which `key` is the least.
template <typename Key>
std::uint32_t least(const Set& set, const Key& key) {
    std::uint32_t found = 0;
    for (std::uint32_t way = 1; way < set.size(); ++way)
        if (key(set[way]) < key(set[found])) found = way;
    return found;
}

// Policies for which a line that comes in is referred to like any other.
class OfUse : public Policy {
  public:
    void fill(std::uint64_t number, Set& set, std::uint32_t way, std::uint64_t, bool) override {
        hit(number, set, way);
    }
};

class Lru : public Policy {
    using Order = std::vector<std::uint64_t>;  // lines, the one referred to last first

    Order& order(std::uint64_t number, const Set& set, std::uint64_t without) {
        Order& known = orders_[number];
        std::erase_if(known, [&](std::uint64_t line) {
            return line == without || std::none_of(set.begin(), set.end(), [&](const Way& way) {
                       return way.used && way.line == line;
                   });
        });
        return known;
    }
    void hit(std::uint64_t number, Set& set, std::uint32_t way) override {
        Order& known = order(number, set, set[way].line);
        known.insert(known.begin(), set[way].line);
    }
    void fill(std::uint64_t number, Set& set, std::uint32_t way, std::uint64_t,
              bool is_prefetch) override {
        Order& known = order(number, set, set[way].line);
        known.insert(known.begin() + (is_prefetch && !known.empty()), set[way].line);
    }
    std::uint32_t victim(std::uint64_t number, Set& set) override {
        const std::uint64_t last = orders_[number].back();
        return least(set, [&](const Way& way) { return way.line != last; });
    }
    std::map<std::uint64_t, Order> orders_;
};

class Fifo : public Policy {
    void hit(std::uint64_t, Set&, std::uint32_t) override {}
    void fill(std::uint64_t, Set& set, std::uint32_t way, std::uint64_t, bool) override {
        set[way].arrived = now();
    }
    std::uint32_t victim(std::uint64_t, Set& set) override {
        return least(set, [](const Way& way) { return way.arrived; });
    }
};

class Lfu : public OfUse {
    void hit(std::uint64_t, Set& set, std::uint32_t way) override { ++set[way].uses; }
    std::uint32_t victim(std::uint64_t, Set& set) override {
        return least(set, [](const Way& way) { return way.uses; });
    }
};

class Random : public OfUse {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

  private:
    void hit(std::uint64_t, Set&, std::uint32_t) override {}
    // Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled", 2016.
    std::uint32_t victim(std::uint64_t, Set& set) override {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        const std::uint64_t drawn = state_ * 2685821657736338717;
        return static_cast<std::uint32_t>((drawn >> 32) % set.size());
    }
    std::uint64_t state_;
};

// Of each half of each group of ways, which is to go next.
class Plru : public OfUse {
    using Half = std::pair<std::size_t, std::size_t>;

    void hit(std::uint64_t number, Set& set, std::uint32_t way) override {
        std::size_t from = 0, to = set.size();
        while (to - from > 1) {
            const std::size_t middle = (from + to) / 2;
            const bool is_upper = way >= middle;
            upper_goes_[number][Half(from, to)] = !is_upper;
            (is_upper ? from : to) = middle;
        }
    }
    std::uint32_t victim(std::uint64_t number, Set& set) override {
        std::size_t from = 0, to = set.size();
        while (to - from > 1) {
            const std::size_t middle = (from + to) / 2;
            (upper_goes_[number][Half(from, to)] ? from : to) = middle;
        }
        return static_cast<std::uint32_t>(from);
    }
    std::map<std::uint64_t, std::map<Half, bool>> upper_goes_;
};

class BitPlru : public OfUse {
    // A way's bit outlives its line.
    void hit(std::uint64_t number, Set& set, std::uint32_t way) override {
        std::vector<bool>& recent = recent_[number];
        recent.resize(set.size());
        recent[way] = true;
        if (std::find(recent.begin(), recent.end(), false) != recent.end()) return;
        recent.assign(set.size(), false);
        recent[way] = true;
    }
    std::uint32_t victim(std::uint64_t number, Set&) override {
        const std::vector<bool>& recent = recent_[number];
        const auto found = std::find(recent.begin(), recent.end(), false);
        return found == recent.end() ? 0 : static_cast<std::uint32_t>(found - recent.begin());
    }
    std::map<std::uint64_t, std::vector<bool>> recent_;
};

constexpr std::uint32_t kDistant = 3, kLong = 2;

// Re-reference interval prediction.
class Rrip : public Policy {
    void hit(std::uint64_t, Set& set, std::uint32_t way) override {
        set[way].prediction = 0;
        referred(set[way]);
    }
    void fill(std::uint64_t number, Set& set, std::uint32_t way, std::uint64_t pc, bool) override {
        set[way].prediction = prediction(number, set[way], pc);
    }
    std::uint32_t victim(std::uint64_t, Set& set) override {
        for (;;) {
            for (std::uint32_t way = 0; way < set.size(); ++way)
                if (set[way].prediction == kDistant) return way;
            for (Way& way : set) ++way.prediction;
        }
    }
    virtual std::uint32_t prediction(std::uint64_t set, Way& way, std::uint64_t pc) = 0;
    virtual void referred(Way&) {}
};

class Srrip : public Rrip {
    std::uint32_t prediction(std::uint64_t, Way&, std::uint64_t) override { return kLong; }
};

class Brrip : public Rrip {
    std::uint32_t prediction(std::uint64_t, Way&, std::uint64_t) override {
        return ++lines_ % 32 == 0 ? kLong : kDistant;
    }
    int lines_ = 0;
};

class Drrip : public Rrip {
  public:
    explicit Drrip(std::uint64_t sets) : apart_(std::max<std::uint64_t>(sets / 32, 2)) {}

  private:
    std::uint32_t prediction(std::uint64_t set, Way&, std::uint64_t) override {
        const bool leads_srrip = set % apart_ == 0, leads_brrip = set % apart_ == 1;
        if (leads_srrip && counter_ < 1023) ++counter_;
        if (leads_brrip && counter_ > 0) --counter_;
        if (leads_srrip || (!leads_brrip && counter_ < 512)) return kLong;
        return ++brrip_lines_ % 32 == 0 ? kLong : kDistant;
    }
    std::uint64_t apart_;
    int counter_ = 0, brrip_lines_ = 0;
};

class Ship : public Rrip {
    static constexpr int kHighest = 7;

    std::uint32_t prediction(std::uint64_t, Way& way, std::uint64_t pc) override {
        way.signature = (pc ^ pc >> 14) % counters_.size();
        return counters_[way.signature] == 0 ? kDistant : kLong;
    }
    void referred(Way& way) override {
        way.was_hit = true;
        if (counters_[way.signature] < kHighest) ++counters_[way.signature];
    }
    void end(const Way& way) override {
        if (!way.was_hit && counters_[way.signature] > 0) --counters_[way.signature];
    }
    std::vector<int> counters_ = std::vector<int>(16384, 1);
};

}  // namespace

std::unique_ptr<Policy> make_policy(const machine::Replacement& replacement, std::uint64_t sets) {
    const std::string& name = replacement.policy;
    if (name == "lru") return std::make_unique<Lru>();
    if (name == "fifo") return std::make_unique<Fifo>();
    if (name == "lfu") return std::make_unique<Lfu>();
    if (name == "random") return std::make_unique<Random>(replacement.seed);
    if (name == "plru") return std::make_unique<Plru>();
    if (name == "bit-plru") return std::make_unique<BitPlru>();
    if (name == "srrip") return std::make_unique<Srrip>();
    if (name == "brrip") return std::make_unique<Brrip>();
    if (name == "drrip") return std::make_unique<Drrip>(sets);
    if (name == "ship") return std::make_unique<Ship>();
    throw std::invalid_argument(name);
}

Lines::Lines(std::uint64_t sets, std::uint32_t ways, machine::Hash hash,
             const machine::Replacement& replacement)
    : hash_(hash), sets_(sets, Set(ways)), policy_(make_policy(replacement, sets)) {}

std::uint64_t Lines::set_of(std::uint64_t line) const {
    const std::uint64_t sets = sets_.size();
    if (hash_ == machine::Hash::kModulus || sets == 1) return line % sets;
    return line % sets ^ line / sets % sets ^ line / sets / sets % sets;
}

Way* Lines::find(std::uint64_t line) {
    for (Way& way : sets_[set_of(line)])
        if (way.used && way.line == line) return &way;
    return nullptr;
}

void Lines::refer(std::uint64_t line) {
    Set& set = sets_[set_of(line)];
    policy_->hit(set_of(line), set, static_cast<std::uint32_t>(find(line) - set.data()));
}

std::optional<Way> Lines::take_in(std::uint64_t line, std::uint64_t pc, bool is_prefetch) {
    const std::uint64_t number = set_of(line);
    Set& set = sets_[number];
    std::uint32_t way = 0;
    while (way < set.size() && set[way].used) ++way;
    std::optional<Way> gone;
    if (way == set.size()) {
        way = policy_->victim(number, set);
        gone = set[way];
        policy_->end(*gone);
    }
    set[way] = Way{};
    set[way].used = true;
    set[way].line = line;
    policy_->fill(number, set, way, pc, is_prefetch);
    return gone;
}

std::optional<Way> Lines::remove(std::uint64_t line) {
    Way* const found = find(line);
    if (found == nullptr) return std::nullopt;
    const Way gone = *found;
    *found = Way{};
    policy_->end(gone);
    return gone;
}

}  // namespace model
