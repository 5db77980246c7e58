// The sites of kind TRACE_SITE_OBJECT. A record at such a site stands for a group of references of
// one basic block. The addresses differ by constants. The references have consecutive sites, and
// the record has the first of them and its address.
#pragma once

#include "assay/trace_types.h"

#include <cstdint>

namespace assay::trace {

inline constexpr unsigned kMostOfObjectGroup = 32;

// A site's `operand`. `kind`: of the reference, TRACE_SITE_READ, _WRITE or _MODIFY. `members`: the
// size of the group for its first reference, and 0 for the others.
inline constexpr unsigned object_operand(unsigned kind, std::size_t members) {
    return kind | static_cast<unsigned>(members) << 2;
}
inline unsigned object_kind(const trace_site_t& site) {
    return site.operand & 3U;
}
inline unsigned object_members(const trace_site_t& site) {
    return site.operand >> 2;
}
// A site's `bytes`: the distance of its address from the first one, signed.
inline std::int64_t object_distance(const trace_site_t& site) {
    return static_cast<std::int16_t>(site.bytes);
}

}  // namespace assay::trace
