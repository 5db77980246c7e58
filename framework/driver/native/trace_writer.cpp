#include "framework/driver/native/trace_writer.h"

#include "framework/trace/futex.h"

#include <sys/mman.h>
#include <cstring>

namespace assay::native {
namespace {

constexpr std::uint64_t kGuardBytes = 4096;
constexpr std::uint64_t kBufferStride = trace::kBufferBytes + kGuardBytes;

void* map_part(int fd, std::uint64_t offset, std::uint64_t bytes, void* where = nullptr) {
    void* memory =
        mmap(where, bytes, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_NORESERVE | (where ? MAP_FIXED : 0), fd, static_cast<off_t>(offset));
    return memory == MAP_FAILED ? nullptr : memory;
}

unsigned char* reserve(std::uint64_t bytes) {
    void* memory =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<unsigned char*>(memory);
}

}  // namespace

Context* TraceWriter::attach(int fd) {
    fd_ = fd;
    auto* base = static_cast<unsigned char*>(map_part(fd, 0, trace::kThreadsOffset));
    unsigned char* page = reserve(kContextInPage + kContextSpan);
    unsigned char* ring = reserve(kBufferStride * trace::kBufferCount);
    if (!base || !page || !ring) return nullptr;
    unsigned char* context = page + kContextInPage;
    control_ = reinterpret_cast<trace::Control*>(base);
    if (control_->magic != trace::kMagic || control_->layout_version != trace::kLayoutVersion)
        return nullptr;
    log_ = base + trace::kEventLogOffset;
    log_used_ = control_->event_log_bytes.load(std::memory_order_relaxed);
    blocks_ = reinterpret_cast<trace_block_t*>(base + trace::kBlocksOffset);
    instrs_ = reinterpret_cast<trace_instr_t*>(base + trace::kInstrsOffset);
    sites_ = reinterpret_cast<trace_site_t*>(base + trace::kSitesOffset);

    const std::uint64_t slot = trace::thread_offset(0);
    if (mprotect(page, kContextInPage + kSlotOffset, PROT_READ | PROT_WRITE) != 0) return nullptr;
    if (!map_part(fd, slot, trace::kCountersOffset + trace::kCountersBytes, context + kSlotOffset))
        return nullptr;
    for (std::uint32_t i = 0; i < trace::kBufferCount; ++i)
        if (!map_part(fd, slot + trace::kRingOffset + std::uint64_t{i} * trace::kBufferBytes,
                      trace::kBufferBytes, ring + i * kBufferStride))
            return nullptr;
    ring_ = reinterpret_cast<std::uint64_t>(ring);
    slot_ = reinterpret_cast<trace::ThreadSlot*>(context + kSlotOffset);
    slot_->buffer_count = trace::kBufferCount;
    slot_->buffer_start.store(buffer_address(0), std::memory_order_relaxed);
    slot_->cursor.store(buffer_address(0), std::memory_order_relaxed);
    control_->thread_count.store(1, std::memory_order_release);
    return reinterpret_cast<Context*>(context);
}

std::uint64_t TraceWriter::buffer_address(std::uint32_t number) const {
    return ring_ + (number % trace::kBufferCount) * kBufferStride;
}

void TraceWriter::add_instr(const Instruction& instruction) {
    trace_instr_t& row = instrs_[instrs_used_++];
    row.pc = instruction.pc;
    row.block = blocks_used_;
    row.length = instruction.form->length;
    row.flags = instruction.form->trace_flags;
    row.opcode = instruction.form->opcode;
    std::memcpy(row.bytes, instruction.bytes, sizeof row.bytes);
}

void TraceWriter::add_site(std::uint32_t instr, unsigned bytes, unsigned kind, unsigned operand) {
    sites_[sites_used_++] =
        trace_site_t{instr, static_cast<std::uint16_t>(bytes), static_cast<std::uint8_t>(kind),
                     static_cast<std::uint8_t>(operand)};
}

void TraceWriter::add_block(std::uint64_t pc) {
    blocks_[blocks_used_++] = trace_block_t{pc, block_begin_, instrs_used_ - block_begin_};
    block_begin_ = instrs_used_;
}

void TraceWriter::publish() {
    if (detached_) return;
    control_->instr_count.store(instrs_used_, std::memory_order_release);
    control_->site_count.store(sites_used_, std::memory_order_release);
    control_->block_count.store(blocks_used_, std::memory_order_release);
}

bool TraceWriter::tables_full() const {
    constexpr std::uint32_t kMargin = 4096;
    return blocks_used_ + kMargin > trace::kMaxBlocks ||
           instrs_used_ + kMargin > trace::kMaxInstrs || sites_used_ + kMargin > trace::kMaxSites;
}

void TraceWriter::log(trace::EventType type, const void* body, std::size_t bytes,
                      std::string_view tail) {
    if (detached_) return;
    const std::uint64_t length = (sizeof(trace::EventHeader) + bytes + tail.size() + 7) & ~7ULL;
    if (log_used_ + length > trace::kEventLogBytes) return;
    const trace::EventHeader header{type, static_cast<std::uint32_t>(bytes + tail.size())};
    unsigned char* at = log_ + log_used_;
    std::memcpy(at, &header, sizeof header);
    if (bytes) std::memcpy(at + sizeof header, body, bytes);
    std::memcpy(at + sizeof header + bytes, tail.data(), tail.size());
    log_used_ += length;
    control_->event_log_bytes.store(log_used_, std::memory_order_release);
}

void TraceWriter::mapped(std::uint64_t start, std::uint64_t end, std::uint64_t offset,
                         std::string_view path) {
    const trace::MappedEvent body{start, end, offset, blocks_used_, 0};
    log(trace::EventType::kMapped, &body, sizeof body, path);
}

void TraceWriter::unmapped(std::uint64_t start, std::uint64_t end) {
    const trace::UnmappedEvent body{start, end};
    log(trace::EventType::kUnmapped, &body, sizeof body, {});
}

void TraceWriter::partial(std::uint32_t block, std::uint32_t executed, bool counted) {
    const trace::PartialEvent body{block, executed, counted ? 1U : 0U, 0};
    log(trace::EventType::kPartial, &body, sizeof body, {});
}

void TraceWriter::message(std::string_view text) {
    log(trace::EventType::kMessage, nullptr, 0, text);
}

void TraceWriter::refuse(std::string_view text) {
    log(trace::EventType::kRefused, nullptr, 0, text);
    set_state(trace::DriverState::kRefused);
}

void TraceWriter::leaves_for(std::string_view text) {
    log(trace::EventType::kLeaves, nullptr, 0, text);
}

void TraceWriter::set_state(trace::DriverState state) {
    if (detached_) return;
    control_->state.store(state, std::memory_order_release);
    ring_doorbell();
}

void TraceWriter::set_pid(std::int32_t pid) {
    control_->pid = pid;
}

void TraceWriter::ring_doorbell() {
    control_->doorbell.fetch_add(1, std::memory_order_seq_cst);
    if (control_->collector_sleeps.load(std::memory_order_seq_cst))
        trace::futex_wake(control_->doorbell);
}

void TraceWriter::append(std::uint64_t value, std::uint32_t site, std::uint32_t aux) {
    std::uint64_t cursor = slot_->cursor.load(std::memory_order_relaxed);
    if (is_buffer_end(cursor)) cursor = next_buffer();
    const trace_record_t record{value, site, aux};
    std::memcpy(reinterpret_cast<void*>(cursor), &record, sizeof record);
    slot_->cursor.store(cursor + sizeof record, std::memory_order_relaxed);
}

bool TraceWriter::is_buffer_end(std::uint64_t address) const {
    return address == slot_->buffer_start.load(std::memory_order_relaxed) + trace::kBufferBytes;
}

std::uint64_t TraceWriter::executions(std::uint32_t site) const {
    const auto* counters = reinterpret_cast<const std::uint64_t*>(
        reinterpret_cast<const unsigned char*>(slot_) + trace::kCountersOffset);
    return counters[block_of(site)];
}

std::span<const trace_record_t> TraceWriter::last_buffer() const {
    const std::uint32_t produced = slot_->produced.load(std::memory_order_relaxed);
    if (produced == 0 || detached_) return {};
    return {reinterpret_cast<const trace_record_t*>(buffer_address(produced - 1)),
            trace::kRecordsPerBuffer};
}

std::uint64_t TraceWriter::next_buffer() {
    constexpr std::uint32_t kBuffersPerBell = trace::kBufferCount / 4;
    static_assert(kBuffersPerBell != 0);
    std::uint32_t produced = slot_->produced.load(std::memory_order_relaxed);
    if (!detached_) {
        slot_->filled[produced % trace::kBufferCount].store(trace::kRecordsPerBuffer,
                                                            std::memory_order_relaxed);
        const std::uint64_t start = buffer_address(produced + 1);
        // The order lets a collector that finds this process dead tell which buffer the cursor
        // belongs to: the cursor first goes to the next buffer, and the start follows it.
        slot_->cursor.store(start, std::memory_order_relaxed);
        slot_->buffer_start.store(start, std::memory_order_release);
        slot_->produced.store(++produced, std::memory_order_seq_cst);
        // Waking the collector costs more than filling a buffer: only when there is some work.
        if (produced % kBuffersPerBell == 0) ring_doorbell();
        while (produced - slot_->consumed.load(std::memory_order_seq_cst) >= trace::kBufferCount) {
            slot_->producer_waits.store(1, std::memory_order_seq_cst);
            const std::uint32_t consumed = slot_->consumed.load(std::memory_order_seq_cst);
            if (produced - consumed < trace::kBufferCount) break;
            trace::futex_wait(slot_->consumed, consumed, nullptr);
        }
        slot_->producer_waits.store(0, std::memory_order_relaxed);
    }
    return slot_->buffer_start.load(std::memory_order_relaxed);
}

void TraceWriter::detach() {
    constexpr int kFailedChild = 125;
    detached_ = true;
    auto privately = [=](void* where, std::uint64_t bytes) {
        if (mmap(where, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
            _exit(kFailedChild);
    };
    const std::uint64_t cursor = slot_->cursor.load(std::memory_order_relaxed);
    const std::uint64_t start = slot_->buffer_start.load(std::memory_order_relaxed);
    privately(slot_, trace::kCountersOffset + trace::kCountersBytes);
    for (std::uint32_t i = 0; i < trace::kBufferCount; ++i)
        privately(reinterpret_cast<void*>(ring_ + i * kBufferStride), trace::kBufferBytes);
    privately(blocks_, trace::kThreadsOffset - trace::kBlocksOffset);
    slot_->cursor.store(cursor, std::memory_order_relaxed);
    slot_->buffer_start.store(start, std::memory_order_relaxed);
}

}  // namespace assay::native
