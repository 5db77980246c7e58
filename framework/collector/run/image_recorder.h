// Writes what a driver tells of one process image to a trace file (assay/trace_file.h).
#pragma once

#include "framework/collector/launch/child.h"
#include "framework/collector/run/output_files.h"
#include "framework/collector/run/simulation_points.h"
#include "framework/collector/trace/trace_reader.h"
#include "framework/recording/trace_content.h"
#include "framework/recording/trace_file_writer.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace assay::collector {

class ImageRecorder {
  public:
    // All must live longer.
    ImageRecorder(recording::TraceFileWriter& file, const Segment& segment,
                  const TraceReader& reader, const Image& image, int parent,
                  const recording::TraceContent& content);

    // What it wants to be captured; the values are recording::recorded_values().
    static trace::Spec spec(const recording::TraceContent& content);
    // Before the first record: only they are captured. They must live longer. Where bursts are
    // captured, the segment's specification says so.
    void set_points(const SimulationPoints& points) { points_ = &points; }

    // A TraceReader::Sink. Throws Error, if the file cannot be written.
    void take(TraceReader::Source source, std::span<const trace_record_t> records,
              std::span<const trace_marker_t> markers);
    // Likewise: what is left, when all has been taken. `state`: see trace_image_end_t.
    void end(std::uint32_t state, const std::optional<Ending>& ending);
    // Then: how many of the points are there as a whole, and what the first thread has executed.
    std::size_t complete_points() const { return points_ended_; }
    std::uint64_t instructions() const { return instructions_; }
    // Likewise of bursts: whether none has begun, and what all threads have executed.
    bool missed_bursts() const { return sampled_ && !burst_began_; }
    std::uint64_t executed() const;

  private:
    struct Thread {
        std::uint32_t number = 0, slot = 0;
        std::uint64_t executed = 0;                            // before this chunk
        std::uint64_t instructions = 0;                        // of this one
        std::uint64_t records = 0;                             // likewise
        std::uint64_t left_out = 0;                            // likewise: between bursts
        std::uint64_t last_used = 0;                           // a part's order
        std::shared_ptr<recording::ChunkWriter::Chunk> chunk;  // null while it has nothing
    };

    Thread& thread_of(TraceReader::Source source);
    void count(Thread& thread, std::span<const trace_record_t> records);
    std::vector<trace_part_marker_t> places_of(std::uint32_t slot,
                                               std::span<const trace_marker_t> markers);
    void find_markers();
    void flush(Thread& thread);
    void flush_idle();
    void follow_points(Thread& thread, const trace_record_t& last);
    void follow_bursts(Thread& thread, const trace_record_t& last);
    std::uint32_t point_of(const Thread& thread) const;
    std::vector<trace_thread_end_t> thread_ends();
    void write_image();
    void write_points();
    void write_code();
    void write_events();
    void append(std::uint32_t kind, std::span<const std::byte> content);

    const Segment& segment_;
    const TraceReader& reader_;
    const Image& image_;
    const int parent_;
    const recording::TraceContent content_;
    bool begun_ = false;
    bool sampled_ = false;  // only bursts are recorded
    bool burst_began_ = false;
    std::map<std::uint32_t, std::uint64_t> executed_;  // by thread, with bursts
    const SimulationPoints* points_ = nullptr;         // null: all is recorded, or bursts
    bool in_point_ = false;                            // or in the warm-up before it
    std::size_t points_ended_ = 0;
    std::uint64_t instructions_ = 0;           // with points
    std::map<std::uint32_t, Thread> threads_;  // by slot
    std::size_t open_ = 0;                     // chunks
    std::uint64_t parts_ = 0;
    std::vector<std::uint16_t> block_lengths_;            // by site; 0 of others than blocks
    std::uint64_t events_seen_ = 0, events_written_ = 0;  // bytes
    std::map<std::uint32_t, std::deque<std::uint64_t>> markers_;  // by slot: places in the events
    std::uint32_t blocks_written_ = 0, instrs_written_ = 0, sites_written_ = 0;
    recording::ChunkWriter writer_;  // last: its threads use the sites
};

}  // namespace assay::collector
