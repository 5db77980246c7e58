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

constexpr unsigned kStackBits = 32;              // room for a thread's stack of calls
constexpr std::uint64_t kNoReturn = UINT64_MAX;  // in place of a handler's return address
constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

}  // namespace

void GuestThread::expect_interrupts(const std::vector<std::uint64_t>& handlers, std::mutex& lock) {
    handlers_.insert(handlers.begin(), handlers.end());
    lock_ = &lock;
}

bool GuestThread::map(driver::TraceTables& tables, std::uint32_t number) {
    tables_ = &tables;
    const trace::Spec& spec = tables.spec();
    line_bytes_ = std::max(spec.data.line_bytes, 16U);
    const std::uint64_t span =
        std::min<std::uint64_t>(kFilterBytes, std::uint64_t{spec.data.sets} * line_bytes_);
    set_mask_ = span - std::min(span, line_bytes_);
    code_mask_ = std::clamp(spec.fetch.sets, 1U, kMostCodeSets) - 1;
    follows_calls_ =
        is_in_machine() || spec.captures & (trace::kCaptureContexts | trace::kCaptureCalls);
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
    in_node_ = nullptr;
    sent_.clear();
    return_addresses_.clear();
    interrupted_.clear();
    past_calls_ = {};
    // Threads have different stacks.
    stack_begin_ = (std::uint64_t{thread} + 1) << kStackBits;
    if (contexts_) contexts_->begin_thread();
    const trace::Spec& spec = tables_->spec();
    // The first interval has one instruction more: see trace_capture_intervals.
    if (spec.captures & trace::kCaptureIntervals) to_go_ = spec.interval + 1;
    if (spec.captures & trace::kCapturePredictions) {
        if (!predictor_) predictor_ = std::make_unique<driver::Predictor>();
        predictor_->reset();
    }
    if (level_ != nullptr) level_->clear();
}

void GuestThread::end() {
    end_execution();
    if (to_go_ != 0) send_counts();
    const auto* const start = reinterpret_cast<const trace_record_t*>(
        slot_->buffer_start.load(std::memory_order_relaxed));
    if (next_ != start) complete();
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
    if (block.site != GuestBlock::kNoSite) append(0, block.site);
    if (to_go_ != 0) end_intervals(block);
    if (contexts_) {
        contexts_->enter_block(block.pc);
        in_node_ = block.context_word == 0 ? nullptr : contexts_->counters(block.context_word);
        if (in_node_ != nullptr) ++*in_node_;
    }
    ++counters_[block.index * trace::counters(tables_->spec())];
}

// After a handler, the interrupted block ends as if there had been no interrupt.
void GuestThread::leave(const GuestBlock& from, const GuestBlock& to) {
    if (!is_in_machine()) return end_branch(from, to.pc);
    if (is_interrupt(from, to.pc)) {
        handlers_.insert(to.pc);
        return enter_handler(from, to);
    }
    end_branch(from, to.pc);
    while (std::exchange(resumes_, false)) {
        const Interrupted interrupted = interrupted_.back();
        interrupted_.pop_back();
        in_node_ = interrupted.in_node;
        if (handlers_.contains(to.pc)) return enter_handler(*interrupted.block, to);
        end_branch(*interrupted.block, to.pc);
    }
}

// The target of an indirect branch can be anything, so only known handlers count there. QEMU begins
// an instruction again if it cannot complete it at once.
bool GuestThread::is_interrupt(const GuestBlock& from, std::uint64_t target) const {
    const GuestBlock::Last& last = from.last;
    constexpr unsigned kUnknownTarget = TRACE_INSTR_INDIRECT | TRACE_INSTR_RETURN;
    const bool goes_on = last.target == 0 || last.flags & TRACE_INSTR_CONDITIONAL;
    if (last.flags & kUnknownTarget) {
        const bool returns = std::find(return_addresses_.begin(), return_addresses_.end(),
                                       target) != return_addresses_.end();
        return !returns && handlers_.contains(target) &&
               (interrupted_.empty() || !(last.flags & TRACE_INSTR_RETURN));
    }
    if ((goes_on && target == from.end) || (last.target != 0 && target == last.target))
        return false;
    return target < from.pc || target >= from.end || handlers_.contains(target);
}

