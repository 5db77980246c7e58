#include "plugins/prefetch/misses.h"

#include "plugins/common/sites.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace prefetch {

Cache::Cache(const cache::Geometry& geometry)
    : set_mask_(geometry.sets() - 1), ways_(geometry.ways), lines_(geometry.sets() * ways_) {}

std::optional<Cache::Miss> Cache::refer(std::uint64_t line, std::uint64_t time) {
    const auto first = lines_.begin() + static_cast<std::ptrdiff_t>((line & set_mask_) * ways_);
    const auto end = first + static_cast<std::ptrdiff_t>(ways_);
    auto at = std::find_if(first, end, [&](const Way& way) { return way.line == line + 1; });
    const bool missing = at == end;
    if (missing) --at;
    const std::uint64_t replaced = at->time;
    std::move_backward(first, at, at + 1);
    *first = {line + 1, time};
    return missing ? std::optional(Miss{line, replaced}) : std::nullopt;
}

std::size_t Cache::others_since(const Miss& miss, std::uint64_t time) const {
    const Way* const own = &lines_[(miss.line & set_mask_) * ways_];
    std::size_t count = 1;
    while (count < ways_ && own[count].time >= time) ++count;
    return count - 1 + (count == ways_ && miss.replaced >= time ? 1 : 0);
}

Stride Operand::best() const {
    const auto most =
        std::max_element(strides_.begin(), strides_.end(),
                         [](const Stride& a, const Stride& b) { return a.misses < b.misses; });
    return most == strides_.end() ? Stride{} : *most;
}

Stride& Operand::entry(std::int64_t stride) {
    if (strides_.size() < kMostStrides) return strides_.emplace_back(Stride{stride, 0, {}});
    Stride& rarest =
        *std::min_element(strides_.begin(), strides_.end(),
                          [](const Stride& a, const Stride& b) { return a.misses < b.misses; });
    rarest = {stride, 0, {}};
    return rarest;
}

// Only strides that occur twice in a row are kept: otherwise a random walk would fill the table.
bool Operand::miss(std::int64_t stride, std::uint32_t run, Distances saved,
                   std::optional<Distances> first) {
    ++misses_;
    if (stride == 0) return false;
    const auto known = std::find_if(strides_.begin(), strides_.end(),
                                    [&](const Stride& each) { return each.stride == stride; });
    if (known == strides_.end() && run < 2) return false;
    Stride& found = known == strides_.end() ? entry(stride) : *known;
    const auto count = [&](Distances distances) {
        ++found.misses;
        for (unsigned i = 0; i < kDistances; ++i) found.saved[i] += distances >> i & 1U;
    };
    if (first) count(*first);
    count(saved);
    return true;
}

Misses::Misses(const cache::Geometry& geometry)
    : geometry_(geometry), line_shift_(static_cast<unsigned>(std::countr_zero(geometry.line))) {}

// An instruction can belong to several blocks, and has sites in each of them.
void Misses::learn(std::span<const trace_site_t> sites, std::span<const trace_instr_t> instrs) {
    for (const trace_site_t& site : sites.subspan(sites_.size())) {
        Site& learnt = sites_.emplace_back();
        if (!sites::is_data(site)) continue;
        const trace_instr_t& instr = instrs[site.instr];
        const auto [known, is_new] = numbers_.try_emplace(
            {instr.pc, site.operand}, static_cast<std::uint32_t>(operands_.size()));
        if (is_new) operands_.emplace_back(instr.pc);
        learnt.operand = known->second + 1;
        learnt.bytes = std::max<std::uint16_t>(site.bytes, 1);
        learnt.varies = instr.flags & TRACE_INSTR_VARIABLE;
    }
}

void Misses::process(std::uint32_t thread, std::span<const trace_record_t> records, bool counts) {
    Thread& own = threads_.try_emplace(thread, geometry_).first->second;
    own.last.resize(operands_.size());
    for (const trace_record_t& record : records)
        if (const Site& site = sites_[record.site]; site.operand != 0)
            refer(own, site, record.value, counts);
}

// A line that was prefetched stays in the cache if fewer lines of its set than there are ways
// follow: those that the program referred to in the meantime, and those that were prefetched after
// it.
Distances Misses::saved(const Thread& thread, const Last& last, const Cache::Miss& miss) const {
    Distances saved = 0;
    std::size_t prefetched = 0;
    std::uint64_t before = miss.line;
    const auto stride = static_cast<std::uint64_t>(last.stride);
    for (std::uint64_t ahead = 1; ahead <= kMostAhead && ahead <= last.run; ++ahead) {
        const std::uint64_t line = (last.address + ahead * stride) >> line_shift_;
        if (line != before && thread.cache.share_set(line, miss.line)) ++prefetched;
        before = line;
        if ((ahead & (ahead - 1)) != 0) continue;
        const std::uint64_t time =
            ahead == 1 ? last.time_before : last.times[(last.number - 1 - ahead) % kTimes];
        if (thread.cache.others_since(miss, time) + prefetched >= thread.cache.ways()) break;
        saved = static_cast<Distances>(saved | ahead);
    }
    return saved;
}

void Misses::refer(Thread& thread, const Site& site, std::uint64_t address, bool counts) {
    const std::uint64_t first = address >> line_shift_;
    const std::uint64_t end = (address + site.bytes - 1) >> line_shift_;
    ++thread.time;
    std::optional<Cache::Miss> missed;
    for (std::uint64_t line = first; line <= end; ++line)
        if (const auto miss = thread.cache.refer(line, thread.time); miss && !missed) missed = miss;
    Operand& operand = operands_[site.operand - 1];
    if (site.varies) {
        if (missed && counts) operand.miss();
        return;
    }
    Last& last = thread.last[site.operand - 1];
    follow(last, address, thread.time);
    if (last.run <= 1) last.first.reset();
    if (!missed || !counts) return;
    if (last.run == 0) return operand.miss();
    const Distances avoided = saved(thread, last, *missed);
    const bool is_counted = operand.miss(last.stride, last.run, avoided, last.first);
    last.first.reset();
    if (last.run == 1 && !is_counted) last.first = avoided;
}

void Misses::follow(Last& last, std::uint64_t address, std::uint64_t time) {
    const auto stride = static_cast<std::int64_t>(address - last.address);
    if (last.number != 0) {
        const bool goes_on = last.run != 0 && stride == last.stride;
        last.run = goes_on ? std::min(last.run, UINT32_MAX - 1) + 1 : 1;
    }
    if (last.run >= 2) {
        if (last.times.empty()) last.times.resize(kTimes);
        if (last.run == 2) {
            last.times[(last.number - 2) % kTimes] = last.time_before;
            last.times[(last.number - 1) % kTimes] = last.time;
        }
        last.times[last.number % kTimes] = time;
    }
    last.time_before = std::exchange(last.time, time);
    last.address = address;
    last.stride = stride;
    ++last.number;
}

}  // namespace prefetch
