// The counts of one process image, and the events files and summaries made from them.
#pragma once

#include "framework/collector/profilers/feed.h"
#include "framework/collector/results/counts.h"
#include "framework/collector/run/output_files.h"
#include "framework/collector/run/session.h"
#include "framework/collector/trace/contexts.h"
#include "framework/symbols/generated_code.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace assay::collector {

struct Profile;
class ProfileWriter;

class ImageProfile {
  public:
    // Both arguments must live longer.
    ImageProfile(Session& session, const Image& image);
    ImageProfile(const ImageProfile&) = delete;
    ImageProfile& operator=(const ImageProfile&) = delete;

    // Called for each profiler, in the session's order, before its first sample.
    void add_profiler(const ProfilerHandle& profiler, bool captures_calls);
    // Takes a sample that a profiler returned for an instruction in this mapping. `contexts` has
    // the sample's calling context.
    void take(std::size_t profiler, const vsample_t& sample, std::uint32_t mapping,
              const ContextTree& contexts);
    // Turns counts of bursts into estimates for the whole run.
    void scale(const Sampling& sampling);
    // With simulation points: take_counts() returns the counts of one point, and add() adds those
    // of another point, from a session with the same profilers. Counts by context, object and
    // thread are not added.
    Counts take_counts() { return std::move(counts_); }
    void add(const Counts& other) { counts_.add(other); }

    // Writes the events file, and one file for each part of the profile. `feed` must have ended.
    // `incomplete` is the reason why the profile is incomplete, or "". `replaced`: another image of
    // the process follows. Throws Error.
    void write(Feed& feed, const std::string& incomplete, bool replaced);
    // Returns the profilers' summaries in the form in which they are printed.
    std::string summaries(const Sampling& sampling) const;
    // The path of the events file, or "" if no file was written.
    const std::string& file() const { return file_; }
    std::size_t part_files() const { return part_files_; }
    // Names and totals of the events in the file.
    struct Total {
        std::string event;
        std::uint64_t count;
    };
    std::vector<Total> file_totals() const;

  private:
    using Executions = std::function<void(const Feed::TakeExecutions& take)>;

    // Calls `visit(profiler, event, column)` for each column of the file.
    template <typename Visit>
    void for_each_column(const Visit& visit) const;
    std::vector<bool> columns_that(
        const std::function<bool(std::size_t profiler, std::size_t event)>& is_one) const;
    void add(Counts& counts, std::size_t profiler, const SampleDatabase::Key& key,
             const vsample_t& sample, const ContextTree& contexts) const;
    std::vector<std::uint32_t> rows_of_instructions(Feed& feed) const;
    void divide_by_executions(Breakdown& breakdown, const std::vector<bool>& columns, Feed& feed,
                              const Executions& executions, std::span<const std::uint32_t> alike);
    void divide_among_objects(Feed& feed);
    void divide_among_threads(Feed& feed);
    // Also counts the calls of the profile.
    void divide_among_contexts(Feed& feed, const ProfileWriter& writer,
                               std::span<const std::uint32_t> alike, Profile& profile);
    std::vector<std::uint64_t> references(Feed& feed) const;
    static void add_jumps(Profile& profile, Feed& feed);
    std::string errors(const Sampling& sampling) const;
    std::string schedule(std::uint32_t threads) const;
    Profile profile_of(const Counts& counts, Feed& feed, const std::string& incomplete) const;
    void add_columns(Profile& profile, std::size_t profiler) const;
    void add_series(Profile& profile) const;
    void write_parts(const std::string& file, Feed& feed, const std::string& incomplete);
    std::string fall_back(const std::string& wanted, ProfileWriter& writer) const;
    std::vector<std::uint64_t> totals() const;  // by column
    bool has_points() const { return session_.settings.regions.points != 0; }
    std::string totals_of_points() const;

    Session& session_;
    const Image& image_;
    Counts counts_;
    // Counts of parts of the profile, by profiler and number of the part.
    std::map<std::pair<std::size_t, std::uint64_t>, Counts> parts_;
    std::vector<std::uint32_t> first_list_;  // by profiler: the number of its first list
    std::vector<std::string> list_names_;    // by number of the list
    std::vector<bool> captures_calls_;       // by profiler
    std::vector<std::size_t> described_;     // by profiler: number of descriptions at its start
    symbols::GeneratedCode generated_;
    std::string file_;  // the written file, or ""
    std::size_t part_files_ = 0;
};

}  // namespace assay::collector
