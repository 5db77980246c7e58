#include "framework/driver/replay/turns.h"

#include <algorithm>
#include <span>

namespace assay::replay {

Turns::Runner::Runner(const ImageTrace& image, std::uint32_t slot, std::size_t of_program)
    : program(of_program), parts(image, [&image, slot](const recording::ChunkPlace& chunk) {
          const auto& of_slot = image.records().at(slot);
          return std::any_of(of_slot.begin(), of_slot.end(),
                             [&](const auto& own) { return own.offset == chunk.offset; });
      }) {}

Turns::Turns(std::span<const ImageTrace> programs, std::uint32_t slice) : slice_(slice) {
    for (const ImageTrace& image : programs) {
        Sites& sites = sites_.emplace_back();
        for (const trace_site_t& site : image.sites()) {
            const trace_instr_t& instr = image.instrs()[site.instr];
            sites.instructions.push_back(
                site.kind == TRACE_SITE_BLOCK ? image.blocks()[instr.block].instr_count : 0);
            sites.is_system_call.push_back(site.kind == TRACE_SITE_SYSTEM_CALL);
        }
        for (const auto& [slot, chunks] : image.records())
            runners_.push_back(std::make_unique<Runner>(image, slot, sites_.size() - 1));
    }
}

// False after the slot's last part.
bool Turns::look_ahead(Runner& runner) {
    if (runner.has_part) return true;
    runner.has_part = runner.parts.next(runner.part);
    if (!runner.has_part) return false;
    const PartSequence::Part& part = runner.part;
    const bool begins = !runner.has_begun || part.thread != runner.thread;
    runner.waits = begins || (!part.records.empty() &&
                              sites_[runner.program].is_system_call[part.records[0].site]);
    runner.has_begun = true;
    runner.thread = part.thread;
    runner.done = runner.markers_done = 0;
    return true;
}

bool Turns::is_ready(const Runner& runner) const {
    return !runner.waits || std::all_of(runners_.begin(), runners_.end(), [&](const auto& other) {
        return other.get() == &runner || other->program != runner.program || !other->has_part ||
               other->part.order > runner.part.order;
    });
}

// The runner whose turn it is, from number `at` on; null after the last part.
Turns::Runner* Turns::next_runner(std::size_t& at) {
    Runner* first = nullptr;
    for (const auto& runner : runners_)
        if (look_ahead(*runner) && (!first || runner->part.order < first->part.order))
            first = runner.get();
    for (std::size_t i = 0; i < runners_.size(); ++i) {
        Runner& runner = *runners_[(at + i) % runners_.size()];
        if (!runner.has_part || !is_ready(runner)) continue;
        at = (at + i + 1) % runners_.size();
        return &runner;
    }
    return first;
}

// Takes a piece of the present part, of at most so many instructions and a block. Returns how many
// instructions it has.
std::uint64_t Turns::take_piece(Runner& runner, std::uint64_t instructions, const Take& take) {
    const PartSequence::Part& whole = runner.part;
    const std::span<const trace_record_t> records = whole.records;
    std::uint64_t executed = 0;
    std::size_t end = runner.done;
    for (; end < records.size(); ++end) {
        const std::uint32_t block = sites_[runner.program].instructions[records[end].site];
        if (block != 0 && executed >= instructions) break;
        executed += block;
    }
    const bool is_last = end == records.size();
    PartSequence::Part piece;
    piece.order = whole.order;
    piece.slot = whole.slot;
    piece.thread = whole.thread;
    piece.events = whole.events;
    piece.records = records.subspan(runner.done, end - runner.done);
    if (runner.done == 0) piece.first_instruction = whole.first_instruction;
    for (; runner.markers_done < whole.markers.size(); ++runner.markers_done) {
        trace_part_marker_t marker = whole.markers[runner.markers_done];
        if (marker.record >= end && !is_last) break;
        marker.record -= std::min<std::uint64_t>(marker.record, runner.done);
        piece.marker_room.push_back(marker);
    }
    piece.markers = piece.marker_room;
    take(runner.program, piece);
    runner.done = end;
    runner.waits = false;
    if (is_last) runner.has_part = false;
    return executed;
}

void Turns::run(const Take& take) {
    std::size_t at = 0;
    while (Runner* const runner = next_runner(at)) {
        std::uint64_t executed = take_piece(*runner, slice_, take);
        while (executed < slice_ && look_ahead(*runner) && is_ready(*runner))
            executed += take_piece(*runner, slice_ - executed, take);
    }
}

std::string Turns::problem() const {
    for (const auto& runner : runners_)
        if (!runner->parts.problem().empty()) return runner->parts.problem();
    return "";
}

}  // namespace assay::replay
