// File descriptors of the driver, which lives in the process of the program: for the program they
// do not exist. Which they are is known to all processes that share the table of descriptors
// (CLONE_FILES). For whoever holds the driver's lock.
#pragma once

namespace assay::native {

// Moves `descriptor` out of the way of the program's, which are the lowest free ones; closed on
// exec. Returns the new number.
int own_descriptor(int descriptor);
// The same for one that has been moved before: another driver has handed it down. -1 is none.
int adopt_descriptor(int descriptor);
// Likewise; one that the children of a fork need, too.
int adopt_common_descriptor(int descriptor);
void close_own_descriptor(int descriptor);
bool is_own_descriptor(long descriptor);
// close_range(2) for all others.
long close_other_descriptors(unsigned first, unsigned last, unsigned flags);

// --- What becomes of them when processes begin and end.

// Before a fork, with CLONE_FILES if `shared`. Closes what sharing processes that are gone have
// left.
void prepare_descriptors_for_fork(bool shared);
// In the child: closes what is its parent's, unless they share.
void leave_descriptors_to_parent(bool shared);
// Before the process becomes another program: unshare(CLONE_FILES), if it shares them.
void stop_sharing_descriptors();
// At the end of the process: what it has in a table that others go on with.
void close_shared_descriptors();

}  // namespace assay::native
