#include "tools/trace/check.h"

#include <fmt/core.h>
#include <algorithm>

namespace assay::tracing {
namespace {

// Earlier calls are forgotten.
constexpr std::size_t kMostCalls = 1 << 16;

// After these system calls of x86-64 the thread can go on elsewhere: behind a signal handler, or,
// if a child of vfork made the call, behind the vfork of its parent.
bool leads_elsewhere(const replay::ImageTrace& image, std::uint64_t call) {
    constexpr std::uint64_t kSigreturn = 15, kExecve = 59, kExit = 60, kExitGroup = 231,
                            kExecveat = 322;
    return image.emulated() == nullptr && (call == kSigreturn || call == kExecve || call == kExit ||
                                           call == kExitGroup || call == kExecveat);
}

}  // namespace

template <typename What>
void CheckedThread::violate(Rule rule, std::uint32_t instr, const What& what) {
    if (violations_.add(rule)) violations_.describe(rule, {what(), number_, place_, instr});
}

// Nothing is known of what comes next.
void CheckedThread::forget_flow() {
    next_ = {};
    block_.reset();
    expected_return_.reset();
    calls_.clear();
}

void CheckedThread::begin_chunk(std::uint64_t executed) {
    if (executed == position_.executed) return;
    if (executed < position_.executed && violations_.add(Rule::kCounts))
        violations_.describe(
            Rule::kCounts,
            {fmt::format("the next records are said to follow {} instructions, but follow {}",
                         executed, position_.executed),
             number_,
             position_.executed,
             {}});
    if (block_)
        close_references(
            image_.blocks()[*block_].first_instr + image_.blocks()[*block_].instr_count, true);
    trace_position_begin(&position_, executed);
    forget_flow();
}

CheckedThread::Next CheckedThread::after(std::uint32_t instr) const {
    const CheckedCode::Instr& code = code_[instr];
    const trace_instr_t& row = image_.instrs()[instr];
    const std::uint64_t behind = row.pc + row.length;
    return {code.leads_anywhere,
            {code.leads_on ? behind : code.target, code.target != 0 ? code.target : behind}};
}

void CheckedThread::take(const trace_record_t& record) {
    const trace_site_t& site = image_.sites()[record.site];
    const std::uint32_t number = image_.instrs()[site.instr].block;
    const trace_block_t& block = image_.blocks()[number];
    const std::uint64_t before = position_.executed;
    place_ = trace_position_next(&position_, &record, &site, &block);
    if (has_ended_)
        violate(Rule::kThreads, site.instr, [] { return "a record follows the thread's end"; });
    switch (site.kind) {
        case TRACE_SITE_BLOCK:
            checked_.instructions += block.instr_count;
            return begin_block(number);
        case TRACE_SITE_BLOCK_LEFT:
            checked_.instructions -= std::min(before - position_.executed, checked_.instructions);
            return leave_block(number, record.value);
        case TRACE_SITE_READ:
        case TRACE_SITE_WRITE:
        case TRACE_SITE_MODIFY:
            ++checked_.references;
            return refer(site.instr);
        case TRACE_SITE_COUNT:
            return count_references(site.instr, record.value);
        case TRACE_SITE_CALL:
            return call(record.value,
                        image_.instrs()[site.instr].pc + image_.instrs()[site.instr].length);
        case TRACE_SITE_TARGET:
            next_ = {false, {record.value, record.value}};
            return;
        case TRACE_SITE_RETURN:
            return return_to(record.value);
        case TRACE_SITE_STACK:
            // An emulator's handlers end so.
            if (image_.emulated() != nullptr) next_ = {};
            return;
        case TRACE_SITE_SIGNAL:
            // An emulator does not tell how far a fault let the block come.
            if (image_.emulated() != nullptr) block_.reset();
            call(record.value, 0);
            interrupted_ = next_;
            next_ = {false, {image_.instrs()[site.instr].pc, image_.instrs()[site.instr].pc}};
            expected_return_.reset();
            return;
        case TRACE_SITE_INTERRUPTED:
            if (image_.emulated() == nullptr && !interrupted_.has(record.value))
                violate(Rule::kFlow, site.instr, [&] {
                    return fmt::format("a signal interrupts the thread at {:#x}, where it was not",
                                       record.value);
                });
            return;
        case TRACE_SITE_SYSTEM_CALL:
            if (leads_elsewhere(image_, record.value)) next_ = {};
            return;
        case TRACE_SITE_BURST:
            if (record.aux == trace::kGoesOnAt) {
                go_to(record.value, site.instr);
                if (!has_flow(image_)) next_ = {};  // an import does not tell signal handlers
                return;
            }
            if (record.aux == trace::kWarmUpEnds) return;
            if (record.aux == trace::kThreadEnds) has_ended_ = true;
            return forget_flow();
        default:
            return;
    }
}

// --- Flow.

void CheckedThread::go_to(std::uint64_t pc, std::uint32_t instr) {
    if (block_) {
        const trace_block_t& block = image_.blocks()[*block_];
        close_references(block.first_instr + block.instr_count, true);
    }
    if (!next_.has(pc))
        violate(Rule::kFlow, instr, [&] {
            return next_.pcs[0] == next_.pcs[1]
                       ? fmt::format("{:#x} is executed instead of {:#x}", pc, next_.pcs[0])
                       : fmt::format("{:#x} is executed instead of {:#x} or {:#x}", pc,
                                     next_.pcs[0], next_.pcs[1]);
        });
    if (expected_return_ && *expected_return_ != pc) ++checked_.other_returns;
    expected_return_.reset();
    next_ = {false, {pc, pc}};
    block_.reset();
}

void CheckedThread::begin_block(std::uint32_t block) {
    ++checked_.blocks;
    const trace_block_t& begun = image_.blocks()[block];
    go_to(begun.pc, begun.first_instr);
    block_ = block;
    passed_ = begun.first_instr;
    references_ = 0;
    is_counted_ = false;
    next_ = after(begun.first_instr + begun.instr_count - 1);
}

// The thread goes on with the last executed instruction again, or behind it.
void CheckedThread::leave_block(std::uint32_t block, std::uint64_t executed) {
    const trace_block_t& left = image_.blocks()[block];
    if (block_ != block || executed > left.instr_count)
        return violate(Rule::kFlow, left.first_instr, [&] {
            return fmt::format("the block at {:#x} is left after {} of its {} instructions{}",
                               left.pc, executed, left.instr_count,
                               block_ == block ? "" : ", but is not executed");
        });
    const auto end = left.first_instr + static_cast<std::uint32_t>(executed);
    close_references(end, false);
    block_.reset();
    expected_return_.reset();
    if (executed == 0) {
        next_ = {false, {left.pc, left.pc}};
        return;
    }
    const trace_instr_t& last = image_.instrs()[end - 1];
    next_ = {executed == left.instr_count, {last.pc, last.pc + last.length}};
}

void CheckedThread::call(std::uint64_t frame, std::uint64_t behind) {
    if (calls_.size() == kMostCalls) calls_.erase(calls_.begin(), calls_.begin() + kMostCalls / 2);
    calls_.push_back({frame, behind});
}

// `stack`: the stack pointer after the return.
void CheckedThread::return_to(std::uint64_t stack) {
    ++checked_.returns;
    // Without a known call, the calls were not recorded.
    if (calls_.empty()) return;
    while (!calls_.empty() && calls_.back().frame < stack) calls_.pop_back();
    if (calls_.empty() || calls_.back().frame != stack) {
        ++checked_.other_returns;
        return;
    }
    if (calls_.back().behind != 0) expected_return_ = calls_.back().behind;
    calls_.pop_back();
}

// --- References.

// Compares the references of the instruction `passed_`, and goes on to the next one.
void CheckedThread::pass(std::uint32_t instr) {
    const CheckedCode::Instr& code = code_[instr];
    const bool is_whole = code.varies ? is_counted_
                                      : code.references == CheckedCode::Instr::kAnyNumber ||
                                            references_ == code.references;
    if (!is_whole)
        violate(Rule::kReferences, instr, [&] {
            return code.varies ? "an instruction does not tell the number of its references"
                               : fmt::format("an instruction makes {} references instead of {}",
                                             references_, code.references);
        });
    references_ = 0;
    is_counted_ = false;
    passed_ = instr + 1;
}

// `end`: the instruction behind the last one that was executed, which may be incomplete.
void CheckedThread::close_references(std::uint32_t end, bool last_is_whole) {
    const std::uint32_t whole = last_is_whole ? end : end - std::min(end, 1U);
    if (passed_ >= whole) return;
    if (references_ != 0 || is_counted_ ||
        code_.referring_before(passed_ + 1) != code_.referring_before(passed_))
        pass(passed_);
    if (passed_ >= whole) return;
    if (code_.referring_before(whole) == code_.referring_before(passed_)) {
        passed_ = whole;
        return;
    }
    while (passed_ < whole) pass(passed_);
}

void CheckedThread::refer(std::uint32_t instr) {
    const std::uint32_t number = image_.instrs()[instr].block;
    if (block_ != number || instr < passed_)
        return violate(Rule::kReferences, instr, [&] {
            return block_ != number
                       ? "an instruction makes a reference, but its block is not executed"
                       : "an instruction makes a reference after a later instruction";
        });
    if (instr != passed_) {
        close_references(instr, true);
        passed_ = instr;
    }
    ++references_;
}

void CheckedThread::count_references(std::uint32_t instr, std::uint64_t value) {
    const std::uint64_t before = instr == passed_ ? references_ : 0;
    refer(instr);
    if (passed_ != instr) return;
    references_ = 0;
    is_counted_ = true;
    const CheckedCode::Instr& code = code_[instr];
    if (code.references == CheckedCode::Instr::kAnyNumber || before == value * code.references)
        return;
    violate(Rule::kReferences, instr, [&] {
        return fmt::format("an instruction makes {} references instead of {} times {}", before,
                           value, code.references);
    });
}

void CheckedThread::finish() {
    if (!block_) return;
    // The last instruction can be a system call that ends the thread, or one that a signal ends.
    const trace_block_t& block = image_.blocks()[*block_];
    close_references(block.first_instr + block.instr_count, false);
}

}  // namespace assay::tracing
