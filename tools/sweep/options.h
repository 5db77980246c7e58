// assay sweep: runs of one program with every combination of some options' values.
#pragma once

#include "framework/collector/run/settings.h"
#include "tools/command_line/command_line.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::sweep {

struct Options {
    // Of the runs, those that are swept too, as on the command line.
    std::vector<Setting> settings;
    // With its arguments; or a trace, which is replayed instead.
    std::vector<std::string> program;
    bool is_trace = false;
    // The words that the two above were read from: what makes this sweep another than a second one.
    std::vector<std::string> words;
    int accepted_status = 0;  // of the program, if it has done what it should

    std::string folder;
    unsigned jobs = 0;  // at once; 0: as many as there are processors
    std::string format = "text";
    std::vector<std::string> show;  // events and figures; empty: all
    bool quiet = false;

    bool slurm = false;
    std::vector<std::string> sbatch;  // further options of sbatch(1)
    unsigned retries = 2;             // of tasks
    // Only this point, from 1 on, of a sweep that its folder says everything else about.
    unsigned point = 0;
};

// As on a command line.
std::string written(const Setting& setting);

// No value if --help or --version was asked for and has been printed. Throws Error.
std::optional<Options> parse_options(int argc, const char* const* argv);

// The subcommand. argv[0] is its name. Returns 1 if a point has failed. Throws Error.
int sweep_main(int argc, char** argv);

std::vector<Option> options();

// The values that an option is swept over, as lists and ranges on the command line: docs/sweep.md.

inline constexpr std::size_t kMostValues = 10'000;

// What one value of an option looks like.
struct ValueForm {
    std::string option;    // as it is written, for messages: --D1
    std::string argument;  // what stands for a value in the help: SIZE,WAYS,LINE
    std::uint64_t kilo;    // what K stands for: 1024 of bytes, 1000 of counts

    // Then commas do not separate values, but blanks do.
    bool has_commas() const { return argument.find(',') != std::string::npos; }
};

// All values of what was given, each once, in the order in which they were first named. Throws
// Error with the bad item and what is expected instead.
std::vector<std::string> listed_values(const ValueForm& form, std::span<const std::string> given);

// The size behind a value, for a logarithmic axis: of the first field that is not the same in all
// values, a number that may have K, M or G behind it; or of its only field. Empty if the values
// differ in no such field or have none.
std::vector<std::uint64_t> sizes_of(const ValueForm& form, std::span<const std::string> values);

}  // namespace assay::sweep
