// The subroutines that translated code calls to record references; see
// CodeCache::reference_stub() and the functions behind it.
#pragma once

#include "framework/driver/native/emit/assembler.h"
#include "framework/trace/segment_layout.h"

namespace assay::native {

// As a displacement.
inline constexpr std::int32_t kRecordBytes = sizeof(trace_record_t);
// How far ahead of the cursor, in bytes, the trace buffer is prefetched: its lines are in the
// cache of the collector's processor.
inline constexpr std::int32_t kPrefetched = 1024;

void emit_reference_stub(Assembler& code, const trace::Spec& spec, unsigned cursor);
// So long at most. `reference_stub`: that of a cursor in the context.
inline constexpr std::uint64_t kMissStubBytes = 128;
void emit_miss_stub(Assembler& code, const trace::Spec& spec, unsigned address, unsigned spare,
                    unsigned bytes, std::uint64_t reference_stub);
// `reference_stub`: that of the same cursor.
void emit_series_stub(Assembler& code, const trace::Spec& spec, unsigned cursor,
                      std::uint64_t reference_stub);

}  // namespace assay::native
