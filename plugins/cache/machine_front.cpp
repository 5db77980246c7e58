#include "plugins/cache/machine_front.h"

#include "plugins/common/sites.h"

#include <iterator>

namespace cache {

namespace {

// The operation of an instruction, with the level in the lower byte. Returns 0 for instructions
// without an effect, for example cldemote, which processors may ignore.
std::uint16_t operation_of(std::string_view mnemonic) {
    using machine::LineOperation;
    struct Known {
        std::string_view mnemonic;
        LineOperation operation;
        std::uint16_t level;
    };
    static constexpr Known kKnown[] = {
        {"prefetch", LineOperation::kPrefetch, 1},    {"prefetchw", LineOperation::kPrefetch, 1},
        {"prefetchnta", LineOperation::kPrefetch, 1}, {"prefetcht0", LineOperation::kPrefetch, 1},
        {"prefetcht1", LineOperation::kPrefetch, 2},  {"prefetchwt1", LineOperation::kPrefetch, 2},
        {"prefetcht2", LineOperation::kPrefetch, 3},  {"clflush", LineOperation::kFlush, 1},
        {"clflushopt", LineOperation::kFlush, 1},     {"clwb", LineOperation::kWriteBack, 1}};
    for (const Known& known : kKnown)
        if (known.mnemonic == mnemonic)
            return static_cast<std::uint16_t>(static_cast<unsigned>(known.operation) << 8 |
                                              known.level);
    return 0;
}

}  // namespace

void MachineSites::learn(const assay::Trace& trace, const Code& code) {
    constexpr std::uint32_t kLongestLine = 4096;
    for (std::size_t i = sites_.size(); i < code.sites.size(); ++i) {
        const trace_site_t& site = code.sites[i];
        const trace_block_t& block = code.blocks[code.instr_of(site).block];
        const auto bytes = std::clamp(std::uint32_t{site.bytes}, 1u, kLongestLine);
        MachineSite known{.pc = code.instr_of(site).pc,
                          .bytes = static_cast<std::uint16_t>(bytes),
                          .role = MachineSite::Role::kReference,
                          .kind = machine::Kind::kRead,
                          .writes = false,
                          .position = site.instr - block.first_instr + 1};
        if (site.kind == TRACE_SITE_FETCH) {
            known.kind = machine::Kind::kFetch;
        } else if (site.kind == TRACE_SITE_BLOCK || site.kind == TRACE_SITE_BLOCK_LEFT) {
            known.role = site.kind == TRACE_SITE_BLOCK ? MachineSite::Role::kBlock
                                                       : MachineSite::Role::kBlockLeft;
            known.position = block.instr_count;
        } else if (site.kind == TRACE_SITE_COUNT) {
            known.role = MachineSite::Role::kCount;
        } else if (site.kind == TRACE_SITE_VALUE && site.operand == TRACE_EFFECTIVE_ADDRESS) {
            const trace_instr_facts_t* const facts = trace.facts(site.instr);
            known.bytes = facts ? operation_of(facts->mnemonic) : std::uint16_t{0};
            known.role =
                known.bytes != 0 ? MachineSite::Role::kOperation : MachineSite::Role::kOther;
            have_operations_ = have_operations_ || known.bytes != 0;
        } else if (!sites::is_data(site)) {
            known.role = MachineSite::Role::kOther;
        } else {
            known.writes = site.kind != TRACE_SITE_READ;
        }
        if (site.kind == TRACE_SITE_WRITE) known.kind = machine::Kind::kWrite;
        sites_.push_back(known);
    }
}

void MachinePart::fill(const assay::Trace& trace, const MachineSites& sites, std::uint32_t on_core,
                       bool is_last, bool keeps) {
    thread = trace.thread();
    core = on_core;
    ends_thread = is_last;
    records = trace.records();
    contexts = trace.contexts();
    markers = trace.markers();
    operates = sites.have_operations() &&
               std::any_of(records.begin(), records.end(), [&](const trace_record_t& record) {
                   return sites[record.site].role == MachineSite::Role::kOperation;
               });
    if (!keeps) return;
    const auto keep = [](auto& span, auto& room) {
        room.assign(span.begin(), span.end());
        span = room;
    };
    keep(records, kept_records_);
    keep(contexts, kept_contexts_);
    keep(markers, kept_markers_);
}

void MachineFront::follow(MachinePart& part, const trace_marker_t& marker) {
    using machine::Memory;
    static constexpr Memory kMemory[] = {Memory::kOther, Memory::kPrivate, Memory::kAdvised,
                                         Memory::k2M, Memory::k1G};
    const std::uint64_t which = marker.operation - TRACE_MARKER_PAGES_4K;
    // The references so far are translated by the mappings before this change.
    front_end_.translate_by(part.core, memory_.of(part.thread), part.steps);
    if (marker.operation == TRACE_MARKER_THREAD)
        memory_.create(part.thread, static_cast<std::uint32_t>(marker.address));
    else if (marker.operation == TRACE_MARKER_PAGES_SEEN)
        memory_.see(part.thread, marker.address);
    else if (which < std::size(kMemory))
        memory_.change(part.thread, marker.address, marker.bytes, kMemory[which]);
}

void MachineFront::note_executed(const MachineSite& site, const trace_record_t& record,
                                 std::uint64_t& executed, std::uint64_t& block_begin) {
    if (site.role == MachineSite::Role::kBlock) {
        block_begin = executed;
        executed += site.position;
    } else if (site.role == MachineSite::Role::kBlockLeft) {
        executed -= site.position - std::min<std::uint64_t>(record.value, site.position);
    }
}

void MachineFront::prepare(MachinePart& part) {
    const bool late = machine_.tells_late();
    part.steps.clear(part.records.size());
    machine::referring_thread = part.thread;
    const bool has_caches = first_caches_ && first_caches_->begin(part.core, part.records.size(),
                                                                  part.operates, part.steps);
    part.has_steps = uses_front_end_ || has_caches;
    if (!part.has_steps && !late) return;
    part.said.clear();
    part.executed.resize(late ? part.records.size() : 0);
    std::uint64_t& executed = executed_[part.core];
    std::uint64_t& block_begin = block_begins_[part.thread];
    if (uses_front_end_) front_end_.begin(part.core, part.records.size(), part.operates);
    std::span<const trace_marker_t> markers;
    if (takes_pages_from_mappings()) {
        markers = part.markers;
        front_end_.translate_by(part.core, memory_.of(part.thread), part.steps);
    }
    const auto follow_up_to = [&](std::size_t record) {
        for (; !markers.empty() && markers[0].record <= record; markers = markers.subspan(1))
            follow(part, markers[0]);
    };
    for (std::uint32_t i = 0; i < part.records.size(); ++i) {
        follow_up_to(i);
        const trace_record_t& record = part.records[i];
        const MachineSite& site = sites_[record.site];
        if (site.role == MachineSite::Role::kReference && machine_.is_uncached(record.value))
            continue;
        if (site.role == MachineSite::Role::kReference) [[likely]] {
            if (late) part.executed[i] = block_begin + site.position;
            if (has_caches)
                first_caches_->refer(site.reference(record, late ? part.executed[i] : 0), i,
                                     part.steps);
            if (uses_front_end_) front_end_.add(site.reference(record, 0), i);
        } else if (site.role == MachineSite::Role::kOperation) {
            if (late) part.executed[i] = block_begin + site.position;
            part.steps.need(i);
        } else if (site.role == MachineSite::Role::kCount) {
            part.said.push_back(i);
        } else {
            note_executed(site, record, executed, block_begin);
        }
    }
    follow_up_to(part.records.size());
    if (uses_front_end_) front_end_.finish(part.steps);
    if (!part.ends_thread) return;
    if (machine_.cores == 0) {
        front_end_.forget(part.core);
        if (first_caches_) first_caches_->forget(part.core);
        executed_.erase(part.core);
    }
    memory_.end(part.thread);
    block_begins_.erase(part.thread);
}

}  // namespace cache
