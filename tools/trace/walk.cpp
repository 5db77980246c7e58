#include "tools/trace/walk.h"

#include <algorithm>

namespace assay::tracing {

std::uint32_t ExecutedInstructions::length(const Thread& thread) const {
    return image_.blocks()[thread.block].instr_count;
}

// `next` is the pc after the last instruction of the block, if known.
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

namespace {

// The most instructions of a block: a chunk can begin with references of a block that began in the
// chunk before.
constexpr std::uint64_t kMostInBlock = 1 << 16;

// With bursts, the header of a chunk does not tell where its last instruction lies.
bool has_some_of(const Region& region, const recording::ChunkPlace& chunk, bool bursts) {
    const trace_chunk_t& head = chunk.header;
    const std::uint64_t first =
        head.first_instruction - std::min(head.first_instruction, kMostInBlock);
    return (!region.thread || head.thread == *region.thread) &&
           (bursts || head.first_instruction + head.instructions >= region.from) &&
           first < region.to;
}

}  // namespace

Walk::Walk(const replay::ImageTrace& image, const Region& region)
    : image_(image),
      parts_(
          image, region.is_all() ? replay::PartSequence::Wanted()
                                 : [region, bursts = image.image().sample_period !=
                                                     0](const recording::ChunkPlace& chunk) {
                                       return has_some_of(region, chunk, bursts);
                                   }) {}

bool Walk::next_part() {
    if (!parts_.next(part_)) return false;
    at_ = 0;
    thread_ = &threads_[part_.thread];
    if (part_.first_instruction) trace_position_begin(thread_, *part_.first_instruction);
    return true;
}

bool Walk::next(Event& event) {
    while (at_ == part_.records.size())
        if (!next_part()) return false;
    const trace_record_t& record = part_.records[at_++];
    const trace_site_t& site = image_.sites()[record.site];
    const trace_block_t& block = image_.blocks()[image_.instrs()[site.instr].block];
    const std::uint64_t number = trace_position_next(thread_, &record, &site, &block);
    event = {part_.thread, number, site.instr, &site, record.value, record.aux};
    return true;
}

}  // namespace assay::tracing
