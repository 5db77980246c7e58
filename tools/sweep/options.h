// assay sweep: runs one program with every combination of some options' values.
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
    // The options of the runs, including swept ones, as the user wrote them.
    std::vector<Setting> settings;
    // The program with its arguments, or a trace to replay.
    std::vector<std::string> program;
    bool is_trace = false;
    // The words of the two members above. Two sweeps with the same words are the same sweep.
    std::vector<std::string> words;
    int accepted_status = 0;  // exit status of a successful program

    std::string folder;
    unsigned jobs = 0;  // points that run at once; 0: the number of processors
    std::string format = "text";
    std::vector<std::string> show;  // events and figures; empty: all
    bool quiet = false;

    bool slurm = false;
    std::vector<std::string> sbatch;  // further options of sbatch(1)
    unsigned retries = 2;             // how often failed tasks are submitted again
    // Run only this point, counted from 1, of the sweep that the folder describes; 0: all points.
    unsigned point = 0;
};

// The option as on a command line.
std::string written(const Setting& setting);

// No value if --help or --version was given and its text has been printed. Throws Error.
std::optional<Options> parse_options(int argc, const char* const* argv);

// The subcommand. argv[0] is its name. Returns 1 if a point has failed. Throws Error.
int sweep_main(int argc, char** argv);

std::vector<Option> options();

// The values over which an option is swept, as lists and ranges on the command line:
// docs/reference/sweep.md.

inline constexpr std::size_t kMostValues = 10'000;

// The form of an option's values.
struct ValueForm {
    std::string option;    // the option as the user writes it, for messages: --D1
    std::string argument;  // the placeholder of the value in the help: SIZE,WAYS,LINE
    std::uint64_t kilo;    // the meaning of K: 1024 for bytes, 1000 for counts

    // True if values contain commas. Blanks then separate values.
    bool has_commas() const { return argument.find(',') != std::string::npos; }
};

// All given values without repetitions, in the order of their first occurrence. Throws Error with
// the wrong item and the expected form.
std::vector<std::string> listed_values(const ValueForm& form, std::span<const std::string> given);

// The sizes of values for a logarithmic axis: numbers, possibly with K, M or G, from the first
// field that differs between values, or from the only field. Empty if the values have no such field
// or it is not a number.
std::vector<std::uint64_t> sizes_of(const ValueForm& form, std::span<const std::string> values);

}  // namespace assay::sweep
