#include "plugins/used_bytes/simulator.h"

#include <algorithm>
#include <bit>

namespace used_bytes {
namespace {

bool is_reference(const trace_site_t& site) {
    return site.kind == TRACE_SITE_READ || site.kind == TRACE_SITE_WRITE ||
           site.kind == TRACE_SITE_MODIFY || site.kind == TRACE_SITE_CODE;
}

// The last offset in a piece of a line at which a reference of the site still ends in the piece.
// Negative for other sites, and for references larger than a piece.
constexpr std::int8_t kFootprint = -3;
constexpr std::int8_t kNoReference = -2;
constexpr std::int8_t kLarge = -1;

std::int8_t last_offset(const trace_site_t& site, std::uint32_t piece) {
    if (site.kind == TRACE_SITE_FOOTPRINT) return kFootprint;
    if (!is_reference(site) || site.bytes == 0) return kNoReference;
    return site.bytes > piece ? kLarge : static_cast<std::int8_t>(piece - site.bytes);
}

}  // namespace

Simulator::Simulator(const cache::Geometry& geometry, std::optional<SectionChoice> choice)
    : cache_(geometry),
      accounts_(cache_.places(), std::move(choice)),
      line_shift_(static_cast<std::uint32_t>(std::countr_zero(geometry.line))),
      small_lines_(cache_.piece_bytes() == geometry.line),
      recent_mask_(std::min(cache_.sets(), kMostRecent) - 1),
      recent_(recent_mask_ + 1),
      homes_(recent_mask_ + 1, &nothing_) {
    filtered_.fill(&unfiltered_);
}

void Simulator::learn() {
    for (std::size_t i = last_offsets_.size(); i < sites_.size(); ++i)
        last_offsets_.push_back(
            small_lines_ ? last_offset(sites_[i], cache_.piece_bytes())
                         : std::min(kLarge, last_offset(sites_[i], cache_.piece_bytes())));
}

void Simulator::process(std::span<const trace_site_t> sites, const Buffer& buffer) {
    sites_ = sites;
    buffer_ = &buffer;
    learn();
    accounts_.enter(buffer.thread);
    accounts_.set_counting(!buffer.warms_up);
    std::size_t at = 0;
    for (const trace_marker_t& marker : buffer.markers) {
        run(at, marker.record);
        at = marker.record;
        accounts_.note(marker);
    }
    run(at, buffer.records.size());
    for (std::size_t set = 0; set < buffer.footprints.size() && set < kMostFiltered; ++set)
        filtered_[set]->bits |= buffer.footprints[set];
}

void Simulator::run(std::size_t begin, std::size_t end) {
    if (line_shift_ != 6) run_any<false, false>(begin, end);
#if defined(__x86_64__)
    else if (__builtin_cpu_supports("bmi2") && buffer_->footprints.empty())
        run_bmi2<false>(begin, end);
    else if (__builtin_cpu_supports("bmi2"))
        run_bmi2<true>(begin, end);
#endif
    else
        run_any<true, false>(begin, end);
    look_up();
}

#if defined(__x86_64__)
// With BMI2, shifts by variable counts take one operation instead of three.
template <bool kFiltered>
__attribute__((target("bmi2"))) void Simulator::run_bmi2(std::size_t begin, std::size_t end) {
    run_any<true, kFiltered>(begin, end);
}
#endif

// Handles nearly all references. `kUsual`: lines have 64 bytes. `kFiltered`: the driver filters
// references; this affects only the speed.
template <bool kUsual, bool kFiltered>
inline void Simulator::run_any(std::size_t begin, std::size_t end) {
    const trace_record_t* const first = buffer_->records.data();
    const std::int8_t* const last_offsets = last_offsets_.data();
    auto* const recent = reinterpret_cast<char*>(recent_.data());
    const std::uint64_t piece = kUsual ? 64 : cache_.piece_bytes();
    const std::uint32_t shift = kUsual ? 6 : line_shift_;
    const std::uint64_t mask = recent_mask_ * sizeof(Recent);
    const std::uint64_t filtered_mask = filtered_sets() - 1;
    for (const trace_record_t* record = first + begin; record != first + end; ++record) {
        const std::uint64_t address = record->value;
        const auto last = std::int64_t{last_offsets[record->site]};
        const std::uint64_t line = address >> shift;
        if (static_cast<std::int64_t>(address & (piece - 1)) > last) [[unlikely]] {
            if (last == kFootprint)
                filtered_[record->aux / 64 % kMostFiltered]->bits |= address;
            else if (last != kNoReference)
                large(static_cast<std::size_t>(record - first));
            continue;
        }
        const std::uint64_t bits = ones(piece - static_cast<std::uint64_t>(last))
                                   << (address & (piece - 1));
        // One shift computes the number of the line times the size of an entry.
        auto& entry =
            *reinterpret_cast<Recent*>(recent + (address >> (shift - kRecentShift) & mask));
        filtered_[line & filtered_mask] = &entry;
        if (!kFiltered && entry.line == line) [[likely]] {
            entry.bits |= bits;
            continue;
        }
        // Without a branch, because filtered references are hard to predict.
        waiting_[waiting_count_] = {line, address, entry.bits,
                                    static_cast<std::uint32_t>(record - first), 0};
        const bool is_new = entry.line != line;
        waiting_count_ += is_new;
        entry = {line, bits | (is_new ? 0 : entry.bits)};
        if (waiting_count_ == kQueue) look_up();
    }
}

// Handles references beyond one piece of a line, and all references if lines have several pieces.
void Simulator::large(std::size_t index) {
    const trace_record_t& record = buffer_->records[index];
    const std::uint64_t piece = cache_.piece_bytes();
    // A reference may end at the last address, so this sum must not overflow.
    std::uint64_t left = std::min<std::uint64_t>(sites_[record.site].bytes - 1U, ~record.value) + 1;
    for (std::uint64_t address = record.value; left != 0;) {
        const std::uint64_t bytes = std::min(left, piece - (address & (piece - 1)));
        const std::uint64_t line = address >> line_shift_;
        const std::uint64_t bits = ones(bytes) << (address & (piece - 1));
        const auto at = static_cast<std::uint32_t>(index);
        Recent& entry = recent_[line & recent_mask_];
        filtered_[line & (filtered_sets() - 1)] = &entry;
        if (!small_lines_) {
            const std::uint64_t in_line = address & (cache_.line_bytes() - 1);
            wait({line, address, bits, at, static_cast<std::uint32_t>(in_line / piece)});
        } else if (entry.line == line) {
            entry.bits |= bits;
        } else {
            wait({line, address, entry.bits, at, 0});
            entry = {line, bits};
        }
        address += bytes;
        left -= bytes;
    }
}

void Simulator::wait(const Waiting& waiting) {
    waiting_[waiting_count_++] = waiting;
    if (waiting_count_ == kQueue) look_up();
}

// Keeps the order of the references. All lines of a set of the cache share an entry of recent_, so
// the bits of a line reach the cache before the line can be replaced.
void Simulator::look_up() {
    std::size_t missing_count = 0;
    for (std::size_t i = 0; i < waiting_count_; ++i) cache_.prefetch(waiting_[i].line);
    for (std::size_t i = 0; i < waiting_count_; ++i) {
        const Waiting& waiting = waiting_[i];
        std::uint64_t*& home = homes_[waiting.line & recent_mask_];
        if (small_lines_) *home |= waiting.bits;
        bool absent = false;
        const std::size_t place = cache_.touch(waiting.line, absent);
        if (absent) {
            const Use used = cache_.holds_line(place) ? cache_.used(place) : kNoLine;
            missing_[missing_count++] = {place, waiting.line, waiting.address, waiting.record,
                                         used};
            accounts_.prefetch(place, waiting.line);
            cache_.replace(place, waiting.line);
        }
        if (small_lines_)
            home = cache_.bits(place);
        else
            cache_.bits(place)[waiting.piece] |= waiting.bits;
    }
    waiting_count_ = 0;
    for (std::size_t i = 0; i < missing_count; ++i) {
        const Missing& missing = missing_[i];
        const trace_record_t& record = buffer_->records[missing.record];
        const std::uint32_t context =
            buffer_->contexts.empty() ? 0 : buffer_->contexts[missing.record];
        const trace_site_t& site = sites_[record.site];
        const PointNumber by = accounts_.point({site.instr, site.kind == TRACE_SITE_CODE}, context);
        if (missing.used.bytes != kNoLine.bytes) accounts_.evicted(missing.place, missing.used, by);
        accounts_.fetched(missing.place, missing.line, missing.address, by);
    }
}

void Simulator::finish() {
    for (std::size_t i = 0; small_lines_ && i < recent_.size(); ++i) *homes_[i] |= recent_[i].bits;
    for (std::size_t place = 0; place < cache_.places(); ++place)
        if (cache_.holds_line(place)) accounts_.left(place, cache_.used(place));
}

}  // namespace used_bytes
