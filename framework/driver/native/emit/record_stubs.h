// Subroutines that translated code calls: to record references (CodeCache::reference_stub() and the
// functions after it), and to follow calls.
#pragma once

#include "framework/driver/native/emit/assembler.h"
#include "framework/driver/shared/call_tree.h"
#include "framework/trace/segment_layout.h"

namespace assay::native {

// Signed, for use as a displacement.
inline constexpr std::int32_t kRecordBytes = sizeof(trace_record_t);
// How many bytes before their use lines of the trace buffer are prefetched. They are in the cache
// of the collector's processor.
inline constexpr std::int32_t kPrefetched = 1024;

void emit_reference_stub(Assembler& code, const trace::Spec& spec, unsigned cursor);
// The largest size of a miss stub. `reference_stub`: the one for a cursor in the context.
inline constexpr std::uint64_t kMissStubBytes = 128;
void emit_miss_stub(Assembler& code, const trace::Spec& spec, unsigned address, unsigned spare,
                    unsigned bytes, std::uint64_t reference_stub);
// `reference_stub`: the one for the same cursor.
void emit_series_stub(Assembler& code, const trace::Spec& spec, unsigned cursor,
                      std::uint64_t reference_stub);

// For calls and jumps whose node is not in a word of the present node (CallTree). The second and
// then the third argument of the function are pushed on Context::stub_stack. The stubs change only
// the flags.

enum CallTreeStub : unsigned { kCallStub, kJumpStub, kArriveStub };
inline constexpr unsigned kCallTreeStubs = 3;

void emit_call_tree_stub(Assembler& code, CallTreeStub stub);

}  // namespace assay::native
