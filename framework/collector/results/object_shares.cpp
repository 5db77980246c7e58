#include "framework/collector/results/object_shares.h"

#include "framework/collector/results/sample_database.h"

#include <algorithm>

namespace assay::collector {

ObjectShares::ObjectShares(std::span<const ReferencedObjects::Count> references,
                           const CodeTables& code, std::span<const std::uint32_t> rows) {
    for (const ReferencedObjects::Count& count : references) {
        const trace_site_t& site = code.sites[count.site];
        const std::uint32_t row = rows[site.instr];
        if (row == SampleDatabase::kNoRow) continue;
        for (References* to : {&of_rows_[row], &of_objects_[{row, count.object}]})
            (site.kind == TRACE_SITE_READ    ? to->reads
             : site.kind == TRACE_SITE_WRITE ? to->writes
                                             : to->modifications) += count.references;
    }
}

std::optional<ObjectShares::Share> ObjectShares::find(std::uint32_t row,
                                                      std::uint64_t count) const {
    if (count == 0) return std::nullopt;
    const std::array<std::uint64_t, 5> all = of_rows_.at(row).sums();
    for (const std::uint64_t times : {1U, 2U}) {
        const auto found = std::find_if(all.begin(), all.end(),
                                        [&](std::uint64_t sum) { return sum * times == count; });
        if (found != all.end()) return Share{static_cast<std::size_t>(found - all.begin()), times};
    }
    return std::nullopt;
}

}  // namespace assay::collector
