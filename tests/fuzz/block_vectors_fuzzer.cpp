// Feeds garbage to the reader of basic block vectors. The first byte chooses how the rest is cut
// into blocks, which must make no difference.
#include "framework/events/block_vectors.h"
#include "framework/support/error.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

using namespace assay::events;

namespace {

// What was read and why it ended, as text.
std::string read(std::string_view text, std::size_t block) {
    std::string told;
    BlockVectorParser parser("input", {[&](std::uint32_t number, std::uint64_t count) {
                                           if (number == 0) std::abort();
                                           told += std::to_string(number) + " " +
                                                   std::to_string(count) + ",";
                                       },
                                       [&] { told += "\n"; }});
    try {
        for (std::size_t at = 0; at < text.size(); at += block) parser.feed(text.substr(at, block));
        parser.finish();
    } catch (const assay::Error& e) {
        told += e.what();
    }
    return told;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    if (read(text, std::size_t{data[0]} + 1) != read(text, std::max<std::size_t>(1, text.size())))
        std::abort();
    return 0;
}
