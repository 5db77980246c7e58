#include "framework/driver/native/memory/address_space.h"

#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/memory/free_addresses.h"
#include "framework/support/large_heap.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <algorithm>

namespace assay::native {
namespace {

constexpr std::uint64_t kGiB = 1024 * trace::kMiB;

// The addresses where the kernel may load the driver and its heap: with at most 32 random bits,
// below 0x6600'0000'0000 (ELF_ET_DYN_BASE, arch_randomize_brk()).
constexpr Range kPlacesOfDriver{0x5500'0000'0000, 0x6600'0000'0000};
// vm.mmap_min_addr is 64 KiB, and programs without PIE start at 4 MiB.
constexpr std::uint64_t kLowest = 0x1'0000;
// The kernel's range for MAP_32BIT (arch/x86/kernel/sys_x86_64.c, find_start_end()).
constexpr Range kPlacesOf32Bits{1 * kGiB, 2 * kGiB};
// Most of a program's mappings are here, up to kArenaTop. Later mappings of the driver lie above
// it, right below the driver's libraries.
constexpr Range kKeptFree{0x7e80'0000'0000, kArenaTop + 64 * kGiB};
// Where reserve_outside_arena() begins. Some 100 KiB of vDSO lie below.
constexpr std::uint64_t kOwnPlaces = kArenaTop + 16 * trace::kMiB;

FreeAddresses& free_addresses() {
    static FreeAddresses addresses;
    return addresses;
}

bool chooses = false;

void* map_without_access(std::uint64_t address, std::uint64_t bytes) {
    const int fixed = address != 0 ? MAP_FIXED_NOREPLACE : 0;
    return mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
}

// Returns 0 if the kernel refuses the query.
unsigned long kernel_personality() {
    constexpr unsigned long kQuery = 0xffffffff;
    return static_cast<unsigned long>(std::max(personality(kQuery), 0));
}

int overlaps_arena(dl_phdr_info* object, std::size_t, void*) {
    for (unsigned i = 0; i < object->dlpi_phnum; ++i) {
        const ElfW(Phdr)& segment = object->dlpi_phdr[i];
        const std::uint64_t start = object->dlpi_addr + segment.p_vaddr;
        if (segment.p_type == PT_LOAD && start < kKeptFree.end &&
            start + segment.p_memsz > kKeptFree.start)
            return 1;
    }
    return 0;
}

}  // namespace

bool addresses_are_fixed() {
    return kernel_personality() & ADDR_NO_RANDOMIZE;
}

unsigned long personality_of_program(bool asks_for_fixed_addresses) {
    const std::uint64_t others = kernel_personality() & ~std::uint64_t{ADDR_NO_RANDOMIZE};
    return asks_for_fixed_addresses ? others | ADDR_NO_RANDOMIZE : others;
}

bool driver_is_in_the_way() {
    return !addresses_are_fixed() && dl_iterate_phdr(overlaps_arena, nullptr) != 0;
}

void begin_arena(bool random_addresses) {
    // The driver's heap stays in its program break, out of the program's way.
    mallopt(M_MMAP_MAX, 0);
    constexpr int kHeapStep = 16 << 20;
    begin_large_heap(kHeapStep);
    chooses = !random_addresses;
    if (!chooses) return;
    for (const Range& range : without_own_memory({kLowest, kPlacesOfDriver.start}))
        free_addresses().add(range);
    for (const Range& range : without_own_memory({kPlacesOfDriver.end, kArenaTop}))
        free_addresses().add(range);
}

bool chooses_addresses() {
    return chooses;
}

std::optional<std::uint64_t> free_place(std::uint64_t bytes, std::uint64_t alignment) {
    return free_addresses().highest(bytes, alignment);
}

std::optional<std::uint64_t> free_place_of_32_bits(std::uint64_t bytes) {
    return free_addresses().lowest(bytes, kPlacesOf32Bits);
}

void note_mapped(const Range& range) {
    free_addresses().remove(range);
}

void note_unmapped(const Range& range) {
    if (!chooses) return;
    const auto add_within = [&](std::uint64_t from, std::uint64_t to) {
        free_addresses().add({std::max(range.start, from), std::min(range.end, to)});
    };
    add_within(kLowest, kPlacesOfDriver.start);
    add_within(kPlacesOfDriver.end, kArenaTop);
}

unsigned char* reserve_in_arena(std::uint64_t bytes) {
    bytes = (bytes + kPage - 1) & ~(kPage - 1);
    void* memory = MAP_FAILED;
    const auto map = [&](std::uint64_t address) -> long {
        memory = map_without_access(address, bytes);
        return memory == MAP_FAILED ? -errno : 0;
    };
    const auto find = [](std::uint64_t size) { return free_place(size, kPage); };
    if (map_in_place(bytes, find, map) == -EEXIST) map(0);
    if (memory == MAP_FAILED) return nullptr;
    const auto start = reinterpret_cast<std::uint64_t>(memory);
    note_mapped({start, start + bytes});
    return static_cast<unsigned char*>(memory);
}

unsigned char* reserve_outside_arena(std::uint64_t bytes) {
    bytes = (bytes + kPage - 1) & ~(kPage - 1);
    // Near the code cache, whose code then reaches the memory relative to rip.
    static std::uint64_t next = kOwnPlaces;
    void* memory = chooses ? map_without_access(next, bytes) : MAP_FAILED;
    next += bytes;
    if (memory == MAP_FAILED) memory = map_without_access(0, bytes);
    if (memory == MAP_FAILED) return nullptr;
    const auto start = reinterpret_cast<std::uint64_t>(memory);
    add_own_memory({start, start + bytes});
    note_mapped({start, start + bytes});
    return static_cast<unsigned char*>(memory);
}

}  // namespace assay::native
