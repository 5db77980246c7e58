#include "framework/collector/trace_reader.h"

#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/trace/futex.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>

namespace assay::collector {
namespace {

constexpr std::uint32_t kMaxInstrBytes = 15;  // Intel SDM volume 2, section 2.3.11

[[noreturn]] void corrupt(const std::string& what) {
    throw Error(fmt::format(
        "the trace is damaged ({}): the program has probably written over the driver's memory; "
        "the profile ends here",
        what));
}

void check_length(const char* what, std::uint64_t length, std::uint64_t before,
                  std::uint64_t capacity) {
    if (length < before || length > capacity)
        corrupt(fmt::format("{} {} after {}, of at most {}", length, what, before, capacity));
}

}  // namespace

TraceReader::TraceReader(const Segment& segment, Sink sink)
    : segment_(segment), sink_(std::move(sink)) {}

bool TraceReader::consume() {
    bool any = false;
    for (std::uint32_t thread = 0; thread < threads(); ++thread) {
        const trace::ThreadSlot& slot = segment_.slot(thread);
        for (std::uint32_t ready = completed(thread); ready > 0; --ready) {
            refresh();
            const std::uint32_t number = consumed_[thread];
            const std::uint32_t filled = slot.filled[number % trace::kBufferCount].load();
            pass_on(thread, segment_.buffer(thread, number), filled);
            give_back(thread);
            any = true;
        }
    }
    return any;
}

void TraceReader::consume_rest() {
    consume();
    refresh();
    for (std::uint32_t thread = 0; thread < threads(); ++thread) {
        const trace::ThreadSlot& slot = segment_.slot(thread);
        const std::uint32_t number = consumed_[thread];
        // A driver that was killed while it completed a buffer has said how full it is, and may
        // have moved the cursor on already. Buffers given back say 0, see give_back().
        std::uint64_t count = slot.filled[number % trace::kBufferCount].load();
        if (count == 0) {
            const std::uint64_t bytes = slot.cursor.load() - slot.buffer_start.load();
            check_length("bytes in the last buffer", bytes, 0, trace::kBufferBytes);
            count = bytes / sizeof(trace_record_t);
        }
        pass_on(thread, segment_.buffer(thread, number), static_cast<std::uint32_t>(count));
    }
}

bool TraceReader::discard() {
    bool any = false;
    for (std::uint32_t thread = 0; thread < threads(); ++thread) {
        const std::uint32_t produced = segment_.slot(thread).produced.load();
        for (; consumed_[thread] != produced; any = true) give_back(thread);
    }
    return any;
}

std::uint32_t TraceReader::threads() const {
    return std::min(segment_.control().thread_count.load(), trace::kMaxThreads);
}

std::uint32_t TraceReader::completed(std::uint32_t thread) const {
    const std::uint32_t ready = segment_.slot(thread).produced.load() - consumed_[thread];
    check_length("complete buffers", ready, 0, trace::kBufferCount);
    return ready;
}

void TraceReader::pass_on(std::uint32_t thread, const trace_record_t* records,
                          std::uint32_t count) {
    check_length("records in a buffer", count, 0, trace::kRecordsPerBuffer);
    if (count == 0) return;
    std::uint32_t highest = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        // The records are in the cache of the driver's processor: it takes many lines on their
        // way at once to keep up. bzip2 gains 3 %.
        constexpr std::uint32_t kAhead = 8192 / sizeof(trace_record_t);
        if (i % (64 / sizeof(trace_record_t)) == 0) __builtin_prefetch(records + i + kAhead, 0, 2);
        highest = std::max(highest, records[i].site);
    }
    if (highest >= code_.sites.size())
        corrupt(fmt::format("a record of site {} of {}", highest, code_.sites.size()));
    records_ += count;
    sink_(thread, {records, count});
}

void TraceReader::give_back(std::uint32_t thread) {
    trace::ThreadSlot& slot = segment_.slot(thread);
    slot.filled[consumed_[thread] % trace::kBufferCount].store(0, std::memory_order_relaxed);
    slot.consumed.store(++consumed_[thread], std::memory_order_seq_cst);
    // The driver announces that it waits before it looks at `consumed` again: one of both sees
    // the other.
    if (slot.producer_waits.load(std::memory_order_seq_cst)) trace::futex_wake(slot.consumed);
}

void TraceReader::refresh() {
    refresh_tables();
    refresh_events();
}

// The driver publishes instructions, then sites, then blocks. Read in the order blocks, sites,
// instructions, each table is complete with regard to those read before it. Instructions whose
// block is not there yet are left for the next time, and so are their sites: no record that has
// arrived can refer to them.
void TraceReader::refresh_tables() {
    const trace::Control& control = segment_.control();
    const std::uint32_t blocks = control.block_count.load(std::memory_order_acquire);
    const std::uint32_t sites = control.site_count.load(std::memory_order_acquire);
    std::uint32_t instrs = control.instr_count.load(std::memory_order_acquire);
    check_length("blocks", blocks, code_.blocks.size(), trace::kMaxBlocks);
    check_length("sites", sites, code_.sites.size(), trace::kMaxSites);
    check_length("instructions", instrs, code_.instrs.size(), trace::kMaxInstrs);
    if (blocks == code_.blocks.size()) return;

    for (std::size_t i = code_.blocks.size(); i < blocks; ++i) check_block(i, instrs);
    const trace_block_t& last = segment_.blocks()[blocks - 1];
    instrs = last.first_instr + last.instr_count;
    std::size_t site = code_.sites.size();
    while (site < sites && segment_.sites()[site].instr < instrs) ++site;
    code_ = {{segment_.blocks(), blocks}, {segment_.instrs(), instrs}, {segment_.sites(), site}};
}

