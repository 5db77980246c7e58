// The driver's side of the trace segment, to be played by tests. Records wait, as a driver's do,
// while all buffers of their slot are full.
#pragma once

#include "framework/trace/futex.h"
#include "framework/trace/segment_layout.h"

#include <sys/mman.h>
#include <cstdlib>
#include <cstring>
#include <string_view>

class FakeTrace {
  public:
    // As many slots as the segment behind `fd` is used for here.
    static constexpr std::uint32_t kSlots = 8;

    explicit FakeTrace(int fd) {
        void* const memory =
            mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
        base_ = static_cast<char*>(memory);
        if (memory == MAP_FAILED || control().magic != assay::trace::kMagic) std::abort();
        control().state = assay::trace::DriverState::kRunning;
        logged_ = control().event_log_bytes;
    }
    ~FakeTrace() { munmap(base_, kBytes); }
    FakeTrace(const FakeTrace&) = delete;
    FakeTrace& operator=(const FakeTrace&) = delete;

    assay::trace::Control& control() { return *at<assay::trace::Control>(0); }
    assay::trace::ThreadSlot& slot(std::uint32_t index) {
        return *at<assay::trace::ThreadSlot>(assay::trace::thread_offset(index));
    }

    // Publishes the next slot, for the thread with this number.
    void open_slot(std::uint32_t buffer_count, std::uint32_t thread) {
        const std::uint32_t index = control().thread_count;
        slot(index).buffer_count = buffer_count;
        slot(index).thread = thread;
        slot(index).buffer_start = slot(index).cursor = ring(index);
        control().thread_count = index + 1;
    }
    // The buffer is completed as it is.
    void end_buffer(std::uint32_t index) {
        if (slot(index).cursor != slot(index).buffer_start) next_buffer(index);
    }
    // The slot's thread has ended, and another one uses the slot.
    void reuse_slot(std::uint32_t index, std::uint32_t thread) {
        end_buffer(index);
        slot(index).thread = thread;
    }

    void map(std::uint64_t start, std::string_view path) {
        const assay::trace::MappedEvent event{start, start + 0x1000, 0x1000, 0, 0};
        log(assay::trace::EventType::kMapped, &event, sizeof event, path);
    }

    void log(assay::trace::EventType type, const void* body, std::size_t bytes,
             std::string_view text) {
        const assay::trace::EventHeader header{type,
                                               static_cast<std::uint32_t>(bytes + text.size())};
        char* to = at<char>(assay::trace::kEventLogOffset) + logged_;
        std::memcpy(to, &header, sizeof header);
        if (bytes) std::memcpy(to + sizeof header, body, bytes);
        std::memcpy(to + sizeof header + bytes, text.data(), text.size());
        logged_ += (sizeof header + header.bytes + 7) & ~std::uint64_t{7};
        control().event_log_bytes = logged_;
    }

    // A block of instructions of four bytes each, with a fetch and a read of each.
    void block(std::uint64_t pc, std::uint32_t instrs) {
        const std::uint32_t first = instrs_;
        for (std::uint32_t i = 0; i < instrs; ++i, ++instrs_) {
            trace_instr_t& row = at<trace_instr_t>(assay::trace::kInstrsOffset)[instrs_];
            row.pc = pc + 4 * i;
            row.block = blocks_;
            row.length = 4;
            for (const std::uint8_t kind : {TRACE_SITE_FETCH, TRACE_SITE_READ})
                at<trace_site_t>(assay::trace::kSitesOffset)[sites_++] = {instrs_, 4, kind, 0};
        }
        at<trace_block_t>(assay::trace::kBlocksOffset)[blocks_] = {pc, first, instrs};
        ++blocks_;
        control().instr_count = instrs_;
        control().site_count = sites_;
        control().block_count = blocks_;
    }

    void executed(std::uint32_t index, std::uint32_t block, std::uint64_t times) {
        at<std::uint64_t>(assay::trace::thread_offset(index) +
                          assay::trace::kCountersOffset)[block] += times;
    }

    template <typename Run = assay::trace::Run>
    Run& run(std::uint32_t index, std::uint32_t number) {
        return at<Run>(assay::trace::thread_offset(index) + assay::trace::kRunsOffset)[number];
    }

    void record(std::uint32_t index, std::uint64_t value, std::uint32_t site,
                std::uint32_t aux = 0) {
        assay::trace::ThreadSlot& to = slot(index);
        const std::uint64_t cursor = to.cursor;
        *at<trace_record_t>(cursor) = {value, site, aux};
        to.cursor = cursor + sizeof(trace_record_t);
        if (to.cursor - to.buffer_start == assay::trace::kBufferBytes) next_buffer(index);
    }

    void finish(assay::trace::DriverState state) {
        control().state = state;
        ring_doorbell();
    }

  private:
    static constexpr std::uint64_t kBytes = assay::trace::thread_offset(kSlots);

    template <typename T>
    T* at(std::uint64_t offset) {
        return reinterpret_cast<T*>(base_ + offset);
    }
    // Addresses in the ring are offsets in the segment here.
    static std::uint64_t ring(std::uint32_t index) {
        return assay::trace::thread_offset(index) + assay::trace::kRingOffset;
    }

    void next_buffer(std::uint32_t index) {
        assay::trace::ThreadSlot& of = slot(index);
        const std::uint32_t produced = of.produced, last = produced % of.buffer_count;
        const std::uint64_t bytes = of.cursor - of.buffer_start;
        of.owner[last] = of.thread.load();
        if (control().spec.slice != 0 || control().spec.captures & assay::trace::kCaptureMappings)
            of.place_in_order[last] = control().completed_buffers++;
        of.filled[last] = static_cast<std::uint32_t>(bytes / sizeof(trace_record_t));
        const std::uint64_t next = (produced + 1) % of.buffer_count;
        of.cursor = ring(index) + next * assay::trace::kBufferBytes;
        of.buffer_start = of.cursor.load();
        of.produced = produced + 1;
        ring_doorbell();
        for (;;) {
            of.producer_waits = 1;
            const std::uint32_t consumed = of.consumed;
            if (produced + 1 - consumed < of.buffer_count) break;
            assay::trace::futex_wait(of.consumed, consumed, nullptr);
        }
        of.producer_waits = 0;
    }

    void ring_doorbell() {
        ++control().doorbell;
        if (control().collector_sleeps) assay::trace::futex_wake(control().doorbell);
    }

    char* base_;
    std::uint64_t logged_ = 0;
    std::uint32_t blocks_ = 0, instrs_ = 0, sites_ = 0;
};
