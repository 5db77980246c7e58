#include "framework/driver/replay/segment_writer.h"

#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <span>
#include <utility>

namespace assay::replay {
namespace {

constexpr std::uint32_t kCopied = 256;  // nodes that are copied at once; divides kChunkNodes

}  // namespace

void SlotWriter::set_thread(std::uint32_t thread) {
    thread_ = thread;
    filters_.clear();
    for (Output& output : outputs_) output.ring.set_thread(thread);
}

void SlotWriter::append_together(std::span<const trace_record_t> records) {
    const auto room = static_cast<std::size_t>(staged_.data() + staged_.size() - next_);
    if (records.size() > room) pass_on();
    for (const trace_record_t& record : records) append(record.value, record.site, record.aux);
}

void SlotWriter::pass_on() {
    copy_new_nodes();
    const std::span<const trace_record_t> records(staged_.data(), next_);
    const MissFilters::Shapes* const missed = filters_.any() ? filters_.simulate(records) : nullptr;
    for (Output& output : outputs_) output.ring.append(records, missed, output.shapes);
    next_ = staged_.data();
}

void SlotWriter::complete() {
    pass_on();
    for (Output& output : outputs_) output.ring.complete();
}

void SlotWriter::copy_counters(std::size_t count) const {
    for (const Output& output : outputs_)
        if (output.ring.counters() != counters())
            std::copy_n(counters(), count, output.ring.counters());
}

bool SlotWriter::tells_contexts() const {
    return std::any_of(outputs_.begin(), outputs_.end(), [](const Output& output) {
        return trace::tells_contexts(output.ring.spec());
    });
}

trace::ContextNodes* SlotWriter::begin_nodes(std::uint32_t words) {
    node_words_ = words;
    return outputs_.front().ring.context_nodes();
}

void SlotWriter::copy_new_nodes() {
    if (node_words_ == 0 || outputs_.size() == 1) return;
    const trace::ContextNodes* const nodes = outputs_.front().ring.context_nodes();
    if (copied_nodes_ == nodes->count) return;
    copy_nodes_from(std::exchange(copied_nodes_, nodes->count));
}

void SlotWriter::copy_nodes() const {
    if (node_words_ == 0 || outputs_.size() == 1) return;
    copy_nodes_from(0);
    const RingWriter& source = outputs_.front().ring;
    const std::uint32_t count = outputs_.front().ring.context_nodes()->count;
    std::vector<std::uint64_t> portion(std::size_t{kCopied} * trace::kLayerWords);
    for (std::uint32_t word = trace::kLayerWords; word < node_words_; word += trace::kLayerWords)
        for (std::uint32_t node = 0; node < count; node += kCopied) {
            const std::uint64_t offset =
                trace::node_offset(node, node_words_) + trace::word_offset(word);
            source.read_nodes(offset, portion);
            if (std::ranges::all_of(portion, [](std::uint64_t value) { return value == 0; }))
                continue;
            for (const Output& output : std::span(outputs_).subspan(1))
                std::memcpy(reinterpret_cast<std::byte*>(output.ring.context_nodes()) + offset,
                            portion.data(), portion.size() * sizeof portion[0]);
        }
}

// Copies the first layer. The collector may read a node while others are still made. The parts that
// it reads then do not change any more.
void SlotWriter::copy_nodes_from(std::uint32_t first) const {
    const trace::ContextNodes* const nodes = outputs_.front().ring.context_nodes();
    for (const Output& output : std::span(outputs_).subspan(1)) {
        trace::ContextNodes* const to = output.ring.context_nodes();
        for (std::uint32_t node = first; node < nodes->count; ++node) {
            const std::uint64_t offset = trace::node_offset(node, node_words_);
            std::memcpy(reinterpret_cast<std::byte*>(to) + offset,
                        reinterpret_cast<const std::byte*>(nodes) + offset, trace::kNodeBytes);
        }
        __atomic_store_n(&to->count, nodes->count, __ATOMIC_RELEASE);
    }
}

namespace {

std::byte* map(int segment, std::uint64_t offset, std::uint64_t bytes) {
    void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                              segment, static_cast<off_t>(offset));
    if (mapped == MAP_FAILED)
        throw Error(fmt::format("cannot map a trace segment: {}", system_reason(errno)));
    return static_cast<std::byte*>(mapped);
}

void ring_doorbell(trace::Control& control) {
    control.doorbell.fetch_add(1, std::memory_order_seq_cst);
    if (control.collector_sleeps.load(std::memory_order_seq_cst))
        trace::futex_wake(control.doorbell, INT_MAX);
}

}  // namespace

