// Chooses the addresses of all mappings of the program: the highest free ones below kArenaTop.
//
// The kernel's choice would differ between runs. It is random unless personality(2) forbids that,
// which containers do not permit. It also depends on the sizes of the driver's own libraries and
// tables, and on the kernel's version. Callers hold the driver's lock.
#pragma once

#include "framework/driver/native/memory/own_memory.h"

#include <cerrno>
#include <cstdint>
#include <optional>

namespace assay::native {

// The end of the addresses that only the program and the code cache use. The kernel places the
// driver's own mappings above. Those start below 0x7fff'ffff'f000, minus up to 1 TiB of random
// offset (CONFIG_ARCH_MMAP_RND_BITS, 28), minus 16 GiB for the stack (arch/x86/mm/mmap.c,
// mmap_base()). ThreadSanitizer accepts mappings of a program only from 0x7e80'0000'0000 on
// (compiler-rt, tsan_platform.h).
inline constexpr std::uint64_t kArenaTop = 0x7ec0'0000'0000;

// Right above the arena and below the driver's mappings: see move_vdso().
inline constexpr std::uint64_t kVdsoAddress = kArenaTop + 0x10'0000;

// The kernel's TASK_SIZE_MAX with four levels of page tables. The bases of fs and gs must be below.
inline constexpr std::uint64_t kAddressesEnd = 0x7fff'ffff'f000;

// True if the kernel does not randomise addresses of this process.
bool addresses_are_fixed();

// The personality(2) that the program would have without assay, which may have turned off the
// random addresses itself.
unsigned long personality_of_program(bool asks_for_fixed_addresses);

// True if the kernel has put the driver's own files where the program's mappings go. This can
// happen with more than 28 random bits. Executing the driver again places them elsewhere.
bool driver_is_in_the_way();

// From now on the driver chooses addresses, unless they are to be random: then the kernel chooses.
// The caller has already registered the driver's mappings (begin_own_memory()).
void begin_arena(bool random_addresses);
bool chooses_addresses();

// The highest free address for a mapping, a multiple of `alignment`. Returns nullopt if no place is
// free, or if the kernel chooses.
std::optional<std::uint64_t> free_place(std::uint64_t bytes, std::uint64_t alignment);
// The lowest free address in the range that MAP_32BIT permits.
std::optional<std::uint64_t> free_place_of_32_bits(std::uint64_t bytes);

// To be called for each range that the program maps or unmaps.
void note_mapped(const Range& range);
void note_unmapped(const Range& range);

// Reserves addresses for the program or code cache, without access. nullptr, with errno, on
// failure.
unsigned char* reserve_in_arena(std::uint64_t bytes);

// Reserves addresses above kArenaTop, without access, for later mappings of the driver: the
// program's own mappings are not in the way there. Never freed. Returns nullptr on failure.
unsigned char* reserve_outside_arena(std::uint64_t bytes);

// Maps `bytes` bytes. `find(bytes)` returns the next address to try. `map(address)` makes a system
// call that fails with EEXIST if something is mapped there, for example by io_setup(2). The
// function then tries the next one. Returns -EEXIST if it finds no place.
template <typename Find, typename Map>
long map_in_place(std::uint64_t bytes, const Find& find, const Map& map) {
    constexpr int kMostPlaces = 64;
    for (int i = 0; i < kMostPlaces; ++i) {
        const std::optional<std::uint64_t> place = find(bytes);
        if (!place) break;
        const long result = map(*place);
        if (result != -EEXIST) return result;
        note_mapped({*place, *place + bytes});
    }
    return -EEXIST;
}

}  // namespace assay::native
