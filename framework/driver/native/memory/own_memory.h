// The driver's own memory in the address space of the program. System calls of the program must not
// see or change it. Callers hold the driver's lock.
#pragma once

#include <cstdint>
#include <vector>

namespace assay::native {

struct Mapping;  // proc_maps.h

struct Range {
    std::uint64_t start = 0, end = 0;
};

// Makes the stack of the driver's first thread as large as it will ever be. The kernel grows a
// stack only while nothing is mapped below it, but programs such as Wine map there.
void grow_own_stack();
// Registers all mappings except the vDSO as the driver's, before the program is loaded.
void begin_own_memory(const std::vector<Mapping>& mappings);
// From now on brk(2) may be forbidden, so the driver's heap takes the memory that it may need.
// sbrk(3) would mistake an error number from a seccomp(2) filter for a new program break.
void stop_moving_break();
// Undoes stop_moving_break(), because no filter was installed.
void let_break_move();
// Gives the range its pages at once, because faults cost several times as much. Does nothing after
// stop_moving_break().
void populate(const Range& range);
// Registers a later mapping of the driver.
void add_own_memory(const Range& range);
// True if any of it is the driver's.
bool is_own_memory(const Range& range);
// The parts of the range that are not the driver's, in the order of addresses.
std::vector<Range> without_own_memory(const Range& range);

}  // namespace assay::native
