#include "framework/collector/trace/timed_blocks.h"

#include "assay/client.h"
#include "framework/support/text.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace assay::collector {

void MarkerQueues::add(const trace::MarkerEvent& event, std::string_view text) {
    if (event.slot >= slots_.size()) slots_.resize(event.slot + std::size_t{1});
    const std::string_view first = text.substr(0, text.find('\0'));
    text.remove_prefix(std::min(text.size(), first.size() + 1));
    const std::string_view second = text.substr(0, text.find('\0'));
    Marker marker{event, {}, {}};
    marker.name = printable(event.operation == ASSAY_REGISTER_REGION ? second : first);
    if (event.operation == ASSAY_REGISTER_REGION) marker.owner = printable(first);
    slots_[event.slot].push_back(std::move(marker));
}

// Buffers are numbered modulo 2^32.
const MarkerQueues::Marker* MarkerQueues::next(std::uint32_t slot, std::uint32_t buffer) const {
    if (slot >= slots_.size() || slots_[slot].empty()) return nullptr;
    const Marker& first = slots_[slot].front();
    return static_cast<std::int32_t>(first.event.buffer - buffer) <= 0 ? &first : nullptr;
}

std::optional<std::uint32_t> MarkerQueues::earlier_thread(std::uint32_t slot, std::uint32_t thread,
                                                          std::uint32_t buffer) const {
    const Marker* marker = next(slot, buffer);
    if (!marker || marker->event.thread == thread) return {};
    return marker->event.thread;
}

std::span<const trace_marker_t> MarkerQueues::take(std::uint32_t slot, std::uint32_t thread,
                                                   std::uint32_t buffer, std::uint64_t count) {
    taken_.clear();
    shown_.clear();
    std::uint64_t record = 0;
    for (const Marker* marker = next(slot, buffer); marker && marker->event.thread == thread;
         marker = next(slot, buffer)) {
        taken_.push_back(std::move(slots_[slot].front()));
        slots_[slot].pop_front();
        const Marker& taken = taken_.back();
        const std::uint64_t operation = taken.event.operation;
        const bool bytes =
            operation == ASSAY_REGISTER_REGION ||
            (operation >= TRACE_MARKER_PAGES_4K && operation <= TRACE_MARKER_PAGES_1G);
        const bool address =
            bytes || operation == ASSAY_UNREGISTER_REGION || operation == TRACE_MARKER_THREAD ||
            operation == TRACE_MARKER_THREAD_END || operation == TRACE_MARKER_PAGES_SEEN;
        // The number can have any value if the program has overwritten the trace.
        if (taken.event.buffer == buffer)
            record = std::max(record, std::min<std::uint64_t>(taken.event.record, count));
        shown_.push_back({.record = record,
                          .operation = operation,
                          .address = address ? taken.event.arguments[0] : 0,
                          .bytes = bytes ? taken.event.arguments[1] : 0,
                          .name = taken.name.c_str(),
                          .owner = taken.owner.c_str()});
    }
    return shown_;
}

namespace {

// Returns the first block that dies at `time` or later.
std::deque<TimedBlocks::Block>::const_iterator dying_from(
    const std::deque<TimedBlocks::Block>& blocks, std::uint64_t time) {
    return std::partition_point(
        blocks.begin(), blocks.end(),
        [time](const TimedBlocks::Block& block) { return block.died < time; });
}

}  // namespace

void TimedBlocks::add(std::uint64_t start, const Block& block, unsigned depth) {
    const auto bits = static_cast<unsigned>(std::bit_width(block.end - start));
    groups_[{bits, depth}][start].push_back(block);
    ++size_;
}

// Calls `look(start, blocks)` for each start from which a block can reach the address.
template <typename Look>
void TimedBlocks::look_at(std::uint64_t address, const Look& look) const {
    for (const auto& [group, starts] : groups_) {
        const unsigned bits = group.first;
        const std::uint64_t reach = bits >= 64 ? UINT64_MAX : (std::uint64_t{1} << bits) - 1;
        const std::uint64_t lowest = address - std::min(address, reach);
        for (auto at = starts.lower_bound(lowest); at != starts.end() && at->first <= address; ++at)
            look(at->first, at->second);
    }
}

std::optional<TimedBlocks::Found> TimedBlocks::at(std::uint64_t address, std::uint64_t time) const {
    std::optional<Found> found;
    look_at(address, [&](std::uint64_t start, const std::deque<Block>& blocks) {
        const auto first = dying_from(blocks, time);
        if (first == blocks.end() || first->born >= time || address >= first->end) return;
        if (!found || first->born > found->block.born) found = Found{start, *first};
    });
    return found;
}

std::optional<TimedBlocks::Found> TimedBlocks::first_at(std::uint64_t address,
                                                        std::uint64_t from) const {
    std::optional<Found> found;
    look_at(address, [&](std::uint64_t start, const std::deque<Block>& blocks) {
        const auto first =
            std::find_if(dying_from(blocks, from), blocks.end(),
                         [address](const Block& block) { return address < block.end; });
        if (first == blocks.end()) return;
        if (!found || first->died < found->block.died) found = Found{start, *first};
    });
    return found;
}

std::optional<TimedBlocks::Found> TimedBlocks::last_at(std::uint64_t address) const {
    std::optional<Found> found;
    look_at(address, [&](std::uint64_t start, const std::deque<Block>& blocks) {
        const auto last =
            std::find_if(blocks.rbegin(), blocks.rend(),
                         [address](const Block& block) { return address < block.end; });
        if (last == blocks.rend()) return;
        if (!found || last->died > found->block.died) found = Found{start, *last};
    });
    return found;
}

void TimedBlocks::forget(std::uint64_t until) {
    for (auto& [group, starts] : groups_)
        for (auto at = starts.begin(); at != starts.end();) {
            std::deque<Block>& blocks = at->second;
            while (!blocks.empty() && blocks.front().died <= until) {
                blocks.pop_front();
                --size_;
            }
            at = blocks.empty() ? starts.erase(at) : std::next(at);
        }
}

}  // namespace assay::collector
