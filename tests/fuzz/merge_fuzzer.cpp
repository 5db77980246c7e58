// Feeds garbage to what reads whole profiles, of any format and compressed or not, adds it to
// itself and writes the sum. What was taken must have twice its totals, and the sum must be
// readable and keep them when it is merged alone.
#include "framework/events/reader.h"
#include "framework/support/error.h"
#include "tests/fuzz/memory_file.h"
#include "tools/merge/merge.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

// No bomb: a few compressed bytes can stand for gigabytes.
bool is_compressed(std::string_view text) {
    return text.starts_with("\x1f\x8b") || text.starts_with("\x28\xb5\x2f\xfd");
}

std::vector<std::uint64_t> totals_of(const MemoryFile& file) {
    assay::events::Handler ignore;
    return assay::events::read_events(file.path(), ignore).totals;
}

std::string merged(const MemoryFile& file, int times) {
    assay::Profile profile(assay::parts::kRows | assay::parts::kGroups);
    for (int i = 0; i < times; ++i) profile.add_file(file.path());
    profile.finish();
    const MemoryFile out;
    assay::write_events_file(profile, out.path());
    return out.content();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (is_compressed(text)) return 0;
    const MemoryFile input(text);
    std::string twice;
    std::vector<std::uint64_t> totals;
    try {
        totals = totals_of(input);
        twice = merged(input, 2);
    } catch (const assay::Error&) {
        return 0;
    }
    for (const std::string& text_of_sum : {twice, merged(MemoryFile(twice), 1)}) {
        const std::vector<std::uint64_t> doubled = totals_of(MemoryFile(text_of_sum));
        for (std::size_t i = 0; i < totals.size(); ++i)
            if (doubled.at(i) != 2 * totals[i]) std::abort();
    }
    return 0;
}
