#include "framework/driver/shared/object_regions.h"

#include "framework/driver/shared/in_translated_code.h"

using assay::driver::ObjectRegions;
using assay::trace::ObjectRun;

extern "C" {

IN_TRANSLATED_CODE void assay_object_reference(ObjectRegions* all, std::uint64_t address,
                                               std::uint64_t cursor, std::uint64_t site,
                                               std::uint64_t number, std::uint64_t extent) {
    constexpr std::uint32_t kMask = (1U << assay::driver::kExtentBits) - 1;
    auto* record = reinterpret_cast<trace_record_t*>(cursor);
    ObjectRun& run = all->runs[number];
    if (run.left_out != 0) *record++ = assay::trace::end_of(run);
    record->value = address;
    record->site = static_cast<std::uint32_t>(site);
    record->aux = 0;
    ++record;
    // SIGKILL between these stores leaves a run whose end has a record: TraceReader::end_runs().
    const_cast<volatile std::uint64_t&>(run.bytes) = 0;
    *all->cursor = reinterpret_cast<std::uint64_t>(record);
    const_cast<volatile std::uint32_t&>(run.left_out) = 0;
    run.site = static_cast<std::uint32_t>(site);

    const std::uint64_t below = extent & kMask;
    const std::uint64_t span = extent >> assay::driver::kExtentBits & kMask;
    const bool constants = (extent & assay::driver::kHasConstants) != 0;
    const std::uint64_t lowest = address - below;
    ObjectRegions::Region& region =
        all->regions[all->of_page[lowest / ObjectRegions::kPage % ObjectRegions::kPages]];
    const std::uint64_t offset = lowest - region.start;
    if (run.start == ObjectRun::kNever) return;
    if (region.of_variables == constants && region.bytes > span && offset < region.bytes - span) {
        run.start = region.start + below;
        run.bytes = region.bytes - span;
        region.used = true;
    }
}

}  // extern "C"
