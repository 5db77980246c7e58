#include "framework/driver/replay/replay_driver.h"

#include "framework/driver/replay/turns.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/trace/captures.h"

#include <fmt/core.h>
#include <algorithm>
#include <cstring>
#include <optional>
#include <tuple>
#include <utility>

namespace assay::replay {
namespace {

// Throws Error if the trace lacks something that a recording could have.
void check_content(const trace::Spec& wanted, const trace::ValueLists& values,
                   const recording::TraceContent& content) {
    std::string lacks;
    for (const trace::CaptureRow& row : trace::capture_rows())
        if (lacks.empty() && wanted.captures & row.capture & ~trace::kCaptureValues)
            lacks = recording::missing_records(row.recorded, content);
    if (lacks.empty() && wanted.captures & trace::kCaptureValues)
        lacks = recording::missing_values(values, content);
    if (!lacks.empty()) throw Error("the trace does not have " + lacks);
    static bool is_said = false;  // once for a trace, not for each profiler
    if (wanted.captures & trace::kCaptureValues &&
        recording::lacks_line_operations(values, content) && !std::exchange(is_said, true))
        log::remark(
            "the trace has no software prefetches and flushes of cache lines, which do nothing in "
            "this replay: record the program again");
}

void check_emulated(trace::Spec& wanted, const trace::ValueLists& values,
                    const isa::Architecture& architecture) {
    trace::Spec captures{.captures = wanted.captures};
    const std::string missing = missing_under_qemu(captures, values, architecture);
    wanted.captures = captures.captures;
    if (!missing.empty())
        throw Error(fmt::format("cannot capture {} of {} programs, which ran under QEMU", missing,
                                architecture.name));
}

[[noreturn]] void missing(const std::string& what) {
    throw Error("a trace does not have " + what +
                ": run the program itself under the profiler (assay --plugin=...)");
}

// The number of shown sites that existed when there were `recorded` recorded ones.
std::uint64_t shown_of(std::uint64_t recorded, const ReplayPlan& plan) {
    for (std::size_t i = recorded; i < plan.sites().size(); ++i) {
        const PlannedSite& site = plan.sites()[i];
        const bool is_block = site.kind == TRACE_SITE_BLOCK || site.kind == TRACE_SITE_BLOCK_LEFT;
        if (!is_block && site.site != kNoSite) return site.site;
    }
    return plan.shown_sites().size();
}

}  // namespace

// Profilers select instructions by their opcodes of x86. All others have the opcode 0.
std::string missing_under_qemu(trace::Spec& spec, const trace::ValueLists& values,
                               const isa::Architecture& architecture) {
    const bool is_x86 = architecture.elf == isa::kX86;
    bool any_value = is_x86;
    for (unsigned flags = 0; flags < trace::kAccesses; ++flags)
        any_value |= values.find(0, flags) != nullptr;
    if (!any_value) spec.captures &= ~std::uint32_t{trace::kCaptureValues};
    using Row = trace::CaptureRow;
    return trace::not_by_qemu(spec, is_x86                  ? Row::kX86Only
                                    : architecture.describe ? Row::kKnownInstructions
                                                            : Row::kAlways);
}

trace::Spec possible(const trace::Spec& wanted, const trace::ValueLists& values,
                     const ImageTrace& image) {
    trace::Spec given = wanted;
    if (image.emulated() != nullptr) check_emulated(given, values, *image.emulated());
    check_content(given, values, image.content());
    if (wanted.captures & trace::kCaptureSystemCallTimes) missing("the times of system calls");
    if (wanted.objects != trace::Spec::kNoObjects) missing("what --objects needs");
    // Footprints and runs exist only to make a program faster.
    if (given.data.footprints() || given.data.runs()) given.data = {};
    // An interval's end empties the filters. References are then recorded again that a cache would
    // leave out.
    if (wanted.interval != 0) given.data.ways = given.fetch.ways = 0;
    // Otherwise misses tell their contexts.
    const bool has_contexts = given.captures & trace::kCaptureContexts;
    if (has_contexts && !trace::tells_contexts(given)) given.captures |= trace::kCaptureCalls;
    if (image.image().emulated >= TRACE_EMULATED_MACHINE) given.short_blocks = 1;
    // Not 0: the collector takes buffers in the order in which it gets them.
    if (given.slice == 0) given.slice = kAsRecorded;
    return given;
}

bool go_together(const trace::Spec& a, const trace::Spec& b) {
    const auto rest = [](const trace::Spec& spec) {
        const trace::Regions& part = spec.regions;
        return std::tuple(spec.captures, spec.fetch.line_bytes, spec.interval, spec.branches,
                          spec.data.kind, spec.code_line, spec.threads, spec.recursion, spec.slice,
                          part.from_instruction, part.to_instruction, part.sample_burst,
                          part.sample_period, part.sample_interval, part.sample_warm_up);
    };
    return rest(a) == rest(b) && a.predictor == b.predictor;
}

ReplayDriver::ReplayDriver(const ImageTrace& image, const trace::Spec& combined,
                           const trace::ValueLists& values, std::span<const Output> outputs,
                           std::uint32_t point, MixedPrograms* mixed)
    : image_(image),
      mixed_(mixed),
      spec_(combined),
      plan_(image, spec_, values),
      kinds_(reference_kinds(plan_.shown_sites())),
      parts_(
          image,
          point == 0
              ? PartSequence::Wanted()
              : [point](const recording::ChunkPlace& chunk) { return chunk.header.point == point; },
          ParallelParts::useful_threads()),
      range_(spec_.regions),
      events_(mixed ? mixed->programs().size() : 1) {
    for (const Output& output : outputs) {
        segments_.push_back(std::make_unique<SegmentWriter>(output.segment, output.readers));
        segments_.back()->set_tables(plan_.shown_blocks(), plan_.shown_instrs(),
                                     plan_.shown_sites(), plan_.words());
    }
}

void ReplayDriver::run() {
    try {
        replay();
    } catch (const std::exception& e) {
        problem_ = e.what();
    }
    if (problem_.empty()) problem_ = image_.problem();
    end();
}

void ReplayDriver::replay() {
    for (const auto& segment : segments_) segment->set_state(trace::DriverState::kRunning);
    if (!mixed_ && (spec_.slice == kAsRecorded || spec_.slice == image_.image().slice)) {
        parts_.run([this](const PartSequence::Part& part) { take(0, part); });
        problem_ = parts_.problem();
    } else {
        Turns turns(mixed_ ? mixed_->programs() : std::span(&image_, 1), spec_.slice);
        turns.run([this](std::size_t program, const PartSequence::Part& part) {
            take(program, mixed_ ? mixed_->part(program, part) : part);
        });
        problem_ = turns.problem();
    }
    if (spec_.regions.sample_period != 0) tell_executed();
    for (auto& [slot, running] : threads_) running->thread.end();
    for (const auto& [number, slot] : slots_) {
        slot->copy_counters(plan_.shown_blocks().size() * trace::counters(spec_));
        slot->copy_nodes();
    }
    for (std::size_t program = 0; program < events_.size(); ++program)
        pass_events(program, image_.events().size());
    tell_early_ends();
}

void ReplayDriver::take(std::size_t program, const PartSequence::Part& part) {
    pass_events(program, part.events);
    SlotWriter& slot = slot_of(part.slot);
    Running& running = thread_of(part.slot, part.thread);
    if (last_slot_ != &slot) {
        if (last_slot_) last_slot_->complete();
        running.thread.forget_recent_lines();
    }
    if (running.part && part.first_instruction) running.part->begin_chunk(*part.first_instruction);
    last_slot_ = &slot;
    std::size_t done = 0;
    for (const trace_part_marker_t& marker : part.markers) {
        const std::size_t until = std::clamp<std::size_t>(marker.record, done, part.records.size());
        running.take(part.records.subspan(done, until - done));
        done = until;
        mark(marker, part.slot, slot, running);
    }
    running.take(part.records.subspan(done));
}

// Several threads use a slot, one after the other.
ReplayDriver::Running& ReplayDriver::thread_of(std::uint32_t slot_number, std::uint32_t number) {
    SlotWriter& slot = slot_of(slot_number);
    std::unique_ptr<Running>& running = threads_[slot_number];
    if (running && slot.thread() == number) return *running;
    if (running) running->thread.end();
    slot.set_thread(number);
    const auto contexts = contexts_.find(slot_number);
    running.reset(new Running{{image_, plan_, spec_, slot, early_ends_[slot_number],
                               contexts == contexts_.end() ? nullptr : contexts->second.get()},
                              {}});
    if (chooses_part(spec_.regions, image_))
        running->part.emplace(range_, plan_, spec_, number, running->thread);
    return *running;
}

// Some threads have not told the number themselves.
void ReplayDriver::tell_executed() {
    for (const trace_thread_end_t& end : image_.thread_ends()) {
        thread_of(end.slot, end.thread).thread.check_executed(end.instructions);
        slot_of(end.slot).set_executed(end.instructions);
    }
    for (const auto& [slot, running] : threads_)
        if (running->part) slot_of(slot).set_executed(running->part->executed());
}

SlotWriter& ReplayDriver::slot_of(std::uint32_t number) {
    std::unique_ptr<SlotWriter>& slot = slots_[number];
    if (slot) return *slot;
    std::vector<SlotWriter::Output> outputs;
    MissFilters filters(kinds_);
    for (const auto& segment : segments_)
        outputs.push_back({segment->ring(number), filters.add(segment->control().spec)});
    slot = std::make_unique<SlotWriter>(std::move(filters), std::move(outputs));
    if (spec_.captures & trace::kCaptureContexts)
        contexts_[number] = std::make_unique<ReplayedContexts>(
            slot->begin_nodes(trace::context_words(spec_)), spec_);
    return *slot;
}

void ReplayDriver::event(trace::EventType type, std::span<const std::byte> body) {
    for (const auto& segment : segments_) segment->event(type, body);
}

// Passes on the events of the recorded driver that have the same meaning here.
void ReplayDriver::pass_events(std::size_t program, std::uint64_t bytes) {
    const std::span<const std::byte> all =
        mixed_ ? mixed_->events_of(program) : std::span<const std::byte>(image_.events());
    std::uint64_t& passed = events_[program];
    bytes = std::min<std::uint64_t>(bytes, all.size());
    while (passed + sizeof(trace::EventHeader) <= bytes) {
        trace::EventHeader header;
        std::memcpy(&header, all.data() + passed, sizeof header);
        const std::uint64_t body = passed + sizeof header;
        if (header.bytes > all.size() - body) return;
        switch (header.type) {
            case trace::EventType::kMapped:
            case trace::EventType::kUnmapped:
            case trace::EventType::kThreadName:
            case trace::EventType::kMappedFile:
            case trace::EventType::kRefused:
                event(header.type, all.subspan(body, header.bytes));
                break;
            default:
                break;
        }
        passed = body + ((header.bytes + std::uint64_t{7}) & ~std::uint64_t{7});
    }
}

// Writes a marker again, at its new place.
void ReplayDriver::mark(const trace_part_marker_t& marker, std::uint32_t number, SlotWriter& slot,
                        Running& running) {
    const std::span<const std::byte> all = image_.events();
    trace::EventHeader header;
    trace::MarkerEvent event;
    if (marker.event > all.size() || all.size() - marker.event < sizeof header) return;
    std::memcpy(&header, all.data() + marker.event, sizeof header);
    const std::span<const std::byte> behind = all.subspan(marker.event + sizeof header);
    if (header.type != trace::EventType::kMarker || header.bytes < sizeof event ||
        header.bytes > behind.size())
        return;
    std::vector<std::byte> body(behind.begin(), behind.begin() + header.bytes);
    std::memcpy(&event, body.data(), sizeof event);
    const bool of_pages =
        event.operation >= TRACE_MARKER_PAGES_4K && event.operation <= TRACE_MARKER_PAGES_SEEN;
    if (of_pages && !(spec_.captures & trace::kCaptureMappings)) return;
    if (of_pages) running.thread.forget_recent_lines();
    if (event.operation == TRACE_MARKER_THREAD_END && running.part) running.part->end();
    if (event.operation == TRACE_MARKER_THREAD_END)
        event.arguments[0] = shown_of(event.arguments[0], plan_);
    event.thread = slot.thread();
    event.slot = number;
    slot.pass_on();
    for (std::size_t i = 0; i < segments_.size(); ++i) {
        const RingWriter& ring = slot.outputs()[i].ring;
        event.buffer = ring.buffer();
        event.record = ring.records();
        std::memcpy(body.data(), &event, sizeof event);
        segments_[i]->event(header.type, body);
    }
}

void ReplayDriver::tell_early_ends() {
    for (const auto& [slot, ends] : early_ends_) {
        for (const auto& [where, times] : ends) {
            const auto& [block, executed, node] = where;
            const trace::PartialEvent partial{block, executed, 1, slot, times, node, 0};
            event(trace::EventType::kPartial, std::as_bytes(std::span(&partial, 1)));
        }
    }
}

// An image without another ending was killed.
void ReplayDriver::end() {
    const std::uint32_t recorded = image_.end() ? image_.end()->state : 0;
    std::optional<trace::DriverState> state;
    if (recorded == TRACE_IMAGE_REFUSED)
        state = trace::DriverState::kRefused;
    else if (recorded == TRACE_IMAGE_REPLACED)
        state = trace::DriverState::kReplaced;
    else if (recorded == TRACE_IMAGE_ENDED || !problem_.empty())
        state = trace::DriverState::kFinished;
    for (const auto& segment : segments_)
        if (state) segment->set_state(*state);
}

}  // namespace assay::replay
