#include "tools/sweep/options.h"

#include "assay/trace_file.h"
#include "framework/events/file.h"
#include "framework/support/error.h"
#include "framework/support/text.h"
#include "tools/sweep/sweep.h"

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
    line.add_flag("-q,--quiet", options.quiet, "say nothing but errors");
}

// Its own option that a word before the program is, by its first name; null if it is none.
const OptionDescription* own_option(std::string_view word,
                                    const std::vector<OptionDescription>& own) {
    const bool is_long = word.starts_with("--");
    const std::string_view name = is_long ? word.substr(0, word.find('=')) : word.substr(0, 2);
    for (const OptionDescription& option : own)
        if (std::find(option.names.begin(), option.names.end(), name) != option.names.end())
            return &option;
    return nullptr;
}

bool takes_next_word(std::string_view word, const OptionDescription& option) {
    if (option.argument.empty()) return false;
    return word.starts_with("--") ? word.find('=') == std::string_view::npos : word.size() == 2;
}

bool is_flag_of_run(std::string_view word) {
    const std::string_view name = word.substr(2, word.find('=') - 2);
    for (const collector::CoreOption& option : collector::core_options())
        if (option.name == name) return option.argument.empty();
    return true;  // a profiler's, which has its value behind the equals sign
}

// What stands before the program, parted.
struct Words {
    std::vector<std::string> own, of_runs, program;
    bool behind_dashes = false;
};

Words part(const std::vector<std::string>& words) {
    const std::vector<OptionDescription> own = options();
    Words parted;
    std::size_t i = 0;
    for (; i < words.size(); ++i) {
        const std::string& word = words[i];
        if (word == "--") {
            parted.behind_dashes = true;
            ++i;
            break;
        }
        if (!word.starts_with("-") || word == "-") break;
        const OptionDescription* const option = own_option(word, own);
        std::vector<std::string>& to = option ? parted.own : parted.of_runs;
        to.push_back(word);
        const bool takes_next = option ? takes_next_word(word, *option)
                                       : word.starts_with("--") &&
                                             word.find('=') == std::string::npos &&
                                             !is_flag_of_run(word);
        if (takes_next && i + 1 < words.size()) to.push_back(words[++i]);
    }
    parted.program.assign(words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
    return parted;
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

void take_words(Words words, Options& options) {
    options.words = words.of_runs;
    options.settings = collector::parse_command_line(words.of_runs).settings;
    options.program = std::move(words.program);
    if (options.program.empty())
        throw Error(
            "no program to run: assay sweep --plugin=NAME [--OPTION=VALUES...] [--] PROGRAM "
            "[ARG...]");
    options.is_trace = !words.behind_dashes && is_trace(options.program.front());
    if (options.is_trace && options.program.size() > 1)
        throw Error(
            fmt::format("{} is a trace, which takes no arguments ({}); for a program, put "
                        "-- before it",
                        options.program[0], options.program[1]));
    if (!options.is_trace) options.words.emplace_back("--");
    options.words.insert(options.words.end(), options.program.begin(), options.program.end());
}

}  // namespace

std::vector<OptionDescription> options() {
    return options_of(add_options);
}

std::optional<Options> parse_options(int argc, const char* const* argv) {
    Words words = part({argv + 1, argv + argc});
    std::vector<const char*> own{argv[0]};
    for (const std::string& word : words.own) own.push_back(word.c_str());
    std::optional<Arguments> parsed =
        parse_arguments(add_options, static_cast<int>(own.size()), own.data());
    if (!parsed) return std::nullopt;
    Options& options = parsed->options;
    options.accepted_status = static_cast<int>(parsed->status);
    if (options.folder.empty()) options.folder = "assay.sweep";
    if (options.point != 0) {
        if (!words.of_runs.empty() || !words.program.empty())
            throw Error(fmt::format("--point: the folder says what to run; leave out {}",
                                    words.of_runs.empty() ? words.program[0] : words.of_runs[0]));
        return options;
    }
    if (!options.slurm && !options.sbatch.empty())
        throw Error("--sbatch is for --slurm: give both");
    take_words(std::move(words), options);
    return options;
}

}  // namespace assay::sweep
