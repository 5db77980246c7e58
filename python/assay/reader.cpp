// Reads a trace file into rows, for assay.trace() of Python. ctypes calls these functions.
#include "framework/driver/replay/parallel_parts.h"
#include "framework/support/error.h"
#include "plugins/python/rows.h"

#include <algorithm>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace assay::python {
namespace {

class RowReader {
  public:
    explicit RowReader(const std::string& path) : file_(path) {}

    const recording::TraceFileReader& file() const { return file_; }

    // Returns the number of rows, which is 0 after the last one. `thread`: from 1; 0: all. Throws
    // Error if records are missing.
    std::size_t next(std::span<python_row_t> rows, std::uint64_t kinds, std::uint32_t thread) {
        std::size_t count = 0;
        while (count < rows.size() && (at_ < part_.records.size() || next_part(thread)))
            count += take(rows.subspan(count), kinds);
        return count;
    }

  private:
    std::size_t take(std::span<python_row_t> rows, std::uint64_t kinds) {
        trace_position_t& position = positions_[part_.thread];
        const trace_site_t* const sites = image_->sites().data();
        const trace_instr_t* const instrs = image_->instrs().data();
        const trace_block_t* const blocks = image_->blocks().data();
        std::size_t count = 0;
        for (; at_ < part_.records.size() && count < rows.size(); ++at_) {
            const trace_record_t& record = part_.records[at_];
            const trace_site_t& site = sites[record.site];
            const trace_instr_t& instr = instrs[site.instr];
            python_row_t row =
                python_row_of(&record, &site, &instr, &blocks[instr.block], &position);
            // A record of a block tells here how many references follow.
            if (site.kind == TRACE_SITE_BLOCK) row.address = 0;
            row.thread = static_cast<std::uint16_t>(part_.thread + 1);
            row.image = static_cast<std::uint8_t>(std::min<std::size_t>(images_, UINT8_MAX));
            rows[count] = row;
            count += site.kind < 64 && (kinds >> site.kind & 1) ? 1 : 0;
        }
        return count;
    }

    bool next_part(std::uint32_t thread) {
        at_ = 0;
        while (!parts_ || !parts_->next(part_)) {
            part_ = {};
            // A trace that was cut off is good up to its end.
            if (parts_ && image_->problem() != file_.damage()) throw Error(image_->problem());
            if (parts_ && !parts_->problem().empty()) throw Error(parts_->problem());
            parts_.reset();
            positions_.clear();
            if (images_ == file_.images().size()) return false;
            image_.emplace(file_, file_.images()[images_++]);
            parts_.emplace(*image_, [thread](const recording::ChunkPlace& chunk) {
                return thread == 0 || chunk.header.thread == thread - 1;
            });
        }
        if (part_.first_instruction)
            trace_position_begin(&positions_[part_.thread], *part_.first_instruction);
        return true;
    }

    const recording::TraceFileReader file_;
    std::size_t images_ = 0;  // that have been begun
    std::optional<replay::ImageTrace> image_;
    std::optional<replay::PartSequence> parts_;
    replay::PartSequence::Part part_;
    std::size_t at_ = 0;
    std::map<std::uint32_t, trace_position_t> positions_;  // by thread
};

// Of the last call that failed.
thread_local std::string problem;

}  // namespace
}  // namespace assay::python

#define EXPORT extern "C" __attribute__((visibility("default")))

using assay::python::RowReader;

// Returns null if the file is no trace.
EXPORT RowReader* assay_reader_open(const char* path) {
    try {
        return new RowReader(path);
    } catch (const std::exception& e) {
        assay::python::problem = e.what();
        return nullptr;
    }
}

EXPORT void assay_reader_close(RowReader* reader) {
    delete reader;
}

EXPORT const char* assay_reader_problem() {
    return assay::python::problem.c_str();
}

// Stores the process id and number of image `image` (from 1). Returns 0, or -1 if there is none.
EXPORT int assay_reader_image(const RowReader* reader, std::uint32_t image, std::uint32_t* pid,
                              std::uint32_t* number) {
    const auto& images = reader->file().images();
    if (image == 0 || image > images.size()) return -1;
    *pid = images[image - 1].pid;
    *number = images[image - 1].number;
    return 0;
}

// Stores at most `room` rows whose kind is a bit of `kinds`, and whose thread (from 1) is `thread`,
// unless that is 0. Returns their number, 0 at the end of the trace, or -1.
EXPORT std::int64_t assay_reader_next(RowReader* reader, python_row_t* rows, std::int64_t room,
                                      std::uint64_t kinds, std::uint32_t thread) {
    try {
        return static_cast<std::int64_t>(
            reader->next({rows, static_cast<std::size_t>(room)}, kinds, thread));
    } catch (const std::exception& e) {
        assay::python::problem = e.what();
        return -1;
    }
}
