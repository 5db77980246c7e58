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

// Decodes a record that is as predicted, and no value. Otherwise returns false.
[[gnu::always_inline]] inline bool RecordDecoder::next_predicted(trace_record_t& record) {
    trace_predictor_t& predictor = decoder_.predictor;
    const std::uint32_t next = predictor.sites[predictor.last].next;
    if (decoder_.run == 0 || next == 0) return false;
    std::uint32_t site = next - 1;
    const unsigned kind = chains_.kind(site);
    // The site that followed the last time follows again, so no chain changes.
    if (kind != TRACE_SITE_BLOCK) {
        if (kind == TRACE_SITE_VALUE || kind == TRACE_SITE_VALUE_REST) return false;
        trace_site_state_t& state = predictor.sites[site];
        const AddressGuesses guesses(predictor, state);
        record = {guesses.favoured(), site, 0};
        learn_address(predictor, state, kind, guesses, record.value);
        predictor.last = site;
    } else {
        const std::uint32_t successor = *trace_successor(&predictor);
        if (successor != next && successor != 0) {
            site = successor - 1;
            // Keeps this a branch. While the processor loads `successor`, it can then go on with
            // the site that it expects.
            asm("" : "+r"(site));
        }
        trace_learn_block(&predictor, site);
        record = {0, site, 0};
    }
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

namespace {

// Decodes an address that is not as favoured. False if another record comes. Not inlined, so that
// next_references() keeps its variables in registers.
[[gnu::noinline]] bool next_differing(trace_decoder_t& decoder, const trace_site_state_t& state,
                                      std::uint64_t& address) {
    trace_miss_kind_t room;
    const unsigned char* const before = decoder.flags.at;
    const trace_miss_kind_t* const miss = trace_next_miss(&decoder, &room);
    if (!miss || miss->flags & (TRACE_MISS_SITE | TRACE_MISS_AUX)) {
        decoder.flags.at = before;
        return false;
    }
    const AddressGuesses guesses(decoder.predictor, state);
    switch (miss->flags & TRACE_MISS_VALUE) {
        case TRACE_VALUE_FAVOURED:
            address = guesses.favoured();
            break;
        case TRACE_VALUE_OTHER:
            address = guesses.other();
            break;
        case TRACE_VALUE_LAST:
            address = guesses.last + trace_difference(&decoder.values, miss->value_bytes);
            break;
        default:
            address = guesses.base + trace_difference(&decoder.values, miss->value_bytes);
            break;
    }
    trace_next_run(&decoder);
    return true;
}

// Decodes references of `first` and the sites after it, until a record of another site comes or
// `records` is full. `kind_of`: returns the kind of a site, or 0 if that does not matter.
template <typename KindOf>
[[gnu::always_inline]] inline std::size_t next_references(trace_decoder_t& decoder,
                                                          std::uint32_t first,
                                                          std::span<trace_record_t> records,
                                                          const KindOf& kind_of) {
    trace_predictor_t& predictor = decoder.predictor;
    std::uint64_t run = decoder.run;
    std::uint32_t site = first;
    for (trace_record_t& record : records) {
        trace_site_state_t& state = predictor.sites[site];
        const AddressGuesses guesses(predictor, state);
        std::uint64_t address = guesses.favoured();
        if (run != 0) [[likely]] {
            --run;
        } else {
            std::uint64_t other = 0;
            if (!next_differing(decoder, state, other)) break;
            address = other;
            run = decoder.run;
        }
        learn_address(predictor, state, kind_of(site), guesses, address);
        record = {address, site, 0};
        ++site;
    }
    const std::uint32_t count = site - first;
    decoder.run = run;
    decoder.left -= count;
    predictor.last += count;
    return count;
}

}  // namespace

// Decodes references of `first` and the sites after it, until a record of another site comes or
// `records` is full.
[[gnu::always_inline]] inline std::size_t RecordDecoder::next_references(
    std::uint32_t first, std::span<trace_record_t> records) {
    if (chains_.has_memory_values())
        return recording::next_references(decoder_, first, records,
                                          [&](std::uint32_t site) { return chains_.kind(site); });
    return recording::next_references(decoder_, first, records, [](std::uint32_t) { return 0U; });
}

std::size_t RecordDecoder::next(std::span<trace_record_t> records) {
    std::size_t done = 0;
    while (done < records.size() && decoder_.left != 0) {
        trace_record_t& record = records[done];
        if (!next_predicted(record) && !next_record(record)) break;
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
        has_memory_values_ = has_memory_values_ || is_memory_value(table[i]);
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
