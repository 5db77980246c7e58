// Properties of sites that profilers of data references need.
#pragma once

#include "assay/trace_types.h"

#include <cstddef>
#include <span>

namespace sites {

inline bool is_data(const trace_site_t& site) {
    return site.kind == TRACE_SITE_READ || site.kind == TRACE_SITE_WRITE ||
           site.kind == TRACE_SITE_MODIFY;
}

// The first site from `at` on that counts the references of the same instruction, if executions can
// differ in them. Otherwise the number of sites.
inline std::size_t count_behind(std::span<const trace_site_t> sites, std::size_t at) {
    const auto instr = sites[at].instr;
    while (at < sites.size() && sites[at].instr == instr && sites[at].kind != TRACE_SITE_COUNT)
        ++at;
    return at < sites.size() && sites[at].instr == instr ? at : sites.size();
}

}  // namespace sites
