#include "framework/recording/record_coding.h"

#include "framework/support/error.h"

#include <algorithm>

namespace assay::recording {

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
        trace_site_state_t& state = predictor.sites[site];
        const AddressGuesses guesses(predictor, state);
        std::uint64_t address = guesses.favoured();
        if (run != 0) {
            --run;
        } else {
            if (!next_differing(guesses, address)) break;
            run = decoder_.run;
        }
        learn_address(predictor, state, chains_.has_values() ? chains_.kind(site) : 0U, guesses,
                      address);
        record = {address, site, 0};
        ++site;
    }
    const std::uint32_t count = site - first;
    decoder_.run = run;
    decoder_.left -= count;
    predictor.last += count;
    return count;
}

// Decodes an address that is not as favoured. False if another record comes.
bool RecordDecoder::next_differing(const AddressGuesses& guesses, std::uint64_t& address) {
    trace_miss_kind_t room;
    const unsigned char* const before = decoder_.flags.at;
    const trace_miss_kind_t* const miss = trace_next_miss(&decoder_, &room);
    if (!miss || miss->flags & (TRACE_MISS_SITE | TRACE_MISS_AUX)) {
        decoder_.flags.at = before;
        return false;
    }
    switch (miss->flags & TRACE_MISS_VALUE) {
        case TRACE_VALUE_FAVOURED:
            break;
        case TRACE_VALUE_OTHER:
            address = guesses.other();
            break;
        case TRACE_VALUE_LAST:
            address = guesses.last + trace_difference(&decoder_.values, miss->value_bytes);
            break;
        default:
            address = guesses.base + trace_difference(&decoder_.values, miss->value_bytes);
            break;
    }
    trace_next_run(&decoder_);
    return true;
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
