#include "framework/driver/replay/miss_filter.h"

namespace assay::replay {
namespace {

// Line 0 is present at the beginning, as in the caches of the native driver and of Cachegrind.
constexpr std::uint64_t kFirstLine = 0;

ReferenceKind::Of kind_of(const trace_site_t& site) {
    switch (site.kind) {
        case TRACE_SITE_FETCH:
            return ReferenceKind::kFetch;
        case TRACE_SITE_READ:
        case TRACE_SITE_WRITE:
        case TRACE_SITE_MODIFY:
            return ReferenceKind::kData;
        default:
            return ReferenceKind::kNeither;
    }
}

}  // namespace

std::vector<ReferenceKind> reference_kinds(std::span<const trace_site_t> sites) {
    std::vector<ReferenceKind> kinds;
    kinds.reserve(sites.size());
    for (const trace_site_t& site : sites) kinds.push_back({site.bytes, kind_of(site)});
    return kinds;
}

MissFilters::Shapes MissFilters::add(const trace::Spec& spec) {
    return add(ReferenceKind::kData, spec.data) | add(ReferenceKind::kFetch, spec.fetch);
}

// Without ways, the caches are all the same: nothing hits them.
MissFilters::Shapes MissFilters::add(ReferenceKind::Of of, const trace::Filter& filter) {
    const trace::Filter wanted = filter.ways == 0 ? trace::Filter() : filter;
    std::size_t number = 0;
    while (number < shapes_.size() &&
           !(shapes_[number].of == of && shapes_[number].filter == wanted))
        ++number;
    if (number == shapes_.size())
        shapes_.push_back({of, wanted, LruCache(wanted, wanted.ways, kFirstLine)});
    any_ |= shapes_[number].cache.is_there();
    return Shapes{1} << number;
}

const MissFilters::Shapes* MissFilters::simulate(std::span<const trace_record_t> records) {
    missed_.resize(records.size());
    kinds_of_records_.resize(records.size());
    for (std::size_t i = 0; i < records.size(); ++i) {
        kinds_of_records_[i] = kinds_[records[i].site];
        missed_[i] = kinds_of_records_[i].of == ReferenceKind::kNeither ? ~Shapes{0} : 0;
    }
    for (std::size_t number = 0; number < shapes_.size(); ++number) {
        Shape& shape = shapes_[number];
        for (std::size_t i = 0; i < records.size(); ++i) {
            const ReferenceKind kind = kinds_of_records_[i];
            if (kind.of != shape.of) continue;
            const bool misses =
                !shape.cache.is_there() || shape.cache.misses(records[i].value, kind.bytes);
            missed_[i] |= Shapes{misses} << number;
        }
    }
    return missed_.data();
}

void MissFilters::clear() {
    for (Shape& shape : shapes_) shape.cache.clear();
}

}  // namespace assay::replay
