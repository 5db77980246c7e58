// The translated code, as far as it has been checked.
#pragma once

#include "assay/trace_types.h"

#include <span>

namespace assay::collector {

struct CodeTables {
    std::span<const trace_block_t> blocks;
    std::span<const trace_instr_t> instrs;
    std::span<const trace_site_t> sites;
};

}  // namespace assay::collector
