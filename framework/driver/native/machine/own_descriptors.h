// File descriptors of the driver. The driver lives in the program's process, so it hides these
// descriptors from the program. All processes that share the descriptor table (CLONE_FILES) know
// each other's descriptors. The caller must hold the driver's lock.
#pragma once

#include "framework/driver/shared/trace_tables.h"

namespace assay::native {

// Moves `descriptor` above the lowest free numbers, which the program's descriptors get, and closes
// it on exec. Returns the new number.
int own_descriptor(int descriptor);
// The same for a descriptor that another driver has already moved and handed down. Does nothing for
// -1.
int adopt_descriptor(int descriptor);
// The same for a descriptor that the children of a fork also need.
int adopt_common_descriptor(int descriptor);
void close_own_descriptor(int descriptor);
bool is_own_descriptor(long descriptor);
// close_range(2), except for the driver's descriptors.
long close_other_descriptors(unsigned first, unsigned last, unsigned flags);

// The same for parts that all drivers have.
inline constexpr driver::DescriptorCare kDescriptorCare{own_descriptor, adopt_descriptor,
                                                        adopt_common_descriptor};

// --- The start and end of processes.

// Call before a fork, with `shared` if it uses CLONE_FILES. Closes descriptors that ended processes
// have left in a shared table.
void prepare_descriptors_for_fork(bool shared);
// Call in the child. Closes the parent's descriptors, unless the processes share the table.
void leave_descriptors_to_parent(bool shared);
// Call before execve(2). Leaves a shared table with unshare(CLONE_FILES).
void stop_sharing_descriptors();
// Call at the end of the process. Closes the process's descriptors in a table that other processes
// go on using.
void close_shared_descriptors();

}  // namespace assay::native
