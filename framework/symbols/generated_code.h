// Names of code that a program has generated itself. Just-in-time compilers write two kinds of
// files for profilers: perf maps, which are text (Linux,
// tools/perf/Documentation/jit-interface.txt), and jitdump files (jitdump-specification.txt in the
// same folder).
//
// The profiled program writes these files, so they may be wrong. Unreadable parts are left out.
#pragma once

#include "framework/symbols/symbolizer.h"

#include <sys/types.h>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace assay::symbols {

class GeneratedCode {
  public:
    // Finds and reads the files of a process, as perf does: /tmp/perf-PID.map, and each jit-*.dump
    // that the process has mapped as code. `mapped_files` are in the order of mapping. Skips files
    // that were last written before `begin`, because they belong to an earlier process, and files
    // of users other than the current user and root. Logs errors in the files, and
    // how to get a file from a Java virtual machine that has written none.
    static GeneratedCode of_process(pid_t pid, const std::vector<std::string>& mapped_files,
                                    std::time_t begin);

    // Add the contents of a file. If an address is named twice, the later name counts. Return a
    // message on errors in the contents, or "".
    std::string add_perf_map(const std::string& path, std::string_view text);
    std::string add_jitdump(const std::string& path, std::string_view bytes);

    struct Place {
        std::string_view source;  // the path of the file that names it
        Frame frame;
    };
    // The function that contains `address`. Its strings stay valid as long as this object.
    std::optional<Place> find(std::uint64_t address) const;
    bool empty() const { return parts_.empty(); }

    // Only this much of a file is read.
    static constexpr std::size_t kMostBytes = std::size_t{1} << 28;

  private:
    struct Line {
        std::uint64_t offset;  // of its code, from the start of the function
        std::string_view file;
        std::uint32_t number;
    };
    struct Function {
        std::string_view source, name;
        std::vector<Line> lines;  // by offset
    };
    // Code of a function that no later function has replaced.
    struct Part {
        std::uint64_t end, function_start;
        std::size_t function;
    };
    using Parts = std::map<std::uint64_t, Part>;  // disjoint, by start
    class JitdumpReader;

    std::string_view keep(std::string_view text) { return *names_.emplace(text).first; }
    void place(std::uint64_t start, std::uint64_t size, std::size_t function);
    // True if the range overlaps a function of the same file with another name.
    bool replaces_other(std::uint64_t start, std::uint64_t size, const Function& by) const;
    void split(std::uint64_t address);
    Parts::const_iterator part_of(std::uint64_t address) const;

    std::unordered_set<std::string> names_;
    std::deque<Function> functions_;
    Parts parts_;
};

}  // namespace assay::symbols
