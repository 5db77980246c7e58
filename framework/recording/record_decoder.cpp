#include "framework/recording/record_decoder.h"

#include "framework/support/error.h"

#include <algorithm>

namespace assay::recording {
namespace {

// As trace_learn_value() of a reference that is as the favoured predictor says, where no values are
// recorded, whose predictions depend on where was read and written last.
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

// Of a block that is predicted. False if none is.
bool RecordDecoder::next_block(trace_record_t& record) {
    trace_predictor_t& predictor = decoder_.predictor;
    const std::uint32_t next = predictor.sites[predictor.last].next;
    if (decoder_.run == 0 || next == 0 || !chains_.is_block(next - 1)) return false;
    const std::uint32_t successor = *trace_successor(&predictor);
    const std::uint32_t site = (successor != 0 ? successor : next) - 1;
    // It is a block, too, so that no chain is continued or left.
    trace_learn_block(&predictor, site);
    record = {0, site, 0};
    --decoder_.run;
    --decoder_.left;
    return true;
}

// Any. False if the chunk is damaged.
bool RecordDecoder::next_record(trace_record_t& record) {
    const trace_predictor_t& predictor = decoder_.predictor;
    const std::uint32_t last = predictor.last;
    const std::uint32_t before = predictor.sites[last].next;
    if (!trace_next_record(&decoder_, &record)) return false;
    const std::uint32_t after = predictor.sites[last].next;
    if (before != after) chains_.change_next(last, before, after);
    return true;
}

// Of `first` and the sites behind it, until one comes that is of another site, or for which
// `records` has no room.
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

}  // namespace assay::recording
