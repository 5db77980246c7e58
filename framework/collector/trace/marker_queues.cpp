#include "framework/collector/trace/marker_queues.h"

#include "assay/client.h"
#include "framework/support/text.h"

#include <algorithm>

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
        // In a trace that the program has damaged, any number.
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

}  // namespace assay::collector
