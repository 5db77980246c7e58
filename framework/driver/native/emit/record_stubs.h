// Subroutines that translated code calls: to record references (CodeCache::reference_stub() and the
// functions after it), and to follow calls.
#pragma once

#include "framework/driver/native/emit/assembler.h"
#include "framework/driver/shared/call_tree.h"
#include "framework/driver/shared/object_regions.h"
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

// Calls assay_object_reference(). Pushed in this order: the group's extent, its run, its site, the
// address of its first reference. Changes only the flags and the cursor, which is in the context.
void emit_object_stub(Assembler& code, driver::ObjectRegions* regions);

// For calls and jumps whose node is not in a word of the present node (CallTree). The second and
// then the third argument of the function are pushed on Context::stub_stack. The stubs change only
// the flags.

enum CallTreeStub : unsigned { kCallStub, kJumpStub, kArriveStub, kLineStub };
inline constexpr unsigned kCallTreeStubs = 4;

void emit_call_tree_stub(Assembler& code, CallTreeStub stub);

// Subroutines that translated code calls for misses of the first level (FirstLevel), and for
// lookups that it does not do itself. Arguments are on Context::stub_stack.

// --- These call C++. They change only the flags and the trace cursor. The register `cursor` has
// the cursor, or the context if `cursor` is kNoGpr.

// Pushed in this order: the reference's bytes, its site, its address.
void emit_first_level_reference_stub(Assembler& code, unsigned cursor);
// Pushed in this order: the distance in bytes from the first reference up to the last, the site and
// the address of the first.
void emit_first_level_series_stub(Assembler& code, unsigned cursor);
// Pushed in this order: the numbers of the first line (lower half) and the last, the site, the
// instruction's address.
void emit_first_level_fetch_stub(Assembler& code, unsigned cursor);

// --- These do all work themselves. The cursor is in the context.

// The largest size of the next two.
std::uint64_t first_level_miss_stub_bytes(const trace::Spec& spec);
// For a reference of `bytes` bytes, aligned or not, whose line is not where data_places says. The
// register `address` has its address. The stub changes this register and `spare`. The site is
// pushed. `reference_stub`: the one above.
void emit_first_level_miss_stub(Assembler& code, const trace::Spec& spec, unsigned address,
                                unsigned spare, unsigned bytes, std::uint64_t reference_stub);
// For a fetch from one line that is not in the cache. Pushed are the line's number, the site, and
// the instruction's address.
void emit_first_level_fetch_miss_stub(Assembler& code, const trace::Spec& spec);

}  // namespace assay::native