// As if the handler had been called in the interrupted block.
void GuestThread::enter_handler(const GuestBlock& interrupted, const GuestBlock& handler) {
    if (interrupted_.size() == kMostInterrupted) {  // these handlers do not come back
        interrupted_.clear();
        return_addresses_.clear();
        if (contexts_) contexts_->begin_thread();
    }
    const std::uint64_t address = stack_pointer();
    interrupted_.push_back({&interrupted, in_node_, return_addresses_.size()});
    return_addresses_.push_back(kNoReturn);
    if (contexts_) contexts_->enter_handler(address, interrupted.last.pc, handler.pc);
    if (!tables_->captures(trace::kCaptureCalls)) return;
    const std::lock_guard locked(*lock_);
    const std::uint32_t instr = tables_->block(handler.index).first_instr;
    append(address, tables_->driver_site(instr, TRACE_SITE_SIGNAL));
    append(interrupted.last.pc, tables_->driver_site(instr, TRACE_SITE_INTERRUPTED));
}

// If a signal arrives, the thread goes on elsewhere. For a direct branch that shows: it has no
// outcome then.
void GuestThread::end_branch(const GuestBlock& from, std::uint64_t target) {
    const GuestBlock::Last& last = from.last;
    constexpr unsigned kUnknownTarget = TRACE_INSTR_INDIRECT | TRACE_INSTR_RETURN;
    const bool is_conditional = last.flags & TRACE_INSTR_CONDITIONAL;
    if (is_conditional && target != from.end && target != last.target &&
        !(last.flags & kUnknownTarget))
        return;
    const bool taken = !is_conditional || target != from.end;
    if (follows_calls_ && taken &&
        last.flags & (TRACE_INSTR_CALL | TRACE_INSTR_RETURN | TRACE_INSTR_INDIRECT))
        follow_call(from, target);
    if (last.site != GuestBlock::kNoSite) append(target, last.site, taken ? 1 : 0);
    if (!predictor_) return;
    const trace::PredictorShape& shape = tables_->spec().predictor;
    bool missed = false;
    if (is_conditional)
        missed = predictor_->conditional(shape, last.pc, taken);
    else if (last.flags & TRACE_INSTR_INDIRECT)
        missed = std::exchange(predictor_->targets[driver::target_entry(shape, last.pc)], target) !=
                 target;
    if (!missed) return;
    // See trace::counters().
    std::uint64_t* const counters = counters_ + from.index * trace::counters(tables_->spec());
    --counters[0];
    ++counters[1];
    if (in_node_ == nullptr) return;
    --in_node_[0];
    ++in_node_[1];
}

void GuestThread::follow_call(const GuestBlock& from, std::uint64_t target) {
    const GuestBlock::Last& last = from.last;
    if (last.flags & TRACE_INSTR_CALL) {
        if (last.target != 0 && target != last.target) return;  // a signal
        const std::uint64_t address = stack_pointer();
        if (last.call_site != GuestBlock::kNoSite) {
            append(address, last.call_site);
            append(target, last.target_site);
        }
        if (contexts_) contexts_->call(last.pc, from.end, address);
        past_call(from.end) = {from.end, return_addresses_.size()};
        return_addresses_.push_back(from.end);
        return;
    }
    const std::optional<std::size_t> depth = returned_to(target, last.flags & TRACE_INSTR_RETURN);
    if (!depth) return;
    resumes_ = !interrupted_.empty() && *depth == interrupted_.back().depth;
    return_addresses_.resize(*depth);
    if (last.return_site != GuestBlock::kNoSite) append(stack_pointer(), last.return_site);
    if (contexts_) contexts_->come_back(stack_pointer());
}

// A return finds its call below others if those were left in another way. longjmp(3) goes to the
// end of a call, of setjmp(3), that has already returned. A handler returns to where no call of its
// own was made.
std::optional<std::size_t> GuestThread::returned_to(std::uint64_t target, bool is_return) {
    const std::size_t own = interrupted_.empty() ? 0 : interrupted_.back().depth + 1;
    const auto end = return_addresses_.rend() - static_cast<std::ptrdiff_t>(own);
    const auto found = std::find(return_addresses_.rbegin(), end, target);
    if (found != end) return static_cast<std::size_t>(return_addresses_.rend() - found) - 1;
    if (own != 0) return is_return ? std::optional(own - 1) : std::nullopt;
    const PastCall& past = past_call(target);
    if (past.behind != target || past.depth > return_addresses_.size()) return {};
    return past.depth;
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
