#include "tools/trace/check.h"

#include "framework/driver/replay/parallel_parts.h"
#include "framework/support/error.h"
#include "framework/support/text.h"
#include "framework/symbols/image_cache.h"
#include "framework/symbols/symbolizer.h"
#include "tools/output/formats.h"
#include "tools/trace/places.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string_view>

namespace assay::tracing {
namespace {

// The events of an image, by their offsets.
class CheckedEvents {
  public:
    CheckedEvents(std::span<const std::byte> log, Violations& violations) : log_(log) {
        trace::EventHeader header;
        std::size_t at = 0;
        for (; log.size() - at >= sizeof header; at += bytes_of(header)) {
            std::memcpy(&header, log.data() + at, sizeof header);
            if (bytes_of(header) > log.size() - at) break;
            if (header.type == trace::EventType::kMarker &&
                header.bytes >= sizeof(trace::MarkerEvent))
                markers_.insert(at);
            maps_ = maps_ || header.type == trace::EventType::kMapped;
        }
        if (at != log.size())
            violations.add(Rule::kEvents,
                           {fmt::format("the event at byte {} is cut off", at), {}, 0, {}});
    }
    bool has_mappings() const { return maps_; }

    std::optional<trace::MarkerEvent> marker(std::uint64_t at) const {
        if (!markers_.contains(at)) return {};
        trace::MarkerEvent marker;
        std::memcpy(&marker, log_.data() + at + sizeof(trace::EventHeader), sizeof marker);
        return marker;
    }

  private:
    static std::size_t bytes_of(const trace::EventHeader& header) {
        return sizeof header + ((std::size_t{header.bytes} + 7) & ~std::size_t{7});
    }

    const std::span<const std::byte> log_;
    std::set<std::uint64_t> markers_;
    bool maps_ = false;
};

class ImageCheck {
  public:
    ImageCheck(const replay::ImageTrace& image, Violations& violations)
        : image_(image),
          violations_(violations),
          events_(image.events(), violations),
          code_(image, image.emulated() != nullptr || events_.has_mappings(), violations) {}

    void run(const recording::RecordedImage& recorded, Checked& all) {
        replay::PartSequence parts(image_);
        for (replay::PartSequence::Part part; parts.next(part);) take(part);
        ++all.images;
        all.flow = all.flow && has_flow(image_);
        all.threads += threads_.size();
        for (auto& [number, thread] : threads_) {
            thread.finish();
            all.instructions += thread.checked().instructions;
            all.blocks += thread.checked().blocks;
            all.references += thread.checked().references;
            all.returns += thread.checked().returns;
            all.other_returns += thread.checked().other_returns;
        }
        compare(recorded);
        for (const std::string& problem : {image_.problem(), parts.problem()})
            if (!problem.empty()) throw Error(problem);
    }

  private:
    void wrong(Rule rule, std::string what, std::optional<std::uint32_t> thread = {}) {
        violations_.add(rule, {std::move(what), thread, 0, {}});
    }

    void take(const replay::PartSequence::Part& part) {
        CheckedThread& thread =
            threads_.try_emplace(part.thread, image_, code_, part.thread, violations_)
                .first->second;
        records_[part.thread] += part.records.size();
        if (part.first_instruction) thread.begin_chunk(*part.first_instruction);
        if (part.events < event_bytes_ || part.events > image_.events().size())
            wrong(Rule::kEvents,
                  fmt::format("part {} follows {} bytes of events after {} of {}", part.order,
                              part.events, event_bytes_, image_.events().size()),
                  part.thread);
        event_bytes_ = std::max(event_bytes_, part.events);
        if (ended_.contains(part.thread))
            wrong(Rule::kThreads, "records follow the thread's end", part.thread);
        for (const trace_record_t& record : part.records) thread.take(record);
        for (const trace_part_marker_t& marker : part.markers) take(marker, part);
    }

    void take(const trace_part_marker_t& place, const replay::PartSequence::Part& part) {
        const std::optional<trace::MarkerEvent> marker = events_.marker(place.event);
        if (!marker || place.record > part.records.size() || place.event >= part.events)
            return wrong(Rule::kEvents,
                         fmt::format("part {} has a marker before record {} of {} with the event "
                                     "at byte {}, which {}",
                                     part.order, place.record, part.records.size(), place.event,
                                     marker ? "comes later" : "is no marker"),
                         part.thread);
        if (marker->thread != part.thread)
            wrong(Rule::kThreads, fmt::format("a marker of thread {}", marker->thread + 1),
                  part.thread);
        if (marker->operation == TRACE_MARKER_THREAD_END) ended_.insert(part.thread);
    }

