// The subroutines that translated code calls: to record references (see CodeCache::reference_stub()
// and the functions behind it), and to follow calls.
#pragma once

#include "framework/driver/native/emit/assembler.h"
#include "framework/driver/shared/call_tree.h"
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

// The subroutines that translated code calls for what it does not find in the words of a node
// (CallTree). On Context::stub_stack are, first pushed first: the function's second argument, and
// its third. They change no register but the flags.

enum CallTreeStub : unsigned { kCallStub, kJumpStub, kArriveStub };
inline constexpr unsigned kCallTreeStubs = 3;

void emit_call_tree_stub(Assembler& code, CallTreeStub stub);

}  // namespace assay::native
