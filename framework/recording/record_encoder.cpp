#include "framework/recording/record_encoder.h"

#include <algorithm>
#include <cstring>

namespace assay::recording {
namespace {

void put_varint(std::vector<std::uint8_t>& to, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) to.push_back(static_cast<std::uint8_t>(value | 0x80));
    to.push_back(static_cast<std::uint8_t>(value));
}

std::uint64_t zigzag(std::uint64_t value) {
    return value << 1 ^ (0 - (value >> 63));
}

}  // namespace

RecordEncoder::RecordEncoder()
    : successors_(std::size_t{1} << TRACE_HISTORY_BITS),
      memory_(std::size_t{1} << TRACE_MEMORY_BITS) {
    reset();
}

void RecordEncoder::reset() {
    std::fill(states_.begin(), states_.end(), trace_site_state_t{});
    std::fill(successors_.begin(), successors_.end(), 0);
    std::fill(memory_.begin(), memory_.end(), 0);
    predictor_ = {};
    predictor_.successors = successors_.data();
    predictor_.memory = memory_.data();
    for (Stream* stream : {&parts_, &runs_, &flags_, &sites_, &values_, &aux_}) stream->clear();
    records_ = run_ = 0;
    part_count_ = 0;
    order_ = events_ = event_ = 0;
}

void RecordEncoder::begin_part(std::uint64_t order, std::uint64_t records, std::uint64_t events,
                               std::span<const trace_part_marker_t> markers) {
    ++part_count_;
    put_varint(parts_, order - order_);
    put_varint(parts_, records);
    put_varint(parts_, events - events_);
    put_varint(parts_, markers.size());
    order_ = order;
    events_ = events;
    for (const trace_part_marker_t& marker : markers) {
        put_varint(parts_, marker.record);
        put_varint(parts_, marker.event - event_);
        event_ = marker.event;
    }
}

void RecordEncoder::add(std::span<const trace_record_t> records,
                        std::span<const trace_site_t> table) {
    // As if all had been there from the beginning.
    if (states_.size() < table.size()) states_.resize(table.size() + table.size() / 4);
    predictor_.sites = states_.data();
    predictor_.table = table.data();
    trace_predictor_t predictor = predictor_;  // in registers
    for (const trace_record_t& record : records) {
        const std::uint32_t predicted_site = trace_predict_site(&predictor);
        const trace_site_state_t& state = states_[record.site];
        if (table[record.site].kind == TRACE_SITE_BLOCK) {
            if (predicted_site == record.site) {
                ++run_;
            } else {
                add_miss(record, predicted_site, Value::kAsFavoured, {});
            }
            trace_learn_block(&predictor, record.site);
        } else {
            const std::uint64_t base = trace_base(&predictor, record.site);
            const std::uint64_t stride = trace_guess_stride(&state);
            const std::uint64_t relative = trace_guess_relative(&state, base);
            const bool by_relative = state.trust >= 2;
            const bool right = (by_relative ? relative : stride) == record.value;
            if (right && predicted_site == record.site && record.aux == 0) {
                ++run_;
            } else {
                const bool other_right = (by_relative ? stride : relative) == record.value;
                const Value value = right         ? Value::kAsFavoured
                                    : other_right ? Value::kAsOther
                                                  : Value::kNeither;
                add_miss(record, predicted_site, value, {state.last, base});
            }
            trace_learn_value(&predictor, record.site, base, record.value);
            trace_learn_site(&predictor, record.site);
        }
    }
    predictor_ = predictor;
    records_ += records.size();
}

void RecordEncoder::add_miss(const trace_record_t& record, std::uint32_t predicted_site,
                             Value value, const Near& near) {
    put_varint(runs_, run_);
    run_ = 0;
    unsigned flags = 0;
    if (predicted_site != record.site) {
        flags |= TRACE_MISS_SITE;
        const auto difference = static_cast<std::int32_t>(record.site - predicted_site);
        put_varint(sites_, zigzag(static_cast<std::uint64_t>(std::int64_t{difference})));
    }
    if (record.aux != 0) {
        flags |= TRACE_MISS_AUX;
        put_varint(aux_, record.aux);
    }
    if (value == Value::kAsOther) {
        flags |= TRACE_VALUE_OTHER;
    } else if (value == Value::kNeither) {
        const std::uint64_t from_last = zigzag(record.value - near.last);
        const std::uint64_t from_base = zigzag(record.value - near.base);
        flags |= from_base < from_last ? TRACE_VALUE_BASE : TRACE_VALUE_LAST;
        put_varint(values_, std::min(from_last, from_base));
    }
    flags_.push_back(static_cast<std::uint8_t>(flags));
}

std::vector<std::byte> RecordEncoder::take() {
    trace_records_t head{};
    head.parts = part_count_;
    std::uint32_t* const lengths[] = {&head.part_bytes, &head.run_bytes,   &head.flag_bytes,
                                      &head.site_bytes, &head.value_bytes, &head.aux_bytes};
    const Stream* const streams[] = {&parts_, &runs_, &flags_, &sites_, &values_, &aux_};
    std::size_t total = sizeof head;
    for (std::size_t i = 0; i < std::size(streams); ++i) {
        *lengths[i] = static_cast<std::uint32_t>(streams[i]->size());
        total += streams[i]->size();
    }
    std::vector<std::byte> content(total);
    std::byte* at = content.data();
    std::memcpy(at, &head, sizeof head);
    at += sizeof head;
    for (const Stream* stream : streams) {
        if (!stream->empty()) std::memcpy(at, stream->data(), stream->size());
        at += stream->size();
    }
    reset();
    return content;
}

}  // namespace assay::recording
