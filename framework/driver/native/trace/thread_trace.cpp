#include "framework/driver/native/trace/thread_trace.h"

#include "framework/driver/native/trace/regions.h"

#include "framework/driver/native/memory/address_space.h"
#include "framework/trace/futex.h"

#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cstring>

namespace assay::native {
namespace {

constexpr std::uint64_t kGuardBytes = 4096;
constexpr std::uint64_t kBufferStride = trace::kBufferBytes + kGuardBytes;
constexpr std::uint64_t kSharedBytes = trace::kRunsOffset + trace::kRunsBytes;

// Maps a part of the segment `fd`; with -1, memory of this process.
bool map_part(int fd, std::uint64_t offset, std::uint64_t bytes, void* where) {
    const int kind = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    return mmap(where, bytes, PROT_READ | PROT_WRITE, kind | MAP_NORESERVE | MAP_FIXED, fd,
                fd < 0 ? 0 : static_cast<off_t>(offset)) != MAP_FAILED;
}

}  // namespace

Context* ThreadTrace::map(TraceTables& tables, std::uint32_t number, std::uint32_t buffers) {
    tables_ = &tables;
    buffers_ = buffers;
    const trace::Spec& spec = tables.spec();
    const bool has_first_level = spec.data.ways != 0 || spec.fetch.ways != 0;
    unsigned char* page = reserve_outside_arena(
        kContextInPage + (has_first_level ? kContextSpan : kFirstLevelInContext));
    unsigned char* ring = reserve_outside_arena(kBufferStride * buffers);
    if (!page || !ring) return nullptr;
    unsigned char* context = page + kContextInPage;
    if (mprotect(page, kContextInPage + kSlotOffset, PROT_READ | PROT_WRITE) != 0) return nullptr;
    if (has_first_level && !map_first_level(context)) return nullptr;
    if (tables.captures(trace::kCaptureContexts) &&
        !map_call_tree(*reinterpret_cast<Context*>(context)))
        return nullptr;
    ring_ = reinterpret_cast<std::uint64_t>(ring);
    slot_ = reinterpret_cast<trace::ThreadSlot*>(context + kSlotOffset);
    if (!map_slot(number)) return nullptr;
    if (number == 0) tables.object_runs().begin(spec, slot_);
    return reinterpret_cast<Context*>(context);
}

bool ThreadTrace::map_first_level(unsigned char* context) const {
    unsigned char* const where = context + kFirstLevelInContext;
    if (!map_part(-1, 0, sizeof(FirstLevel), where)) return false;
    auto* const level = reinterpret_cast<FirstLevel*>(where);
    const trace::Spec& spec = tables_->spec();
    const FirstLevel::Shape data{spec.data.line_bytes, spec.data.sets, spec.data.ways};
    const FirstLevel::Shape fetch{spec.fetch.line_bytes, spec.fetch.sets, spec.fetch.ways};
    const CallState& calls = reinterpret_cast<Context*>(context)->calls;
    level->initialise(data, fetch, context + offsetof(Context, data_filter),
                      static_cast<std::uint64_t>(data_set_mask(spec.data)),
                      trace::tells_contexts(spec) ? &calls.node : nullptr);
    reinterpret_cast<Context*>(context)->first_level = level;
    return true;
}

bool ThreadTrace::map_call_tree(Context& context) {
    unsigned char* const tree = reserve_outside_arena(sizeof(CallTree));
    unsigned char* const nodes = reserve_outside_arena(trace::kContextsBytes + trace::kHugePage);
    if (!tree || !nodes || !map_part(-1, 0, sizeof(CallTree), tree)) return false;
    const auto begin = reinterpret_cast<std::uintptr_t>(nodes) + trace::kHugePage - 1;
    nodes_ = reinterpret_cast<trace::ContextNodes*>(begin - begin % trace::kHugePage);
    call_tree_ = context.call_tree = reinterpret_cast<CallTree*>(tree);
    call_tree_->initialise(context.calls, nodes_, trace::context_words(tables_->spec()),
                           std::max(tables_->spec().recursion, 1U));
    return true;
}

bool ThreadTrace::map_slot(std::uint32_t number) {
    const std::uint64_t slot = trace::thread_offset(number);
    const int fd = tables_->fd();
    if (!map_part(fd, slot, kSharedBytes, slot_)) return false;
    for (std::uint32_t i = 0; i < buffers_; ++i)
        if (!map_part(fd, slot + trace::kRingOffset + std::uint64_t{i} * trace::kBufferBytes,
                      trace::kBufferBytes, reinterpret_cast<void*>(ring_ + i * kBufferStride)))
            return false;
    if (nodes_ != nullptr &&
        !map_part(fd, trace::contexts_offset(number), trace::kContextsBytes, nodes_))
        return false;
    slot_->buffer_count = buffers_;
    slot_->buffer_start.store(buffer_address(0), std::memory_order_relaxed);
    set_cursor(buffer_address(0));
    tables_->publish_slot(slot_);
    number_ = number;
    return true;
}

void ThreadTrace::begin(std::uint32_t thread) {
    if (tables_->spec().data.footprints()) forget_lines();
    if (call_tree_ != nullptr) call_tree_->begin_thread();
    slot_->thread.store(thread, std::memory_order_release);
}

void ThreadTrace::end() {
    end_runs();
    if (const std::uint32_t records = position().record) complete(records);
}

std::span<trace::Run> ThreadTrace::runs() const {
    if (!tables_->spec().data.runs()) return {};
    return {
        reinterpret_cast<trace::Run*>(reinterpret_cast<unsigned char*>(slot_) + trace::kRunsOffset),
        tables_->run_count()};
}

void ThreadTrace::tell_runs() {
    for (trace::Run& run : runs()) {
        if (run.left_out == 0) continue;
        const trace_record_t last = trace::last_of(run);
        make_room(1);
        run.record = slot_->cursor.load(std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        append({&last, 1});
        std::atomic_signal_fence(std::memory_order_seq_cst);
        run.left_out = 0;
        std::atomic_signal_fence(std::memory_order_seq_cst);
        run.record = 0;
    }
}

// The next thread of the slot begins without runs.
void ThreadTrace::end_runs() {
    tell_runs();
    for (trace::Run& run : runs())
        if (run.site != 0 || run.expected != 0) run = {};
}

ThreadTrace::Position ThreadTrace::position() const {
    const std::uint64_t bytes = slot_->cursor.load(std::memory_order_relaxed) -
                                slot_->buffer_start.load(std::memory_order_relaxed);
    return {slot_->produced.load(std::memory_order_relaxed),
            static_cast<std::uint32_t>(bytes / sizeof(trace_record_t))};
}

std::span<const std::uint64_t> ThreadTrace::counters() const {
    return {reinterpret_cast<const std::uint64_t*>(reinterpret_cast<const unsigned char*>(slot_) +
                                                   trace::kCountersOffset),
            tables_->next_block() * counters_per_block()};
}

std::uint64_t ThreadTrace::mispredictions(std::uint32_t block) const {
    const std::size_t first = block * counters_per_block();
    return counters()[first + 1] + counters()[first + 2];
}

std::uint64_t ThreadTrace::buffer_address(std::uint32_t number) const {
    return ring_ + (number & (buffers_ - 1)) * kBufferStride;
}

void ThreadTrace::append(std::uint64_t value, std::uint32_t site, std::uint32_t aux) {
    const trace_record_t record{value, site, aux};
    append({&record, 1});
}

void ThreadTrace::append(std::span<const trace_record_t> records) {
    make_room(records.size());
    const std::uint64_t cursor = slot_->cursor.load(std::memory_order_relaxed);
    std::memcpy(reinterpret_cast<void*>(cursor), records.data(), records.size_bytes());
    slot_->cursor.store(cursor + records.size_bytes(), std::memory_order_relaxed);
}

void ThreadTrace::make_room(std::size_t records) {
    const std::uint64_t cursor = slot_->cursor.load(std::memory_order_relaxed);
    if (cursor + records * sizeof(trace_record_t) > buffer_end()) set_cursor(next_buffer(cursor));
}

std::atomic<std::uint64_t>& ThreadTrace::touched(std::uint64_t place) const {
    return slot_->footprints[place / sizeof slot_->footprints[0]].touched;
}

// Each buffer has the footprints of its own lines, because buffers of other threads may come before
// the next one. The next buffer begins without most recent lines.
void ThreadTrace::take_footprints(std::uint32_t index) {
    for (std::uint32_t set = 0; set < trace::kMostSets; ++set) {
        std::atomic<std::uint64_t>& touched = slot_->footprints[set].touched;
        slot_->touched_at_end[index][set] = touched.load(std::memory_order_relaxed);
        touched.store(0, std::memory_order_relaxed);
    }
    forget_lines();
}

const Context& ThreadTrace::context() const {
    return *reinterpret_cast<const Context*>(reinterpret_cast<const unsigned char*>(slot_) -
                                             kSlotOffset);
}

void ThreadTrace::set_time(std::uint64_t instructions) {
    of_others_ = instructions - Regions::executed(context());
    slot_->time.store(instructions, std::memory_order_relaxed);
}

void ThreadTrace::forget_lines() {
    constexpr std::uint64_t kNoLine = 1;
    auto* const filter = reinterpret_cast<unsigned char*>(slot_) - kSlotOffset;
    for (std::uint32_t set = 0; set < trace::kMostSets; ++set)
        std::memcpy(filter + set * sizeof slot_->footprints[0], &kNoLine, sizeof kNoLine);
}

// With footprints, the buffer must be completed, because it takes the footprints with it.
void ThreadTrace::forget_recent_lines() {
    if (tables_->spec().data.footprints()) {
        if (const std::uint32_t records = position().record) complete(records);
        return;
    }
    auto* const filter = reinterpret_cast<unsigned char*>(slot_) - kSlotOffset;
    std::memset(filter + offsetof(Context, data_filter), 0, kFilterSpan);
}

void ThreadTrace::note(std::uint64_t operation, const std::array<std::uint64_t, 5>& arguments,
                       std::string_view text) {
    const Position here = position();
    trace::MarkerEvent event{operation, {}, thread(), number_, here.buffer, here.record};
    std::copy(arguments.begin(), arguments.end(), event.arguments);
    tables_->marker(event, text);
}

// Records of earlier references must come before the marker.
void ThreadTrace::note_new_thread(std::uint32_t number) {
    tell_runs();
    note(TRACE_MARKER_THREAD, {number}, "");
    if (tables_->captures(trace::kCaptureMappings)) hand_over();
}

void ThreadTrace::hand_over() {
    complete(position().record);
}

void ThreadTrace::note_end() {
    tell_runs();
    note(TRACE_MARKER_THREAD_END, {tables_->next_site()}, "");
}

std::uint64_t ThreadTrace::buffer_end() const {
    return slot_->buffer_start.load(std::memory_order_relaxed) + trace::kBufferBytes;
}

bool ThreadTrace::is_behind_buffer(std::uint64_t address) const {
    const std::uint64_t end = buffer_end();
    return address >= end && address < end + kMostTogether * sizeof(trace_record_t);
}

std::uint64_t ThreadTrace::next_buffer(std::uint64_t cursor) {
    const std::uint64_t bytes = cursor - slot_->buffer_start.load(std::memory_order_relaxed);
    return complete(static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, trace::kBufferBytes) /
                                               sizeof(trace_record_t)));
}

