// The subroutine that translated code calls to record a reference; see
// CodeCache::reference_stub().
#pragma once

#include "framework/driver/native/translate/assembler.h"
#include "framework/trace/segment_layout.h"

namespace assay::native {

void emit_reference_stub(Assembler& code, const trace::Spec& spec, unsigned cursor);

// The part of an address that selects an entry of Context::data_filter. There may be fewer sets
// than the simulation has: a table of at most a page.
std::int32_t data_set_mask(const trace::LineFilter& filter);

}  // namespace assay::native