RingWriter::RingWriter(int segment, trace::Control& control, trace::Readers& readers,
                       std::uint32_t number)
    : segment_(segment),
      control_(control),
      readers_(readers),
      number_(number),
      base_(map(segment, trace::thread_offset(number), trace::kThreadStride)),
      slot_(reinterpret_cast<trace::ThreadSlot*>(base_)),
      counters_(reinterpret_cast<std::uint64_t*>(base_ + trace::kCountersOffset)) {
    slot_->buffer_count = trace::kBufferCount;
    begin_buffer(0);
}

RingWriter::~RingWriter() {
    if (nodes_ != nullptr) munmap(nodes_, trace::kContextsBytes);
    munmap(base_, trace::kThreadStride);
}

trace::ContextNodes* RingWriter::context_nodes() {
    if (nodes_ == nullptr)
        nodes_ = map(segment_, trace::contexts_offset(number_), trace::kContextsBytes);
    return reinterpret_cast<trace::ContextNodes*>(nodes_);
}

// Reads the segment and not its mapping, where a page fault would give memory to unused words.
void RingWriter::read_nodes(std::uint64_t offset, std::span<std::uint64_t> words) const {
    const auto bytes = static_cast<ssize_t>(words.size_bytes());
    if (pread(segment_, words.data(), words.size_bytes(),
              static_cast<off_t>(trace::contexts_offset(number_) + offset)) != bytes)
        throw Error(fmt::format("cannot read a trace segment: {}", system_reason(errno)));
}

// The writer resets the length, because none of several readers can. All have given the buffer
// back.
void RingWriter::begin_buffer(std::uint32_t number) {
    const std::uint32_t index = number & (trace::kBufferCount - 1);
    const std::uint64_t offset = trace::kRingOffset + index * std::uint64_t{trace::kBufferBytes};
    slot_->filled[index].store(0, std::memory_order_relaxed);
    begin_ = next_ = reinterpret_cast<trace_record_t*>(base_ + offset);
    end_ = begin_ + trace::kRecordsPerBuffer;
}

namespace {

trace_record_t* copy(std::span<const trace_record_t> records, trace_record_t* to,
                     const MissFilters::Shapes* missed, MissFilters::Shapes wanted) {
    if (missed == nullptr) return std::copy(records.begin(), records.end(), to);
    for (const trace_record_t& record : records) {
        *to = record;
        to += (*missed++ & wanted) != 0 ? 1 : 0;
    }
    return to;
}

}  // namespace

void RingWriter::append(std::span<const trace_record_t> records, const MissFilters::Shapes* missed,
                        MissFilters::Shapes wanted) {
    const bool together = control_.spec.captures & trace::kCaptureValues;
    if (together && records.size() > static_cast<std::size_t>(end_ - next_)) complete();
    while (!records.empty()) {
        if (next_ == end_) complete();
        const auto some =
            std::min<std::size_t>(records.size(), static_cast<std::size_t>(end_ - next_));
        next_ = copy(records.first(some), next_, missed, wanted);
        records = records.subspan(some);
        if (missed != nullptr) missed += some;
    }
}

