#include "plugins/used_bytes/simulator.h"

#include <algorithm>

namespace used_bytes {
namespace {

// A site's size, where it fits into a piece of a line; else larger than any.
constexpr std::uint8_t kNoReference = 255;
constexpr std::uint8_t kLarge = 254;

std::uint8_t size_of(const trace_site_t& site) {
    const bool data = site.kind == TRACE_SITE_READ || site.kind == TRACE_SITE_WRITE ||
                      site.kind == TRACE_SITE_MODIFY;
    if (!data || site.bytes == 0) return kNoReference;
    return static_cast<std::uint8_t>(std::min<std::uint32_t>(site.bytes, kLarge));
}

}  // namespace

Simulator::Simulator(const cache::Geometry& geometry, std::optional<SectionChoice> choice,
                     Separation separation)
    : cache_(geometry), accounts_(cache_.places(), std::move(choice), separation) {}

void Simulator::learn() {
    for (std::size_t i = sizes_.size(); i < sites_.size(); ++i)
        sizes_.push_back(size_of(sites_[i]));
}

void Simulator::process(std::span<const trace_site_t> sites, const Buffer& buffer) {
    sites_ = sites;
    learn();
    accounts_.enter(buffer.thread);
    std::size_t at = 0;
    for (const trace_marker_t& marker : buffer.markers) {
        run(buffer, at, marker.record);
        at = marker.record;
        accounts_.note(marker);
    }
    run(buffer, at, buffer.records.size());
}

void Simulator::run(const Buffer& buffer, std::size_t begin, std::size_t end) {
    if (cache_.line_bytes() == 64)
        run<true>(buffer, begin, end);
    else
        run<false>(buffer, begin, end);
}

// Nearly all references end at the first lookup.
template <bool kUsual>
void Simulator::run(const Buffer& buffer, std::size_t begin, std::size_t end) {
    const FootprintCache::RecentLines recent = cache_.recent_lines();
    const std::uint8_t* const sizes = sizes_.data();
    const trace_record_t* const records = buffer.records.data();
    const std::uint64_t piece = kUsual ? 64 : cache_.piece_bytes();
    for (std::size_t i = begin; i < end; ++i) {
        const trace_record_t record = records[i];
        const std::uint32_t bytes = sizes[record.site];
        if ((record.value & (piece - 1)) + bytes <= piece) [[likely]] {
            if (recent.touch<kUsual>(record.value, bytes)) [[likely]]
                continue;
        } else if (bytes == kNoReference) {
            continue;
        }
        access(record, buffer.contexts.empty() ? 0 : buffer.contexts[i]);
    }
}

void Simulator::access(const trace_record_t& record, std::uint32_t context) {
    const trace_site_t& site = sites_[record.site];
    const std::uint64_t piece = cache_.piece_bytes();
    // The last address there is may belong to it.
    std::uint64_t left = std::min<std::uint64_t>(site.bytes - 1, ~record.value) + 1;
    for (std::uint64_t address = record.value; left != 0;) {
        const std::uint64_t bytes = std::min(left, piece - (address & (piece - 1)));
        cache_.touch(address, static_cast<std::uint32_t>(bytes),
                     [&](std::size_t place, std::uint64_t line) {
                         const PointNumber by = accounts_.point(site.instr, context);
                         if (cache_.holds_line(place))
                             accounts_.evicted(place, cache_.used(place), by);
                         accounts_.fetched(place, line, address, by);
                     });
        address += bytes;
        left -= bytes;
    }
}

void Simulator::finish() {
    for (std::size_t place = 0; place < cache_.places(); ++place)
        if (cache_.holds_line(place)) accounts_.left(place, cache_.used(place));
}

}  // namespace used_bytes
