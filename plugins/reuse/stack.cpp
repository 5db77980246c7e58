#include "plugins/reuse/stack.h"

#include "plugins/common/sites.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

namespace reuse {
namespace {

constexpr unsigned kFirstSlotBits = 6;
// Positions for each line until lines are numbered again.
constexpr std::uint64_t kPositionsPerLine = 16;
constexpr std::uint64_t kMostPositions = std::uint64_t{1} << 31;
// Larger ages count as this age. Ages are known modulo 2^32, and stay unambiguous in this way.
constexpr std::uint32_t kOldest = std::uint32_t{1} << 31;

}  // namespace

std::vector<const Kernel*> usable_kernels() {
    std::vector<const Kernel*> usable{&baseline_kernel};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
        __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt")) {
        usable.push_back(&v3_kernel);
        if (__builtin_cpu_supports("avx512f")) usable.push_back(&v4_kernel);
    }
#endif
    return usable;
}

const Kernel& best_kernel() {
    return *usable_kernels().back();
}

Stack::Stack(const Kernel& kernel)
    : kernel_(kernel), regions_(std::size_t{1} << kFirstSlotBits), shift_(64 - kFirstSlotBits) {
    for (std::uint32_t i = 0; i < Top::kMost; ++i) {
        top_.lines[i] = kNoLine;
        top_.times[i] = -1 - static_cast<std::int32_t>(i);
    }
    rebuild(0, kFewestPositions);
}

std::size_t Stack::slot_of(std::uint64_t region) const {
    std::size_t slot = first_slot(region);
    while (regions_[slot].key != 0 && regions_[slot].key != region + 1)
        slot = (slot + 1) & (regions_.size() - 1);
    return slot;
}

std::uint64_t* Stack::entry_of(std::uint64_t line) {
    const std::uint64_t page = line / kLinesOfPage, region = page / kPagesOfRegion;
    std::size_t slot = slot_of(region);
    if (regions_[slot].key == 0) {
        if (2 * (tables_.size() + 1) > regions_.size()) {
            grow();
            slot = slot_of(region);
        }
        tables_.push_back(std::make_unique<std::uint64_t*[]>(kPagesOfRegion));
        regions_[slot] = {region + 1, tables_.back().get()};
    }
    std::uint64_t*& entries = regions_[slot].pages[page % kPagesOfRegion];
    if (entries == nullptr) {
        pages_.push_back(std::make_unique<std::uint64_t[]>(kLinesOfPage));
        entries = pages_.back().get();
    }
    return entries + line % kLinesOfPage;
}

void Stack::grow() {
    std::vector<Region> old(regions_.size() * 2);
    old.swap(regions_);
    --shift_;
    for (const Region& region : old)
        if (region.key != 0) regions_[slot_of(region.key - 1)] = region;
}

// Puts all lines at the first positions, and leaves room for more positions after them.
void Stack::rebuild(std::uint64_t lines, std::uint64_t positions) {
    const std::uint64_t words = positions / kWordBits;
    const auto parts = [](std::uint64_t count) { return (count + kParts - 1) / kParts * kParts; };
    words_.assign(words, 0);
    after_word_.assign(parts(words), 0);
    after_2k_.assign(parts(after_word_.size() / kParts), 0);
    after_64k_.assign(parts(after_2k_.size() / kParts), 0);
    after_2m_.assign(parts(after_64k_.size() / kParts), 0);
    order_.levels = {words_.data(), after_word_.data(), after_2k_.data(), after_64k_.data(),
                     after_2m_.data()};
    order_.previous = order_.current = 0;
    // Position 0 means that there is no position, so the first word is not used.
    for (std::uint64_t done = 0, word = 1; done < lines; done += kWordBits, ++word) {
        const std::uint64_t bits = std::min<std::uint64_t>(lines - done, kWordBits);
        set_word(order_.levels, static_cast<std::uint32_t>(word),
                 ~std::uint64_t{0} >> (kWordBits - bits));
    }
    const std::uint64_t used = 1 + (lines + kWordBits - 1) / kWordBits;
    order_.base = order_.next = static_cast<std::uint32_t>((used + 1) * kWordBits);
}

// When there are not enough positions for a batch, numbers the lines again in their order.
void Stack::make_room() {
    if (order_.next + kBatch + kWordBits < words_.size() * kWordBits) return;
    // The bits of `previous` and `current` go into the hierarchy.
    const std::uint32_t word = order_.base / kWordBits;
    set_word(order_.levels, word - 1, order_.previous);
    set_word(order_.levels, word, order_.current);
    std::uint64_t lines = 0;
    for (const auto& page : pages_)
        for (std::uint64_t i = 0; i < kLinesOfPage; ++i) lines += page[i] != 0;
    if (lines > kMostLines)
        throw std::length_error("more than " + std::to_string(kMostLines) +
                                " different lines in a thread; use a larger --line-size");
    for (const auto& page : pages_)
        for (std::uint64_t i = 0; i < kLinesOfPage; ++i) {
            if (page[i] == 0) continue;
            const auto age = order_.time - static_cast<std::uint32_t>(page[i] >> 32);
            const std::uint32_t time = order_.time - std::min(age, kOldest);
            const std::uint64_t rank =
                lines - 1 - bits_after(order_.levels, static_cast<std::uint32_t>(page[i]));
            page[i] = std::uint64_t{time} << 32 | (kWordBits + rank);
        }
    rebuild(lines,
            std::clamp(std::bit_ceil(lines * kPositionsPerLine), kFewestPositions, kMostPositions));
}

