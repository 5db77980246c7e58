// Feeds garbage to the reader of Callgrind's profiles. Besides crashes it looks for wrong
// acceptance: see totals.h. What is passed on must fit together, too.
#include "framework/events/callgrind_parser.h"
#include "tests/fuzz/totals.h"

namespace {

class Checked final : public fuzz::Sum {
  private:
    void object(const assay::events::Object&) override { ++objects_; }
    void instruction(const Instruction& at, std::span<const std::uint64_t> more) override {
        if (at.object >= objects_ || more.size() != counts.size()) std::abort();
    }
    void call(const Call& call, std::span<const std::uint64_t> inclusive) override {
        if (call.callee.empty() || inclusive.size() != counts.size()) std::abort();
    }

    std::uint32_t objects_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    return fuzz::check<assay::events::CallgrindParser, Checked>(data, size);
}
