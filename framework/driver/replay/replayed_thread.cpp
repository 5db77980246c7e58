#include "framework/driver/replay/replayed_thread.h"

#include <algorithm>

namespace assay::replay {
namespace {

constexpr PlannedItem kNothing{.address = 0,
                               .site = kNoSite,
                               .time = PlannedItem::kNever,
                               .kind = PlannedItem::kEnd,
                               .first_line = 0,
                               .last_line = 0};

// cmps and scas.
bool compares(const trace_instr_t& instr) {
    const unsigned opcode = instr.opcode & 0xffU;
    return opcode == 0xa6 || opcode == 0xa7 || opcode == 0xae || opcode == 0xaf;
}

}  // namespace

ReplayedThread::ReplayedThread(const ImageTrace& image, const ReplayPlan& plan,
                               const trace::Spec& spec, SlotWriter& slot, EarlyEnds& early_ends,
                               ReplayedContexts* contexts)
    : image_(image),
      plan_(plan),
      spec_(spec),
      slot_(slot),
      early_ends_(early_ends),
      references_(spec.captures & trace::kCaptureReferences),
      fetches_(spec.captures & trace::kCaptureFetches),
      counters_(trace::counters(spec)),
      data_(spec),
      fetch_(spec.fetch, 1, kNoLine),
      contexts_(contexts),
      tells_contexts_(slot.tells_contexts()),
      only_counts_(!contexts && spec.interval == 0 && !trace::has_bursts(spec.regions)),
      next_item_(&kNothing),
      counts_(spec.regions.points == 0),
      samples_(spec.regions.sample_period != 0),
      next_interval_(spec.regions.sample_interval) {
    if (contexts_) contexts_->begin_thread();
    if (spec.captures & trace::kCapturePredictions) {
        predictor_ = std::make_unique<driver::Predictor>();
        predictor_->reset();
    }
    if (spec.interval != 0 || samples_) is_touched_.resize(plan.shown_blocks().size());
    if (spec.interval != 0) goal_ = static_cast<std::int64_t>(spec.interval) + 1;
}

inline void ReplayedThread::refer(const PlannedSite& site, const trace_record_t& record) {
    if (data_.passes(record.value, site.bytes, site.kind != TRACE_SITE_READ))
        slot_.append(record.value, site.site, tells_contexts_ ? contexts_->number() : record.aux);
}

// Does an item. Most items are fetches from one line, which was fetched before.
inline void ReplayedThread::pass_item(const PlannedItem& item) {
    const bool changes_nothing = item.kind == PlannedItem::kFetch &&
                                 item.first_line == item.last_line &&
                                 fetch_.is_most_recent(item.address, item.first_line);
    if (!changes_nothing) do_item(item);
}

// Handles references of the sites from `sites` on. Returns the number of records.
inline std::size_t ReplayedThread::refer(std::span<const trace_record_t> records,
                                         const PlannedSite* sites) {
    const PlannedItem* item = next_item_;
    for (const trace_record_t& record : records) {
        while (item->time <= PlannedItem::reached(sites->position)) pass_item(*item++);
        if (references_) refer(*sites, record);
        ++sites;
    }
    next_item_ = item;
    return records.size();
}

void ReplayedThread::take(std::span<const trace_record_t> records) {
    const std::span<const PlannedSite> sites = plan_.sites();
    for (std::size_t i = 0; i < records.size(); ++i) {
        const trace_record_t& record = records[i];
        const PlannedSite& site = sites[record.site];
        const bool is_value = site.kind == TRACE_SITE_VALUE || site.kind == TRACE_SITE_VALUE_REST;
        if (!values_.empty() && !is_value) give_values();
        if (site.kind == TRACE_SITE_BLOCK) {
            const PlannedBlock& block = plan_.blocks()[site.site];
            begin_parts(block, 0, block.block_count);
            i += refer(records.subspan(i + 1, std::min(record.value, records.size() - i - 1)),
                       &site + 1);
            continue;
        }
        switch (site.kind) {
            case TRACE_SITE_READ:
            case TRACE_SITE_WRITE:
            case TRACE_SITE_MODIFY:
                reach(site.position);
                if (references_) refer(site, record);
                break;
            case TRACE_SITE_COUNT:
                reach(site.position);
                count_repeats(record, site);
                break;
            case TRACE_SITE_CALL:
                reach(site.position);
                tell(record, site);
                break;
            case TRACE_SITE_STACK:
                change_stack(record, site);
                break;
            case TRACE_SITE_VALUE:
            case TRACE_SITE_VALUE_REST:
                take_value(record, site);
                break;
            case TRACE_SITE_BLOCK_LEFT:
                leave_block(record.value);
                break;
            case TRACE_SITE_BURST:
                pass_boundary(record, site);
                break;
            case TRACE_SITE_SIGNAL:
                reach_end();
                handler_frame_ = record.value;
                tell(record, site);
                break;
            case TRACE_SITE_INTERRUPTED:
                enter_handler(record, site);
                break;
            default:
                reach_end();
                tell(record, site);
                break;
        }
    }
    give_values();  // no part begins among the values of one execution
}

// Does the items that come before the instruction's own events.
void ReplayedThread::reach(unsigned position) {
    while (next_item_->time <= PlannedItem::reached(position)) pass_item(*next_item_++);
}

void ReplayedThread::reach_end() {
    while (next_item_->time != PlannedItem::kNever) pass_item(*next_item_++);
}

void ReplayedThread::do_item(const PlannedItem& item) {
    switch (item.kind) {
        case PlannedItem::kBlock:
            slot_.append(0, item.site);
            return;
        case PlannedItem::kFetch:
            if (!fetch_.is_there() || fetch_.misses(item.address, item.first_line, item.last_line))
                slot_.append(item.address, item.site, tells_contexts_ ? contexts_->number() : 0);
            return;
        case PlannedItem::kCode:
            if (data_.passes(item.address, plan_.shown_sites()[item.site].bytes, false))
                slot_.append(item.address, item.site);
            return;
        case PlannedItem::kRetried:
            // It ends one of the shown blocks of its recorded block.
            if (predictor_->conditional(spec_.predictor, item.address, false)) {
                const std::uint32_t instr = plan_.facts(*block_).first_instr + item.position();
                const std::uint32_t part = plan_.shown_instrs()[instr].block - block_->first_block;
                count_mispredicted(plan_.counted(*block_, part), in_node(part));
            }
            return;
        case PlannedItem::kEnd:
            return;
    }
}

void ReplayedThread::take_value(const trace_record_t& record, const PlannedSite& site) {
    if (site.position != values_position_) give_values();
    reach(site.position);
    values_position_ = site.position;
    if (site.by_driver) forget_recent_lines();
    if (site.site == kNoSite) return;
    values_.push_back({site.tells_nothing ? 0 : record.value, site.site, 0});
}

// There are few: each site has at most one.
void ReplayedThread::give_values() {
    if (values_.empty()) return;
    std::sort(values_.begin(), values_.end(),
              [](const auto& a, const auto& b) { return a.site < b.site; });
    slot_.append_together(values_);
    values_.clear();
}

void ReplayedThread::begin_parts(const PlannedBlock& block, std::uint32_t first,
                                 std::uint32_t end) {
    reach_end();
    if (branch_) go_on_at(plan_.shown_blocks()[block.first_block + first].pc);
    if (part_end_) end_part();
    block_ = &block;
    first_part_ = first;
    end_of_parts_ = end;
    next_item_ = plan_.items().data() + block.first_item;
    if (first != 0)
        while (next_item_->time < PlannedItem::reached(position_of(first))) ++next_item_;
    if (only_counts_) {
        std::uint64_t* const counters = slot_.counters() + block.first_block * counters_;
        for (std::uint32_t i = first; i < end; ++i) ++counters[i * counters_];
    } else {
        count_parts();
    }
    if (!block.tells_branch || end != block.block_count) return;
    branch_ = &block;
    branch_in_node_ = in_node(end - 1U);
}

// The position in the present block of the first instruction of a part.
unsigned ReplayedThread::position_of(std::uint32_t part) const {
    return plan_.shown_blocks()[block_->first_block + part].first_instr -
           plan_.facts(*block_).first_instr;
}

void ReplayedThread::end_parts() {
    while (next_item_->time < PlannedItem::reached(position_of(end_of_parts_)))
        do_item(*next_item_++);
    next_item_ = &kNothing;
}

void ReplayedThread::leave(std::uint64_t pc) {
    reach_end();
    go_on_at(pc);
    next_item_ = &kNothing;
}

void ReplayedThread::count_parts() {
    in_nodes_.assign(first_part_, nullptr);
    for (std::uint32_t i = first_part_; i < end_of_parts_; ++i) {
        const std::uint32_t shown = plan_.counted(*block_, i);
        if (spec_.interval != 0) count_instructions(shown, plan_.shown_blocks()[shown]);
        if (samples_) touch(shown);
        if (counts_) ++slot_.counters()[shown * counters_];
        if (contexts_) enter_context(shown);
    }
}

// `pc`: where the program goes on after the last branch.
void ReplayedThread::go_on_at(std::uint64_t pc) {
    if (!branch_) return;
    const PlannedBlock& of = *std::exchange(branch_, nullptr);
    const BlockFacts& block = plan_.facts(of);
    const bool conditional = block.end == BlockEnd::kConditional;
    const bool taken = !conditional || pc != block.next_pc;
    if (taken && block.target != 0 && pc != block.target) return;  // something else has led there
    if (block.branch_site != kNoSite) slot_.append(pc, block.branch_site, taken ? 1 : 0);
    if (!block.predicted) return;
    bool mispredicted = false;
    if (conditional) {
        mispredicted = predictor_->conditional(spec_.predictor, block.branch_pc, taken);
    } else {
        std::uint64_t& target =
            predictor_->targets[driver::target_entry(spec_.predictor, block.branch_pc)];
        mispredicted = std::exchange(target, pc) != pc;
    }
    if (mispredicted) count_mispredicted(plan_.counted(of, of.block_count - 1U), branch_in_node_);
}

// `in_node`: null if the block is counted in no node.
void ReplayedThread::count_mispredicted(std::uint32_t block, std::uint64_t* in_node) {
    if (!counts_) return;
    for (std::uint64_t* const counters : {slot_.counters() + block * counters_, in_node}) {
        if (!counters) continue;
        --counters[0];
        ++counters[1];
    }
}

// Gives the predictor as many branches as the native driver's SpecialReferences does.
void ReplayedThread::count_repeats(const trace_record_t& record, const PlannedSite& site) {
    tell(record, site);
    const auto recorded = static_cast<std::uint32_t>(&site - plan_.sites().data());
    const std::uint32_t predictions = plan_.predictions_site(recorded);
    if (predictions == kNoSite) return;
    const trace_instr_t& instr = image_.instrs()[image_.sites()[recorded].instr];
    std::uint64_t branches = record.value;
    if (compares(instr) && branches != 0) branches += record.value - 1 + (record.aux == 0 ? 1 : 0);
    std::uint32_t mispredicted = predictor_->taken_in_a_row(spec_.predictor, instr.pc, branches);
    ++branches;
    mispredicted += predictor_->conditional(spec_.predictor, instr.pc, false) ? 1 : 0;
    tell_context();
    slot_.append(branches, predictions, mispredicted);
}

// The block's first `executed` instructions were executed. Divides them among its shown blocks.
void ReplayedThread::leave_block(std::uint64_t executed) {
    if (!block_ || executed > plan_.facts(*block_).instr_count) return;
    // The begin of a block is told in any case.
    while (next_item_->time < std::min<std::uint64_t>(executed * 2, PlannedItem::kNever) ||
           (next_item_->time == 0 && next_item_->kind == PlannedItem::kBlock))
        do_item(*next_item_++);
    next_item_ = &kNothing;
    branch_ = nullptr;
    for (std::uint32_t i = first_part_; i < end_of_parts_; ++i) {
        const std::uint32_t shown = plan_.counted(*block_, i);
        const std::uint64_t count = plan_.shown_blocks()[shown].instr_count,
                            before = position_of(i);
        const std::uint64_t done = std::min(count, executed - std::min(executed, before));
        if (done == count) continue;
        // Later blocks have not begun.
        const std::uint32_t first_left_site = plan_.facts(*block_).first_left_site;
        if (first_left_site != kNoSite && (i == 0 || done != 0))
            slot_.append(done, first_left_site + i);
        if (!counts_) continue;
        const std::uint64_t* const counters = in_node(i);
        const std::uint32_t node =
            counters ? ReplayedContexts::node_of(counters, plan_.words()[shown]).number : 0;
        ++early_ends_[{shown, static_cast<std::uint32_t>(done), node}];
        if (spec_.interval == 0) continue;
        corrections_.emplace_back(shown, -static_cast<std::int64_t>(count - done));
        since_ -= static_cast<std::int64_t>(count - done);
    }
}

// --- Intervals.

// Called at the beginning of a block, before anything of it is counted.
void ReplayedThread::count_instructions(std::uint32_t block, const trace_block_t& shown) {
    const auto length = static_cast<std::int64_t>(shown.instr_count);
    std::int64_t remaining = goal_ - since_;
    while (remaining <= length) {
        const std::uint32_t last = shown.first_instr + static_cast<std::uint32_t>(remaining - 1);
        if (remaining > 0 && image_.instrs()[last].flags & TRACE_INSTR_REPEATED) {
            // exp-bbv counts it together with the next instruction.
            ++goal_;
            ++postponed_;
            ++remaining;
            continue;
        }
        finish_interval(block, remaining);
        since_ = -remaining;
        goal_ = static_cast<std::int64_t>(spec_.interval) - postponed_;
        postponed_ = 0;
        remaining = goal_ - since_;
    }
    since_ += length;
    touch(block);
}

void ReplayedThread::touch(std::uint32_t block) {
    if (is_touched_[block]) return;
    is_touched_[block] = true;
    touched_.push_back(block);
}

void ReplayedThread::finish_interval(std::uint32_t block, std::int64_t split) {
    send_counts();
    correct(block, split);
    slot_.append(spec_.interval, plan_.general_site(TRACE_SITE_INTERVAL));
    forget_recent_lines();
    correct(block, -split);
}

void ReplayedThread::send_counts() {
    for (const auto& [block, instructions] : corrections_) correct(block, instructions);
    corrections_.clear();
    std::sort(touched_.begin(), touched_.end());
    for (const std::uint32_t block : touched_) {
        const std::uint64_t* const counters = slot_.counters() + block * counters_;
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < counters_; ++i) sum += counters[i];
        slot_.append(sum, plan_.general_site(TRACE_SITE_BLOCK_COUNT), block);
        if (samples_ && predictor_)
            slot_.append(counters[1] + counters[2],
                         plan_.general_site(TRACE_SITE_BLOCK_MISPREDICTIONS), block);
        is_touched_[block] = false;
    }
    touched_.clear();
}

void ReplayedThread::correct(std::uint32_t block, std::int64_t instructions) {
    slot_.append(static_cast<std::uint64_t>(instructions),
                 plan_.general_site(TRACE_SITE_BLOCK_CORRECTION), block);
}

void ReplayedThread::end() {
    reach_end();
    if (spec_.interval != 0) send_counts();
    slot_.complete();
}

}  // namespace assay::replay
