// The registers in a context's XSAVE area while the driver runs.
#pragma once

#include "framework/driver/native/machine/context.h"

#include <cstddef>
#include <cstdint>

namespace assay::native {

// PKRU holds the access rights by protection key (pkeys(7)). The driver does not use it, so it
// stays in the register and not in the area. Call these only if
// ShownProcessor::has_protection_keys().
std::uint32_t read_pkru();
void write_pkru(std::uint32_t rights);
// The offset of PKRU in signal frames.
std::size_t pkru_offset();

// Sets the registers to their state in a new program (psABI 3.4.1) or at the start of a signal
// handler.
void reset_state(Context& context);
// XSAVEOPT does not write registers in their initial configuration; their bits in XSTATE_BV are 0.
// This writes the initial values of x87 and SSE registers into the area, for readers that ignore
// XSTATE_BV, for example signal handlers.
void write_out_legacy(unsigned char* area);
// The same for all registers in the first `bytes` of the area, for a tracer: PTRACE_GETREGSET.
// Leaves the bytes of `out` that the processor reserves for software.
void write_out(const Context& context, unsigned char* out, std::size_t bytes);

// Reads zmm`reg`, 0 to 31. Bytes that the processor does not have are 0.
void read_vector(const Context& context, unsigned reg, unsigned char out[64]);
// Reads one of k0 to k7.
std::uint64_t read_opmask(const Context& context, unsigned reg);
// Reads one of mm0 to mm7.
std::uint64_t read_mmx(const Context& context, unsigned reg);
// Reads st(number) as trace_vlist.h defines it: the nearest double.
std::uint64_t read_x87(const Context& context, unsigned number);

// The double nearest to an 80-bit number. `high`: its sign and exponent. `low`: the rest.
std::uint64_t nearest_double(std::uint16_t high, std::uint64_t low);

}  // namespace assay::native