// Keeps the times of the first lines above -2^31 and different from one another.
void Stack::age_top() {
    constexpr std::int32_t kFar = -(std::int32_t{1} << 30);
    if (*std::min_element(std::begin(top_.times), std::end(top_.times)) > kFar) return;
    std::int32_t times[Top::kMost];
    for (std::uint32_t i = 0; i < Top::kMost; ++i) {
        const auto later = std::count_if(std::begin(top_.times), std::end(top_.times),
                                         [&](std::int32_t time) { return time > top_.times[i]; });
        times[i] = std::max(top_.times[i], kFar + static_cast<std::int32_t>(Top::kMost - later));
    }
    std::copy(std::begin(times), std::end(times), top_.times);
}

std::span<const Miss> Stack::measure(std::span<const Touch> touches,
                                     std::span<const std::uint32_t> limits, Histograms& counted) {
    make_room();
    age_top();
    // As many distances as there can be lines after the batch.
    const std::size_t distances = order_.lines + touches.size();
    if (counted.distances.size() < distances)
        counted.distances.resize(std::max(distances, counted.distances.size() * 2));
    const auto limit_count = static_cast<std::uint32_t>(limits.size());
    const Tables tables{limits.data(), limit_count, counted.distances.data(), counted.near.data(),
                        counted.ages.data()};
    std::size_t misses = 0;
    const std::size_t items = kernel_.touch(top_, order_, tables, touches.data(), touches.size(),
                                            items_, misses_, misses);
    for (std::size_t i = 0; i < items; ++i) {
        const Item& item = items_[i];
        entries_[i].line = entry(item.line);
        __builtin_prefetch(entries_[i].line, 1);
        entries_[i].victim = item.victim == item.line ? entries_[i].line
                             : item.victim == kNoLine ? nullptr
                                                      : entry(item.victim);
    }
    kernel_.measure(order_, tables, items_, entries_, items, misses_, misses);
    for (std::size_t i = 0; i < misses; ++i) counted.never += misses_[i].bucket == limit_count;
    return {misses_, misses};
}

ThreadStacks::ThreadStacks(std::uint32_t line_bytes, std::vector<std::uint32_t> limits)
    : line_shift_(static_cast<unsigned>(std::countr_zero(line_bytes))),
      limits_(std::move(limits)) {}

void ThreadStacks::learn(std::span<const trace_site_t> sites) {
    // For a reference larger than a line, only the first bytes of a line's size count, as in the
    // capture's filter.
    const auto most = static_cast<std::uint16_t>(1U << line_shift_);
    for (const trace_site_t& site : sites.subspan(last_byte_.size())) {
        last_byte_.push_back(sites::is_data(site)
                                 ? std::clamp<std::uint16_t>(site.bytes, 1, most) - 1U
                             : site.kind == TRACE_SITE_COUNT ? kCount
                                                             : kOther);
    }
}

// The cells of the record's site in its context.
std::uint64_t* ThreadStacks::cells_of(const Batch& batch, std::uint32_t record) {
    const std::uint32_t context = batch.contexts == nullptr ? 0 : batch.contexts[record];
    const std::size_t row = rows_.of(context, batch.records[record].site);
    const std::size_t width = limits_.size() + 1, cells = rows_.size() * width;
    if (cells > cells_.size()) [[unlikely]]
        cells_.resize(cells + cells / 2 + 64);
    return &cells_[row * width];
}

void ThreadStacks::process(std::uint32_t thread, std::span<const trace_record_t> records,
                           std::span<const std::uint32_t> contexts) {
    Thread& own = threads_[thread];
    const Batch batch{records.data(), contexts.empty() ? nullptr : contexts.data()};
    const std::uint32_t* const last_byte = last_byte_.data();
    const unsigned shift = line_shift_;
    std::uint64_t last_line = own.last_line;
    std::size_t touches = 0;
    for (std::uint32_t i = 0; i < records.size(); ++i) {
        const std::uint64_t address = records[i].value;
        const std::uint32_t last = last_byte[records[i].site];
        if (last >= kCount) [[unlikely]] {
            if (last == kCount) *cells_of(batch, i) += address;
            continue;
        }
        const std::uint64_t line = address >> shift;
        if ((address + last) >> shift != line) [[unlikely]] {
            // The line after the highest line number is line 0.
            const std::uint64_t upper = (line + 1) & (UINT64_MAX >> shift);
            const bool lower_is_last = line == last_line;
            if (!lower_is_last) touches_[touches++] = {line, i, kLower};
            touches_[touches++] = {upper, i, lower_is_last ? kAlone : kUpper};
            last_line = upper;
        } else if (line != last_line) [[likely]] {
            touches_[touches++] = {line, i, kAlone};
            last_line = line;
        }  // else: the distance is 0, and counts nothing, so it does not matter whether the filter
           // omits it
        if (touches + 2 > Stack::kBatch) [[unlikely]] {
            measure(own, batch, touches);
            touches = 0;
        }
    }
    own.last_line = last_line;
    measure(own, batch, touches);
}

void ThreadStacks::measure(Thread& thread, const Batch& batch, std::size_t touches) {
    for (const Miss& miss :
         thread.stack.measure(std::span(touches_, touches), limits_, histograms_))
        ++cells_of(batch, miss.reference)[miss.bucket];
}

void ThreadStacks::end(std::uint32_t thread) {
    const auto found = threads_.find(thread);
    if (found == threads_.end()) return;
    lines_ended_ += found->second.stack.lines();
    threads_.erase(found);
}

std::uint64_t ThreadStacks::lines() const {
    std::uint64_t sum = lines_ended_;
    for (const auto& [number, thread] : threads_) sum += thread.stack.lines();
    return sum;
}

}  // namespace reuse
