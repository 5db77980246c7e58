#include "framework/recording/record_coding.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

namespace assay::recording {
namespace {

std::uint64_t zigzag(std::uint64_t value) {
    return value << 1 ^ (0 - (value >> 63));
}

void put_varint(std::uint8_t*& at, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) *at++ = static_cast<std::uint8_t>(value | 0x80);
    *at++ = static_cast<std::uint8_t>(value);
}

// The lower `bytes` bytes of `value`. There must be room for 8.
void put_fixed(std::uint8_t*& at, std::uint64_t value, unsigned bytes) {
    std::memcpy(at, &value, sizeof value);
    at += bytes;
}

// The most bytes that a record takes in a stream, with what put_fixed() writes beyond.
constexpr std::size_t kMostOfRecord = 10, kBeyond = 8;

// Numbers of trace_miss_kinds, of differences of one byte.
constexpr unsigned kMixed = 0, kSite = 1, kOther = 4, kFromLast = 5, kFromBase = 10;
static_assert(std::endian::native == std::endian::little);

// How many kinds further a value's difference is than one of one byte.
unsigned further(std::uint64_t difference) {
    const auto bytes = static_cast<unsigned>(std::bit_width(difference | 1) + 7) / 8;
    return std::min(bytes, 5U) - 1;
}

}  // namespace

void RecordEncoder::Stream::reserve(std::size_t bytes) {
    const std::size_t used = size();
    if (room.size() - used < bytes) room.resize(std::max(room.size() * 2, used + bytes));
    at = room.data() + used;
}

// The ends of the streams, which the compiler keeps in registers. `records`: the most that follow.
class RecordEncoder::Writer {
  public:
    Writer(RecordEncoder& encoder, std::size_t records) : encoder_(encoder), run_(encoder.run_) {
        for (Stream* stream :
             {&encoder.runs_, &encoder.flags_, &encoder.sites_, &encoder.values_, &encoder.aux_})
            stream->reserve(records * kMostOfRecord + kBeyond);
        runs_ = encoder.runs_.at;
        flags_ = encoder.flags_.at;
        sites_ = encoder.sites_.at;
        values_ = encoder.values_.at;
        aux_ = encoder.aux_.at;
    }
    void end() {
        encoder_.run_ = run_;
        encoder_.runs_.at = runs_;
        encoder_.flags_.at = flags_;
        encoder_.sites_.at = sites_;
        encoder_.values_.at = values_;
        encoder_.aux_.at = aux_;
    }

    // The site is as predicted, and aux is 0. The value is as favoured, unless another function is
    // called.
    void add() { ++run_; }
    void add_by_other() { control(kOther); }
    void add_by_neither(std::uint64_t value, std::uint64_t last, std::uint64_t base) {
        const auto [by_base, difference] = nearest(value, last, base);
        constexpr std::uint8_t kBytes[] = {1, 2, 3, 4, 8};
        const unsigned larger = further(difference);
        control((by_base ? kFromBase : kFromLast) + larger);
        put_fixed(values_, difference, kBytes[larger]);
    }
    // The same for any site and any aux.
    void add(const trace_record_t& record, std::uint32_t predicted_site) {
        if (predicted_site == record.site && record.aux == 0) return add();
        if (record.aux != 0) return mixed(record, predicted_site, 0, 0);
        const std::uint64_t site = from_site(record, predicted_site);
        constexpr std::uint8_t kLarger[] = {0, 1, 2, 2}, kBytes[] = {1, 2, 4};
        const unsigned larger = kLarger[further(site)];
        control(kSite + larger);
        put_fixed(sites_, site, kBytes[larger]);
    }
    void add_by_other(const trace_record_t& record, std::uint32_t predicted_site) {
        if (predicted_site == record.site && record.aux == 0) return add_by_other();
        mixed(record, predicted_site, TRACE_VALUE_OTHER, 0);
    }
    void add_by_neither(const trace_record_t& record, std::uint32_t predicted_site,
                        std::uint64_t last, std::uint64_t base) {
        if (predicted_site == record.site && record.aux == 0)
            return add_by_neither(record.value, last, base);
        const auto [by_base, difference] = nearest(record.value, last, base);
        mixed(record, predicted_site, by_base ? TRACE_VALUE_BASE : TRACE_VALUE_LAST, difference);
    }

