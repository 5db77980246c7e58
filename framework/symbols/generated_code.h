// Names of code that a program has made itself, from what just-in-time compilers write for
// profilers: perf maps, lines of text (Linux, tools/perf/Documentation/jit-interface.txt), and
// jitdump files (jitdump-specification.txt beside it).
//
// The profiled program writes these files: nothing in them is taken for true, and what cannot be
// read is left out.
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
    // Finds the files in which a process names the code that it has made itself, and reads them:
    // /tmp/perf-PID.map, and each jit-*.dump that the process has mapped as code: so perf finds
    // them; `mapped_files` are in the order of mapping. Files that were last written before `begin`
    // are of an earlier process; those of other users than this one and root can say anything.
    // Remarks what is wrong with those that are read.
    static GeneratedCode of_process(pid_t pid, const std::vector<std::string>& mapped_files,
                                    std::time_t begin);

    // What a file of that path holds. Where it names an address twice, or two files do, the later
    // one counts. Answers what is wrong with it, for people; "" if nothing.
    std::string add_perf_map(const std::string& path, std::string_view text);
    std::string add_jitdump(const std::string& path, std::string_view bytes);

    struct Place {
        std::string_view source;  // the path of the file that names it
        Frame frame;
    };
    // The function of which `address` is code. What it refers to stays as long as the object.
    std::optional<Place> find(std::uint64_t address) const;
    bool empty() const { return parts_.empty(); }

    // More of a file is not read.
    static constexpr std::size_t kMostBytes = std::size_t{1} << 28;

  private:
    struct Line {
        std::uint64_t offset;  // from the function's start: there its code begins
        std::string_view file;
        std::uint32_t number;
    };
    struct Function {
        std::string_view source, name;
        std::vector<Line> lines;  // by offset
    };
    // Where code of a function lies that nothing later has replaced.
    struct Part {
        std::uint64_t end, function_start;
        std::size_t function;
    };
    using Parts = std::map<std::uint64_t, Part>;  // disjoint, by start
    class JitdumpReader;

    std::string_view keep(std::string_view text) { return *names_.emplace(text).first; }
    void place(std::uint64_t start, std::uint64_t size, std::size_t function);
    // Whether a function with another name of the same file is there.
    bool replaces_other(std::uint64_t start, std::uint64_t size, const Function& by) const;
    void split(std::uint64_t address);
    Parts::const_iterator part_of(std::uint64_t address) const;

    std::unordered_set<std::string> names_;
    std::deque<Function> functions_;
    Parts parts_;
};

}  // namespace assay::symbols
