#include "framework/driver/replay/part_sequence.h"

#include "framework/support/error.h"

#include <fmt/core.h>
#include <algorithm>
#include <utility>

namespace assay::replay {
namespace {

// A part is of one trace buffer.
constexpr std::uint64_t kMostRecords = trace::kRecordsPerBuffer;
constexpr std::uint64_t kMostMarkers = 1 << 20;

}  // namespace

PartSequence::PartSequence(const ImageTrace& image, const Wanted& wanted)
    : image_(image), order_(image) {
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

// Whose part is the next one; null if there is none.
PartSequence::Stream* PartSequence::look_ahead() {
    Stream* first = nullptr;
    for (const auto& stream : streams_)
        if (look_ahead(*stream) && (!first || stream->part.order < first->part.order))
            first = stream.get();
    return first;
}

std::optional<std::uint64_t> PartSequence::next_order() {
    const Stream* const first = look_ahead();
    return first ? std::optional(first->part.order) : std::nullopt;
}

bool PartSequence::next(Part& part) {
    while (Stream* const first = look_ahead()) {
        if (has_all_) order_.pass(first->part.order);
        first->has_part = false;
        part.marker_room.clear();
        for (std::uint64_t i = 0; i < first->part.markers; ++i)
            part.marker_room.push_back(first->decoder->next_marker());
        if (part.record_room.size() < first->part.records)
            part.record_room.resize(first->part.records);
        const std::size_t count =
            first->decoder->next(std::span(part.record_room).first(first->part.records));
        if (count < first->part.records) {
            damaged(*first);
            first->decoder->end_chunk();
        }
        if (count == 0 && part.marker_room.empty()) continue;
        part.order = first->part.order;
        part.slot = first->slot;
        part.thread = first->thread;
        part.events = first->part.events;
        part.records = std::span(part.record_room).first(count);
        part.markers = part.marker_room;
        part.first_instruction = std::exchange(first->first_instruction, std::nullopt);
        return true;
    }
    if (has_all_) order_.end();
    return false;
}

void OrderCheck::pass(std::uint64_t order) {
    expect(order);
    next_ = order + 1;
}

void OrderCheck::end() {
    if (image_.end()) expect(image_.end()->parts);
}

void OrderCheck::expect(std::uint64_t order) {
    if (order != next_ && problem_.empty())
        problem_ = fmt::format("{} does not have all records of process {}", image_.file().path(),
                               image_.pid());
}

}  // namespace assay::replay
