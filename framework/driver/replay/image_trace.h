// One process image of a trace file: its code, its events, and the places of its records.
#pragma once

#include "framework/isa/architecture.h"
#include "framework/recording/trace_content.h"
#include "framework/recording/trace_file_reader.h"
#include "framework/trace/command_event.h"
#include "framework/trace/segment_layout.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace assay::replay {

class ImageTrace {
  public:
    // Reads everything except the records. `file` must outlive this. Throws Error if there is
    // nothing to replay.
    ImageTrace(const recording::TraceFileReader& file, const recording::RecordedImage& image);

    const recording::TraceFileReader& file() const { return file_; }
    std::uint32_t pid() const { return pid_; }
    std::uint32_t number() const { return number_; }
    const trace_image_t& image() const { return image_; }
    recording::TraceContent content() const { return {image_.captures, image_.values}; }
    trace::InstructionSet instruction_set() const {
        return {image_.emulated, image_.elf_machine, image_.elf_class, image_.elf_data};
    }
    // If QEMU's driver has recorded the image; otherwise nullptr.
    const isa::Architecture* emulated() const { return emulated_; }
    // Empty if the image's end was not recorded.
    const std::optional<trace_image_end_t>& end() const { return end_; }
    // With bursts: the end of the last thread of each slot.
    const std::vector<trace_thread_end_t>& thread_ends() const { return thread_ends_; }
    // The recorded simulation points; empty if the whole run is recorded.
    const std::vector<trace_point_t>& points() const { return points_; }
    const trace_points_t& about_points() const { return about_points_; }
    trace::Command command() const;

    const std::vector<trace_block_t>& blocks() const { return blocks_; }
    const std::vector<trace_instr_t>& instrs() const { return instrs_; }
    const std::vector<trace_site_t>& sites() const { return sites_; }
    // The event log of framework/trace/segment_layout.h.
    const std::vector<std::byte>& events() const { return events_; }
    // By slot, in the order in which threads used the slot.
    const std::map<std::uint32_t, std::vector<recording::ChunkPlace>>& records() const {
        return records_;
    }
    // The sum of all threads.
    std::uint64_t instructions() const;
    // The reason why the image is not complete; "" if it is complete.
    const std::string& problem() const { return problem_; }

    // For MixedPrograms. begin_mixture() removes all tables, events and records. mix() adds those
    // of another image, as given; it has then what all images have recorded.
    void begin_mixture();
    void mix(const ImageTrace& other, std::span<const trace_block_t> blocks,
             std::span<const trace_instr_t> instrs, std::span<const trace_site_t> sites,
             std::span<const std::byte> events);

  private:
    void take(const recording::ChunkPlace& chunk);
    void take_image(const std::vector<std::byte>& content);
    void take_code(const std::vector<std::byte>& content);
    bool fits(const std::vector<trace_block_t>& blocks, const std::vector<trace_instr_t>& instrs,
              const std::vector<trace_site_t>& sites) const;
    void take_end(std::vector<std::byte> content);
    void take_points(const std::vector<std::byte>& content);

    const recording::TraceFileReader& file_;
    const std::uint32_t pid_, number_;
    trace_image_t image_{};
    const isa::Architecture* emulated_ = nullptr;
    std::optional<trace_image_end_t> end_;
    std::vector<trace_thread_end_t> thread_ends_;
    trace_points_t about_points_{};
    std::vector<trace_point_t> points_;
    std::vector<trace_block_t> blocks_;
    std::vector<trace_instr_t> instrs_;
    std::vector<trace_site_t> sites_;
    std::vector<std::byte> events_;
    std::map<std::uint32_t, std::vector<recording::ChunkPlace>> records_;
    std::string problem_;
};

// True if the image's process continued with another image (execve).
bool is_replaced(const recording::TraceFileReader& file, const recording::RecordedImage& image);

}  // namespace assay::replay