std::span<const trace_record_t> ThreadTrace::last_buffer() const {
    const std::uint32_t produced = slot_->produced.load(std::memory_order_relaxed);
    if (produced == 0 || tables_->detached()) return {};
    return {reinterpret_cast<const trace_record_t*>(buffer_address(produced - 1)),
            trace::kRecordsPerBuffer};
}

std::uint64_t ThreadTrace::complete(std::uint32_t records) {
    if (tables_->detached()) {
        const std::uint64_t start = slot_->buffer_start.load(std::memory_order_relaxed);
        set_cursor(start);
        return start;
    }
    const std::uint32_t produced = slot_->produced.load(std::memory_order_relaxed);
    const std::uint32_t index = produced & (buffers_ - 1);
    if (tables_->spec().data.footprints()) take_footprints(index);
    slot_->allocations_at_end[index].store(tables_->allocations(), std::memory_order_relaxed);
    slot_->time_at_end[index].store(of_others_ + Regions::executed(context()),
                                    std::memory_order_relaxed);
    const std::uint64_t start = buffer_address(produced + 1);
    tables_->hand_over(*slot_, records, start);
    return start;
}

void ThreadTrace::detach() {
    const std::uint64_t cursor = slot_->cursor.load(std::memory_order_relaxed);
    const std::uint64_t start = slot_->buffer_start.load(std::memory_order_relaxed);
    bool mapped = map_part(-1, 0, kSharedBytes, slot_) &&
                  (nodes_ == nullptr || map_part(-1, 0, trace::kContextsBytes, nodes_));
    for (std::uint32_t i = 0; i < buffers_; ++i)
        mapped &= map_part(-1, 0, trace::kBufferBytes,
                           reinterpret_cast<void*>(ring_ + i * kBufferStride));
    constexpr int kFailedChild = 125;
    if (!mapped) _exit(kFailedChild);
    if (call_tree_ != nullptr) call_tree_->begin_thread();
    set_cursor(cursor);
    slot_->buffer_start.store(start, std::memory_order_relaxed);
}

}  // namespace assay::native
