// Feeds garbage to the decompressors, and checks that what they are given whole or in pieces comes
// out the same. The first byte chooses the format and how the rest is cut into blocks.
#include "framework/events/compression.h"
#include "framework/support/error.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

using namespace assay::events;

namespace {

// Enough to see what matters; a few bytes of input can stand for gigabytes.
constexpr std::size_t kMostOutput = 1 << 20;
struct TooLong {};

std::optional<std::string> run(Codec& codec, std::string_view input, std::size_t block) {
    std::string output;
    const Consumer consumer = [&output](std::string_view bytes) {
        output += bytes;
        if (output.size() > kMostOutput) throw TooLong();
    };
    try {
        for (std::size_t at = 0; at < input.size(); at += block)
            codec.transform(input.substr(at, block), consumer);
        codec.finish(consumer);
    } catch (const assay::Error&) {
        return std::nullopt;
    }
    return output;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const bool gzip = (data[0] & 1) != 0;
    const std::size_t block = std::size_t{data[0]} / 2 + 1;
    const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
    const std::string name = gzip ? "x.gz" : "x.zst";
    const std::string packed = run(*make_compressor(name), rest, block).value();
    if (run(*make_decompressor(packed, name), packed, block) != std::string(rest)) std::abort();
    const std::string magic = gzip ? "\x1f\x8b\x08" : "\x28\xb5\x2f\xfd";
    try {
        (void)run(*make_decompressor(magic, name), magic + std::string(rest), block);
    } catch (const TooLong&) {
    }
    return 0;
}
