#include "framework/driver/qemu/guest_thread.h"

#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>
#include <utility>

namespace assay::qemu {
namespace {

constexpr unsigned kStackBits = 32;  // room for a thread's stack of calls
constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

}  // namespace

bool GuestThread::map(driver::TraceTables& tables, std::uint32_t number) {
    tables_ = &tables;
    const trace::Spec& spec = tables.spec();
    line_bytes_ = std::max(spec.data.line_bytes, 16U);
    const std::uint64_t span =
        std::min<std::uint64_t>(kFilterBytes, std::uint64_t{spec.data.sets} * line_bytes_);
    set_mask_ = span - std::min(span, line_bytes_);
    code_mask_ = std::clamp(spec.fetch.sets, 1U, kMostCodeSets) - 1;
    follows_calls_ = is_machine_ || regions_.has_functions() ||
                     spec.captures & (trace::kCaptureContexts | trace::kCaptureCalls);
    if (!map_slot(nullptr, number)) return false;
    if (spec.captures & trace::kCaptureContexts && !map_contexts(number)) return false;
    return (spec.data.ways == 0 && spec.fetch.ways == 0) || map_first_level();
}

bool GuestThread::map_contexts(std::uint32_t number) {
    void* const memory = mmap(nodes_, trace::kContextsBytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_NORESERVE | (nodes_ ? MAP_FIXED : 0), tables_->fd(),
                              static_cast<off_t>(trace::contexts_offset(number)));
    if (memory == MAP_FAILED) return false;
    nodes_ = static_cast<trace::ContextNodes*>(memory);
    if (!contexts_) contexts_ = std::make_unique<driver::FollowedContexts>(nodes_, tables_->spec());
    tells_contexts_ = trace::tells_contexts(tables_->spec());
    return true;
}

bool GuestThread::map_first_level() {
    void* const memory =
        mmap(nullptr, sizeof(driver::FirstLevel), PROT_READ | PROT_WRITE, kPrivate, -1, 0);
    if (memory == MAP_FAILED) return false;
    const trace::Spec& spec = tables_->spec();
    level_ = static_cast<driver::FirstLevel*>(memory);
    level_->initialise({spec.data.line_bytes, spec.data.sets, spec.data.ways},
                       {spec.fetch.line_bytes, spec.fetch.sets, spec.fetch.ways}, filter_,
                       set_mask_, tells_contexts_ ? contexts_->node() : nullptr);
    return true;
}

bool GuestThread::map_slot(void* where, std::uint32_t number) {
    void* const memory = mmap(where, trace::kThreadStride, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_NORESERVE | (where ? MAP_FIXED : 0), tables_->fd(),
                              static_cast<off_t>(trace::thread_offset(number)));
    if (memory == MAP_FAILED) return false;
    slot_ = static_cast<trace::ThreadSlot*>(memory);
    counters_ = reinterpret_cast<std::uint64_t*>(static_cast<unsigned char*>(memory) +
                                                 trace::kCountersOffset);
    // Only the first threads have large rings, because hundreds of them would need too much memory.
    constexpr std::uint32_t kLargeRings = 4, kSmallRing = 2;
    buffers_ = number < kLargeRings ? trace::kBufferCount : kSmallRing;
    slot_->buffer_count = buffers_;
    begin_buffer();
    slot_->buffer_start.store(reinterpret_cast<std::uint64_t>(next_), std::memory_order_relaxed);
    slot_->cursor.store(reinterpret_cast<std::uint64_t>(next_), std::memory_order_relaxed);
    tables_->publish_slot(slot_);
    return true;
}

bool GuestThread::map_again(std::uint32_t number) {
    return map_slot(slot_, number) &&
           (!(tables_->spec().captures & trace::kCaptureContexts) || map_contexts(number));
}

void GuestThread::detach() {
    constexpr int kFailedChild = 125;
    const std::uint32_t produced = slot_->produced.load(std::memory_order_relaxed);
    if (mmap(slot_, trace::kThreadStride, PROT_READ | PROT_WRITE, kPrivate | MAP_FIXED, -1, 0) ==
        MAP_FAILED)
        _exit(kFailedChild);
    if (nodes_ != nullptr && mmap(nodes_, trace::kContextsBytes, PROT_READ | PROT_WRITE,
                                  kPrivate | MAP_FIXED, -1, 0) == MAP_FAILED)
        _exit(kFailedChild);
    slot_->buffer_count = buffers_;
    slot_->produced = slot_->consumed = produced;
}

void GuestThread::begin(std::uint32_t thread) {
    slot_->thread.store(thread, std::memory_order_release);
    std::memset(filter_, 0, sizeof filter_);
    std::memset(code_filter_, 0, sizeof code_filter_);
    last_code_line_ = 0;
    parts = {};
    before_ = nullptr;
    place_ = Regions::begin(thread == 0);
    has_regions_ = regions_.wanted();
    is_profiled_ = !has_regions_;
    if (regions_.samples()) begin_bursts(thread);
    in_node_ = nullptr;
    sent_.clear();
    return_addresses_.clear();
    interrupted_.clear();
    resumes_ = false;
    past_calls_ = {};
    // Threads have different stacks.
    stack_begin_ = (std::uint64_t{thread} + 1) << kStackBits;
    if (contexts_) contexts_->begin_thread();
    const trace::Spec& spec = tables_->spec();
    // The first interval has one instruction more: see trace_capture_intervals.
    if (spec.interval != 0) to_go_ = spec.interval + 1;
    if (spec.captures & trace::kCapturePredictions) {
        if (!predictor_) predictor_ = std::make_unique<driver::Predictor>();
        predictor_->reset();
    }
    if (level_ != nullptr) level_->clear();
}

// The calls around the fork matter only to know when the thread leaves a function.
void GuestThread::begin_in_child() {
    const Regions::Place place = place_;
    std::vector<std::uint64_t> calls;
    std::vector<Interrupted> interrupted;
    if (regions_.has_functions()) {
        calls = std::move(return_addresses_);
        interrupted = std::move(interrupted_);
    }
    begin(0);
    place_ = place;
    return_addresses_ = std::move(calls);
    interrupted_ = std::move(interrupted);
    for (Interrupted& each : interrupted_) each.in_node = nullptr;
}

void GuestThread::end() {
    end_execution();
    if (to_go_ != 0) send_counts();
    if (regions_.samples()) end_bursts();
    const auto* const start = reinterpret_cast<const trace_record_t*>(
        slot_->buffer_start.load(std::memory_order_relaxed));
    if (next_ != start) complete();
}

void GuestThread::refer_other_lines(std::uint64_t address, unsigned bytes, std::uint32_t site) {
    if (level_->refers(address, bytes)) append(address, site, context());
}

void GuestThread::fetch_other_lines(std::uint64_t pc, std::uint32_t first, std::uint32_t last,
                                    std::uint32_t site) {
    last_code_line_ = last;
    const std::uint64_t cursor = reinterpret_cast<std::uint64_t>(next_);
    const std::uint64_t after =
        assay_first_level_fetch(level_, pc, cursor, site, std::uint64_t{last} << 32 | first);
    if (after != cursor) set_next(reinterpret_cast<trace_record_t*>(after));
}

void GuestThread::end_execution() {
    if (parts.operation != nullptr && parts.operation->variable) {
        if (tells_contexts_) append(context(), tables_->known_site(TRACE_SITE_CONTEXT));
        append(parts.references, parts.operation->count_site());
    }
    parts = {};
}

void GuestThread::enter(const GuestBlock& block) {
    end_execution();
    if (before_ != nullptr) leave(*before_, block);
    before_ = &block;
    if (has_regions_ && !go_on_in_regions(block)) return;
    if (block.site != GuestBlock::kNoSite) append(0, block.site);
    if (to_go_ != 0) end_intervals(block);
    if (contexts_) {
        contexts_->enter_block(block.pc);
        in_node_ = block.context_word == 0 ? nullptr : contexts_->counters(block.context_word);
        if (in_node_ != nullptr) ++*in_node_;
    }
    ++counters_[block.index * trace::counters(tables_->spec())];
}

// True if the block is profiled. Contexts are not followed elsewhere.
bool GuestThread::go_on_in_regions(const GuestBlock& block) {
    const bool is_inside = regions_.enter(place_, block, return_addresses_.size());
    const bool was_profiled =
        std::exchange(is_profiled_, is_inside && (!regions_.samples() || go_on_in_bursts(block)));
    if (is_profiled_ && !was_profiled && contexts_) contexts_->go_on_elsewhere(stack_pointer());
    return is_profiled_;
}

void GuestThread::end_intervals(const GuestBlock& block) {
    const auto correct = [&](std::int64_t instructions) {
        append(static_cast<std::uint64_t>(instructions),
               tables_->known_site(TRACE_SITE_BLOCK_CORRECTION), block.index);
    };
    std::uint64_t done = 0;  // instructions of the block that belong to earlier intervals
    while (to_go_ <= block.instr_count - done) {
        done += to_go_;
        send_counts();
        correct(static_cast<std::int64_t>(done));
        append(tables_->spec().interval, tables_->known_site(TRACE_SITE_INTERVAL));
        if (tables_->captures(trace::kCaptureReferences)) std::memset(filter_, 0, sizeof filter_);
        correct(-static_cast<std::int64_t>(done));
        to_go_ = tables_->spec().interval;
    }
    to_go_ -= block.instr_count - done;
}

void GuestThread::send_counts() {
    const std::size_t each = trace::counters(tables_->spec());
    const std::size_t blocks = tables_->next_block();
    sent_.resize(blocks);
    for (std::size_t i = 0; i < blocks; ++i) {
        const std::uint64_t* const counters = counters_ + i * each;
        const std::uint64_t now = std::accumulate(counters, counters + each, std::uint64_t{0});
        if (now == std::exchange(sent_[i], now)) continue;
        append(now, tables_->known_site(TRACE_SITE_BLOCK_COUNT), static_cast<std::uint32_t>(i));
        if (regions_.samples() && predictor_)
            append(counters[1] + counters[2], tables_->known_site(TRACE_SITE_BLOCK_MISPREDICTIONS),
                   static_cast<std::uint32_t>(i));
    }
}

void GuestThread::begin_buffer() {
    const std::uint32_t index = slot_->produced.load(std::memory_order_relaxed) & (buffers_ - 1);
    next_ = reinterpret_cast<trace_record_t*>(reinterpret_cast<unsigned char*>(slot_) +
                                              trace::kRingOffset +
                                              index * std::uint64_t{trace::kBufferBytes});
    end_ = next_ + trace::kRecordsPerBuffer;
}

void GuestThread::complete() {
    const auto* const start = reinterpret_cast<const trace_record_t*>(
        slot_->buffer_start.load(std::memory_order_relaxed));
    const auto records = static_cast<std::uint32_t>(next_ - start);
    if (tables_->detached()) {
        begin_buffer();
        slot_->buffer_start.store(reinterpret_cast<std::uint64_t>(next_),
                                  std::memory_order_relaxed);
        return;
    }
    const std::uint32_t next =
        (slot_->produced.load(std::memory_order_relaxed) + 1) & (buffers_ - 1);
    const std::uint64_t ring = reinterpret_cast<std::uint64_t>(slot_) + trace::kRingOffset;
    tables_->hand_over(*slot_, records, ring + next * std::uint64_t{trace::kBufferBytes});
    begin_buffer();
}

}  // namespace assay::qemu
