#include "framework/driver/replay/part_sequence.h"

#include "framework/support/error.h"

#include <fmt/core.h>
#include <algorithm>

namespace assay::replay {
namespace {

// A part is of one trace buffer.
constexpr std::uint64_t kMostRecords = trace::kRecordsPerBuffer;
constexpr std::uint64_t kMostMarkers = 1 << 20;

}  // namespace

PartSequence::PartSequence(const ImageTrace& image, const Wanted& wanted) : image_(image) {
    for (const auto& [slot, chunks] : image.records()) {
        auto stream = std::make_unique<Stream>(slot);
        for (const recording::ChunkPlace& chunk : chunks)
            if (!wanted || wanted(chunk)) stream->wanted.push_back(chunk);
        has_all_ = has_all_ && stream->wanted.size() == chunks.size();
        stream->chunks = stream->wanted;
        streams_.push_back(std::move(stream));
    }
}

void PartSequence::damaged(const Stream& stream) {
    if (problem_.empty())
        problem_ = fmt::format("{} is damaged: records of process {}, thread {} are not readable",
                               image_.file().path(), image_.pid(), stream.thread);
}

// False if there is none, or it cannot be read.
bool PartSequence::begin_chunk(Stream& stream) {
    const recording::ChunkPlace chunk = stream.chunks.front();
    stream.chunks = stream.chunks.subspan(1);
    stream.thread = chunk.header.thread;
    stream.first_instruction = chunk.header.first_instruction;
    if (!stream.decoder) stream.decoder.emplace(image_.sites());
    try {
        stream.content = image_.file().read(chunk);
    } catch (const Error& damage) {
        if (problem_.empty()) problem_ = damage.what();
        return false;
    }
    if (stream.decoder->begin(chunk.header, stream.content)) return true;
    damaged(stream);
    return false;
}

// True if `stream.part` is the next part. Where a chunk is damaged, goes on with the one behind.
bool PartSequence::look_ahead(Stream& stream) {
    while (!stream.has_part) {
        const int got = stream.decoder ? stream.decoder->next_part(stream.part) : 0;
        if (got == 1 && stream.part.records <= kMostRecords &&
            stream.part.markers <= kMostMarkers) {
            stream.has_part = true;
            break;
        }
        if (got != 0) {
            damaged(stream);
            stream.decoder->end_chunk();
        }
        if (stream.chunks.empty()) return false;
        if (!begin_chunk(stream)) stream.decoder->end_chunk();
    }
    return true;
}

// Whether `order` is that of the part behind those that there were.
void PartSequence::expect(std::uint64_t order) {
    if (order != next_order_ && has_all_ && problem_.empty())
        problem_ = fmt::format("{} does not have all records of process {}", image_.file().path(),
                               image_.pid());
}

bool PartSequence::next(Part& part) {
    for (;;) {
        Stream* first = nullptr;
        for (const auto& stream : streams_)
            if (look_ahead(*stream) && (!first || stream->part.order < first->part.order))
                first = stream.get();
        if (!first) {
            if (image_.end()) expect(image_.end()->parts);
            return false;
        }
        expect(first->part.order);
        next_order_ = first->part.order + 1;
        first->has_part = false;
        markers_.clear();
        for (std::uint64_t i = 0; i < first->part.markers; ++i)
            markers_.push_back(first->decoder->next_marker());
        records_.resize(kMostRecords);
        const std::size_t count =
            first->decoder->next(std::span(records_).first(first->part.records));
        if (count < first->part.records) {
            damaged(*first);
            first->decoder->end_chunk();
        }
        part = {first->slot,        first->thread,
                first->part.events, std::span(records_).first(count),
                markers_,           first->first_instruction};
        if (count == 0 && markers_.empty()) continue;
        first->first_instruction.reset();
        return true;
    }
}

}  // namespace assay::replay
