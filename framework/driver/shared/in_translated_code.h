// For functions that translated code calls. They change none but the registers that a call may
// change, of the general ones, and leave vector and x87 state alone; a signal may interrupt them as
// it does translated code: their code lies in a section of its own.
#pragma once

#define IN_TRANSLATED_CODE __attribute__((section("assay_in_translated_code"), noinline))
// Of one of these.
#define PART_OF_THESE __attribute__((always_inline)) inline

extern "C" {
// The section's bounds, which the linker defines.
extern const char __start_assay_in_translated_code[];  // NOLINT(bugprone-reserved-identifier)
extern const char __stop_assay_in_translated_code[];   // NOLINT(bugprone-reserved-identifier)
}
