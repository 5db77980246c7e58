// The sites of kind TRACE_SITE_OBJECT. A record at such a site stands for a group of references of
// one basic block. The addresses differ by constants. The references have consecutive sites, and
// the record has the first of them and its address.
//
// With leaves_out_objects(), the driver leaves out references of a group to the object of its last
// record. They are a run. The record at the end of a run has kEndsObjectRun in its `aux`.
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

// The run of a group in the thread that uses the slot. All zeros before the first reference.
struct ObjectRun {
    // The first references with addresses in [start, start + bytes) are left out. `bytes` is 0 from
    // before a record tells the end of the run. kNever: it stays 0.
    static constexpr std::uint64_t kNever = UINT64_MAX;
    std::uint64_t start, bytes;
    std::uint32_t left_out;  // references since the group's last record: below 2^31
    std::uint32_t site;      // of that record
    // Context::countdown at the last reference that was left out; 0 for constant addresses.
    std::uint64_t clock;
};

// A record with this bit in `aux` ends a run. The rest of `aux` is the number of references that
// were left out. `value` is the time of the last one, in instructions of the thread.
inline constexpr std::uint32_t kEndsObjectRun = 0x80000000;

// Context::countdown of a new thread that is captured from its beginning to its end.
inline constexpr std::int64_t kLongestCountdown = INT64_MAX;

inline trace_record_t end_of(const ObjectRun& run) {
    return {std::uint64_t{kLongestCountdown} - run.clock, run.site, run.left_out | kEndsObjectRun};
}

}  // namespace assay::trace
