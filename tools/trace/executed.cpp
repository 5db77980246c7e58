#include "tools/trace/executed.h"

#include <algorithm>

namespace assay::tracing {

std::uint32_t ExecutedInstructions::length(const Thread& thread) const {
    return image_.blocks()[thread.block].instr_count;
}

// `next` is behind the block's last one.
void ExecutedInstructions::tell_until(std::uint32_t number, Thread& thread, std::uint32_t position,
                                      std::optional<std::uint64_t> next) {
    if (!thread.in_block) return;
    const trace_block_t& block = image_.blocks()[thread.block];
    for (; thread.position < position; ++thread.position) {
        const std::uint32_t instr = block.first_instr + thread.position;
        const std::uint64_t place = thread.first + thread.position;
        const std::optional<std::uint64_t> behind =
            thread.position + 1 < block.instr_count ? image_.instrs()[instr + 1].pc : next;
        if (region_.has(place)) consumer_({number, place, instr, thread.references, behind});
        thread.references.clear();
    }
}

void ExecutedInstructions::take(const Event& event) {
    Thread& thread = threads_[event.thread];
    const trace_instr_t& instr = image_.instrs()[event.instr];
    switch (event.site->kind) {
        case TRACE_SITE_BLOCK:
            tell_until(event.thread, thread, thread.in_block ? length(thread) : 0,
                       image_.blocks()[instr.block].pc);
            thread.in_block = true;
            thread.block = instr.block;
            thread.position = 0;
            thread.first = event.instruction;
            thread.references.clear();
            return;
        case TRACE_SITE_BLOCK_LEFT:
            if (thread.in_block)
                tell_until(event.thread, thread,
                           static_cast<std::uint32_t>(
                               std::min<std::uint64_t>(event.value, length(thread))),
                           {});
            thread.in_block = false;
            return;
        case TRACE_SITE_BURST:
            if (event.aux != trace::kGoesOnAt && event.aux != trace::kRestEnds) return;
            if (thread.in_block) {
                const bool known = event.aux == trace::kGoesOnAt;
                tell_until(event.thread, thread, length(thread),
                           known ? std::optional(event.value) : std::nullopt);
            }
            thread.in_block = false;
            return;
        case TRACE_SITE_READ:
        case TRACE_SITE_WRITE:
        case TRACE_SITE_MODIFY: {
            if (!thread.in_block || instr.block != thread.block) return;
            const trace_block_t& block = image_.blocks()[thread.block];
            tell_until(event.thread, thread, event.instr - block.first_instr, {});
            thread.references.push_back({event.value, event.site->bytes, event.site->kind});
            return;
        }
        default:
            return;
    }
}

void ExecutedInstructions::finish() {
    for (auto& [number, thread] : threads_) {
        if (thread.in_block) tell_until(number, thread, length(thread), {});
        thread.in_block = false;
    }
}

}  // namespace assay::tracing
