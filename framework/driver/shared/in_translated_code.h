// Marks functions that translated code calls. They change only those general registers that a call
// may change, and no vector or x87 state. A signal may interrupt them like translated code, so they
// lie in a section of their own.
#pragma once

#define IN_TRANSLATED_CODE __attribute__((section("assay_in_translated_code"), noinline))
// For helpers of these functions.
#define PART_OF_THESE __attribute__((always_inline)) inline

extern "C" {
// The section's bounds, which the linker defines.
extern const char __start_assay_in_translated_code[];  // NOLINT(bugprone-reserved-identifier)
extern const char __stop_assay_in_translated_code[];   // NOLINT(bugprone-reserved-identifier)
}
