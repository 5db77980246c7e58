#include "framework/recording/record_coding.h"

#include "assay/trace_file.h"
#include "framework/support/error.h"

#include <algorithm>
#include <cstddef>
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
    // Sites that are added later behave as if they had existed from the beginning.
    if (states_.size() < table.size()) states_.resize(table.size() + table.size() / 4);
    predictor_.sites = states_.data();
    predictor_.table = table.data();
    trace_predictor_t predictor = predictor_;  // a copy that the compiler keeps in registers
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

namespace {

// Does what trace_learn_value() does for a reference that the favoured predictor predicts. Only for
// traces without values, because predictions of values depend on the last accesses to memory.
std::uint64_t next_address(trace_predictor_t& predictor, std::uint32_t site) {
    trace_site_state_t& state = predictor.sites[site];
    const std::uint64_t stride = trace_guess_stride(&state);
    const std::uint64_t relative =
        trace_guess_relative(&state, predictor.bases[trace_region(state.last)]);
    const bool by_relative = state.trust >= 2;
    const std::uint64_t address = by_relative ? relative : stride;
    if (stride != relative) state.trust = by_relative ? 3 : 0;
    const auto delta = static_cast<std::int64_t>(address - state.last);
    const auto near = static_cast<std::int32_t>(delta);
    const std::int32_t near_delta = near == delta ? near : 0;
    state.stride = near_delta == state.last_delta ? near_delta : state.stride;
    state.last_delta = near_delta;
    state.last = address;
    std::uint64_t& base = predictor.bases[trace_region(address)];
    state.relative = address - base;
    base = address;
    return address;
}

}  // namespace

RecordDecoder::RecordDecoder(std::span<const trace_site_t> table) : chains_(table) {
    if (trace_decoder_init(&decoder_, table.data(), static_cast<std::uint32_t>(table.size())) != 0)
        throw Error("not enough memory to decode a trace");
}

bool RecordDecoder::begin(const trace_chunk_t& chunk, std::span<const std::byte> content) {
    chains_.reset();
    return trace_records_begin(&decoder_, &chunk, content.data()) == 0;
}

std::size_t RecordDecoder::next(std::span<trace_record_t> records) {
    std::size_t done = 0;
    while (done < records.size() && decoder_.left != 0) {
        trace_record_t& record = records[done];
        if (!next_block(record) && !next_record(record)) break;
        ++done;
        const unsigned length = chains_.references(record.site);
        if (length == 0) continue;
        const auto most = std::min<std::uint64_t>(decoder_.left, records.size() - done);
        record.value = next_references(
            record.site + 1, records.subspan(done, std::min<std::uint64_t>(length, most)));
        done += record.value;
    }
    return done;
}

// Decodes a block's record if a block is predicted. Otherwise returns false.
bool RecordDecoder::next_block(trace_record_t& record) {
    trace_predictor_t& predictor = decoder_.predictor;
    const std::uint32_t next = predictor.sites[predictor.last].next;
    if (decoder_.run == 0 || next == 0 || !chains_.is_block(next - 1)) return false;
    const std::uint32_t successor = *trace_successor(&predictor);
    const std::uint32_t site = (successor != 0 ? successor : next) - 1;
    // A block was predicted and a block follows, so no chain changes.
    trace_learn_block(&predictor, site);
    record = {0, site, 0};
    --decoder_.run;
    --decoder_.left;
    return true;
}

// Decodes any record. False if the chunk is damaged.
bool RecordDecoder::next_record(trace_record_t& record) {
    const trace_predictor_t& predictor = decoder_.predictor;
    const std::uint32_t last = predictor.last;
    const std::uint32_t before = predictor.sites[last].next;
    if (!trace_next_record(&decoder_, &record)) return false;
    const std::uint32_t after = predictor.sites[last].next;
    if (before != after) chains_.change_next(last, before, after);
    return true;
}

// Decodes references of `first` and the sites after it, until a record of another site comes or
// `records` is full.
std::size_t RecordDecoder::next_references(std::uint32_t first, std::span<trace_record_t> records) {
    trace_predictor_t& predictor = decoder_.predictor;
    std::uint64_t run = decoder_.run;
    std::uint32_t site = first;
    for (trace_record_t& record : records) {
        std::uint64_t address = 0;
        if (run != 0 && !chains_.has_values()) {
            --run;
            address = next_address(predictor, site);
        } else if (run != 0) {
            --run;
            address = trace_next_value(&decoder_, site, 0);
        } else {
            if (decoder_.flags.at == decoder_.flags.end) break;
            const unsigned flags = *decoder_.flags.at;
            if (flags & (TRACE_MISS_SITE | TRACE_MISS_AUX)) break;
            ++decoder_.flags.at;
            address = trace_next_value(&decoder_, site, flags);
            trace_next_run(&decoder_);
            run = decoder_.run;
        }
        record = {address, site, 0};
        ++site;
    }
    const std::uint32_t count = site - first;
    decoder_.run = run;
    decoder_.left -= count;
    predictor.last += count;
    return count;
}

namespace {

constexpr unsigned kMostReferences = 255;

bool is_reference(const trace_site_t& site) {
    return site.kind == TRACE_SITE_READ || site.kind == TRACE_SITE_WRITE ||
           site.kind == TRACE_SITE_MODIFY;
}

// True if the prediction is the next site of the table.
bool is_in_order(std::uint32_t site, std::uint32_t next) {
    return next == 0 || next == site + 2;
}

}  // namespace

SiteChains::SiteChains(std::span<const trace_site_t> table) : table_(table), chains_(table.size()) {
    unsigned behind = 0;  // the number of references after site i
    for (std::size_t i = table.size(); i-- > 0;) {
        chains_[i].kind = table[i].kind;
        has_values_ = has_values_ || trace_is_value(&table[i]);
        if (is_reference(table[i])) {
            behind += behind < kMostReferences ? 1 : 0;
            continue;
        }
        if (table[i].kind == TRACE_SITE_BLOCK)
            chains_[i].references = static_cast<std::uint8_t>(behind);
        behind = 0;
    }
}

void SiteChains::reset() {
    for (Chain& chain : chains_) chain.departures = 0;
}

void SiteChains::change_next(std::uint32_t site, std::uint32_t before, std::uint32_t after) {
    const bool was_in_order = is_in_order(site, before);
    if (was_in_order == is_in_order(site, after)) return;
    std::uint32_t block = site;
    while (block > 0 && site - block < kMostReferences && is_reference(table_[block])) --block;
    if (site - block >= chains_[block].references) return;
    chains_[block].departures += was_in_order ? 1 : -1;
}

}  // namespace assay::recording
