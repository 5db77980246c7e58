// Feeds garbage to the reader of events files. The first byte chooses how the rest is cut into
// blocks. Besides crashes it looks for wrong acceptance: a file that the parser took must have
// totals that are the sum of what it passed on, and must be read the same in one block.
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

using namespace assay::events;

namespace {

class Sum final : public Handler {
  public:
    std::vector<std::uint64_t> counts;

  private:
    void start(const Header& header) override { counts.resize(header.events.size()); }
    void line(std::uint32_t, std::span<const std::uint64_t> line_counts) override {
        for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += line_counts[i];
    }
};

// The totals, or no value if the text was refused.
std::optional<std::vector<std::uint64_t>> parse(std::string_view text, std::size_t block) {
    Sum sum;
    try {
        Parser parser("input", sum);
        for (std::size_t at = 0; at < text.size(); at += block) parser.feed(text.substr(at, block));
        parser.finish();
        if (sum.counts != parser.totals()) std::abort();
        for (const Derived& derived : parser.header().derived)
            (void)Formula(derived.formula, parser.header().events).value(parser.totals());
    } catch (const assay::Error&) {
        return std::nullopt;
    }
    return sum.counts;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    const std::size_t block = std::size_t{data[0]} + 1;
    if (parse(text, block) != parse(text, std::max<std::size_t>(1, text.size()))) std::abort();
    return 0;
}
