#include "framework/driver/replay/mixed_programs.h"

#include "assay/client.h"
#include "assay/trace_vlist.h"
#include "framework/support/error.h"

#include <fmt/core.h>
#include <algorithm>
#include <cstring>

namespace assay::replay {
namespace {

bool has_address(const trace_site_t& site) {
    switch (site.kind) {
        case TRACE_SITE_READ:
        case TRACE_SITE_WRITE:
        case TRACE_SITE_MODIFY:
        case TRACE_SITE_CALL:
        case TRACE_SITE_RETURN:
        case TRACE_SITE_STACK:
        case TRACE_SITE_SIGNAL:
        case TRACE_SITE_INTERRUPTED:
            return true;
        case TRACE_SITE_VALUE:
            return site.operand == TRACE_EFFECTIVE_ADDRESS;
        default:
            return false;
    }
}

std::uint32_t threads_of(const ImageTrace& program) {
    std::uint32_t threads = 1;
    for (const auto& [slot, chunks] : program.records())
        for (const recording::ChunkPlace& chunk : chunks)
            threads = std::max(threads, chunk.header.thread + 1);
    return threads;
}

// Puts `change` of an event in its place.
template <typename Event, typename Change>
void replace(std::byte* body, std::uint32_t bytes, const Change& change) {
    Event event;
    if (bytes < sizeof event) return;
    std::memcpy(&event, body, sizeof event);
    change(event);
    std::memcpy(body, &event, sizeof event);
}

}  // namespace

MixedPrograms::MixedPrograms(std::span<const ImageTrace> programs)
    : image_(programs.front()), programs_(programs) {
    image_.begin_mixture();
    First next{};
    for (std::size_t number = 0; number < programs.size(); ++number) {
        const ImageTrace& program = programs[number];
        if (program.image().sample_period != 0 || !program.points().empty())
            throw Error(fmt::format(
                "{} has only a part of the run, and cannot share a machine: record the program "
                "without --sample and --simpoints",
                program.file().path()));
        if (program.emulated() != nullptr)
            throw Error(
                fmt::format("{} is of another processor: only x86-64 programs can share a machine",
                            program.file().path()));
        firsts_.push_back(next);
        const First first = next;
        std::vector<trace_block_t> blocks = program.blocks();
        for (trace_block_t& block : blocks) {
            block.pc = in_program(block.pc, number);
            block.first_instr += first.instr;
        }
        std::vector<trace_instr_t> instrs = program.instrs();
        for (trace_instr_t& instr : instrs) {
            instr.pc = in_program(instr.pc, number);
            instr.block += first.block;
        }
        std::vector<trace_site_t> sites = program.sites();
        for (trace_site_t& site : sites) site.instr += first.instr;
        const std::vector<std::byte> events = events_in_image(number);
        image_.mix(program, blocks, instrs, sites, events);
        next.block += static_cast<std::uint32_t>(blocks.size());
        next.instr += static_cast<std::uint32_t>(instrs.size());
        next.site += static_cast<std::uint32_t>(sites.size());
        next.event += events.size();
        next.thread += threads_of(program);
        next.slot += program.records().empty() ? 1 : program.records().rbegin()->first + 1;
    }
    if (next.slot > trace::kMaxThreads)
        throw Error(
            fmt::format("the programs have {} threads together: at most {} can share a "
                        "machine",
                        next.slot, trace::kMaxThreads));
}

// The program's events, with the numbers and addresses that they have in the image.
std::vector<std::byte> MixedPrograms::events_in_image(std::size_t program) const {
    const First& first = firsts_[program];
    const auto move = [program](auto& range) {
        range.start = in_program(range.start, program);
        range.end = in_program(range.end, program);
    };
    std::vector<std::byte> events = programs_[program].events();
    for (std::size_t at = 0; at + sizeof(trace::EventHeader) <= events.size();) {
        trace::EventHeader header;
        std::memcpy(&header, events.data() + at, sizeof header);
        at += sizeof header;
        if (header.bytes > events.size() - at) break;
        std::byte* const body = events.data() + at;
        if (header.type == trace::EventType::kMapped)
            replace<trace::MappedEvent>(body, header.bytes, [&](trace::MappedEvent& mapped) {
                move(mapped);
                mapped.first_block += first.block;
            });
        if (header.type == trace::EventType::kUnmapped)
            replace<trace::UnmappedEvent>(body, header.bytes, move);
        if (header.type == trace::EventType::kThreadName)
            replace<trace::ThreadNameEvent>(body, header.bytes, [&](trace::ThreadNameEvent& name) {
                name.thread += first.thread;
            });
        if (header.type == trace::EventType::kMarker)
            replace<trace::MarkerEvent>(body, header.bytes, [&](trace::MarkerEvent& marker) {
                std::uint64_t& argument = marker.arguments[0];
                if (marker.operation == TRACE_MARKER_THREAD) argument += first.thread;
                if (marker.operation == TRACE_MARKER_THREAD_END) argument += first.site;
                if (marker.operation == ASSAY_REGISTER_REGION ||
                    marker.operation == ASSAY_UNREGISTER_REGION)
                    argument = in_program(argument, program);
            });
        at += (header.bytes + std::uint64_t{7}) & ~std::uint64_t{7};
    }
    return events;
}

const PartSequence::Part& MixedPrograms::part(std::size_t program, const PartSequence::Part& own) {
    const First& first = firsts_[program];
    const std::vector<trace_site_t>& sites = programs_[program].sites();
    part_.order = own.order;
    part_.slot = own.slot + first.slot;
    part_.thread = own.thread + first.thread;
    part_.events = own.events;
    part_.first_instruction = own.first_instruction;
    part_.record_room.assign(own.records.begin(), own.records.end());
    for (trace_record_t& record : part_.record_room) {
        if (has_address(sites[record.site])) record.value = in_program(record.value, program);
        record.site += first.site;
    }
    part_.records = part_.record_room;
    part_.marker_room.assign(own.markers.begin(), own.markers.end());
    for (trace_part_marker_t& marker : part_.marker_room) marker.event += first.event;
    part_.markers = part_.marker_room;
    return part_;
}

}  // namespace assay::replay