// Blocks follow one another in the instruction table without gaps.
void TraceReader::check_block(std::size_t index, std::uint32_t instrs) const {
    const trace_block_t& block = segment_.blocks()[index];
    std::uint32_t expected = 0;
    if (index > 0) {
        const trace_block_t& before = segment_.blocks()[index - 1];
        expected = before.first_instr + before.instr_count;
    }
    if (block.first_instr != expected || block.instr_count > instrs - expected)
        corrupt(fmt::format("block {} with instructions {}+{} of {}", index, block.first_instr,
                            block.instr_count, instrs));
    for (std::uint32_t i = 0; i < block.instr_count; ++i) {
        const trace_instr_t& instr = segment_.instrs()[expected + i];
        if (instr.block != index || instr.length == 0 || instr.length > kMaxInstrBytes)
            corrupt(fmt::format("instruction {} of {} bytes in block {}", expected + i,
                                instr.length, instr.block));
    }
}

void TraceReader::refresh_events() {
    const std::uint64_t bytes = segment_.control().event_log_bytes.load(std::memory_order_acquire);
    check_length("bytes of events", bytes, event_bytes_, trace::kEventLogBytes);
    while (event_bytes_ < bytes) {
        trace::EventHeader header;
        const std::byte* at = segment_.event_log() + event_bytes_;
        if (bytes - event_bytes_ < sizeof header) corrupt("half an event");
        std::memcpy(&header, at, sizeof header);
        const std::uint64_t padded = (std::uint64_t{header.bytes} + 7) & ~std::uint64_t{7};
        if (padded > bytes - event_bytes_ - sizeof header)
            corrupt(fmt::format("an event of {} bytes", header.bytes));
        take_event(header, at + sizeof header);
        event_bytes_ += sizeof header + padded;
    }
}

void TraceReader::take_event(const trace::EventHeader& header, const std::byte* body) {
    const auto fixed = [&]<typename T>(T into) {
        if (header.bytes < sizeof(T)) corrupt(fmt::format("an event of {} bytes", header.bytes));
        std::memcpy(&into, body, sizeof(T));
        return into;
    };
    const auto text = [&](std::size_t from) {
        return std::string_view(reinterpret_cast<const char*>(body) + from, header.bytes - from);
    };
    switch (header.type) {
        case trace::EventType::kMapped: {
            const auto event = fixed(trace::MappedEvent{});
            if (event.start >= event.end) corrupt("an empty mapping");
            addresses_.map(event.start, event.end, event.offset, text(sizeof event));
            return;
        }
        case trace::EventType::kUnmapped: {
            const auto event = fixed(trace::UnmappedEvent{});
            if (event.start >= event.end) corrupt("an empty mapping");
            addresses_.unmap(event.start, event.end);
            return;
        }
        case trace::EventType::kPartial:
            partials_.push_back(fixed(trace::PartialEvent{}));
            return;
        case trace::EventType::kMessage:
            log::remark(text(0));
            return;
        case trace::EventType::kRefused:
            refusal_ = text(0);
            return;
        case trace::EventType::kLeaves:
            leaves_for_ = text(0);
            return;
        case trace::EventType::kCommand:
            return;  // Segment::command()
    }
    corrupt(fmt::format("an event of kind {}", static_cast<std::uint32_t>(header.type)));
}

std::uint64_t TraceReader::block_count(std::uint32_t block) const {
    std::uint64_t sum = 0;
    for (std::uint32_t thread = 0; thread < threads(); ++thread)
        sum += segment_.counters(thread)[block];
    return sum;
}

std::vector<std::uint64_t> TraceReader::instruction_counts() const {
    std::vector<std::uint64_t> counts(code_.instrs.size());
    for (std::uint32_t i = 0; i < code_.blocks.size(); ++i) {
        const trace_block_t& block = code_.blocks[i];
        const std::uint64_t count = block_count(i);
        std::fill_n(counts.begin() + block.first_instr, block.instr_count, count);
    }
    for (const trace::PartialEvent& partial : partials_) {
        if (partial.block >= code_.blocks.size()) continue;
        const trace_block_t& block = code_.blocks[partial.block];
        const std::uint32_t executed = std::min(partial.executed, block.instr_count);
        for (std::uint32_t i = 0; i < block.instr_count; ++i) {
            if (i < executed && !partial.counted) ++counts[block.first_instr + i];
            if (i >= executed && partial.counted) --counts[block.first_instr + i];
        }
    }
    return counts;
}

std::uint64_t TraceReader::instructions() const {
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < code_.blocks.size(); ++i)
        sum += block_count(i) * code_.blocks[i].instr_count;
    return sum;
}

}  // namespace assay::collector
