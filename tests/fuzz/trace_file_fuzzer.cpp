// Trace files, and the records of a chunk without its checksum.
#include "framework/driver/replay/image_trace.h"
#include "framework/driver/replay/part_sequence.h"
#include "framework/driver/replay/replay_plan.h"
#include "framework/recording/record_decoder.h"
#include "framework/recording/trace_content.h"
#include "framework/recording/trace_file_reader.h"
#include "framework/support/error.h"
#include "tests/fuzz/memory_file.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

using namespace assay;

namespace {

constexpr std::uint32_t kSites = 12;

// Blocks of a reference and values each, or of some references.
std::vector<trace_site_t> some_sites(bool values) {
    constexpr unsigned kOfBlock = 6;
    constexpr trace_site_t kWithValues[kOfBlock] = {{0, 0, TRACE_SITE_BLOCK, 0},
                                                    {0, 8, TRACE_SITE_MODIFY, 0},
                                                    {0, 8, TRACE_SITE_VALUE, TRACE_LOADED},
                                                    {0, 8, TRACE_SITE_VALUE_REST, TRACE_LOADED},
                                                    {0, 4, TRACE_SITE_VALUE, TRACE_STORED},
                                                    {0, 8, TRACE_SITE_VALUE, TRACE_DESTINATION}};
    constexpr trace_site_t kWithout[kOfBlock] = {
        {0, 0, TRACE_SITE_BLOCK, 0}, {0, 8, TRACE_SITE_MODIFY, 0}, {0, 8, TRACE_SITE_READ, 0},
        {0, 8, TRACE_SITE_WRITE, 0}, {0, 0, TRACE_SITE_CALL, 0},   {0, 4, TRACE_SITE_READ, 0}};
    std::vector<trace_site_t> sites;
    for (std::uint32_t i = 0; i < kSites; ++i) {
        sites.push_back((values ? kWithValues : kWithout)[i % kOfBlock]);
        sites.back().instr = i / kOfBlock;
    }
    return sites;
}

// Both decoders read the same, but for what only the quick one tells of a block.
void decode(const std::uint8_t* data, std::size_t size, bool values) {
    const std::vector<trace_site_t> sites = some_sites(values);
    trace_decoder_t plain;
    if (trace_decoder_init(&plain, sites.data(), kSites) != 0) return;
    recording::RecordDecoder quick(sites);
    trace_chunk_t chunk{};
    chunk.raw_bytes = static_cast<std::uint32_t>(size);
    chunk.records = 10'000;
    const bool good = trace_records_begin(&plain, &chunk, data) == 0;
    if (quick.begin(chunk, {reinterpret_cast<const std::byte*>(data), size}) != good) std::abort();
    trace_part_t part, same_part;
    std::vector<trace_record_t> records(1000), same_records(1000);
    while (good && trace_next_part(&plain, &part) == 1) {
        if (quick.next_part(same_part) != 1) std::abort();
        for (std::uint64_t i = 0; i < std::min<std::uint64_t>(part.markers, 100); ++i)
            if (trace_next_marker(&plain).event != quick.next_marker().event) std::abort();
        const std::size_t wanted = std::min<std::uint64_t>(part.records, records.size());
        const std::size_t got = trace_records_next(&plain, records.data(), wanted);
        if (quick.next(std::span(same_records).first(wanted)) != got) std::abort();
        for (std::size_t i = 0; i < got; ++i) {
            const trace_record_t &a = records[i], &b = same_records[i];
            if (a.site >= kSites || a.site != b.site || a.aux != b.aux) std::abort();
            if (sites[a.site].kind != TRACE_SITE_BLOCK && a.value != b.value) std::abort();
        }
        if (got < wanted) break;
    }
    trace_decoder_release(&plain);
}

void read_file(const std::string& path) {
    try {
        const recording::TraceFileReader file(path);
        for (const recording::RecordedImage& recorded : file.images()) {
            const replay::ImageTrace image(file, recorded);
            trace::Spec spec{};
            spec.captures = trace::kCaptureFetches | trace::kCapturePredictions |
                            trace::kCaptureBranches | trace::kCaptureReferences |
                            trace::kCaptureValues;
            spec.fetch = spec.data = {64, 8};
            spec.branches = 15;
            const auto values =
                recording::recorded_values(TRACE_VALUES_LOADS | image.content().values);
            const replay::ReplayPlan plan(image, spec, *values);
            for (const trace_site_t& site : plan.shown_sites())
                if (site.instr >= image.instrs().size()) std::abort();
            spec.captures = trace::kCaptureContexts | trace::kCaptureCalls | trace::kCaptureBlocks;
            const replay::ReplayPlan in_contexts(image, spec, *values);
            replay::PartSequence sequence(image);
            replay::PartSequence::Part part;
            while (sequence.next(part))
                for (const trace_record_t& record : part.records)
                    if (record.site >= plan.sites().size()) std::abort();
        }
    } catch (const Error&) {
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    if (*data % 2 == 0) {
        decode(data + 1, size - 1, *data % 4 == 0);
    } else {
        const MemoryFile file({reinterpret_cast<const char*>(data) + 1, size - 1});
        read_file(file.path());
    }
    return 0;
}
