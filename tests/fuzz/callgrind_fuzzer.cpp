// Feeds garbage to the reader of Callgrind's profiles. The first byte chooses how the rest is cut
// into blocks. A file that was taken must have totals that are the sum of what was passed on, also
// by instruction, and must be read the same in one block.
#include "framework/events/callgrind_parser.h"
#include "framework/events/formula.h"
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
    std::vector<std::uint64_t> counts, by_instruction;
    bool has_instructions = false;

  private:
    void start(const Header& header) override {
        counts.resize(header.events.size());
        by_instruction.resize(header.events.size());
    }
    void object(const Object&) override { ++objects_; }
    void line(std::uint32_t, std::span<const std::uint64_t> line_counts) override {
        for (std::size_t i = 0; i < counts.size(); ++i) counts.at(i) += line_counts[i];
    }
    void instruction(const Instruction& at, std::span<const std::uint64_t> more) override {
        if (at.object >= objects_) std::abort();
        has_instructions = true;
        for (std::size_t i = 0; i < counts.size(); ++i) by_instruction.at(i) += more[i];
    }
    void call(const Call& call, std::span<const std::uint64_t> inclusive) override {
        if (call.callee.empty() || inclusive.size() != counts.size()) std::abort();
    }

    std::uint32_t objects_ = 0;
};

// The totals, or no value if the text was refused.
std::optional<std::vector<std::uint64_t>> parse(std::string_view text, std::size_t block) {
    Sum sum;
    try {
        CallgrindParser parser("input", sum);
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
