// Memory to go on with after a profiler has crashed.
//
// A crash can leave the C library's heap damaged, or locked: glibc aborts with the lock held when
// it finds a block that was freed twice, and whoever allocates next would wait for ever. So
// malloc(3) and its kin are replaced here. They are the C library's, or a preloaded library's,
// until a crash; afterwards memory comes from a heap of its own, and what those have given out is
// not given back.
//
// Not in builds with a sanitizer, which replace malloc themselves.
#pragma once

namespace assay::collector {

void use_spare_heap();

}  // namespace assay::collector
