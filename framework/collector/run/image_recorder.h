// Records one process image in a trace file (assay/trace_file.h).
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
    // All arguments must live longer.
    ImageRecorder(recording::TraceFileWriter& file, const Segment& segment,
                  const TraceReader& reader, const Image& image, int parent,
                  const recording::TraceContent& content);

    // Returns the captures that a recording needs. Its values are recording::recorded_values().
    static trace::Spec spec(const recording::TraceContent& content);
    // Called before the first record. Only the points are then recorded. They must live longer. The
    // segment's specification says whether bursts are captured.
    void set_points(const SimulationPoints& points) { points_ = &points; }

    // Is a TraceReader::Sink. Throws Error if the file cannot be written.
    void take(TraceReader::Source source, std::span<const trace_record_t> records,
              std::span<const trace_marker_t> markers);
    // Called after the last take(). Writes the rest. `state`: see trace_image_end_t. Throws Error
    // if the file cannot be written.
    void end(std::uint32_t state, const std::optional<Ending>& ending);
    // After end(): how many points were recorded as a whole, and how many instructions the first
    // thread has executed.
    std::size_t complete_points() const { return points_ended_; }
    std::uint64_t instructions() const { return instructions_; }
    // After end(), with bursts: true if no burst has begun, and how many instructions all threads
    // have executed.
    bool missed_bursts() const { return sampled_ && !burst_began_; }
    std::uint64_t executed() const;

  private:
    struct Thread {
        std::uint32_t number = 0, slot = 0;
        std::uint64_t executed = 0;      // before the present chunk
        std::uint64_t instructions = 0;  // of the present chunk
        std::uint64_t records = 0;       // of the present chunk
        std::uint64_t left_out = 0;      // between bursts, in the present chunk
        std::uint64_t last_used = 0;     // order of the last part
        std::shared_ptr<recording::ChunkWriter::Chunk> chunk;  // null while the chunk is empty
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
    std::map<std::uint32_t, std::uint64_t> executed_;  // by thread; only with bursts
    const SimulationPoints* points_ = nullptr;  // null: everything, or all bursts, are recorded
    bool in_point_ = false;                     // in a point, or in the warm-up before it
    std::size_t points_ended_ = 0;
    std::uint64_t instructions_ = 0;           // only with points
    std::map<std::uint32_t, Thread> threads_;  // by slot
    std::size_t open_ = 0;                     // number of chunks
    std::uint64_t parts_ = 0;
    std::vector<std::uint16_t> block_lengths_;            // by site; see count()
    std::uint64_t events_seen_ = 0, events_written_ = 0;  // bytes
    // By slot: places in the event log.
    std::map<std::uint32_t, std::deque<std::uint64_t>> markers_;
    std::uint32_t blocks_written_ = 0, instrs_written_ = 0, sites_written_ = 0;
    recording::ChunkWriter writer_;  // last, because its threads use the sites
};

}  // namespace assay::collector
