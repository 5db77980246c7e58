// Trace files, and the records of a chunk without its checksum.
//
// The mutator changes the decompressed content of a chunk and makes all checksums right again:
// otherwise the reader refuses nearly every input at its first check.
#include "framework/driver/replay/image_trace.h"
#include "framework/driver/replay/parallel_parts.h"
#include "framework/driver/replay/replay_driver.h"
#include "framework/driver/replay/replay_plan.h"
#include "framework/recording/record_coding.h"
#include "framework/recording/trace_content.h"
#include "framework/recording/trace_file_reader.h"
#include "framework/recording/trace_file_writer.h"
#include "framework/support/error.h"
#include "tests/fuzz/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

using namespace assay;

namespace {

constexpr std::uint32_t kSites = 12;
constexpr std::size_t kMostContent = 1 << 20;  // of a chunk that the mutator changes

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

struct Segment {
    Segment()
        : descriptor(memfd_create("fuzzed segment", MFD_CLOEXEC)),
          control(static_cast<trace::Control*>(ftruncate(descriptor, trace::kSegmentBytes) != 0
                                                   ? MAP_FAILED
                                                   : mmap(nullptr, sizeof *control,
                                                          PROT_READ | PROT_WRITE, MAP_SHARED,
                                                          descriptor, trace::kControlOffset))) {
        if (control == MAP_FAILED) std::abort();
    }
    ~Segment() {
        munmap(control, sizeof *control);
        close(descriptor);
    }
    Segment(const Segment&) = delete;
    Segment& operator=(const Segment&) = delete;

    const int descriptor;
    trace::Control* const control;
};

// Into a segment that nobody reads.
void replay_image(const replay::ImageTrace& image, std::uint32_t captures,
                  const trace::ValueLists& values) {
    const Segment segment;
    trace::Spec& spec = segment.control->spec;
    spec.captures = captures;
    spec.fetch = spec.data = {64, 8};
    spec.slice = 1;
    const trace_image_t& recorded = image.image();
    spec.regions.sample_burst = recorded.sample_burst;
    spec.regions.sample_period = recorded.sample_period;
    spec.regions.sample_warm_up = recorded.sample_warm_up;
    const auto readers = std::make_unique<trace::Readers>();
    const replay::Output output{segment.descriptor, *readers};
    replay::ReplayDriver(image, spec, values, std::span(&output, 1)).run();
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
            recording::TraceContent content = image.content();
            content.values |= TRACE_VALUES_LOADS;
            const auto values = recording::recorded_values(content);
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
            for (const std::uint32_t captures :
                 {trace::kCaptureFetches | trace::kCaptureReferences | trace::kCapturePredictions |
                      trace::kCaptureBlocks,
                  trace::kCaptureContexts | trace::kCaptureCalls | trace::kCaptureReferences})
                replay_image(image, captures, *values);
        }
    } catch (const Error&) {
    }
}

struct Chunk {
    trace_chunk_t header;
    std::vector<std::byte> content;
};

// The chunks of an input that is a trace file; none if it is not one.
std::vector<Chunk> chunks_of(const std::uint8_t* data, std::size_t size) {
    std::vector<Chunk> chunks;
    for (std::size_t at = sizeof(trace_file_header_t); at + sizeof(trace_chunk_t) <= size;) {
        Chunk chunk;
        std::memcpy(&chunk.header, data + at, sizeof chunk.header);
        at += sizeof chunk.header;
        const bool whole = trace_chunk_is_whole(&chunk.header) &&
                           chunk.header.stored_bytes <= size - at &&
                           chunk.header.raw_bytes <= kMostContent;
        if (!whole) break;
        chunk.content.resize(chunk.header.raw_bytes);
        if (trace_chunk_decompress(&chunk.header, data + at, chunk.content.data()) != 0) break;
        at += chunk.header.stored_bytes;
        chunks.push_back(std::move(chunk));
    }
    return chunks;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
    std::mt19937 random(seed);
    const bool is_file = size > 1 + sizeof(trace_file_header_t) && *data % 2 == 1;
    std::vector<Chunk> chunks = is_file ? chunks_of(data + 1, size - 1) : std::vector<Chunk>();
    if (chunks.empty() || random() % 16 == 0) return LLVMFuzzerMutate(data, size, most);
    Chunk& chunk = chunks[random() % chunks.size()];
    switch (random() % 16) {
        case 0: {  // in the header, behind `kind`
            auto* const bytes = reinterpret_cast<std::uint8_t*>(&chunk.header);
            LLVMFuzzerMutate(bytes + offsetof(trace_chunk_t, thread),
                             offsetof(trace_chunk_t, raw_bytes) - offsetof(trace_chunk_t, thread),
                             offsetof(trace_chunk_t, raw_bytes) - offsetof(trace_chunk_t, thread));
            break;
        }
        case 1:
            std::swap(chunk, chunks[random() % chunks.size()]);
            break;
        case 2:
            chunks.insert(chunks.begin() + static_cast<std::ptrdiff_t>(random() % chunks.size()),
                          Chunk(chunk));
            break;
        default: {
            const std::size_t before = chunk.content.size();
            chunk.content.resize(before + 64);
            chunk.content.resize(
                LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(chunk.content.data()), before,
                                 chunk.content.size()));
        }
    }
    static recording::ChunkCompressor compressor;
    std::size_t at = 1 + sizeof(trace_file_header_t);
    for (const Chunk& each : chunks) {
        const std::vector<std::byte> stored = compressor.chunk(each.header, each.content);
        if (stored.size() > most - at) break;
        std::memcpy(data + at, stored.data(), stored.size());
        at += stored.size();
    }
    return at;
}

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
