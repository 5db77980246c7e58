#include "framework/recording/site_chains.h"

#include "assay/trace_file.h"

#include <cstddef>

namespace assay::recording {
namespace {

constexpr unsigned kMostReferences = 255;

bool is_reference(const trace_site_t& site) {
    return site.kind == TRACE_SITE_READ || site.kind == TRACE_SITE_WRITE ||
           site.kind == TRACE_SITE_MODIFY;
}

// Whether the site behind in the table is predicted.
bool is_in_order(std::uint32_t site, std::uint32_t next) {
    return next == 0 || next == site + 2;
}

}  // namespace

SiteChains::SiteChains(std::span<const trace_site_t> table) : table_(table), chains_(table.size()) {
    unsigned behind = 0;  // references
    for (std::size_t i = table.size(); i-- > 0;) {
        chains_[i].kind = table[i].kind;
        has_values_ = has_values_ || trace_is_value(&table[i]);
        if (is_reference(table[i])) {
            behind += behind < kMostReferences ? 1 : 0;
            continue;
        }
        if (table[i].kind == TRACE_SITE_BLOCK)
            chains_[i].references = static_cast<std::uint8_t>(behind);
        behind = 0;
    }
}

void SiteChains::reset() {
    for (Chain& chain : chains_) chain.departures = 0;
}

void SiteChains::change_next(std::uint32_t site, std::uint32_t before, std::uint32_t after) {
    const bool was_in_order = is_in_order(site, before);
    if (was_in_order == is_in_order(site, after)) return;
    std::uint32_t block = site;
    while (block > 0 && site - block < kMostReferences && is_reference(table_[block])) --block;
    if (site - block >= chains_[block].references) return;
    chains_[block].departures += was_in_order ? 1 : -1;
}

}  // namespace assay::recording