  private:
    struct Nearest {
        bool by_base;
        std::uint64_t difference;
    };
    static Nearest nearest(std::uint64_t value, std::uint64_t last, std::uint64_t base) {
        const std::uint64_t from_last = zigzag(value - last), from_base = zigzag(value - base);
        return {from_base < from_last, std::min(from_base, from_last)};
    }
    void control(unsigned kind) {
        constexpr std::uint64_t kMany = TRACE_MANY - 1;
        if (run_ >= kMany) put_varint(runs_, run_ - kMany);
        *flags_++ = static_cast<std::uint8_t>(std::min(run_, kMany) + kind * TRACE_MANY);
        run_ = 0;
    }
    static std::uint64_t from_site(const trace_record_t& record, std::uint32_t predicted) {
        const auto difference = static_cast<std::int32_t>(record.site - predicted);
        return zigzag(static_cast<std::uint64_t>(std::int64_t{difference}));
    }
    void mixed(const trace_record_t& record, std::uint32_t predicted_site, unsigned flags,
               std::uint64_t value) {
        control(kMixed);
        if (predicted_site != record.site) {
            flags |= TRACE_MISS_SITE;
            put_varint(sites_, from_site(record, predicted_site));
        }
        if (record.aux != 0) {
            flags |= TRACE_MISS_AUX;
            put_varint(aux_, record.aux);
        }
        if (flags & TRACE_VALUE_LAST) put_varint(values_, value);
        *flags_++ = static_cast<std::uint8_t>(flags);
    }

    RecordEncoder& encoder_;
    std::uint64_t run_;
    std::uint8_t *runs_, *flags_, *sites_, *values_, *aux_;
};

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
    sites_seen_ = 0;
    has_memory_values_ = false;
}

std::size_t RecordEncoder::bytes() const {
    return runs_.size() + flags_.size() + sites_.size() + values_.size() + aux_.size();
}

void RecordEncoder::begin_part(std::uint64_t order, std::uint64_t records, std::uint64_t events,
                               std::span<const trace_part_marker_t> markers) {
    ++part_count_;
    parts_.reserve((4 + 2 * markers.size()) * kMostOfRecord);
    put_varint(parts_.at, order - order_);
    put_varint(parts_.at, records);
    put_varint(parts_.at, events - events_);
    put_varint(parts_.at, markers.size());
    order_ = order;
    events_ = events;
    for (const trace_part_marker_t& marker : markers) {
        put_varint(parts_.at, marker.record);
        put_varint(parts_.at, marker.event - event_);
        event_ = marker.event;
    }
}

void RecordEncoder::add(std::span<const trace_record_t> records,
                        std::span<const trace_site_t> table) {
    // Sites that are added later behave as if they had existed from the beginning.
    if (states_.size() < table.size()) states_.resize(table.size() + table.size() / 4);
    for (; sites_seen_ < table.size(); ++sites_seen_)
        has_memory_values_ = has_memory_values_ || is_memory_value(table[sites_seen_]);
    predictor_.sites = states_.data();
    predictor_.table = table.data();
    if (has_memory_values_)
        add_with<true>(records);
    else
        add_with<false>(records);
    records_ += records.size();
}

