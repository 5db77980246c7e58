// Writes a part of a trace as a trace.
#include "framework/recording/record_coding.h"
#include "framework/recording/trace_file_writer.h"
#include "framework/support/error.h"
#include "tools/trace/listing.h"

#include <fmt/core.h>
#include <algorithm>
#include <map>
#include <span>
#include <utility>

namespace assay::tracing {
namespace {

constexpr std::uint64_t kRecordsInCutChunk = std::uint64_t{1} << 21;

class Cut {
  public:
    Cut(const replay::ImageTrace& image, const Region& region, std::vector<bool> functions,
        recording::TraceFileWriter& file)
        : image_(image), region_(region), functions_(std::move(functions)), file_(file) {}

    // Returns the reason why records are missing, or "".
    std::string write() {
        trace_image_t about = image_.image();
        if (!functions_.empty()) about.captures |= TRACE_RECORDED_SOME_BLOCKS;
        append({.kind = TRACE_CHUNK_IMAGE}, std::as_bytes(std::span(&about, 1)));
        append({.kind = TRACE_CHUNK_EVENTS}, image_.events());
        write_code();
        replay::PartSequence parts(image_);
        for (replay::PartSequence::Part part; parts.next(part);) take(part);
        for (auto& [number, slot] : slots_) finish(slot);
        if (image_.end()) {
            trace_image_end_t end = *image_.end();
            end.size = sizeof end;
            end.parts = parts_;
            append({.kind = TRACE_CHUNK_END}, std::as_bytes(std::span(&end, 1)));
        }
        return parts.problem();
    }
    std::uint64_t instructions() const { return kept_; }

  private:
    struct Thread {
        trace_position_t position{};
        bool is_kept = false;  // the last block
    };
    // The chunk of a slot that is being made.
    struct Slot {
        trace_chunk_t header{};
        recording::RecordEncoder encoder;
    };

    void append(trace_chunk_t header, std::span<const std::byte> content) {
        header.pid = image_.pid();
        header.image = image_.number();
        file_.append(header, content);
    }

    template <typename Row>
    static void append_rows(std::vector<std::byte>& to, const std::vector<Row>& rows) {
        const auto bytes = std::as_bytes(std::span(rows));
        to.insert(to.end(), bytes.begin(), bytes.end());
    }
    void write_code() {
        const trace_code_t head{0, static_cast<std::uint32_t>(image_.blocks().size()),
                                0, static_cast<std::uint32_t>(image_.instrs().size()),
                                0, static_cast<std::uint32_t>(image_.sites().size())};
        std::vector<std::byte> content;
        append_rows(content, std::vector{head});
        append_rows(content, image_.blocks());
        append_rows(content, image_.instrs());
        append_rows(content, image_.sites());
        append({.kind = TRACE_CHUNK_CODE}, content);
    }

    // A block belongs to the region of its last instruction.
    bool has(const trace_block_t& block, std::uint32_t thread, std::uint64_t last) const {
        return (!region_.thread || *region_.thread == thread) && region_.has(last) &&
               (functions_.empty() || functions_[block.first_instr]);
    }

    // Returns true if the record stays.
    bool keeps(const trace_record_t& record, std::uint32_t number, Thread& thread) {
        const trace_site_t& site = image_.sites()[record.site];
        const trace_block_t& block = image_.blocks()[image_.instrs()[site.instr].block];
        const std::uint64_t before = thread.position.executed;
        trace_position_next(&thread.position, &record, &site, &block);
        const std::uint64_t executed = thread.position.executed;
        if (site.kind == TRACE_SITE_BLOCK) thread.is_kept = has(block, number, executed);
        if (thread.is_kept && executed >= before) in_part_ += executed - before;
        if (thread.is_kept && executed < before) in_part_ -= std::min(before - executed, in_part_);
        return thread.is_kept;
    }

    void take(const replay::PartSequence::Part& part) {
        Thread& thread = threads_[part.thread];
        if (part.first_instruction) trace_position_begin(&thread.position, *part.first_instruction);
        records_.clear();
        markers_.clear();
        in_part_ = 0;
        auto marker = part.markers.begin();
        const auto mark = [&](std::size_t until) {
            for (; marker != part.markers.end() && marker->record <= until; ++marker)
                markers_.push_back({records_.size(), marker->event});
        };
        std::uint64_t first = thread.position.executed;
        for (std::size_t i = 0; i < part.records.size(); ++i) {
            mark(i);
            const std::uint64_t executed = thread.position.executed;
            if (!keeps(part.records[i], part.thread, thread)) continue;
            if (records_.empty()) first = executed;
            records_.push_back(part.records[i]);
        }
        mark(SIZE_MAX);
        if (!records_.empty() || !markers_.empty()) add(part, first);
    }

    void add(const replay::PartSequence::Part& part, std::uint64_t first) {
        Slot& slot = slots_[part.slot];
        trace_chunk_t& header = slot.header;
        if (header.kind != 0 &&
            (header.thread != part.thread || header.records >= kRecordsInCutChunk))
            finish(slot);
        if (header.kind == 0) {
            header.kind = TRACE_CHUNK_RECORDS;
            header.thread = part.thread;
            header.slot = part.slot;
        }
        if (header.records == 0) header.first_instruction = first;
        slot.encoder.begin_part(parts_++, records_.size(), part.events, markers_);
        slot.encoder.add(records_, image_.sites());
        header.records += records_.size();
        header.instructions += in_part_;
        kept_ += in_part_;
    }

    void finish(Slot& slot) {
        if (slot.header.kind == 0) return;
        append(slot.header, slot.encoder.take());
        slot.header = {};
    }

    const replay::ImageTrace& image_;
    const Region region_;
    const std::vector<bool> functions_;  // by instruction; empty: all
    recording::TraceFileWriter& file_;
    std::map<std::uint32_t, Thread> threads_;
    std::map<std::uint32_t, Slot> slots_;
    std::uint64_t parts_ = 0, kept_ = 0;
    // Of the part.
    std::vector<trace_record_t> records_;
    std::vector<trace_part_marker_t> markers_;
    std::uint64_t in_part_ = 0;
};

}  // namespace

std::string cut_image(const replay::ImageTrace& image, const Region& region,
                      std::vector<bool> functions, recording::TraceFileWriter& file,
                      std::uint64_t& instructions) {
    if (image.image().sample_period != 0 || !image.points().empty())
        throw Error(fmt::format("{} has only a part of the run, and cannot be cut further",
                                image.file().path()));
    Cut cut(image, region, std::move(functions), file);
    std::string missing = cut.write();
    instructions += cut.instructions();
    return missing;
}

}  // namespace assay::tracing
