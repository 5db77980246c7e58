// What the program says by the markers of assay/client.h.
#pragma once

namespace assay::native {

class Thread;

// Does what the marker says that the thread has just reached; rax points to it.
void do_marker(Thread& thread);

}  // namespace assay::native
