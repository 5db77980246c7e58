// All captures, in their order: see capture.h. A new one is a header, a source file, and its name
// here.
#pragma once

#include "framework/driver/native/translate/block_increments.h"
#include "framework/driver/native/translate/block_records.h"
#include "framework/driver/native/translate/capture_list.h"
#include "framework/driver/native/translate/contexts.h"
#include "framework/driver/native/translate/control_flow.h"
#include "framework/driver/native/translate/fetches.h"
#include "framework/driver/native/translate/memory_references.h"
#include "framework/driver/native/translate/specials.h"
#include "framework/driver/native/translate/value_records.h"

namespace assay::native {

// Of an instruction, its fetch is recorded before its references, which for a call are still its
// caller's. Values are read on a way out before others borrow registers there. What counts the
// block goes to a place that the items of all others have left. On a way out all else is still done
// in the block's context.
using Captures = CaptureList<Contexts, BlockRecords, Fetches, MemoryReferences, Specials,
                             Predictions, Branches, Values, Calls, BlockIncrements>;

}  // namespace assay::native
