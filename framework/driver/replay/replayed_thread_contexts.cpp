// What a replayed thread does for calling contexts.
#include "framework/driver/replay/replayed_thread.h"

namespace assay::replay {

void ReplayedThread::tell(const trace_record_t& record, const PlannedSite& site) {
    if (contexts_) follow_calls(record, site);
    if (site.site == kNoSite) return;
    tell_context();
    slot_.append(record.value, site.site, record.aux);
}

// Before records that do not say it themselves.
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

// Where calls go, and what returns, the next block says.
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
            change_stack(record, site);
            break;
        case TRACE_SITE_SIGNAL:
            handler_frame_ = record.value;
            break;
        case TRACE_SITE_INTERRUPTED:
            contexts_->enter_handler(handler_frame_, record.value,
                                     image_.instrs()[instr_of(site)].pc);
            break;
        default:
            break;
    }
}

void ReplayedThread::change_stack(const trace_record_t& record, const PlannedSite& site) {
    if (site.by_driver || !block_) return contexts_->go_on_elsewhere(record.value);
    const std::uint32_t shown = plan_.shown_instrs()[instr_of(site)].block;
    contexts_->set_stack(plan_.shown_blocks()[shown].pc, record.value);
    // A predicted branch counts its block where it stands.
    std::uint64_t*& in_node = in_nodes_.back();
    if (!plan_.facts(*block_).predicted || shown + 1 != block_->first_block + block_->block_count ||
        !in_node)
        return;
    --*in_node;
    in_node = branch_in_node_ = contexts_->counters(plan_.words()[shown]);
    ++*in_node;
}

}  // namespace assay::replay
