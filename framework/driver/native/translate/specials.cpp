#include "framework/driver/native/translate/specials.h"

#include "framework/driver/native/translate/control_flow.h"

#include <algorithm>

namespace assay::native {
namespace {

// Of which the table of footprints has to know each.
bool touches_many_lines(const trace::Spec& spec, const Form& form) {
    return spec.data.footprints() &&
           std::any_of(form.references, form.references + form.reference_count,
                       [&](const MemoryReference& reference) {
                           return reference.bytes > spec.data.line_bytes;
                       });
}

}  // namespace

// Without references, repeats and predictions are of strings.
bool Specials::takes(const trace::Spec& spec, const Form& form) {
    if (spec.captures & trace::kCaptureReferences)
        return form.special != Special::kNone || touches_many_lines(spec, form);
    return form.special == Special::kString;
}

void Specials::place(Placer& placer, const PlannedBlock& /*block*/, unsigned instr) {
    if (takes(spec_, *plan_.instructions[instr].form)) placer.place_before(instr);
}

void Specials::emit(const Item& item) {
    const Form& form = *plan_.instructions[item.instr].form;
    const bool bit_string = form.special == Special::kBitString;
    const bool references = spec_.captures & trace::kCaptureReferences;
    if (spec_.data.footprints()) writer_.new_site(item.instr, 0, TRACE_SITE_FOOTPRINT, 0);
    const std::uint32_t first_site = writer_.next_site();
    for (unsigned r = 0; references && r < form.reference_count; ++r)
        writer_.new_site(item.instr, bit_string ? 1 : form.references[r].bytes,
                         form.references[r].kind, r);
    if (form.trace_flags & TRACE_INSTR_VARIABLE)
        writer_.new_site(item.instr, 0, TRACE_SITE_COUNT, 0);
    if (form.special == Special::kString && Predictions::wanted(spec_))
        writer_.new_site(item.instr, 0, TRACE_SITE_PREDICTIONS, 0);
    writer_.enter_driver(plan_.instructions[item.instr], first_site);
}

}  // namespace assay::native
