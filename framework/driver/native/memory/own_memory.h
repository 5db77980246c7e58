// Memory of the driver, which lives in the address space of the program: for the program's system
// calls it does not exist. For whoever holds the driver's lock.
#pragma once

#include <cstdint>
#include <vector>

namespace assay::native {

struct Mapping;  // proc_maps.h

struct Range {
    std::uint64_t start = 0, end = 0;
};

// Makes the stack of the driver's first thread as large as it will ever be. It would grow by itself
// as long as nothing is mapped below, but the program may map there whatever it likes, as Wine
// does.
void grow_own_stack();
// All that is mapped now is the driver's, but for the vDSO. To be called before anything of the
// program's is mapped.
void begin_own_memory(const std::vector<Mapping>& mappings);
// brk(2) will not be permitted any more: the driver's heap gets what it may need while it can. It
// would take an error number that a filter of seccomp(2) answers for a new program break.
void stop_moving_break();
// It is, after all.
void let_break_move();
// What the driver maps later.
void add_own_memory(const Range& range);
// True if any of it is the driver's.
bool is_own_memory(const Range& range);
// The parts that are not, in the order of their addresses.
std::vector<Range> without_own_memory(const Range& range);

}  // namespace assay::native
