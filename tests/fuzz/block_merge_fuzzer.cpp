// Feeds garbage to what merges block vectors: the vectors, then a line "=", then the addresses of
// their blocks; without that line, the vectors are taken for those of one run. What was taken twice
// must have twice the intervals and counts, readable.
#include "framework/events/block_vectors.h"
#include "framework/support/error.h"
#include "tests/fuzz/memory_file.h"
#include "tools/merge/merge.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

struct Totals {
    std::uint64_t intervals = 0, instructions = 0;
};

Totals totals_of(std::string_view text) {
    Totals totals;
    assay::events::BlockVectorParser parser(
        "vectors", {.pair = [&](std::uint32_t, std::uint64_t n) { totals.instructions += n; },
                    .end = [&] { ++totals.intervals; }});
    parser.feed(text);
    parser.finish();
    return totals;
}

// No bomb: a few compressed bytes can stand for gigabytes.
bool is_compressed(std::string_view text) {
    return text.starts_with("\x1f\x8b") || text.starts_with("\x28\xb5\x2f\xfd");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::string_view kBetween = "\n=\n";
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const std::size_t middle = text.find(kBetween);
    const bool one_run = middle == std::string_view::npos;
    const std::string_view vectors = one_run ? text : text.substr(0, middle + 1),
                           rest = one_run ? "" : text.substr(middle + kBetween.size());
    if (is_compressed(vectors) || is_compressed(rest)) return 0;
    const MemoryFile input(vectors), addresses(rest), out, addresses_out;
    Totals totals;
    try {
        totals = totals_of(vectors);
        assay::BlockVectorFiles files{{input.path(), input.path()}, {}, out.path(), ""};
        if (!one_run) {
            files.addresses = {addresses.path(), addresses.path()};
            files.addresses_out = addresses_out.path();
        }
        assay::begins_as_block_vectors(input.path());
        assay::merge_block_vectors(files);
    } catch (const assay::Error&) {
        return 0;
    }
    const Totals sum = totals_of(out.content());
    if (sum.intervals != 2 * totals.intervals || sum.instructions != 2 * totals.instructions)
        std::abort();
    return 0;
}
