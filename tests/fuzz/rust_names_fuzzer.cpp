// Feeds garbage to what makes names of Rust readable, behind the two beginnings that they have. It
// ends, and a name is of bounded length.
#include "framework/symbols/frame_store.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string rest(reinterpret_cast<const char*>(data), size);
    for (const std::string& symbol :
         {rest, "_R" + rest, "_RINvC1a1b" + rest + "E", "_ZN" + rest + "17h0123456789abcdefE"}) {
        const auto name = assay::symbols::rust_name(symbol);
        constexpr std::size_t kMost = (1 << 14) + sizeof " [clone ]";
        if (name && name->size() > kMost + symbol.size()) std::abort();
    }
    return 0;
}
