#include "framework/driver/replay/miss_filter.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace assay::replay {
namespace {

// The line 0 is present in the beginning, as in the caches of the native driver and of Cachegrind.
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

LruCache::LruCache(const trace::Filter& shape)
    : ways_(shape.ways),
      line_shift_(static_cast<std::uint32_t>(std::countr_zero(std::max(shape.line_bytes, 1U)))),
      line_bytes_(shape.line_bytes),
      set_mask_(shape.sets - 1),
      lines_(std::size_t{shape.sets} * shape.ways, kFirstLine) {}

bool LruCache::misses(std::uint64_t address, std::uint32_t bytes) {
    const std::uint64_t first = address >> line_shift_;
    const std::uint64_t last = (address + std::clamp(bytes, 1U, line_bytes_) - 1) >> line_shift_;
    const bool one = use(first);
    return last == first ? one : use(last) || one;
}

bool LruCache::use(std::uint64_t line) {
    std::uint64_t* const set = &lines_[(line & set_mask_) * ways_];
    std::uint64_t moved = line;
    for (std::uint32_t way = 0; way < ways_; ++way) {
        std::swap(moved, set[way]);
        if (moved == line) return false;
    }
    return true;
}

void LruCache::clear() {
    std::fill(lines_.begin(), lines_.end(), kFirstLine);
}

MissFilter::MissFilter(const trace::Spec& spec, const std::vector<ReferenceKind>& kinds)
    : kinds_(kinds), data_(spec.data), fetch_(spec.fetch) {}

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
