// The part of a replayed thread that handles calling contexts and bursts.
#include "framework/driver/replay/replayed_thread.h"
#include "framework/support/error.h"

#include <fmt/core.h>
#include <utility>

namespace assay::replay {

void ReplayedThread::tell(const trace_record_t& record, const PlannedSite& site) {
    if (contexts_) follow_calls(record, site);
    if (site.site == kNoSite) return;
    tell_context();
    slot_.append(record.value, site.site, record.aux);
}

// Goes before records that do not tell their context themselves.
void ReplayedThread::tell_context() {
    if (tells_contexts_) slot_.append(contexts_->number(), plan_.general_site(TRACE_SITE_CONTEXT));
}

void ReplayedThread::enter_context(std::uint32_t shown) {
    contexts_->enter_block(plan_.shown_blocks()[shown].pc);
    const std::uint16_t word = plan_.words()[shown];
    in_nodes_.push_back(word == 0 ? nullptr : contexts_->counters(word));
    if (word != 0) ++*in_nodes_.back();
}

std::uint32_t ReplayedThread::instr_of(const PlannedSite& site) const {
    return image_.sites()[static_cast<std::size_t>(&site - plan_.sites().data())].instr;
}

// The next block tells the target of a call or a return.
void ReplayedThread::follow_calls(const trace_record_t& record, const PlannedSite& site) {
    switch (site.kind) {
        case TRACE_SITE_CALL:
            if (block_) {
                const BlockFacts& block = plan_.facts(*block_);
                contexts_->call(block.branch_pc, block.next_pc, record.value);
            }
            break;
        case TRACE_SITE_RETURN:
            contexts_->come_back(record.value);
            break;
        case TRACE_SITE_STACK:
            load_stack(record, site);
            break;
        case TRACE_SITE_INTERRUPTED:
            contexts_->enter_handler(handler_frame_, record.value,
                                     image_.instrs()[instr_of(site)].pc);
            break;
        default:
            break;
    }
}

// Under QEMU, only the end of a handler changes the stack. Otherwise it can also change inside a
// block.
void ReplayedThread::change_stack(const trace_record_t& record, const PlannedSite& site) {
    if (image_.emulated() == nullptr) {
        reach(site.position);
        return tell(record, site);
    }
    reach_end();
    const std::uint64_t pc = image_.instrs()[instr_of(site)].pc;
    go_on_at(pc);
    tell(record, site);
    leave_handlers(record.value);
    resume(record.value, pc);
}

void ReplayedThread::enter_handler(const trace_record_t& record, const PlannedSite& site) {
    reach_end();
    if (image_.emulated() == nullptr) {
        go_on_at(record.value);
    } else {
        leave_handlers(handler_frame_ + 1);
        interrupted_.push_back({handler_frame_, std::exchange(branch_, nullptr), branch_in_node_});
    }
    tell(record, site);
}

// Handlers below this stack pointer were left.
void ReplayedThread::leave_handlers(std::uint64_t sp) {
    while (!interrupted_.empty() && interrupted_.back().frame < sp) interrupted_.pop_back();
}

// A fault can have interrupted a block before its branch.
void ReplayedThread::resume(std::uint64_t frame, std::uint64_t pc) {
    if (interrupted_.empty() || interrupted_.back().frame != frame) return;
    const Interrupted interrupted = interrupted_.back();
    interrupted_.pop_back();
    if (interrupted.branch == nullptr) return;
    const BlockFacts& block = plan_.facts(*interrupted.branch);
    const bool is_inside = pc >= image_.instrs()[block.first_instr].pc && pc < block.next_pc;
    if (is_inside && pc != block.target) return;
    branch_ = interrupted.branch;
    branch_in_node_ = interrupted.in_node;
}

void ReplayedThread::load_stack(const trace_record_t& record, const PlannedSite& site) {
    if (site.by_driver || !block_) return contexts_->go_on_elsewhere(record.value);
    const std::uint32_t shown = plan_.shown_instrs()[instr_of(site)].block;
    contexts_->set_stack(plan_.shown_blocks()[shown].pc, record.value);
    // A predicted branch counts its block in the new context.
    std::uint64_t*& in_node = in_nodes_.back();
    if (!plan_.facts(*block_).predicted || shown + 1 != block_->first_block + block_->block_count ||
        !in_node)
        return;
    --*in_node;
    in_node = branch_in_node_ = contexts_->counters(plan_.words()[shown]);
    ++*in_node;
}

// How a replayed thread begins and ends bursts, simulation points and warm-ups.

// The target of a point's last branch is not known, because the thread goes on somewhere else.
void ReplayedThread::pass_boundary(const trace_record_t& record, const PlannedSite& site) {
    if (record.aux == trace::kGoesOnAt) {
        reach_end();
        return go_on_at(record.value);
    }
    if (samples_) return end_burst(static_cast<trace::EndOf>(record.aux), record.value);
    if (site.site == kNoSite || record.aux == trace::kThreadEnds) return;
    reach_end();
    if (record.aux == trace::kRestEnds) {
        branch_ = nullptr;
        return;
    }
    part_end_ = {record.value, site.site, record.aux};
    if (record.aux == trace::kBurstEnds) end_part();
}

// --- Bursts.

void ReplayedThread::end_burst(trace::EndOf of, std::uint64_t executed) {
    reach_end();
    check_executed(executed);
    branch_ = nullptr;
    if (of == trace::kRestEnds) {
        in_burst_ = spec_.regions.sample_warm_up == 0;
        if (in_burst_) send_intervals(executed);
        return;
    }
    const bool thread_ends = of == trace::kThreadEnds;
    if (thread_ends && in_burst_) send_counts();
    if (thread_ends) send_intervals(executed);
    send_counts();
    slot_.append(executed, plan_.general_site(TRACE_SITE_BURST), of);
    slot_.complete();
    in_burst_ = of == trace::kWarmUpEnds;
    if (in_burst_) send_intervals(executed);
}

// Each period has a burst. A wrong number in the file could make any number of intervals.
void ReplayedThread::check_executed(std::uint64_t instructions) {
    constexpr std::uint64_t kLate = 1 << 20;  // more than the delay of a burst
    const std::uint64_t most = executed_ + 2 * spec_.regions.sample_period + kLate;
    if (instructions < executed_ || instructions > most)
        throw Error(fmt::format(
            "{} is damaged: a thread of process {} has executed {} instructions before a burst "
            "and {} after it",
            image_.file().path(), image_.pid(), executed_, instructions));
    executed_ = instructions;
}

// A burst belongs to the interval in which it begins.
void ReplayedThread::send_intervals(std::uint64_t executed) {
    const std::uint64_t length = spec_.regions.sample_interval;
    for (; length != 0 && next_interval_ < executed; next_interval_ += length)
        slot_.append(length, plan_.general_site(TRACE_SITE_INTERVAL));
}

// --- Simulation points.

void ReplayedThread::end_part() {
    counts_ = part_end_->aux == trace::kWarmUpEnds;
    slot_.append(part_end_->value, part_end_->site, part_end_->aux);
    part_end_.reset();
    slot_.complete();
}

}  // namespace assay::replay
