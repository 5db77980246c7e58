#include "framework/driver/replay/slot_writer.h"

#include <algorithm>
#include <span>

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

}  // namespace assay::replay