// Does what the native driver's ThreadTrace does.
void RingWriter::complete() {
    if (records() == 0) return;
    std::uint32_t produced = buffer();
    const std::uint32_t index = produced & (trace::kBufferCount - 1);
    slot_->owner[index].store(slot_->thread.load(), std::memory_order_relaxed);
    slot_->place_in_order[index].store(
        control_.completed_buffers.fetch_add(1, std::memory_order_relaxed),
        std::memory_order_relaxed);
    slot_->filled[index].store(records(), std::memory_order_release);
    slot_->produced.store(++produced, std::memory_order_seq_cst);
    if (produced % (trace::kBufferCount / 4) == 0) ring_doorbell(control_);
    for (;;) {
        const std::uint32_t changes = readers_.changes.load(std::memory_order_seq_cst);
        if (produced - readers_.consumed_by_all(number_, produced) < trace::kBufferCount) break;
        ring_doorbell(control_);
        readers_.wait(changes);
    }
    begin_buffer(produced);
}

SegmentWriter::SegmentWriter(int segment, trace::Readers& readers)
    : segment_(segment), readers_(readers), tables_(map(segment, 0, trace::kThreadsOffset)) {}

SegmentWriter::~SegmentWriter() {
    munmap(tables_, trace::kThreadsOffset);
}

trace::Control& SegmentWriter::control() const {
    return *reinterpret_cast<trace::Control*>(tables_ + trace::kControlOffset);
}

void SegmentWriter::set_tables(std::span<const trace_block_t> blocks,
                               std::span<const trace_instr_t> instrs,
                               std::span<const trace_site_t> sites,
                               std::span<const std::uint16_t> words) {
    if (blocks.size() > trace::max_blocks(control().spec) || instrs.size() > trace::kMaxInstrs ||
        sites.size() > trace::kMaxSites)
        throw Error("the trace has more code than there is room for");
    const auto put = [this](std::uint64_t offset, auto rows) {
        if (!rows.empty()) std::memcpy(tables_ + offset, rows.data(), rows.size_bytes());
    };
    put(trace::kInstrsOffset, instrs);
    put(trace::kSitesOffset, sites);
    put(trace::kBlocksOffset, blocks);
    put(trace::kContextWordsOffset, words);
    trace::Control& shared = control();
    shared.instr_count.store(static_cast<std::uint32_t>(instrs.size()), std::memory_order_release);
    shared.site_count.store(static_cast<std::uint32_t>(sites.size()), std::memory_order_release);
    shared.block_count.store(static_cast<std::uint32_t>(blocks.size()), std::memory_order_release);
}

void SegmentWriter::event(trace::EventType type, std::span<const std::byte> body) {
    const trace::EventHeader header{type, static_cast<std::uint32_t>(body.size())};
    const std::uint64_t padded = (body.size() + 7) & ~std::uint64_t{7};
    const std::uint64_t used = control().event_log_bytes.load(std::memory_order_relaxed);
    if (padded > trace::kEventLogBytes - sizeof header - used) return;
    std::byte* const at = tables_ + trace::kEventLogOffset + used;
    std::memcpy(at, &header, sizeof header);
    if (!body.empty()) std::memcpy(at + sizeof header, body.data(), body.size());
    control().event_log_bytes.store(used + sizeof header + padded, std::memory_order_release);
}

RingWriter& SegmentWriter::ring(std::uint32_t number) {
    while (rings_.size() <= number) {
        rings_.push_back(std::make_unique<RingWriter>(segment_, control(), readers_,
                                                      static_cast<std::uint32_t>(rings_.size())));
        control().thread_count.store(static_cast<std::uint32_t>(rings_.size()),
                                     std::memory_order_release);
    }
    return *rings_[number];
}

void SegmentWriter::set_state(trace::DriverState state) {
    control().state.store(state, std::memory_order_release);
    ring_doorbell(control());
}

}  // namespace assay::replay
