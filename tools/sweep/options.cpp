#include "tools/sweep/options.h"

#include "assay/trace_file.h"
#include "framework/events/file.h"
#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <algorithm>

namespace assay::sweep {
namespace {

struct Arguments {
    Options options;
    unsigned status = 0;
};

constexpr const char* kPurpose =
    "Runs a program once for every combination of the values that options of profilers\n"
    "are given, and prints the totals of all runs as one table. The folder keeps what\n"
    "is finished: a sweep that was interrupted goes on when it is called again.\n\n"
    "  assay sweep --plugin=NAME [--OPTION=VALUES...] [options] [--] PROGRAM [ARG...]\n"
    "  assay sweep --plugin=NAME [--OPTION=VALUES...] [options] TRACE\n";

constexpr const char* kExamples =
    "All options of assay run and of the profilers can be given, too. Of a profiler's:\n\n"
    "    --predictor=gshare,tage           two values\n"
    "    --predictor-bits=10..14+1         10, 11, 12, 13, 14\n"
    "    --D1='16K,8,64 32K,8,64'          values that have commas: blanks between them\n"
    "    --D1=16K,8,64 --D1=32K,8,64       the same\n"
    "    --D1=16K,8,64..128K,8,64          the size doubles: 16K, 32K, 64K, 128K\n\n"
    "Examples:\n\n"
    "  assay sweep --plugin=cache --D1=16K,8,64..128K,8,64 -o sizes -- ./program\n"
    "  assay sweep --plugin=cache --machine=zen2,zen4,mine.yaml -- ./program input\n\n"
    "Exit status: 0, or 1 if a point has failed, or 125 if something could not be\n"
    "understood, read or written, or 126 or 127 if the program cannot be run.\n";

void add_options(CommandLine& line, Arguments& arguments) {
    Options& options = arguments.options;
    line.describe("assay sweep", kPurpose, kExamples);
    line.add_text("-o,--out", options.folder, "DIR",
                  "the folder of the sweep: the events files and logs of all points; default: "
                  "assay.sweep");
    line.add_number("-j,--jobs", options.jobs, 1, 4096, "N",
                    "how many points run at once; default: of a program as many as there are "
                    "processors, of a trace 32");
    line.add_choice("--format", options.format, "text|csv|json",
                    "how to print the table; default: text");
    line.add_list("--show", options.show, "A,B,...",
                  "print only these events and figures, in this order");
    line.add_number("--status", arguments.status, 0, 255, "N",
                    "the exit status of the program when it has done what it should; with another "
                    "one, a point has failed; default: 0");
    line.add_flag("--slurm", options.slurm,
                  "run the points as a job array of Slurm, whose nodes must see the folder, the "
                  "program and assay under the same names");
    line.add_list("--sbatch", options.sbatch, "OPTION",
                  "with --slurm, an option of sbatch(1): --sbatch=--time=30; may be repeated");
    line.add_number("--retries", options.retries, 0, 100, "N",
                    "with --slurm, how often a point is submitted again that has failed, or whose "
                    "task is gone; default: 2");
    line.add_number("--point", options.point, 1, 100'000, "N",
                    "run only point N of the sweep that was begun in the folder of -o: what a task "
                    "of the job array does");
    line.add_flag("-q,--quiet", options.quiet, "print errors only");
    line.needs("sbatch", "slurm");
}

bool is_trace(const std::string& path) {
    constexpr std::string_view kBeginning = TRACE_FILE_MAGIC;
    try {
        return events::can_be_read_again(path) &&
               events::beginning_of_file(path, kBeginning.size()) == kBeginning;
    } catch (const Error&) {
        return false;  // a program, or a file that is not there
    }
}

// All options of a run and of the profilers, for those of its own that a sweep has not.
void add_options_of_runs(CommandLine& line, Options& options) {
    const auto take = [&options](const Setting& setting) { options.settings.push_back(setting); };
    for (const Option& option : collector::options_of(collector::kRun))
        if (!line.find(option.name()))
            line.add(join(option.names, ",").c_str(), option.argument.c_str(), "", take);
    line.take_others(take);
}

// What is swept over, and the program. `words` are all that was given.
void take_runs(const std::vector<std::string>& words, Options& options) {
    for (const Setting& setting : options.settings) options.words.push_back(written(setting));
    if (options.program.empty())
        throw Error(
            "no program to run: assay sweep --plugin=NAME [--OPTION=VALUES...] [--] PROGRAM "
            "[ARG...]");
    const std::size_t before = words.size() - options.program.size() - 1;
    const bool behind_dashes = before < words.size() && words[before] == "--";
    options.is_trace = !behind_dashes && is_trace(options.program.front());
    if (options.is_trace && options.program.size() > 1)
        throw Error(
            fmt::format("{} is a trace, which takes no arguments ({}); for a program, put "
                        "-- before it",
                        options.program[0], options.program[1]));
    if (!options.is_trace) options.words.emplace_back("--");
    options.words.insert(options.words.end(), options.program.begin(), options.program.end());
}

}  // namespace

std::vector<Option> options() {
    return options_of(add_options);
}

std::string written(const Setting& setting) {
    const Option* const core = collector::find_option(setting.name);
    return core && core->argument.empty() ? "--" + setting.name
                                          : fmt::format("--{}={}", setting.name, setting.value);
}

std::optional<Options> parse_options(int argc, const char* const* argv) {
    Arguments parsed;
    Options& options = parsed.options;
    CommandLine line;
    add_options(line, parsed);
    add_help(line);
    add_options_of_runs(line, options);
    line.add_program(options.program);
    if (!parse(line, argc, argv, Order::kOptionsFirst)) return std::nullopt;
    options.accepted_status = static_cast<int>(parsed.status);
    if (options.folder.empty()) options.folder = "assay.sweep";
    if (options.point != 0) {
        if (!options.settings.empty() || !options.program.empty())
            throw Error(fmt::format(
                "--point: the folder says what to run; leave out {}",
                options.settings.empty() ? options.program[0] : written(options.settings[0])));
        return options;
    }
    take_runs({argv + 1, argv + argc}, options);
    return std::move(options);
}

}  // namespace assay::sweep
