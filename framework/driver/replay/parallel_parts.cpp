#include "framework/driver/replay/parallel_parts.h"

#include "framework/support/error.h"

#include <fmt/core.h>
#include <algorithm>
#include <map>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

namespace assay::replay {
namespace {

// A part has the records of one trace buffer.
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

// False if there is no chunk, or if it cannot be read.
bool PartSequence::begin_chunk(Stream& stream) {
    const recording::ChunkPlace chunk = stream.chunks.front();
    stream.chunks = stream.chunks.subspan(1);
    stream.thread = chunk.header.thread;
    stream.first_instruction = chunk.header.first_instruction;
    if (!stream.decoder) stream.decoder.emplace(image_.sites());
    try {
        stream.content = image_.file().read(chunk, std::move(stream.content));
    } catch (const Error& damage) {
        if (problem_.empty()) problem_ = damage.what();
        return false;
    }
    if (stream.decoder->begin(chunk.header, stream.content)) return true;
    damaged(stream);
    return false;
}

// True if `stream.part` is the next part. After a damaged chunk it goes on with the next chunk.
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

// The stream that has the next part; null if there is no part.
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

namespace {

// While one thread takes parts, another one can decode as many.
constexpr std::size_t kUsefulThreads = 3;
// Records, of 16 bytes each: those of a chunk.
constexpr std::size_t kMostReady = std::size_t{1} << 21;

// Consecutive chunks of the file belong to different shares.
std::map<std::uint64_t, std::size_t> shares_of_chunks(const ImageTrace& image,
                                                      const PartSequence::Wanted& wanted,
                                                      std::size_t shares) {
    std::map<std::uint64_t, std::size_t> made;
    for (const auto& [slot, chunks] : image.records())
        for (const recording::ChunkPlace& chunk : chunks)
            if (!wanted || wanted(chunk)) made[chunk.offset] = 0;
    std::size_t number = 0;
    for (auto& [offset, share] : made) share = number++ % shares;
    return made;
}

}  // namespace

std::size_t ParallelParts::useful_threads() {
    return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kUsefulThreads);
}

ParallelParts::ParallelParts(const ImageTrace& image, const PartSequence::Wanted& wanted,
                             std::size_t threads)
    : order_(image) {
    const auto share_of = shares_of_chunks(image, wanted, threads);
    threads = std::clamp<std::size_t>(share_of.size(), 1, threads);
    for (std::size_t i = 0; i < threads; ++i)
        shares_.push_back(std::make_unique<Share>(image, [&](const recording::ChunkPlace& chunk) {
            const auto found = share_of.find(chunk.offset);
            return found != share_of.end() && found->second == i;
        }));
    std::size_t chunks = 0;
    for (const auto& [slot, of_slot] : image.records()) chunks += of_slot.size();
    has_all_ = chunks == share_of.size();
}

void ParallelParts::run(const std::function<void(const PartSequence::Part&)>& take) {
    take_ = &take;
    std::vector<std::thread> threads;
    try {
        for (std::size_t i = 1; i < shares_.size(); ++i)
            threads.emplace_back([this, i] { work(i); });
        work(0);
    } catch (const std::system_error& e) {
        stop(std::make_exception_ptr(
            Error(fmt::format("cannot start a thread to read a trace: {}", e.what()))));
    }
    for (std::thread& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
    if (has_all_) order_.end();
}

std::string ParallelParts::problem() const {
    for (const auto& share : shares_)
        if (!share->parts.problem().empty()) return share->parts.problem();
    return order_.problem();
}

void ParallelParts::work(std::size_t number) {
    try {
        read(number);
    } catch (...) {
        stop(std::current_exception());
    }
}

void ParallelParts::stop(std::exception_ptr failure) {
    const std::lock_guard held(mutex_);
    if (!failure_) failure_ = std::move(failure);
    stops_ = true;
    turn_.notify_all();
}

void ParallelParts::read(std::size_t number) {
    Share& share = *shares_[number];
    for (;;) {
        if (share.ready.empty()) {
            // Other threads can go on in the meantime.
            if (const auto order = share.parts.next_order()) tell_next(share, order);
            decode(share);
            if (share.ready.empty()) return tell_next(share, {}, true);
        }
        tell_next(share, share.ready.front().order);
        if (!wait_for_turn(number)) return;
        take(share.ready.front());
        share.records -= share.ready.front().records.size();
        share.spare.push_back(std::move(share.ready.front()));
        share.ready.pop_front();
    }
}

// Decodes the next part, if there is one.
void ParallelParts::decode(Share& share) {
    PartSequence::Part part;
    if (!share.spare.empty()) {
        part = std::move(share.spare.back());
        share.spare.pop_back();
    }
    share.all_decoded = !share.parts.next(part);
    if (share.all_decoded) return;
    share.records += part.records.size();
    share.ready.push_back(std::move(part));
}

void ParallelParts::tell_next(Share& share, std::optional<std::uint64_t> order, bool ended) {
    const std::lock_guard held(mutex_);
    share.next = order;
    share.ended = ended;
    turn_.notify_all();
}

// False if the turn never comes, because another thread has failed.
bool ParallelParts::wait_for_turn(std::size_t number) {
    Share& share = *shares_[number];
    std::unique_lock held(mutex_);
    while (!stops_ && !has_turn(number)) {
        if (share.all_decoded || share.records >= kMostReady) {
            turn_.wait(held);
            continue;
        }
        held.unlock();
        decode(share);
        held.lock();
    }
    return !stops_;
}

// True if no other share can have an earlier part. A damaged trace can have an order twice.
bool ParallelParts::has_turn(std::size_t number) const {
    const std::uint64_t own = *shares_[number]->next;
    for (std::size_t i = 0; i < shares_.size(); ++i) {
        const Share& other = *shares_[i];
        if (i == number || other.ended) continue;
        if (!other.next || std::tuple(*other.next, i) < std::tuple(own, number)) return false;
    }
    return true;
}

void ParallelParts::take(const PartSequence::Part& part) {
    if (has_all_) order_.pass(part.order);
    (*take_)(part);
}

}  // namespace assay::replay
