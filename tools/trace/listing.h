// Writes the records of a trace as lines of text, CSV or JSON, its summary, and traces for other
// programs.
#pragma once

#include "framework/driver/replay/image_trace.h"
#include "framework/recording/trace_file_writer.h"
#include "tools/code/object_code.h"
#include "tools/output/output.h"
#include "tools/trace/places.h"
#include "tools/trace/trace.h"
#include "tools/trace/walk.h"

#include <string>
#include <vector>

namespace assay::tracing {

// By instruction: whether it is in a function that matches; empty without a pattern.
std::vector<bool> in_functions(const std::optional<Pattern>& function,
                               const replay::ImageTrace& image, const Places& places);

class Listing {
  public:
    // `sink` must outlive this object.
    Listing(const Options& options, Sink& sink);

    // Writes the records of an image that the options select. Returns the reason why records are
    // missing, or "".
    std::string write(const replay::ImageTrace& image, const Places& places, bool with_title);

  private:
    struct Row {
        std::uint32_t thread;  // from 1, as people number threads
        std::uint64_t instruction;
        std::uint32_t instr;
        const char* kind;
        std::optional<std::uint64_t> address;
        std::uint64_t bytes;  // 0 if there is no size
    };
    void write_head();
    void find_wanted(const replay::ImageTrace& image, const Places& places);
    bool is_shown(const Event& event) const;
    void write(const replay::ImageTrace& image, const Event& event);
    void write(const replay::ImageTrace& image, const Executed& executed);
    void write_boundary(const replay::ImageTrace& image, const Event& event);
    void write_row(const replay::ImageTrace& image, const Row& row);
    const std::string& ending(const replay::ImageTrace& image, std::uint32_t instr);
    std::string make_ending(const replay::ImageTrace& image, std::uint32_t instr) const;

    const Options& options_;
    Sink& sink_;
    const Disassembler disassembler_{Syntax::kAtt};
    const Places* places_ = nullptr;
    std::vector<bool> wanted_;          // by instruction; empty: all
    std::vector<std::string> endings_;  // by instruction: the unchanging end of its lines
    std::string line_;
    bool has_head_ = false;
};

// Writes traces in the formats of other programs.

// Exports the thread that the region names. The format memref exports all threads if it names none.
// Returns the reason why data are missing, or "". is_export() must be true for `format`.
std::string export_image(Format format, const replay::ImageTrace& image, const Region& region,
                         Sink& sink);

// Appends an image to a trace of assay, with the blocks that lie in the region and in functions
// with a true element, by instruction; empty: all. Adds the number of instructions to
// `instructions`. Returns the reason why records are missing, or "".
std::string cut_image(const replay::ImageTrace& image, const Region& region,
                      std::vector<bool> functions, recording::TraceFileWriter& file,
                      std::uint64_t& instructions);

// Writes a summary of each process image in a trace.

// Call it before the first image.
void write_summary_head(const Options& options, Sink& sink);
// Reads all records of the image to count them.
void write_summary(const Options& options, const replay::ImageTrace& image,
                   const recording::RecordedImage& recorded, Sink& sink);

}  // namespace assay::tracing
