// The points of a sweep, which are the combinations of the swept options' values, and the command
// of each.
#pragma once

#include "framework/collector/run/settings.h"
#include "tools/sweep/options.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::sweep {

// What differs between points: an option, a key of an option KEY=VALUE, or the trace.
struct SweptOption {
    std::string name;    // for people: D1, L2.size, trace
    std::string option;  // without dashes; empty: the trace
    std::string key;     // of an assignment
    std::vector<std::string> values;
    std::vector<std::uint64_t> sizes;  // of the values, for an axis; may be empty: see sizes_of()
};

class Plan {
  public:
    enum class Check : std::uint8_t { kValues, kNothing };

    // Loads the profilers to learn their options. Throws Error, also if a profiler refuses one of
    // the values. `check` tells whether to try the values, which is needed only once.
    explicit Plan(const Options& options, Check check = Check::kValues);

    std::size_t size() const { return size_; }
    // The program, or the traces that are replayed.
    const std::vector<std::string>& program() const { return program_; }
    // The trace of a point.
    const std::string& trace(std::size_t point) const;
    bool is_of_trace() const { return is_trace_; }
    const std::vector<SweptOption>& swept() const { return swept_; }
    // The values of the swept options. Points are numbered from 0. The last option varies fastest.
    std::vector<std::string> values(std::size_t point) const;
    // For files: the number of the point from 1, with leading zeros to equal length.
    std::string name(std::size_t point) const;
    // For people: --D1=16K,8,64 --LL=1M,16,64; "" if no option is swept.
    std::string label(std::size_t point) const;
    // For messages: point 3 of 24 (--D1=16K,8,64).
    std::string subject(std::size_t point) const;
    // The words to execute. The first is this executable.
    std::vector<std::string> command(std::size_t point, const std::string& events_file) const;
    // Files that affect the numbers: assay and its profilers, the program or trace, and files that
    // options name.
    const std::vector<std::string>& files() const { return files_; }

  private:
    struct Profilers;

    void take_options(const std::vector<Setting>& given, const Profilers& profilers);
    void count_points();
    void check_output_files() const;
    void check_values();
    void add_file(const std::string& path);
    void find_files(const Profilers& profilers);
    std::vector<Setting> settings(std::size_t point) const;

    std::vector<std::string> program_;
    bool is_trace_;
    collector::Command command_;    // of all points
    std::vector<Setting> core_;     // options of assay itself
    std::vector<Setting> fixed_;    // options of profilers with one value
    std::vector<Setting> outputs_;  // options of profilers that name output files
    std::vector<SweptOption> swept_;
    std::size_t size_ = 1;
    std::vector<std::string> files_;
};

// Quotes the words for a shell.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace assay::sweep
