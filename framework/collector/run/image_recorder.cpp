#include "framework/collector/run/image_recorder.h"

#include "framework/trace/captures.h"

#include <algorithm>
#include <cstring>

namespace assay::collector {
namespace {

constexpr std::uint64_t kRecordsInChunk = std::uint64_t{1} << 21;
// Each open chunk needs some megabytes.
constexpr std::size_t kMostOpen = 32;
constexpr std::uint32_t kBlocksInChunk = 1U << 16;
constexpr std::uint32_t kFirstThread = 0;  // also the number of its slot
// In place of the length of a block: the site is of kind BLOCK_LEFT. Blocks are shorter, and sites
// of other kinds have 0.
constexpr std::uint16_t kLeft = UINT16_MAX;

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
    return std::as_bytes(std::span(&value, 1));
}

template <typename T>
void append_rows(std::vector<std::byte>& to, std::span<const T> rows) {
    const auto bytes = std::as_bytes(rows);
    to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

ImageRecorder::ImageRecorder(recording::TraceFileWriter& file, const Segment& segment,
                             const TraceReader& reader, const Image& image, int parent,
                             const recording::TraceContent& content)
    : segment_(segment),
      reader_(reader),
      image_(image),
      parent_(parent),
      content_(content),
      writer_(file, recording::ChunkWriter::useful_threads()) {}

// Each slot belongs to one thread if possible, so that a replay can tell the threads apart.
// Predictors need the number of repetitions of string instructions.
trace::Spec ImageRecorder::spec(const recording::TraceContent& content) {
    return {.captures = trace::captures_of_recording(content.captures), .threads = 1};
}

void ImageRecorder::take(TraceReader::Source source, std::span<const trace_record_t> records,
                         std::span<const trace_marker_t> markers) {
    if (!begun_) write_image();
    find_markers();
    Thread& thread = thread_of(source);
    const std::uint64_t order = parts_++;
    thread.last_used = order;
    recording::ChunkWriter::add(*thread.chunk, {.order = order,
                                                .events = events_seen_,
                                                .markers = places_of(source.slot, markers),
                                                .records = records,
                                                .table = reader_.code().sites});
    count(thread, records);
    if (points_ && !records.empty()) follow_points(thread, records.back());
    if (sampled_ && !records.empty()) follow_bursts(thread, records.back());
    if (!thread.chunk) return;
    if (thread.records >= kRecordsInChunk) flush(thread);
    if (open_ > kMostOpen) flush_idle();
}

ImageRecorder::Thread& ImageRecorder::thread_of(TraceReader::Source source) {
    Thread& thread = threads_[source.slot];
    if (thread.number != source.thread || thread.slot != source.slot) {
        flush(thread);
        thread = {.number = source.thread, .slot = source.slot};
    }
    if (thread.chunk) return thread;
    thread.chunk = writer_.begin();
    ++open_;
    return thread;
}

void ImageRecorder::count(Thread& thread, std::span<const trace_record_t> records) {
    const CodeTables& code = reader_.code();
    const auto block_of = [&](std::uint32_t site) -> const trace_block_t& {
        return code.blocks[code.instrs[code.sites[site].instr].block];
    };
    for (std::size_t i = block_lengths_.size(); i < code.sites.size(); ++i) {
        const auto site = static_cast<std::uint32_t>(i);
        const unsigned kind = code.sites[site].kind;
        block_lengths_.push_back(kind == TRACE_SITE_BLOCK
                                     ? static_cast<std::uint16_t>(block_of(site).instr_count)
                                 : kind == TRACE_SITE_BLOCK_LEFT ? kLeft
                                                                 : std::uint16_t{0});
    }
    std::uint64_t instructions = 0;
    for (const trace_record_t& record : records) {
        const std::uint16_t length = block_lengths_[record.site];
        instructions += length;
        if (length != kLeft) continue;
        const std::uint32_t all = block_of(record.site).instr_count;
        instructions -= kLeft + (all - std::min<std::uint64_t>(record.value, all));
    }
    thread.instructions += instructions;
    thread.records += records.size();
}

// The records of a chunk belong to the same point.
void ImageRecorder::follow_points(Thread& thread, const trace_record_t& last) {
    if (thread.number != kFirstThread || reader_.code().sites[last.site].kind != TRACE_SITE_BURST)
        return;
    instructions_ = last.value;
    if (last.aux == trace::kRestEnds) {
        in_point_ = true;
        thread.executed = last.value;
    }
    if (last.aux != trace::kBurstEnds) return;
    flush(thread);
    in_point_ = false;
    ++points_ended_;
}

// The end of a burst, or of a warm-up, is the last record of its buffer.
void ImageRecorder::follow_bursts(Thread& thread, const trace_record_t& last) {
    if (reader_.code().sites[last.site].kind != TRACE_SITE_BURST) return;
    executed_[thread.number] = last.value;
    const std::uint64_t known = thread.executed + thread.left_out + thread.instructions;
    if (last.value > known) thread.left_out += last.value - known;
    const bool has_warm_up = segment_.control().spec.regions.sample_warm_up != 0;
    if (last.aux == (has_warm_up ? trace::kWarmUpEnds : trace::kRestEnds)) burst_began_ = true;
}

std::vector<trace_thread_end_t> ImageRecorder::thread_ends() {
    std::vector<trace_thread_end_t> ends;
    for (std::uint32_t slot = 0; slot < reader_.counts().slots(); ++slot) {
        ends.push_back({reader_.counts().thread_of(slot), slot, reader_.counts().executed(slot)});
        std::uint64_t& known = executed_[ends.back().thread];
        known = std::max(known, ends.back().instructions);
    }
    return ends;
}

std::uint64_t ImageRecorder::executed() const {
    std::uint64_t sum = 0;
    for (const auto& [thread, instructions] : executed_) sum += instructions;
    return sum;
}

std::uint32_t ImageRecorder::point_of(const Thread& thread) const {
    if (!in_point_ || thread.number != kFirstThread) return 0;
    return static_cast<std::uint32_t>(points_ended_ + 1);
}

// The markers of each slot are in the order in which the reader passes them on.
void ImageRecorder::find_markers() {
    const std::uint64_t bytes = reader_.event_bytes();
    while (events_seen_ < bytes) {
        trace::EventHeader header;
        const std::byte* const at = segment_.event_log() + events_seen_;
        std::memcpy(&header, at, sizeof header);
        if (header.type == trace::EventType::kMarker) {
            trace::MarkerEvent marker;
            std::memcpy(&marker, at + sizeof header, sizeof marker);
            markers_[marker.slot].push_back(events_seen_);
        }
        events_seen_ += sizeof header + ((std::uint64_t{header.bytes} + 7) & ~std::uint64_t{7});
    }
}

std::vector<trace_part_marker_t> ImageRecorder::places_of(std::uint32_t slot,
                                                          std::span<const trace_marker_t> markers) {
    std::vector<trace_part_marker_t> places;
    std::deque<std::uint64_t>& queue = markers_[slot];
    for (const trace_marker_t& marker : markers) {
        if (queue.empty()) break;
        places.push_back({marker.record, queue.front()});
        queue.pop_front();
    }
    return places;
}

void ImageRecorder::flush(Thread& thread) {
    if (!thread.chunk) return;
    write_code();
    write_events();
    trace_chunk_t header{};
    header.kind = TRACE_CHUNK_RECORDS;
    header.pid = static_cast<std::uint32_t>(image_.pid);
    header.image = image_.number_of_id();
    header.thread = thread.number;
    header.slot = thread.slot;
    header.first_instruction = thread.executed;
    header.instructions = thread.instructions;
    header.records = std::exchange(thread.records, 0);
    header.point = point_of(thread);
    thread.executed += std::exchange(thread.instructions, 0) + std::exchange(thread.left_out, 0);
    --open_;
    writer_.finish(std::exchange(thread.chunk, nullptr), header);
}

void ImageRecorder::flush_idle() {
    Thread* idle = nullptr;
    for (auto& [slot, thread] : threads_)
        if (thread.chunk && (!idle || thread.last_used < idle->last_used)) idle = &thread;
    if (idle) flush(*idle);
}

void ImageRecorder::append(std::uint32_t kind, std::span<const std::byte> content) {
    trace_chunk_t header{};
    header.kind = kind;
    header.pid = static_cast<std::uint32_t>(image_.pid);
    header.image = image_.number_of_id();
    writer_.append(header, content);
}

void ImageRecorder::write_image() {
    begun_ = true;
    const trace::Spec& captured = segment_.control().spec;
    trace_image_t image{};
    image.size = sizeof image;
    image.parent = static_cast<std::uint32_t>(parent_);
    image.place = static_cast<std::uint32_t>(image_.place);
    image.captures = content_.captures;
    image.values = content_.values;
    image.slice = captured.slice;
    image.cpu_level = static_cast<std::uint32_t>(captured.cpu_level);
    const trace::InstructionSet& instruction_set = segment_.control().instruction_set;
    image.emulated = instruction_set.emulated;
    image.elf_machine = instruction_set.elf_machine;
    image.elf_class = instruction_set.elf_class;
    image.elf_data = instruction_set.elf_data;
    sampled_ = captured.regions.sample_period != 0;
    if (sampled_) {
        image.sample_burst = captured.regions.sample_burst;
        image.sample_period = captured.regions.sample_period;
        image.sample_warm_up = captured.regions.sample_warm_up;
    }
    if (!image_.rank.empty())
        image.rank = static_cast<std::uint32_t>(std::strtoul(image_.rank.c_str(), nullptr, 10)) + 1;
    append(TRACE_CHUNK_IMAGE, bytes_of(image));
    if (points_) write_points();
}

// The program begins in the first point if the warm-up of this point reaches back to the beginning.
void ImageRecorder::write_points() {
    in_point_ = points_->points.front().begin <= points_->warm_up;
    const trace_points_t head{.size = sizeof head,
                              .count = static_cast<std::uint32_t>(points_->points.size()),
                              .interval_size = points_->interval_size,
                              .warm_up = points_->warm_up};
    std::vector<std::byte> content;
    append_rows(content, std::span<const trace_points_t>(&head, 1));
    append_rows(content, std::span<const trace_point_t>(points_->points));
    append(TRACE_CHUNK_POINTS, content);
}

void ImageRecorder::write_code() {
    const CodeTables& code = reader_.code();
    while (blocks_written_ < code.blocks.size() || sites_written_ < code.sites.size()) {
        const auto blocks = code.blocks.subspan(blocks_written_);
        const auto some_blocks = blocks.first(std::min<std::size_t>(blocks.size(), kBlocksInChunk));
        std::uint32_t instr_end = instrs_written_;
        for (const trace_block_t& block : some_blocks) instr_end += block.instr_count;
        std::size_t site_end = sites_written_;
        while (site_end < code.sites.size() && code.sites[site_end].instr < instr_end) ++site_end;
        const auto instrs = code.instrs.subspan(instrs_written_, instr_end - instrs_written_);
        const auto sites = code.sites.subspan(sites_written_, site_end - sites_written_);
        const trace_code_t head{blocks_written_, static_cast<std::uint32_t>(some_blocks.size()),
                                instrs_written_, static_cast<std::uint32_t>(instrs.size()),
                                sites_written_,  static_cast<std::uint32_t>(sites.size())};
        std::vector<std::byte> content;
        append_rows(content, std::span(&head, 1));
        append_rows(content, some_blocks);
        append_rows(content, instrs);
        append_rows(content, sites);
        append(TRACE_CHUNK_CODE, content);
        blocks_written_ += head.blocks;
        instrs_written_ += head.instrs;
        sites_written_ += head.sites;
        if (head.blocks == 0 && head.sites == 0) return;
    }
}

void ImageRecorder::write_events() {
    if (events_written_ == events_seen_) return;
    append(TRACE_CHUNK_EVENTS,
           {segment_.event_log() + events_written_, events_seen_ - events_written_});
    events_written_ = events_seen_;
}

void ImageRecorder::end(std::uint32_t state, const std::optional<Ending>& ending) {
    if (!begun_) write_image();
    find_markers();
    for (auto& [slot, thread] : threads_) flush(thread);
    if (points_) instructions_ = std::max(instructions_, reader_.counts().executed(kFirstThread));
    write_code();
    write_events();
    trace_image_end_t end{};
    end.size = sizeof end;
    end.state = state;
    end.exit_status = ending ? ending->exit_status : 0;
    end.signal = ending ? ending->signal : 0;
    end.threads = reader_.counts().threads();
    end.parts = parts_;
    end.instructions = instructions_;
    std::vector<std::byte> content;
    append_rows(content, std::span<const trace_image_end_t>(&end, 1));
    if (sampled_) append_rows(content, std::span<const trace_thread_end_t>(thread_ends()));
    append(TRACE_CHUNK_END, content);
    writer_.drain();
}

}  // namespace assay::collector
