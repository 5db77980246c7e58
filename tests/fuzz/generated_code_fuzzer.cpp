// Feeds garbage to the readers of perf maps and jitdump files: the first byte chooses which, or
// puts a good header before it. Whatever they find has a name, and a source that has been given.
#include "framework/symbols/generated_code.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

using namespace assay::symbols;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 1) return 0;
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    GeneratedCode code;
    if (data[0] % 3 == 0) {
        (void)code.add_perf_map("map", bytes);
    } else {
        std::string dump(bytes);
        constexpr std::string_view kHeader("DTiJ\x01\0\0\0\x0c\0\0\0", 12);
        if (data[0] % 3 == 1) dump.insert(0, kHeader);
        (void)code.add_jitdump("dump", dump);
    }
    std::uint64_t address = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        address = address << 8 | static_cast<unsigned char>(bytes[i]);
        for (const std::uint64_t at : {address, __builtin_bswap64(address)}) {
            const auto place = code.find(at);
            if (!place) continue;
            if (place->frame.function.empty() || place->frame.file.empty()) std::abort();
            if (place->source != "map" && place->source != "dump") std::abort();
        }
    }
    return 0;
}
