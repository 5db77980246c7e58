#include "framework/driver/replay/miss_filter.h"

#include <cstring>

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

MissFilter::MissFilter(const trace::Spec& spec, const std::vector<ReferenceKind>& kinds)
    : kinds_(kinds),
      data_(spec.data, spec.data.ways, kFirstLine),
      fetch_(spec.fetch, spec.fetch.ways, kFirstLine) {}

trace_record_t* MissFilter::copy(std::span<const trace_record_t> records, trace_record_t* to) {
    if (!data_.is_there() && !fetch_.is_there()) {
        if (to != records.data()) std::memcpy(to, records.data(), records.size_bytes());
        return to + records.size();
    }
    for (const trace_record_t& record : records) {
        const ReferenceKind kind = kinds_[record.site];
        bool passes = true;
        if (kind.of == ReferenceKind::kData && data_.is_there())
            passes = data_.misses(record.value, kind.bytes);
        else if (kind.of == ReferenceKind::kFetch && fetch_.is_there())
            passes = fetch_.misses(record.value, kind.bytes);
        *to = record;
        to += passes ? 1 : 0;
    }
    return to;
}

void MissFilter::clear() {
    data_.clear();
    fetch_.clear();
}

}  // namespace assay::replay
