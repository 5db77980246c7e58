// How code best reaches memory that it changes again within a few cycles.
#pragma once

namespace assay::native {

// Processors that take what was just stored from a register, instead of waiting for it, do so for
// some addresses only. Cycles that a loop of one increment in memory takes per round (measured):
//
//                  relative to rip    absolute, behind gs
//   Golden Cove    7                  1
//   Zen 5          1                  7
//
// Zen 5 never does so for bytes. True if it is as with Zen 5, false if as with Golden Cove.
bool forwards_relative_stores();

}  // namespace assay::native
