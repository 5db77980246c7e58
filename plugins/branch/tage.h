// TAGE: A. Seznec and P. Michaud, "A case for (partially) tagged geometric history length branch
// prediction", JILP 8, 2006. A bimodal table, and tagged tables for longer and longer histories.
// Among the tables that know a branch, the one with the longest history predicts it.
#pragma once

#include "plugins/branch/predictors.h"

#include <array>
#include <cstdint>

namespace branch {

// The global history for predictors with tagged tables: outcomes and bits of targets, the latest
// first.
class History {
  public:
    static constexpr unsigned kMostBits = 256;  // a power of two

    void add(bool bit) { bits_[--newest_ % kMostBits] = bit; }
    // Bit number `age`; 0 is the latest.
    bool operator[](unsigned age) const { return bits_[(newest_ + age) % kMostBits]; }

  private:
    std::array<bool, kMostBits> bits_{};
    unsigned newest_ = 0;
};

// The latest `length` bits of a history, folded by exclusive or into `width` bits. Each new bit
// updates it like a cyclic shift register (P. Michaud, "A PPM-like, tag-based branch predictor",
// JILP 7, 2005).
class Folded {
  public:
    Folded() = default;
    Folded(unsigned length, unsigned width) : length_(length), width_(width) {}

    // Call it before history.add(bit).
    void add(const History& history, bool bit) {
        value_ = value_ << 1 | (bit ? 1U : 0U);
        value_ ^= (history[length_ - 1] ? 1U : 0U) << length_ % width_;
        value_ ^= value_ >> width_;
        value_ &= (1U << width_) - 1;
    }
    std::uint32_t value() const { return value_; }

  private:
    unsigned length_ = 1, width_ = 1;
    std::uint32_t value_ = 0;
};

// History lengths of `Tables` tagged tables, a geometric series (A. Seznec, "Analysis of the
// O-GEometric History Length branch predictor", ISCA 2005).
template <unsigned Tables>
constexpr std::array<unsigned, Tables> geometric_lengths(double first, double last) {
    std::array<unsigned, Tables> lengths{};
    // The ratio r with r^(Tables - 1) = last / first, by bisection, because pow() is not constexpr.
    double low = 1, high = last / first;
    for (int step = 0; step < 60; ++step) {
        const double middle = (low + high) / 2;
        double product = first;
        for (unsigned i = 1; i < Tables; ++i) product *= middle;
        (product < last ? low : high) = middle;
    }
    double length = first;
    for (unsigned& rounded : lengths) {
        rounded = static_cast<unsigned>((2 * length + 1) / 2);
        length *= low;
    }
    return lengths;
}

class Tage final : public ConditionalPredictor {
  public:
    static constexpr unsigned kTables = 7;
    static constexpr unsigned kUsualBits = 10;  // of a tagged table; the bimodal table has 3 more
    static constexpr std::array<unsigned, kTables> kLengths = geometric_lengths<kTables>(5, 130);
    static constexpr std::array<unsigned, kTables> kTagBits = {9, 9, 10, 10, 11, 11, 12};

    explicit Tage(unsigned bits);

    bool predict(std::uint64_t pc, bool taken) override;
    std::string describe() const override;

  private:
    static constexpr unsigned kNone = kTables;
    struct Entry {
        std::int8_t counter = 0;  // -4 to 3; 0 or more predicts taken
        std::uint8_t useful = 0;  // 0 to 3
        std::uint16_t tag = 0;

        bool predicts() const { return counter >= 0; }
        bool is_new() const { return counter == 0 || counter == -1; }
    };
    struct Lookup {
        std::array<Entry*, kTables> entries;
        std::array<std::uint16_t, kTables> tags;
        unsigned provider = kNone,
                 alternate = kNone;  // tables that know the branch; kNone: bimodal
        bool by_provider = false, by_alternate = false;
    };

    Lookup look_up(std::uint64_t pc);
    void train(std::uint64_t pc, const Lookup& found, bool taken);
    void allocate(const Lookup& found, bool taken);
    void age();
    void remember(std::uint64_t pc, bool taken);
    static void move(std::int8_t& counter, bool up);

    unsigned bits_;
    CounterTable bimodal_;
    std::array<std::vector<Entry>, kTables> tables_;
    std::array<Folded, kTables> indexes_, tags_, tags2_;
    History history_;
    std::uint32_t path_ = 0;   // the lowest address bits of recent branches
    int trust_alternate_ = 0;  // -8 to 7; from 0 on, the alternate replaces new entries
    std::uint32_t random_ = 1;
    std::uint32_t branches_ = 0;  // since useful counters were last aged
    bool high_bit_next_ = true;
};

}  // namespace branch
