#include "plugins/reuse/thread_stacks.h"

#include "plugins/common/sites.h"

#include <algorithm>
#include <bit>

namespace reuse {

ThreadStacks::ThreadStacks(std::uint32_t line_bytes, std::vector<std::uint32_t> limits)
    : line_shift_(static_cast<unsigned>(std::countr_zero(line_bytes))),
      limits_(std::move(limits)) {}

void ThreadStacks::learn(std::span<const trace_site_t> sites) {
    // Of a larger reference the first bytes, of a line's size, count: so the filter of the capture
    // takes it.
    const auto most = static_cast<std::uint16_t>(1U << line_shift_);
    for (const trace_site_t& site : sites.subspan(last_byte_.size())) {
        last_byte_.push_back(sites::is_data(site)
                                 ? std::clamp<std::uint16_t>(site.bytes, 1, most) - 1U
                             : site.kind == TRACE_SITE_COUNT ? kCount
                                                             : kOther);
    }
}

// Of the record's site, in its context.
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
            // Behind the last line of all is the first.
            const std::uint64_t upper = (line + 1) & (UINT64_MAX >> shift);
            const bool lower_is_last = line == last_line;
            if (!lower_is_last) touches_[touches++] = {line, i, kLower};
            touches_[touches++] = {upper, i, lower_is_last ? kAlone : kUpper};
            last_line = upper;
        } else if (line != last_line) [[likely]] {
            touches_[touches++] = {line, i, kAlone};
            last_line = line;
        }  // else at distance 0: whether the filter has left it out or not makes no difference
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