    void compare(const recording::RecordedImage& recorded) {
        struct Sum {
            std::uint64_t instructions = 0, records = 0;
        };
        std::map<std::uint32_t, Sum> said;
        for (const recording::ChunkPlace& chunk : recorded.chunks) {
            if (chunk.header.kind != TRACE_CHUNK_RECORDS) continue;
            said[chunk.header.thread].instructions += chunk.header.instructions;
            said[chunk.header.thread].records += chunk.header.records;
        }
        for (const auto& [number, sum] : said) {
            const auto thread = threads_.find(number);
            const std::uint64_t read =
                thread == threads_.end() ? 0 : thread->second.checked().instructions;
            if (sum.instructions != read || sum.records != records_[number])
                wrong(Rule::kCounts,
                      fmt::format("{} instructions in {} records were read, but the headers say {} "
                                  "in {}",
                                  read, records_[number], sum.instructions, sum.records),
                      number);
        }
        if (image_.end() && image_.end()->threads < threads_.size())
            wrong(Rule::kCounts,
                  fmt::format("{} threads were read, but the end of the program says {}",
                              threads_.size(), image_.end()->threads));
    }

    const replay::ImageTrace& image_;
    Violations& violations_;
    const CheckedEvents events_;
    const CheckedCode code_;
    std::map<std::uint32_t, CheckedThread> threads_;
    std::map<std::uint32_t, std::uint64_t> records_;  // by thread
    std::set<std::uint32_t> ended_;
    std::uint64_t event_bytes_ = 0;
};

// By Rule.
constexpr std::array<const char*, kRules> kNames = {
    "code that does not fit together",     "jumps of the control flow", "wrong references",
    "wrong beginnings or ends of threads", "wrong places of events",    "wrong counts"};

std::string description(const replay::ImageTrace& image, Rule rule, const Violations::Found& found,
                        const Options& options) {
    std::string text =
        fmt::format("{}: process {}, image {}: {}: {}", options.file, image.pid(), image.number(),
                    kNames[static_cast<std::size_t>(rule)], with_thousands(found.count));
    const Violation& first = found.first;
    text += "; the first:";
    if (first.thread) text += fmt::format(" in thread {}", *first.thread + 1);
    if (first.instruction != 0)
        text += fmt::format(", instruction {}", with_thousands(first.instruction));
    if (first.instr) {
        symbols::Symbolizer symbolizer(symbols::kDebugRoot, symbols::ImageCache::folder_of_user());
        const Places places(image, symbolizer);
        text += fmt::format(" at {:#x} ({})", image.instrs()[*first.instr].pc,
                            places[*first.instr].function);
    }
    return printable(text + ": " + first.what);
}

}  // namespace

std::vector<std::string> check_image(const Options& options, const replay::ImageTrace& image,
                                     const recording::RecordedImage& recorded, Checked& all) {
    Violations violations;
    ImageCheck(image, violations).run(recorded, all);
    std::vector<std::string> problems;
    for (std::size_t i = 0; i < kRules; ++i)
        if (const Violations::Found& found = violations.found()[i]; found.count != 0)
            problems.push_back(description(image, static_cast<Rule>(i), found, options));
    return problems;
}

std::string description(const Checked& all) {
    const auto number = [](std::uint64_t count, std::string_view what) {
        return fmt::format("{} {}{}", with_thousands(count), what, count == 1 ? "" : "s");
    };
    return fmt::format(
        "{}, {}, {} in {}, {}, {}{}{}", number(all.images, "program"),
        number(all.threads, "thread"), number(all.instructions, "instruction"),
        number(all.blocks, "block"), number(all.references, "reference"),
        number(all.returns, "return"),
        all.other_returns == 0
            ? ""
            : fmt::format(", {} of them not to the last call", with_thousands(all.other_returns)),
        all.flow ? "" : "; jumps are not checked, which needs all blocks, calls and system calls");
}

}  // namespace assay::tracing
