#include "framework/driver/native/target_memory.h"

#include <sys/uio.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace assay::native {
namespace {

constexpr std::uint64_t kPage = 4096;

// Bytes from an address to the end of its page.
std::size_t rest_of_page(const void* address) {
    return kPage - reinterpret_cast<std::uint64_t>(address) % kPage;
}

}  // namespace

bool read_target(const void* from, void* to, std::size_t bytes) {
    const iovec local{to, bytes};
    const iovec remote{const_cast<void*>(from), bytes};
    const ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    if (got >= 0 || errno == EFAULT) return got == static_cast<ssize_t>(bytes);
    std::memcpy(to, from, bytes);  // containers may forbid the call: seccomp(2)
    return true;
}

std::optional<std::string> read_target_text(const char* from, std::size_t most) {
    std::string text;
    std::array<char, kPage> part;
    while (text.size() < most) {
        const std::size_t bytes = std::min(rest_of_page(from), most - text.size());
        if (!read_target(from, part.data(), bytes)) return {};
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
        if (!read_target(from, part.data(), count * sizeof(char*))) return {};
        char* const* end = std::find(part.data(), part.data() + count, nullptr);
        pointers.insert(pointers.end(), part.data(), const_cast<char**>(end));
        if (end != part.data() + count) return pointers;
        from += count;
    }
}

}  // namespace assay::native
