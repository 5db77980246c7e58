#include "framework/driver/replay/captured_part.h"

#include <algorithm>

namespace assay::replay {

CapturedPart::CapturedPart(InstructionRange& range, const ReplayPlan& plan, const trace::Spec& spec,
                           std::uint32_t number, ReplayedThread& thread)
    : range_(range),
      plan_(plan),
      regions_(spec.regions),
      thread_(thread),
      is_first_(number == 0),
      samples_(spec.regions.sample_period != 0),
      captures_(!samples_ && range.captures()) {
    if (!samples_) return;
    places_ = driver::BurstPlaces(regions_, number);
    burst_boundary_ = places_.next_rest();
}

std::uint64_t CapturedPart::boundary() const {
    if (samples_) return burst_boundary_;
    return is_first_ ? range_.boundary() : UINT64_MAX;
}

// True if something changes before the thread has executed so many more instructions.
bool CapturedPart::is_due(std::uint64_t instructions) const {
    return executed_ + instructions > boundary() || (!samples_ && captures_ != range_.captures());
}

void CapturedPart::take(std::span<const trace_record_t> records) {
    std::size_t taken = 0;
    for (std::size_t i = 0; i < records.size(); ++i) {
        const trace_record_t& record = records[i];
        const PlannedSite& site = plan_.sites()[record.site];
        if (site.kind != TRACE_SITE_BLOCK && site.kind != TRACE_SITE_BLOCK_LEFT) continue;
        const std::uint64_t count = plan_.facts(plan_.blocks()[site.site]).instr_count;
        if (site.kind == TRACE_SITE_BLOCK_LEFT) {
            executed_ -= count - std::min(record.value, count);
        } else if (!is_due(count)) {
            executed_ += count;
            i += std::min<std::size_t>(record.value, records.size() - i - 1);
        } else {
            if (captures_) thread_.take(records.subspan(taken, i - taken));
            taken = i + divide(records.subspan(i));
        }
    }
    if (captures_) thread_.take(records.subspan(taken));
}

// Takes a block whose parts may lie on different sides of boundaries, and the records of all its
// parts except the last ones. Returns the number of records that have been taken.
std::size_t CapturedPart::divide(std::span<const trace_record_t> records) {
    const PlannedBlock& block = plan_.blocks()[plan_.sites()[records[0].site].site];
    const auto shown = std::span(plan_.shown_blocks()).subspan(block.first_block);
    const auto position = [&](std::uint32_t part) {
        return shown[part].first_instr - plan_.facts(block).first_instr;
    };
    std::size_t end = 1;
    std::uint64_t left = UINT64_MAX;  // how many instructions were executed before a fault
    for (; end < records.size(); ++end) {
        const PlannedSite& site = plan_.sites()[records[end].site];
        if (site.kind == TRACE_SITE_BLOCK) break;
        if (site.kind == TRACE_SITE_BLOCK_LEFT) left = records[end].value;
    }
    std::size_t at = 1;
    for (std::uint32_t part = 0; part < block.block_count;) {
        while (is_due(shown[part].instr_count)) pass_boundary(shown[part].pc);
        std::uint32_t next = part;
        do executed_ += shown[next++].instr_count;
        while (next < block.block_count &&
               (position(next) >= left || !is_due(shown[next].instr_count)));
        if (captures_) thread_.begin_parts(block, part, next);
        part = next;
        if (part == block.block_count) break;
        const std::size_t first = at;
        while (at < end && plan_.sites()[records[at].site].position < position(part)) ++at;
        if (!captures_) continue;
        thread_.take(records.subspan(first, at - first));
        thread_.end_parts();
    }
    return at;
}

// `pc`: the block after the boundary.
void CapturedPart::pass_boundary(std::uint64_t pc) {
    if (samples_) return pass_burst_boundary(pc);
    if (captures_ == range_.captures()) range_.pass_boundary();  // otherwise the first thread did
    if (captures_) thread_.leave(pc);
    captures_ = !captures_;
}

void CapturedPart::pass_burst_boundary(std::uint64_t pc) {
    if (part_ == Part::kBurst) {
        thread_.leave(pc);
        thread_.end_burst(trace::kBurstEnds, executed_);
        part_ = Part::kRest;
        burst_boundary_ += places_.next_rest();
    } else if (part_ == Part::kRest && regions_.sample_warm_up != 0) {
        thread_.end_burst(trace::kRestEnds, executed_);
        part_ = Part::kWarmUp;
        burst_boundary_ += regions_.sample_warm_up;
    } else {
        if (part_ == Part::kWarmUp) thread_.leave(pc);
        thread_.end_burst(part_ == Part::kWarmUp ? trace::kWarmUpEnds : trace::kRestEnds,
                          executed_);
        part_ = Part::kBurst;
        burst_boundary_ += regions_.sample_burst;
    }
    captures_ = part_ != Part::kRest;
}

void CapturedPart::end() {
    if (samples_) thread_.end_burst(trace::kThreadEnds, executed_);
}

}  // namespace assay::replay
