#include "framework/driver/native/machine/target_memory.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace assay::native {
namespace {

std::uint64_t address_of(const void* pointer) {
    return reinterpret_cast<std::uint64_t>(pointer);
}

// The number of bytes from `pointer` to the end of its page.
std::size_t rest_of_page(const void* pointer) {
    return kPage - address_of(pointer) % kPage;
}

}  // namespace

std::optional<std::string> read_target_text(const char* from, std::size_t most) {
    std::string text;
    std::array<char, kPage> part;
    while (text.size() < most) {
        const std::size_t bytes = std::min(rest_of_page(from), most - text.size());
        if (!read_target(address_of(from), part.data(), bytes)) return {};
        const std::size_t length = strnlen(part.data(), bytes);
        text.append(part.data(), length);
        if (length != bytes) return text;
        from += bytes;
    }
    return {};
}

std::optional<std::vector<char*>> read_target_pointers(char* const* from) {
    std::vector<char*> pointers;
    if (from == nullptr) return pointers;
    std::array<char*, kPage / sizeof(char*)> part;
    for (;;) {
        const std::size_t count = std::max<std::size_t>(rest_of_page(from) / sizeof(char*), 1);
        if (!read_target(address_of(from), part.data(), count * sizeof(char*))) return {};
        char* const* end = std::find(part.data(), part.data() + count, nullptr);
        pointers.insert(pointers.end(), part.data(), const_cast<char**>(end));
        if (end != part.data() + count) return pointers;
        from += count;
    }
}

}  // namespace assay::native
