#include "framework/driver/native/memory/address_space.h"

#include "framework/driver/native/memory/own_memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <algorithm>

namespace assay::native {
namespace {

constexpr std::uint64_t kPage = 4096, kLargest = std::uint64_t{16} << 30;

// Addresses from `begin` on are taken and not used yet.
struct Taken {
    std::uint64_t begin = 0, end = 0;
};
Taken taken;

unsigned char* map_without_access(std::uint64_t bytes) {
    void* memory =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<unsigned char*>(memory);
}

// Takes `bytes` where the kernel likes, if that is above the arena.
bool take_above(std::uint64_t bytes) {
    unsigned char* memory = map_without_access(bytes);
    if (memory == nullptr) return false;
    const auto begin = reinterpret_cast<std::uint64_t>(memory);
    if (begin < kArenaTop) {
        munmap(memory, bytes);
        return false;
    }
    // The first piece, and those right below; others fill gaps between the driver's mappings.
    if (taken.end == 0) taken = {begin, begin + bytes};
    if (begin + bytes == taken.begin) taken.begin = begin;
    return true;
}

// 0 if the kernel does not tell.
unsigned long kernel_personality() {
    constexpr unsigned long kQuery = 0xffffffff;
    return static_cast<unsigned long>(std::max(personality(kQuery), 0));
}

// RLIMIT_AS counts what is taken, too: the program needs it more.
bool address_space_is_limited() {
    rlimit limit{};
    return getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
}

}  // namespace

bool addresses_are_fixed() {
    return kernel_personality() & ADDR_NO_RANDOMIZE;
}

unsigned long personality_of_program(bool asks_for_fixed_addresses) {
    const std::uint64_t others = kernel_personality() & ~std::uint64_t{ADDR_NO_RANDOMIZE};
    return asks_for_fixed_addresses ? others | ADDR_NO_RANDOMIZE : others;
}

void begin_arena() {
    // The driver's heap stays in its program break, out of the program's way.
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_ARENA_MAX, 1);
    if (!addresses_are_fixed() || address_space_is_limited()) return;
    for (std::uint64_t bytes = kLargest; bytes >= kPage; bytes /= 2)
        while (take_above(bytes)) {
        }
}

unsigned char* reserve_outside_arena(std::uint64_t bytes) {
    bytes = (bytes + kPage - 1) & ~(kPage - 1);
    if (taken.end - taken.begin < bytes) {
        unsigned char* memory = map_without_access(bytes);
        const auto start = reinterpret_cast<std::uint64_t>(memory);
        if (memory != nullptr) add_own_memory({start, start + bytes});
        return memory;
    }
    const std::uint64_t begin = taken.begin;
    taken.begin += bytes;
    return reinterpret_cast<unsigned char*>(begin);
}

}  // namespace assay::native
