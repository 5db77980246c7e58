#include "framework/driver/replay/slot_writer.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace assay::replay {

void SlotWriter::set_thread(std::uint32_t thread) {
    thread_ = thread;
    common_.clear();
    for (Output& output : outputs_) {
        output.ring.set_thread(thread);
        output.filter.clear();
    }
}

void SlotWriter::append_together(std::span<const trace_record_t> records) {
    const auto room = static_cast<std::size_t>(staged_.data() + staged_.size() - next_);
    if (records.size() > room) pass_on();
    for (const trace_record_t& record : records) append(record.value, record.site, record.aux);
}

void SlotWriter::pass_on() {
    copy_new_nodes();
    // What passes moves to the front.
    const std::span<const trace_record_t> records(
        staged_.data(), common_.copy({staged_.data(), next_}, staged_.data()));
    for (Output& output : outputs_) output.ring.append(records, output.filter);
    next_ = staged_.data();
}

void SlotWriter::complete() {
    pass_on();
    for (Output& output : outputs_) output.ring.complete();
}

void SlotWriter::copy_counters(std::size_t count) const {
    for (const Output& output : outputs_)
        if (output.ring.counters() != counters())
            std::copy_n(counters(), count, output.ring.counters());
}

bool SlotWriter::tells_contexts() const {
    return std::any_of(outputs_.begin(), outputs_.end(), [](const Output& output) {
        return trace::tells_contexts(output.ring.spec());
    });
}

trace::ContextNodes* SlotWriter::begin_nodes(std::uint32_t words) {
    node_words_ = words;
    return outputs_.front().ring.context_nodes();
}

void SlotWriter::copy_new_nodes() {
    if (node_words_ == 0 || outputs_.size() == 1) return;
    const trace::ContextNodes* const nodes = outputs_.front().ring.context_nodes();
    if (copied_nodes_ == nodes->count) return;
    copy_nodes_from(std::exchange(copied_nodes_, nodes->count));
}

// What the collector reads of a node while others are still made does not change any more.
void SlotWriter::copy_nodes_from(std::uint32_t first) const {
    if (node_words_ == 0) return;
    const trace::ContextNodes* const nodes = outputs_.front().ring.context_nodes();
    const std::size_t node_bytes = node_words_ * sizeof(std::uint64_t);
    const auto from = [&](const trace::ContextNodes* of) {
        return reinterpret_cast<std::uintptr_t>(of + 1) + first * node_bytes;
    };
    for (const Output& output : std::span(outputs_).subspan(1)) {
        trace::ContextNodes* const to = output.ring.context_nodes();
        std::memcpy(reinterpret_cast<void*>(from(to)), reinterpret_cast<const void*>(from(nodes)),
                    (nodes->count - first) * node_bytes);
        __atomic_store_n(&to->count, nodes->count, __ATOMIC_RELEASE);
    }
}

}  // namespace assay::replay
