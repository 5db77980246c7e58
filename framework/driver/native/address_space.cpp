#include "framework/driver/native/address_space.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>

namespace assay::native {
namespace {

constexpr std::uint64_t kPage = 4096, kLargest = std::uint64_t{16} << 30;

// Maps `bytes` without access where the kernel likes, if that is above the arena.
bool take_above(std::uint64_t bytes) {
    void* memory =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    if (reinterpret_cast<std::uint64_t>(memory) >= kArenaTop) return true;
    munmap(memory, bytes);
    return false;
}

// RLIMIT_AS counts what is taken, too: the program needs it more.
bool address_space_is_limited() {
    rlimit limit{};
    return getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
}

}  // namespace

bool addresses_are_fixed() {
    constexpr unsigned long kQuery = 0xffffffff;
    const int persona = personality(kQuery);
    return persona >= 0 && persona & ADDR_NO_RANDOMIZE;
}

void begin_arena() {
    if (!addresses_are_fixed() || address_space_is_limited()) return;
    for (std::uint64_t bytes = kLargest; bytes >= kPage; bytes /= 2)
        while (take_above(bytes)) {
        }
    // The driver's heap stays in its program break, out of the program's way.
    mallopt(M_MMAP_MAX, 0);
}

}  // namespace assay::native
