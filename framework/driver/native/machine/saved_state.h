// The registers that are in a context's XSAVE area while the driver runs.
#pragma once

#include "framework/driver/native/machine/context.h"

#include <cstddef>
#include <cstdint>

namespace assay::native {

// PKRU has the rights to memory by its protection key (pkeys(7)). No driver code touches it, so it
// stays in the register while the driver runs, and is not in the area. These may be called only
// where ShownProcessor::has_protection_keys().
std::uint32_t read_pkru();
void write_pkru(std::uint32_t rights);
// Where frames of signals have it.
std::size_t pkru_offset();

// The registers as a new program finds them (psABI 3.4.1), and a handler of signals.
void reset_state(Context& context);
// XSAVEOPT leaves in the area what was there before where registers are in their initial
// configuration, as XSTATE_BV says. Puts the initial values there, of x87 and SSE registers, for
// those who look without looking at XSTATE_BV, as handlers of signals do.
void write_out_legacy(unsigned char* area);
// The same of all registers in the first `bytes` of the area, for a tracer: PTRACE_GETREGSET. What
// the processor leaves to software stays in `out`.
void write_out(const Context& context, unsigned char* out, std::size_t bytes);

// zmm`reg`, 0 to 31; bytes that the processor does not have are 0.
void read_vector(const Context& context, unsigned reg, unsigned char out[64]);
// One of k0 to k7.
std::uint64_t read_opmask(const Context& context, unsigned reg);
// One of mm0 to mm7.
std::uint64_t read_mmx(const Context& context, unsigned reg);
// st(number) as trace_vlist.h has it: the double nearest to it.
std::uint64_t read_x87(const Context& context, unsigned number);

// The same of an 80-bit number: `high` is its sign and exponent, `low` the rest.
std::uint64_t nearest_double(std::uint16_t high, std::uint64_t low);

}  // namespace assay::native
