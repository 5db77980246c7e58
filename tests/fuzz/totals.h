// What the fuzzers of text formats have in common: a file that was taken must have totals that are
// the sum of what was passed on, and must be read the same in blocks of any size.
#pragma once

#include "framework/events/formula.h"
#include "framework/events/parser.h"
#include "framework/support/error.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

namespace fuzz {

// Adds up what a parser passes on.
class Sum : public assay::events::Handler {
  public:
    std::vector<std::uint64_t> counts;

  private:
    void start(const assay::events::Header& header) override {
        counts.resize(header.events.size());
    }
    void line(std::uint32_t, std::span<const std::uint64_t> line_counts) override {
        for (std::size_t i = 0; i < counts.size(); ++i) counts.at(i) += line_counts[i];
    }
};

// The totals, or no value if the text was refused.
template <typename Parser, typename Adder>
std::optional<std::vector<std::uint64_t>> parse(std::string_view text, std::size_t block) {
    Adder sum;
    try {
        Parser parser("input", sum);
        for (std::size_t at = 0; at < text.size(); at += block) parser.feed(text.substr(at, block));
        parser.finish();
        if (sum.counts != parser.totals()) std::abort();
        for (const assay::events::Derived& derived : parser.header().derived)
            (void)assay::events::Formula(derived.formula, parser.header().events)
                .value(parser.totals());
    } catch (const assay::Error&) {
        return std::nullopt;
    }
    return sum.counts;
}

// The first byte chooses how the rest is cut into blocks.
template <typename Parser, typename Adder = Sum>
int check(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    const std::size_t block = std::size_t{data[0]} + 1, whole = std::max<std::size_t>(1, size - 1);
    if (parse<Parser, Adder>(text, block) != parse<Parser, Adder>(text, whole)) std::abort();
    return 0;
}

}  // namespace fuzz