// `values`: there are values of memory. Their predictions need the addresses of references.
template <bool values>
void RecordEncoder::add_with(std::span<const trace_record_t> records) {
    const trace_site_t* const table = predictor_.table;
    trace_predictor_t predictor = predictor_;  // a copy that the compiler keeps in registers
    Writer writer(*this, records.size());
    for (const trace_record_t& record : records) {
        const trace_site_t& site = table[record.site];
        trace_site_state_t& state = states_[record.site];
        // Most records are references, and most follow the same site as the last time.
        if (site.kind <= TRACE_SITE_MODIFY && states_[predictor.last].next == record.site + 1 &&
            record.aux == 0) {
            const AddressGuesses guesses(predictor, state);
            learn_address(predictor, state, values ? site.kind : 0U, guesses, record.value);
            predictor.last = record.site;
            if (record.value == guesses.favoured())
                writer.add();
            else if (record.value == guesses.other())
                writer.add_by_other();
            else
                writer.add_by_neither(record.value, guesses.last, guesses.base);
            continue;
        }
        const std::uint32_t predicted_site = trace_predict_site(&predictor);
        if (site.kind == TRACE_SITE_BLOCK) {
            writer.add(record, predicted_site);
            trace_learn_block(&predictor, record.site);
            continue;
        }
        if (trace_is_value(&site)) {
            predictor_ = predictor;
            add_value(writer, record, predicted_site);
            predictor = predictor_;
            continue;
        }
        const AddressGuesses guesses(predictor, state);
        learn_address(predictor, state, values ? site.kind : 0U, guesses, record.value);
        trace_learn_site(&predictor, record.site);
        if (record.value == guesses.favoured())
            writer.add(record, predicted_site);
        else if (record.value == guesses.other())
            writer.add_by_other(record, predicted_site);
        else
            writer.add_by_neither(record, predicted_site, guesses.last, guesses.base);
    }
    writer.end();
    if (!values) find_last_addresses(predictor, records);
    predictor_ = predictor;
}

// For sites of values of memory that are added later.
void RecordEncoder::find_last_addresses(trace_predictor_t& predictor,
                                        std::span<const trace_record_t> records) {
    unsigned missing = TRACE_SITE_MODIFY;
    for (std::size_t i = records.size(); i-- > 0 && missing != 0;) {
        const unsigned kind = predictor.table[records[i].site].kind;
        if (kind > TRACE_SITE_MODIFY) continue;
        if (kind & missing & TRACE_SITE_READ) predictor.read = records[i].value;
        if (kind & missing & TRACE_SITE_WRITE) predictor.written = records[i].value;
        missing &= ~kind;
    }
}

void RecordEncoder::add_value(Writer& writer, const trace_record_t& record,
                              std::uint32_t predicted_site) {
    const trace_site_state_t& state = states_[record.site];
    const std::uint64_t base = trace_base(&predictor_, record.site), last = state.last;
    const std::uint64_t stride = trace_guess_stride(&state);
    const std::uint64_t relative = trace_guess_relative(&state, base);
    const bool favours_relative = state.trust >= 2;
    if (record.value == (favours_relative ? relative : stride))
        writer.add(record, predicted_site);
    else if (record.value == (favours_relative ? stride : relative))
        writer.add_by_other(record, predicted_site);
    else
        writer.add_by_neither(record, predicted_site, last, base);
    trace_learn_value(&predictor_, record.site, base, record.value);
    trace_learn_site(&predictor_, record.site);
}

std::vector<std::byte> RecordEncoder::take(std::vector<std::byte> room) {
    trace_records_t head{};
    head.parts = part_count_;
    head.coding = TRACE_CODING_SHORT;
    std::uint32_t* const lengths[] = {&head.part_bytes, &head.run_bytes,   &head.flag_bytes,
                                      &head.site_bytes, &head.value_bytes, &head.aux_bytes};
    const Stream* const streams[] = {&parts_, &runs_, &flags_, &sites_, &values_, &aux_};
    std::size_t total = sizeof head;
    for (std::size_t i = 0; i < std::size(streams); ++i) {
        *lengths[i] = static_cast<std::uint32_t>(streams[i]->size());
        total += streams[i]->size();
    }
    std::vector<std::byte> content = std::move(room);
    content.resize(total);
    std::byte* at = content.data();
    std::memcpy(at, &head, sizeof head);
    at += sizeof head;
    for (const Stream* stream : streams) {
        if (stream->size() != 0) std::memcpy(at, stream->room.data(), stream->size());
        at += stream->size();
    }
    reset();
    return content;
}

}  // namespace assay::recording
