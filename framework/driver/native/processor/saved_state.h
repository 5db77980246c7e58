// The registers that are in a context's XSAVE area while the driver runs.
#pragma once

#include "framework/driver/native/context.h"

#include <cstdint>

namespace assay::native {

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
