// The subroutines that translated code calls for what misses the first level (FirstLevel), and for
// what it does not look up by itself. Arguments are on Context::stub_stack.
#pragma once

#include "framework/driver/native/emit/assembler.h"
#include "framework/trace/segment_layout.h"

namespace assay::native {

// --- They call C++. They change no register but the flags and the trace cursor, which is in the
// register `cursor`, or in the context if that is kNoGpr.

// First pushed first: the reference's bytes, its site, its address.
void emit_first_level_reference_stub(Assembler& code, unsigned cursor);
// By how many bytes the last reference lies above the first, then site and address of the first.
void emit_first_level_series_stub(Assembler& code, unsigned cursor);
// The numbers of the first line (lower half) and the last, the site, the instruction's pc.
void emit_first_level_fetch_stub(Assembler& code, unsigned cursor);

// --- They do it themselves. The cursor is in the context.

// So long at most.
std::uint64_t first_level_miss_stub_bytes(const trace::Spec& spec);
// A reference of `bytes` bytes whose line is not where data_places says; of any alignment. Its
// address is in the register `address`; that is changed, as is `spare`. Pushed is the site.
// `reference_stub`: that above.
void emit_first_level_miss_stub(Assembler& code, const trace::Spec& spec, unsigned address,
                                unsigned spare, unsigned bytes, std::uint64_t reference_stub);
// The fetch from one line, which is not in the cache. Pushed are its number, the site, and the
// instruction's pc.
void emit_first_level_fetch_miss_stub(Assembler& code, const trace::Spec& spec);

}  // namespace assay::native
