// What the profilers of one process image have counted, and the files that it goes to.
#pragma once

#include "framework/collector/results/context_shares.h"
#include "framework/collector/results/sample_database.h"
#include "framework/collector/results/sampling.h"
#include "framework/collector/run/output_files.h"
#include "framework/collector/run/session.h"
#include "framework/collector/trace/address_map.h"
#include "framework/collector/trace/context_tree.h"
#include "framework/collector/trace/referenced_objects.h"
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

class Results {
  public:
    struct Counts {
        explicit Counts(std::size_t columns) : samples(columns) {}
        SampleDatabase samples;
        ContextCounts contexts;
        ContextCounts objects;  // by number of the object instead of the context
        ContextCounts threads;  // by ThreadContexts::number()
        Hotlists hotlists;
        // By row of the samples and column: what is of a context, or of none, as the profiler has
        // told. Only with --contexts; likewise of an object, and of a thread.
        std::vector<std::uint64_t> told, told_object, told_thread;
    };

    // Both must live longer.
    Results(Session& session, const Image& image)
        : session_(session), image_(image), counts_(session.columns.size()) {}
    Results(const Results&) = delete;
    Results& operator=(const Results&) = delete;

    // For each profiler, in the session's order, before its first sample.
    void add_profiler(const ProfilerHandle& profiler, bool captures_calls);
    // Takes a profiler's sample of an instruction in that mapping. `contexts`: of which its calling
    // context is one.
    void take(std::size_t profiler, const vsample_t& sample, std::uint32_t mapping,
              const ContextTree& contexts);
    // Makes what was counted in bursts estimates of the whole run.
    void scale(const Sampling& sampling);
    // With simulation points: what has been counted of one, and adds that of another, of a session
    // with the same profilers. Without contexts, objects and threads.
    Counts take_counts() { return std::move(counts_); }
    void add(const Counts& other);

    // What the files and summaries say of the run.
    struct Origin {
        const AddressMap& addresses;
        std::span<const trace_context_t> contexts;
        ReferencedObjects* objects;  // null without --objects
        const Sampling& sampling;
        const std::string& incomplete;  // why the profile is; "" if it is not
        bool replaced;                  // another image of the process follows
        std::uint32_t threads = 1;      // that there have been
        // With --contexts, what was executed, of which contexts get their shares.
        CodeTables code = {};
        std::span<const std::uint64_t> executions = {};      // by instruction
        std::span<const std::uint64_t> mispredictions = {};  // by block
        // Calls its argument with all that was executed in contexts, in as many parts as it likes.
        // Empty if that is not known.
        std::function<void(const std::function<void(std::span<const ContextExecutions>)>& take)>
            executions_by_context = {};
        // The same by ThreadContexts::number() instead of the context; empty without --threads.
        std::function<void(const std::function<void(std::span<const ContextExecutions>)>& take)>
            executions_by_thread = {};
        const std::map<std::uint32_t, std::string>* thread_names = nullptr;
    };
    // Writes the events file, and one for each part of the profile. Throws Error.
    void write(const Origin& origin);
    // The profilers' summaries, as they are printed.
    std::string summaries(const Sampling& sampling) const;
    // The name of the file that has been written; "" if none.
    const std::string& file() const { return file_; }
    std::size_t part_files() const { return part_files_; }
    // Of the file: the names and totals of its events.
    struct Total {
        std::string event;
        std::uint64_t count;
    };
    std::vector<Total> file_totals() const;

  private:
    void add(Counts& counts, std::size_t profiler, const SampleDatabase::Key& key,
             const vsample_t& sample, const ContextTree& contexts) const;
    void add_told(std::vector<std::uint64_t>& told, std::uint32_t row, std::size_t column,
                  std::uint64_t weight) const;
    void scale(Counts& counts, const Sampling& sampling) const;
    std::uint64_t untold(std::span<const std::uint64_t> told, std::uint32_t row,
                         std::size_t column) const;
    std::vector<std::uint64_t> untold_of_contexts() const;
    std::vector<std::uint32_t> rows_of_instructions(const Origin& origin) const;
    void share_among_objects(const Origin& origin);
    void share_among_threads(const Origin& origin);
    std::vector<std::uint64_t> references(const Origin& origin) const;
    static void add_jumps(Profile& profile, const Origin& origin);
    void share_counts(const Origin& origin, std::span<const std::uint32_t> alike);
    std::string errors(const Sampling& sampling) const;
    std::string schedule_of(const Origin& origin) const;
    Profile profile_of(const Counts& counts, const Origin& origin) const;
    void add_columns(Profile& profile, std::size_t profiler) const;
    void add_series(Profile& profile) const;
    void write_parts(const std::string& file, const Origin& origin);
    std::string fall_back(const std::string& wanted, const Profile& profile) const;
    std::vector<std::uint64_t> totals(std::size_t profiler) const;
    bool has_points() const { return session_.settings.regions.points != 0; }
    std::string totals_of_points() const;

    Session& session_;
    const Image& image_;
    Counts counts_;
    // Those of parts of the profile, by profiler and number of the part.
    std::map<std::pair<std::size_t, std::uint64_t>, Counts> parts_;
    std::vector<std::uint32_t> first_list_;  // by profiler: the number of its first
    std::vector<std::string> list_names_;    // by number
    std::vector<bool> captures_calls_;       // by profiler
    std::vector<std::size_t> described_;     // likewise: descriptions at its start
    symbols::GeneratedCode generated_;
    std::string file_;  // that has been written; "" if none
    std::size_t part_files_ = 0;
    bool shared_ = false;          // counts among contexts
    bool objects_shared_ = false;  // and among objects
    bool threads_shared_ = false;  // and among threads
};

}  // namespace assay::collector
