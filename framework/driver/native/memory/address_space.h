// Where mappings go. The kernel places them at random, unless personality(2) has turned that off,
// which containers do not permit; and even so by the sizes of the driver's own libraries and
// tables, and by rules that differ between kernels. So the driver chooses the addresses of all that
// the program has: the highest free ones below kArenaTop. For whoever holds the driver's lock.
#pragma once

#include "framework/driver/native/memory/own_memory.h"

#include <cerrno>
#include <cstdint>
#include <optional>

namespace assay::native {

// Below this the program, and the code cache, have the address space to themselves. The kernel
// gives the driver its own mappings above: they begin at most 1 TiB, which it chooses at random
// (CONFIG_ARCH_MMAP_RND_BITS, 28), and 16 GiB for the stack below 0x7fff'ffff'f000
// (arch/x86/mm/mmap.c, mmap_base()). ThreadSanitizer accepts mappings of a program only from
// 0x7e80'0000'0000 on (compiler-rt, tsan_platform.h).
inline constexpr std::uint64_t kArenaTop = 0x7ec0'0000'0000;

// Right above it, and below what else is there: see move_vdso().
inline constexpr std::uint64_t kVdsoAddress = kArenaTop + 0x10'0000;

// The kernel's TASK_SIZE_MAX with page tables of four levels. Bases of fs and gs are below.
inline constexpr std::uint64_t kAddressesEnd = 0x7fff'ffff'f000;

// True if the kernel does not randomise addresses of this process.
bool addresses_are_fixed();

// The personality(2) that the program would have by itself: that the kernel does not randomise
// addresses is assay's doing, and sometimes not only assay's.
unsigned long personality_of_program(bool asks_for_fixed_addresses);

// True if the kernel has put the driver's own files where the program's mappings go, as it may with
// more than 28 random bits. It will put them elsewhere when they are executed again.
bool driver_is_in_the_way();

// From now on the driver chooses addresses, unless they are to be random: then the kernel does. To
// be called once what is mapped then is known as the driver's (begin_own_memory()).
void begin_arena(bool random_addresses);
bool chooses_addresses();

// The place for a mapping: the highest free one, at a multiple of `alignment`. Nothing: there is
// none, or the kernel chooses.
std::optional<std::uint64_t> free_place(std::uint64_t bytes, std::uint64_t alignment);
// The lowest free one of the addresses that MAP_32BIT means.
std::optional<std::uint64_t> free_place_of_32_bits(std::uint64_t bytes);

// Where something is mapped now, or is not any more: all that the program maps and unmaps.
void note_mapped(const Range& range);
void note_unmapped(const Range& range);

// Address space for the program or the code cache, without access. nullptr, and errno: there is
// none.
unsigned char* reserve_in_arena(std::uint64_t bytes);

// Address space, without access, for what the driver maps later: above kArenaTop, where the
// program's own mappings are not in the way. Never given back. nullptr if there is none left.
unsigned char* reserve_outside_arena(std::uint64_t bytes);

// Maps something of so many bytes. `find(bytes)` says the next place to try, `map(address)` makes a
// system call that fails with EEXIST if something is there. What that is, for example what
// io_setup(2) has mapped, is left alone from then on. Returns EEXIST if there is no place.
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
