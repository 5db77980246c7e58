// The subroutines that translated code calls to record references; see
// CodeCache::reference_stub() and CodeCache::series_stub().
#pragma once

#include "framework/driver/native/translate/assembler.h"
#include "framework/trace/segment_layout.h"

namespace assay::native {

void emit_reference_stub(Assembler& code, const trace::Spec& spec, unsigned cursor);
// `reference_stub`: that of the same cursor.
void emit_series_stub(Assembler& code, const trace::Spec& spec, unsigned cursor,
                      std::uint64_t reference_stub);

// The part of an address that selects an entry of Context::data_filter. There may be fewer sets
// than the simulation has: a table of at most a page.
std::int32_t data_set_mask(const trace::LineFilter& filter);

}  // namespace assay::native
