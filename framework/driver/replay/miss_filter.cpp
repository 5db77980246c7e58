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
    auto cache = std::find_if(caches_.begin(), caches_.end(), [&](const Cache& other) {
        return other.of == of && other.filter.line_bytes == wanted.line_bytes &&
               other.filter.sets == wanted.sets;
    });
    if (cache == caches_.end())
        cache = caches_.insert(cache, {of, wanted, {wanted, wanted.ways, kFirstLine}, {}});
    if (cache->filter.ways < wanted.ways) {
        cache->filter.ways = wanted.ways;
        cache->lines = {cache->filter, wanted.ways, kFirstLine};
    }
    any_ |= cache->lines.is_there();
    references_[of].recent = recent_lines(of);
    for (const Ways& known : cache->shapes)
        if (known.ways == wanted.ways) return Shapes{1} << known.shape;
    cache->shapes.push_back({wanted.ways, shapes_});
    return Shapes{1} << shapes_++;
}

LruCache MissFilters::recent_lines(ReferenceKind::Of of) const {
    trace::Filter fewest{};
    for (const Cache& cache : caches_) {
        if (cache.of != of) continue;
        if (fewest.sets == 0) fewest = cache.filter;
        if (!cache.lines.is_there() || cache.filter.line_bytes != fewest.line_bytes)
            return {{}, 0, kNoLine};
        fewest.sets = std::min(fewest.sets, cache.filter.sets);
    }
    return {fewest, 1, kNoLine};
}

const MissFilters::Shapes* MissFilters::simulate(std::span<const trace_record_t> records) {
    missed_.resize(records.size());
    for (References& references : references_) references.changing.clear();
    for (std::uint32_t i = 0; i < records.size(); ++i) {
        const ReferenceKind kind = kinds_[records[i].site];
        missed_[i] = kind.of == ReferenceKind::kNeither ? ~Shapes{0} : 0;
        if (kind.of == ReferenceKind::kNeither) continue;
        References& references = references_[kind.of];
        if (!references.recent.is_there() || references.recent.misses(records[i].value, kind.bytes))
            references.changing.push_back(i);
    }
    for (Cache& cache : caches_) {
        for (const std::uint32_t i : references_[cache.of].changing) {
            const std::uint32_t depth =
                cache.lines.is_there()
                    ? cache.lines.depth(records[i].value, kinds_[records[i].site].bytes)
                    : 0;
            for (const Ways& known : cache.shapes)
                missed_[i] |= Shapes{depth >= known.ways} << known.shape;
        }
    }
    return missed_.data();
}

void MissFilters::clear() {
    for (Cache& cache : caches_) cache.lines.clear();
    for (References& references : references_) references.recent.clear();
}

}  // namespace assay::replay
