// File descriptors of the driver, which lives in the process of the program: for the program they
// do not exist. For whoever holds the driver's lock.
#pragma once

namespace assay::native {

// Moves `descriptor` out of the way of the program's, which are the lowest free ones; closed on
// exec. Returns the new number.
int own_descriptor(int descriptor);
// The same for one that has been moved before: another driver has handed it down. -1 is none.
int adopt_descriptor(int descriptor);
void close_own_descriptor(int descriptor);
bool is_own_descriptor(long descriptor);
// close_range(2) for all others.
long close_other_descriptors(unsigned first, unsigned last, unsigned flags);

}  // namespace assay::native
