// The global history that predictors with tagged tables look at: outcomes and bits of targets, the
// latest first; and its folding into few bits.
#pragma once

#include <array>
#include <cstdint>

namespace branch {

class History {
  public:
    static constexpr unsigned kMostBits = 256;  // a power of two

    void add(bool bit) { bits_[--newest_ % kMostBits] = bit; }
    // Bit `age`, 0 for the latest.
    bool operator[](unsigned age) const { return bits_[(newest_ + age) % kMostBits]; }

  private:
    std::array<bool, kMostBits> bits_{};
    unsigned newest_ = 0;
};

// The latest `length` bits of a history, folded by exclusive or into `width` bits; kept up to date
// bit by bit, as a cyclic shift register (P. Michaud, "A PPM-like, tag-based branch predictor",
// JILP 7, 2005).
class Folded {
  public:
    Folded() = default;
    Folded(unsigned length, unsigned width) : length_(length), width_(width) {}

    // Before history.add(bit).
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

// Lengths of history of `Tables` tagged tables, in a geometric series (A. Seznec, "Analysis of the
// O-GEometric History Length branch predictor", ISCA 2005).
template <unsigned Tables>
constexpr std::array<unsigned, Tables> geometric_lengths(double first, double last) {
    std::array<unsigned, Tables> lengths{};
    // The ratio r with r^(Tables - 1) = last / first, by bisection: pow() is no constant
    // expression.
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

}  // namespace branch
