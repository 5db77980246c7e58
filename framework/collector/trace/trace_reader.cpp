#include "framework/collector/trace/trace_reader.h"

#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/trace/futex.h"

#include <fmt/core.h>
#include <algorithm>
#include <bit>
#include <cstring>

namespace assay::collector {
namespace {

constexpr std::uint32_t kMaxInstrBytes = 15;  // Intel SDM volume 2, section 2.3.11

constexpr std::uint32_t kMostLeftOut = 1U << 31;  // Run::left_out

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

TraceReader::TraceReader(Segment& segment, Sink sink, Role role)
    : segment_(segment), sink_(std::move(sink)), role_(role), counts_(segment, code_) {}

bool TraceReader::consume() {
    open_rings();
    if (segment_.control().spec.slice != 0) return consume_in_order();
    if (segment_.control().spec.captures & trace::kCaptureMappings) return consume_oldest_first();
    std::uint32_t taken = 0, before = 0;
    do {
        before = taken;
        for (Ring& ring : rings_) taken += consume_one(ring);
    } while (taken != before && taken < trace::kBufferCount);
    return taken != 0;
}

bool TraceReader::consume_in_order() {
    std::uint32_t taken = 0;
    while (taken < trace::kBufferCount) {
        Ring* const ring = next_in_order();
        if (ring == nullptr || !consume_one(*ring)) break;
        ++taken_in_order_;
        ++taken;
    }
    return taken != 0;
}

bool TraceReader::consume_oldest_first() {
    std::uint32_t taken = 0;
    while (taken < trace::kBufferCount) {
        Ring* const ring = oldest();
        if (ring == nullptr || !consume_one(*ring)) break;
        ++taken;
    }
    return taken != 0;
}

// Returns the ring with the oldest completed buffer. Older buffers can be completed in other slots
// during the check, so it is repeated until it finds no older one. A buffer is therefore never
// passed on before another one that has led to it.
TraceReader::Ring* TraceReader::oldest() {
    std::optional<std::size_t> found;
    std::uint64_t oldest = UINT64_MAX;
    bool changed = true;
    for (std::size_t looks = 0; changed && looks <= rings_.size(); ++looks) {
        changed = false;
        open_rings();
        for (std::size_t i = 0; i < rings_.size(); ++i) {
            if (!has_next(rings_[i]) || rings_[i].place_of_next() >= oldest) continue;
            found = i;
            oldest = rings_[i].place_of_next();
            changed = true;
        }
    }
    return found ? &rings_[*found] : nullptr;
}

// Only the running thread completes buffers, so the next buffer can be missing only during one
// check of all slots. A longer gap means that the trace is damaged.
TraceReader::Ring* TraceReader::next_in_order() {
    constexpr std::chrono::seconds kPatience{5};
    bool others = false;
    for (Ring& ring : rings_) {
        if (!has_next(ring)) continue;
        if (ring.place_of_next() == taken_in_order_) {
            in_vain_since_.reset();
            return &ring;
        }
        others = true;
    }
    const auto now = std::chrono::steady_clock::now();
    if (!others)
        in_vain_since_.reset();
    else if (!in_vain_since_)
        in_vain_since_ = now;
    else if (now - *in_vain_since_ > kPatience)
        corrupt(fmt::format("buffer {} is missing", taken_in_order_));
    return nullptr;
}

void TraceReader::consume_rest() {
    while (role_ == Role::kFirst && consume()) {
    }
    open_rings();
    const auto next = [this](const Ring& ring) { return has_next(ring); };
    const bool in_order = role_ == Role::kFirst && segment_.control().spec.slice != 0;
    if (in_order && std::any_of(rings_.begin(), rings_.end(), next))
        corrupt(fmt::format("buffer {} is missing", taken_in_order_));
    refresh();
    for (const Ring& ring : rings_) consume_last(ring);
    const trace::Spec& spec = segment_.control().spec;
    if (spec.data.runs() || trace::leaves_out_objects(spec))
        for (const Ring& ring : rings_) end_runs(ring);
}

// The last records of a thread: two, or what its buffer has.
std::span<const trace_record_t> TraceReader::last_records(const Ring& ring, std::uint64_t cursor) {
    const std::uint64_t count =
        std::min<std::uint64_t>((cursor - ring.slot->buffer_start.load()) / sizeof(trace_record_t),
                                trace::kRecordsPerBuffer);
    return ring.buffer().first(count).last(std::min<std::uint64_t>(count, 2));
}

// Passes on the references that were left out and that no record reports.
void TraceReader::end_runs(const Ring& ring) {
    const std::uint32_t count = segment_.control().run_count.load();
    check_length("runs", count, 0, trace::kMaxRuns);
    std::vector<trace_record_t> records;
    const auto add = [&](const auto& run, const trace_record_t& record, bool told) {
        if (run.left_out >= kMostLeftOut)
            corrupt(fmt::format("{} references of a run", run.left_out));
        if (run.left_out != 0 && !told) records.push_back(record);
    };
    // If the program was killed, a record may already tell a run that still seems to go on.
    const std::uint64_t cursor = ring.slot->cursor.load();
    if (segment_.control().spec.data.runs()) {
        for (const trace::Run& run : segment_.runs<trace::Run>(ring.number, count))
            add(run, trace::last_of(run), trace::is_told(run, cursor));
    } else {
        const std::span<const trace_record_t> last = last_records(ring, cursor);
        for (const trace::ObjectRun& run : segment_.runs<trace::ObjectRun>(ring.number, count)) {
            const trace_record_t end = trace::end_of(run);
            const auto is_end = [&end](const trace_record_t& record) {
                return record.value == end.value && record.site == end.site &&
                       record.aux == end.aux;
            };
            add(run, end, run.bytes == 0 && std::any_of(last.begin(), last.end(), is_end));
        }
    }
    records_ += records.size();
    if (passes_over_) return;
    check_sites(records);
    for (std::span<const trace_record_t> rest(records); !rest.empty();) {
        const std::size_t some = std::min<std::size_t>(rest.size(), trace::kRecordsPerBuffer);
        sink_({ring.slot->thread.load(), ring.number}, rest.first(some), {});
        rest = rest.subspan(some);
    }
}

// Uses only values that need no check.
bool TraceReader::discard() {
    bool any = false;
    segment_.map_slots(counts_.slots());
    for (std::uint32_t index = 0; index < segment_.mapped_slots(); ++index) {
        const trace::ThreadSlot& slot = segment_.slot(index);
        const std::uint32_t produced = slot.produced.load();
        const auto& consumed = readers_ ? readers_->consumed[index][reader_] : slot.consumed;
        if (consumed.load() == produced) continue;
        set_consumed(index, produced, trace::kBufferCount);
        any = true;
    }
    kept_.clear();
    return any;
}

void TraceReader::open_rings() {
    const std::uint32_t count = segment_.control().thread_count.load();
    if (count == rings_.size()) return;
    check_length("thread slots", count, rings_.size(), trace::kMaxThreads);
    segment_.map_slots(count);
    for (auto index = static_cast<std::uint32_t>(rings_.size()); index < count; ++index) {
        trace::ThreadSlot& slot = segment_.slot(index);
        const Ring ring{index, &slot, segment_.ring(index), slot.buffer_count, 0};
        if (!std::has_single_bit(ring.buffer_count) || ring.buffer_count > trace::kBufferCount)
            corrupt(fmt::format("a ring of {} buffers", ring.buffer_count));
        rings_.push_back(ring);
    }
}

bool TraceReader::consume_one(Ring& ring) {
    if (kept_.size() >= kMostKept || !has_next(ring)) return false;
    kept_.push_back({ring.number, ring.consumed});
    if (announce_) announce_(ring.number);
    pass_on_next(ring);
    if (!announce_) release(released_ + 1);
    return true;
}

bool TraceReader::has_next(const Ring& ring) const {
    const std::uint32_t ready = ring.slot->produced.load() - ring.consumed;
    check_length("complete buffers", ready, 0, ring.buffer_count);
    return ready != 0;
}

void TraceReader::pass_on_next(Ring& ring) {
    refresh();
    allocations_ = ring.slot->allocations_at_end[ring.index()].load();
    pass_on(ring, complete(ring));
    ++ring.consumed;
}

TraceReader::Complete TraceReader::complete(const Ring& ring) {
    const trace::ThreadSlot& slot = *ring.slot;
    const std::uint32_t index = ring.index();
    return {slot.owner[index].load(), slot.filled[index].load(), slot.touched_at_end[index],
            slot.time_at_end[index].load()};
}

void TraceReader::follow(std::uint32_t slot) {
    open_rings();
    if (slot >= rings_.size() || !has_next(rings_[slot])) corrupt("a buffer is not there");
    pass_on_next(rings_[slot]);
}

void TraceReader::release(std::uint64_t buffers) {
    for (; released_ < buffers && !kept_.empty(); ++released_) {
        give_back(kept_.front());
        kept_.pop_front();
    }
}

void TraceReader::give_back(const Kept& kept) {
    const Ring& ring = rings_[kept.slot];
    // If there are several first readers, the driver does this.
    if (!readers_)
        ring.slot->filled[kept.number & (ring.buffer_count - 1)].store(0,
                                                                       std::memory_order_relaxed);
    set_consumed(kept.slot, kept.number + 1, ring.buffer_count);
}

// The driver sets producer_waits before it reads `consumed` again, so one side sees the change of
// the other. Waking the driver costs both sides about as much time as a part of a buffer. The
// driver therefore sleeps until half of its ring is free. The collector does not wait for that.
void TraceReader::set_consumed(std::uint32_t index, std::uint32_t consumed,
                               std::uint32_t buffer_count) {
    if (readers_) return readers_->give_back(reader_, index, consumed);
    trace::ThreadSlot& slot = segment_.slot(index);
    slot.consumed.store(consumed, std::memory_order_seq_cst);
    if (slot.producer_waits.load(std::memory_order_seq_cst) &&
        slot.produced.load(std::memory_order_relaxed) - consumed <= buffer_count / 2)
        trace::futex_wake(slot.consumed);
}

// A driver can be killed while it completes a buffer. The thread and the length of the buffer are
// then set, and the cursor may have moved. The length of a buffer that was given back is 0.
void TraceReader::consume_last(const Ring& ring) {
    allocations_ = segment_.control().allocation_count.load();
    const trace::ThreadSlot& slot = *ring.slot;
    if (const Complete buffer = complete(ring); buffer.records != 0) return pass_on(ring, buffer);
    const std::uint64_t bytes = slot.cursor.load() - slot.buffer_start.load();
    check_length("bytes in the last buffer", bytes, 0, trace::kBufferBytes);
    std::uint64_t touched[trace::kMostSets];
    std::transform(std::begin(slot.footprints), std::end(slot.footprints), touched,
                   [](const auto& footprint) { return footprint.touched.load(); });
    pass_on(ring, {slot.thread.load(), bytes / sizeof(trace_record_t), touched, slot.time.load()});
}

void TraceReader::pass_on(const Ring& ring, const Complete& complete) {
    const auto [thread, count, touched, time] = complete;
    const std::span<const trace_record_t> buffer = ring.buffer();
    check_length("records in a buffer", count, 0, buffer.size());
    records_ += count;
    if (passes_over_) return;
    // Earlier threads of the slot can have markers without records.
    while (const auto earlier = markers_.earlier_thread(ring.number, thread, ring.consumed))
        sink_({*earlier, ring.number}, {}, markers_.take(ring.number, *earlier, ring.consumed, 0));
    const auto markers = markers_.take(ring.number, thread, ring.consumed, count);
    const trace::Spec& spec = segment_.control().spec;
    if (spec.data.footprints()) footprints_ = {touched, std::min(spec.data.sets, trace::kMostSets)};
    if (count != 0 || !markers.empty())
        pass_on_parts({thread, ring.number}, time, buffer.first(count), markers);
    footprints_ = {};
}

// Footprints are reported at the end of a whole buffer only.
void TraceReader::pass_on_parts(Source source, std::uint64_t time,
                                std::span<const trace_record_t> records,
                                std::span<const trace_marker_t> markers) {
    check_sites(records);
    const bool whole = segment_.control().spec.data.footprints();
    for (std::size_t first = 0;;) {
        const std::span<const trace_record_t> left = records.subspan(first);
        const auto part = left.first(whole ? left.size() : part_length(left));
        const std::size_t end = first + part.size();
        time_ = end == records.size() ? time : 0;
        std::vector<trace_marker_t> among;
        for (; !markers.empty() && (end == records.size() || markers[0].record < end);
             markers = markers.subspan(1)) {
            among.push_back(markers[0]);
            among.back().record -= first;
        }
        sink_(source, part, among);
        if (end == records.size()) return;
        first = end;
    }
}

// All values of one execution stay in the same part.
std::size_t TraceReader::part_length(std::span<const trace_record_t> records) const {
    constexpr std::size_t kMost = 8192;
    if (records.size() <= kMost) return records.size();
    if (!(segment_.control().spec.captures & trace::kCaptureValues)) return kMost;
    const auto instr = [&](std::size_t i) { return code_.sites[records[i].site].instr; };
    for (std::size_t length = kMost; length > 0; --length)
        if (instr(length) != instr(length - 1)) return length;
    return records.size();
}

void TraceReader::check_sites(std::span<const trace_record_t> records) const {
    if (records.empty()) return;
    std::uint32_t highest = 0;
    for (std::size_t i = 0; i < records.size(); ++i) {
        // The records are in the cache of the driver's processor. To keep up, the prefetches must
        // bring many cache lines at once. They make bzip2 3 % faster.
        constexpr std::size_t kAhead = 8192 / sizeof(trace_record_t);
        if (i % (64 / sizeof(trace_record_t)) == 0)
            __builtin_prefetch(records.data() + i + kAhead, 0, 2);
        highest = std::max(highest, records[i].site);
    }
    if (highest >= code_.sites.size())
        corrupt(fmt::format("a record of site {} of {}", highest, code_.sites.size()));
}

void TraceReader::refresh() {
    refresh_tables();
    refresh_events();
}

// The driver publishes instructions, then sites, then blocks. This function reads blocks, then
// sites, then instructions, so each table is complete with regard to those read before.
// Instructions of a block that is not published yet stay for the next time, and their sites also:
// no record that has arrived can refer to them.
void TraceReader::refresh_tables() {
    const trace::Control& control = segment_.control();
    const std::uint32_t blocks = control.block_count.load(std::memory_order_acquire);
    const std::uint32_t sites = control.site_count.load(std::memory_order_acquire);
    std::uint32_t instrs = control.instr_count.load(std::memory_order_acquire);
    check_length("blocks", blocks, code_.blocks.size(), trace::max_blocks(control.spec));
    check_length("sites", sites, code_.sites.size(), trace::kMaxSites);
    check_length("instructions", instrs, code_.instrs.size(), trace::kMaxInstrs);
    if (blocks == code_.blocks.size() && sites == code_.sites.size()) return;

    for (std::size_t i = code_.blocks.size(); i < blocks; ++i) check_block(i, instrs);
    if (blocks == 0) corrupt("sites without instructions");
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
        case trace::EventType::kThreadName: {
            const auto event = fixed(trace::ThreadNameEvent{});
            thread_names_[event.thread] = text(sizeof event);
            return;
        }
        case trace::EventType::kMappedFile:
            mapped_files_.emplace_back(text(0));
            return;
        case trace::EventType::kPartial:
            fixed(trace::PartialEvent{});
            counts_.add_left_early(body);
            return;
        case trace::EventType::kMarker: {
            const auto event = fixed(trace::MarkerEvent{});
            check_length("slots", event.slot, 0, trace::kMaxThreads - 1);
            markers_.add(event, text(sizeof event));
            return;
        }
        case trace::EventType::kProblem:
            if (role_ == Role::kFirst) log::problem(text(0));
            return;
        case trace::EventType::kMessage:
            if (role_ == Role::kFirst) log::remark(text(0));
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

}  // namespace assay::collector
