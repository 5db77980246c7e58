// The registers that are in a context's XSAVE area while the driver runs.
#pragma once

#include "framework/driver/native/context.h"

#include <cstdint>

namespace assay::native {

void read_vector(const Context& context, unsigned reg, unsigned char out[64]);
// One of k0 to k7.
std::uint64_t read_opmask(const Context& context, unsigned reg);

}  // namespace assay::native
