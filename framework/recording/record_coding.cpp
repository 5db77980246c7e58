#include "framework/recording/record_coding.h"

#include "assay/trace_file.h"
#include "framework/support/error.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

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

// Learns the value of a site that is no TRACE_SITE_VALUE, as trace_learn_value() does.
void learn_address(trace_predictor_t& predictor, trace_site_state_t& state, unsigned kind,
                   std::uint64_t value, bool by_stride, bool by_relative) {
    // By stride, by relative and trust.
    static constexpr std::uint8_t kTrust[2][2][4] = {{{0, 1, 2, 3}, {1, 2, 3, 3}},
                                                     {{0, 0, 1, 2}, {0, 1, 2, 3}}};
    state.trust = kTrust[by_stride][by_relative][state.trust];
    const auto delta = static_cast<std::int64_t>(value - state.last);
    const auto near = static_cast<std::int32_t>(delta);
    const std::int32_t near_delta = near == delta ? near : 0;
    state.stride = near_delta == state.last_delta ? near_delta : state.stride;
    state.last_delta = near_delta;
    state.last = value;
    const unsigned accesses = kind <= TRACE_SITE_MODIFY ? kind : 0;
    static_assert(TRACE_SITE_READ == 1 && TRACE_SITE_WRITE == 2 && TRACE_SITE_MODIFY == 3);
    predictor.read = accesses & TRACE_SITE_READ ? value : predictor.read;
    predictor.written = accesses & TRACE_SITE_WRITE ? value : predictor.written;
    std::uint64_t& base = predictor.bases[trace_region(value)];
    state.relative = value - base;
    base = value;
}

}  // namespace

void RecordEncoder::Stream::reserve(std::size_t bytes) {
    const std::size_t used = size();
    if (room.size() - used < bytes) room.resize(std::max(room.size() * 2, used + bytes));
    at = room.data() + used;
}

// The ends of the streams, which the compiler keeps in registers.
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

    // The record's value is as favoured, unless another function is called.
    void add(const trace_record_t& record, std::uint32_t predicted_site) {
        if (predicted_site == record.site && record.aux == 0) {
            ++run_;
            return;
        }
        if (record.aux != 0) return mixed(record, predicted_site, 0, 0);
        const std::uint64_t site = from_site(record, predicted_site);
        constexpr std::uint8_t kLarger[] = {0, 1, 2, 2}, kBytes[] = {1, 2, 4};
        const unsigned larger = kLarger[further(site)];
        control(kSite + larger);
        put_fixed(sites_, site, kBytes[larger]);
    }
    void add_by_other(const trace_record_t& record, std::uint32_t predicted_site) {
        if (predicted_site == record.site && record.aux == 0) return control(kOther);
        mixed(record, predicted_site, TRACE_VALUE_OTHER, 0);
    }
    void add_by_neither(const trace_record_t& record, std::uint32_t predicted_site,
                        std::uint64_t last, std::uint64_t base) {
        const std::uint64_t from_last = zigzag(record.value - last);
        const std::uint64_t from_base = zigzag(record.value - base);
        const bool by_base = from_base < from_last;
        const std::uint64_t value = by_base ? from_base : from_last;
        if (predicted_site != record.site || record.aux != 0) {
            mixed(record, predicted_site, by_base ? TRACE_VALUE_BASE : TRACE_VALUE_LAST, value);
            return;
        }
        constexpr std::uint8_t kBytes[] = {1, 2, 3, 4, 8};
        const unsigned larger = further(value);
        control((by_base ? kFromBase : kFromLast) + larger);
        put_fixed(values_, value, kBytes[larger]);
    }

  private:
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
    predictor_.sites = states_.data();
    predictor_.table = table.data();
    trace_predictor_t predictor = predictor_;  // a copy that the compiler keeps in registers
    Writer writer(*this, records.size());
    for (const trace_record_t& record : records) {
        const std::uint32_t predicted_site = trace_predict_site(&predictor);
        const trace_site_t& site = table[record.site];
        if (site.kind == TRACE_SITE_BLOCK) {
            writer.add(record, predicted_site);
            trace_learn_block(&predictor, record.site);
            continue;
        }
        trace_site_state_t& state = states_[record.site];
        const std::uint64_t base = trace_base(&predictor, record.site), last = state.last;
        const bool by_stride = trace_guess_stride(&state) == record.value;
        const bool by_relative = trace_guess_relative(&state, base) == record.value;
        const bool favours_relative = state.trust >= 2;
        if (trace_is_value(&site))
            trace_learn_value(&predictor, record.site, base, record.value);
        else
            learn_address(predictor, state, site.kind, record.value, by_stride, by_relative);
        trace_learn_site(&predictor, record.site);
        if (favours_relative ? by_relative : by_stride)
            writer.add(record, predicted_site);
        else if (by_stride || by_relative)
            writer.add_by_other(record, predicted_site);
        else
            writer.add_by_neither(record, predicted_site, last, base);
    }
    writer.end();
    predictor_ = predictor;
    records_ += records.size();
}

std::vector<std::byte> RecordEncoder::take() {
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
    std::vector<std::byte> content(total);
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
    trace_miss_kind_t room;
    for (trace_record_t& record : records) {
        std::uint64_t address = 0;
        if (run != 0 && !chains_.has_values()) {
            --run;
            address = next_address(predictor, site);
        } else if (run != 0) {
            --run;
            address = trace_next_value(&decoder_, site, &trace_miss_kinds[0]);
        } else {
            const unsigned char* const before = decoder_.flags.at;
            const trace_miss_kind_t* const miss = trace_next_miss(&decoder_, &room);
            if (!miss || miss->flags & (TRACE_MISS_SITE | TRACE_MISS_AUX)) {
                decoder_.flags.at = before;
                break;
            }
            address = trace_next_value(&decoder_, site, miss);
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
