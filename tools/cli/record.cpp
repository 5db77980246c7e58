#include "tools/cli/record.h"

#include "framework/collector/run/run.h"
#include "framework/collector/run/settings.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/mpi_rank.h"
#include "framework/support/text.h"
#include "tools/block_vectors/simulation_points.h"
#include "tools/cli/run.h"
#include "tools/output/output.h"

#include <fmt/core.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace assay {
namespace {

constexpr std::string_view kRecordHead =
    R"(Runs a program and writes what it does to a trace, for any number of replays.

  assay record [-o TRACE] [options] [--] PROGRAM [ARG...]
  assay replay --plugin=NAME TRACE

The trace has each basic block that is executed, each data reference, calls and
system calls, of all threads and all processes. A program that is killed leaves
what it has done until then.

Options, before PROGRAM:

)";

constexpr std::string_view kRecordTail = R"(
Exit status: that of the program, or 124 after --timeout, 125 if assay itself
failed, 126 if the program cannot be executed, 127 if it was not found.
)";

// Options of a run that say what is collected, how, and of what.
constexpr std::array<std::string_view, 16> kOptions{
    "aslr",   "schedule",         "cpu",     "collect-at-start", "toggle",
    "config", "from-instruction", "timeout", "to-instruction",   "trace-children",
    "quiet",  "verbose",          "help",    "progress",         "version",
    "sample"};

// Of a recording only.
constexpr std::string_view kCapture = "capture";
constexpr std::string_view kSimpoints = "simpoints", kIntervalSize = "interval-size",
                           kWarmUp = "warm-up";

bool is_of_points(std::string_view name) {
    return name == kSimpoints || name == kIntervalSize;
}

bool is_of_run(std::string_view name) {
    return std::find(kOptions.begin(), kOptions.end(), name) != kOptions.end();
}

bool is_option(std::string_view name) {
    return is_of_run(name) || is_of_points(name) || name == kWarmUp || name == kCapture ||
           name == "out" || name == "driver" || name == "stress" || name == "hide";
}

// Each rank has one of its own.
std::string file_of(const std::string& pattern, const std::vector<std::string>& program) {
    const std::string rank = mpi_rank();
    const bool by_rank = pattern.empty() && !rank.empty();
    const std::string name =
        pattern.empty() ? by_rank ? "assay.trace.rank%r" : "assay.trace" : pattern;
    const std::string_view path = program.front();
    return expand_file_name(name, getpid(), path.substr(path.rfind('/') + 1));
}

// A name without a comma is that of the block vectors, beside which assay simpoint writes.
std::pair<std::string, std::string> files_of_points(const std::string& value) {
    const std::size_t comma = value.find(',');
    if (comma == std::string::npos) {
        const SimulationPointFiles usual = simulation_point_files(value);
        return {usual.points, usual.weights};
    }
    return {value.substr(0, comma), value.substr(comma + 1)};
}

// A recording has the first thread only. The vectors tell which thread the points are of, if they
// lie beside the points.
void check_thread(const std::string& points) {
    const std::optional<FoundVectors> vectors = vectors_beside(points);
    if (!vectors) return;
    const VectorComments& first = vectors->comments;
    if (first.thread != 1)
        throw Error(fmt::format(
            "--simpoints: {} has the vectors of thread {}, and only the first thread is recorded: "
            "choose the points from that one's vectors",
            vectors->path, first.thread));
    if (first.files.size() > 1)
        throw Error(fmt::format(
            "--simpoints: {} has the vectors of {} files ({}), and only the first thread is "
            "recorded: choose the points from that one's vectors",
            vectors->path, first.files.size(), join(first.files, ", ")));
    std::uint64_t others = 0, threads = 1;
    while (const auto other = vectors_beside(points, threads + 1)) {
        if (other->comments.thread != threads + 1) break;
        others += other->comments.instructions;
        ++threads;
    }
    if (others == 0) return;
    const double all = static_cast<double>(others) + static_cast<double>(first.instructions);
    log::remark(fmt::format(
        "only the first of {} threads is recorded: the others, with {:.0f} % of the instructions "
        "that bbv has seen, are in no count of a replay",
        threads, 100 * static_cast<double>(others) / all));
}

void check_length(const std::string& option, std::uint64_t instructions) {
    if (instructions < trace::kShortestWarmUp)
        throw Error(fmt::format("{}: {} instructions are too few: at least {}", option,
                                instructions, trace::kShortestWarmUp));
}

// Takes it out of the options that are of profilers. Of several, the last one counts.
void take_content(collector::CoreSettings& settings) {
    const auto is_content = [](const collector::Setting& setting) {
        return setting.name == kCapture;
    };
    for (const collector::Setting& setting : settings.others)
        if (is_content(setting)) settings.recorded = recording::content_of_words(setting.value);
    std::erase_if(settings.others, is_content);
}

void check_points(const collector::CoreSettings& settings, bool follows_children) {
    const trace::Regions& regions = settings.regions;
    if (regions.from_instruction != 0 || regions.to_instruction != 0 ||
        regions.functions[0] != '\0' || regions.off_at_start != 0)
        throw Error(
            "--simpoints counts the instructions of the whole program: leave --from-instruction, "
            "--to-instruction, --toggle and --collect-at-start out");
    if (follows_children)
        throw Error("--simpoints records the first process only: leave --trace-children=yes out");
}

// Takes them out of the options that are of profilers, which a recording has none of.
void take_points(collector::CoreSettings& settings) {
    constexpr std::uint64_t kUsualInterval = 100'000'000;  // as bbv's
    constexpr std::uint64_t kUsualWarmUp = 1'000'000;
    const bool samples = settings.regions.sample_period != 0;
    std::string files;
    std::uint64_t interval = kUsualInterval;
    std::string without_files = settings.warm_up && !samples ? "--warm-up" : "";
    for (const collector::Setting& setting : settings.others) {
        if (setting.name == kSimpoints) {
            files = setting.value;
            continue;
        }
        if (setting.name == kIntervalSize) {
            interval = collector::instructions_of(setting);
            check_length(collector::describe(setting), interval);
        }
        if (is_of_points(setting.name)) without_files = collector::describe(setting);
    }
    std::erase_if(settings.others,
                  [](const collector::Setting& setting) { return is_of_points(setting.name); });
    if (files.empty() && without_files.empty()) return;
    if (files.empty())
        throw Error(fmt::format("{} is for --simpoints=FILE.simpts,FILE.weights{}: give both",
                                without_files, settings.warm_up ? ", or for --sample" : ""));
    if (samples) throw Error("--simpoints cannot be combined with --sample; leave one of them out");
    const std::uint64_t warm_up = settings.warm_up.value_or(std::min(interval, kUsualWarmUp));
    check_length("--warm-up", warm_up);
    const auto [points, weights] = files_of_points(files);
    settings.points = collector::read_simulation_points(points, weights, interval, warm_up);
    check_thread(points);
    settings.regions.points = static_cast<std::uint32_t>(settings.points.points.size());
    settings.regions.sample_warm_up = warm_up;
    settings.warm_up.reset();
    settings.trace_children = false;
}

// Which profilers will see the trace is not known.
void set_bursts(collector::CoreSettings& settings) {
    constexpr std::uint64_t kUsualWarmUp = 40'960;  // cache's, for I1 and D1 of 64 KiB
    trace::Regions& regions = settings.regions;
    if (regions.sample_period == 0) return;
    regions.recorded = 1;
    regions.sample_warm_up = settings.warm_up.value_or(
        std::min(kUsualWarmUp, regions.sample_period - regions.sample_burst));
}

}  // namespace

std::vector<OptionDescription> record_options() {
    std::vector<OptionDescription> options{
        {{"-o", "--out"},
         "FILE",
         "the trace; %p is assay's process id, %n the program's name, %r the rank under MPI, "
         "%q{VAR} an environment variable; default: assay.trace"},
        {{"--capture"},
         "LIST",
         "what the trace has, for profilers that need it: some of references, fetches, branches, "
         "calls, system-calls, values, with commas between them; default: all but values\n"
         "default and all stand for several. Fetches and branches are known from the blocks that "
         "every trace has, and take no room. values=loads+stores has only some values, of "
         "addresses, operands, loads, stores, results, branches. A replay under a profiler that "
         "needs what is not there is refused."},
        {{"--simpoints"},
         "SIMPTS,WEIGHTS",
         "record only the intervals that SimPoint or assay simpoint has chosen: its two files\n"
         "Lines INTERVAL CLUSTER and WEIGHT CLUSTER; intervals are those of the bbv profiler, of "
         "the first thread of the first program. A name without a comma is that of the block "
         "vectors, with .simpts and .weights beside it."},
        {{"--interval-size"},
         "N",
         "with --simpoints, the instructions of an interval, as they were for bbv; default: 100M"},
        {{"--sample"},
         "A/B",
         "record only bursts of A out of every B instructions of each thread, as a run with "
         "--sample profiles them; 1/100 is 40k/4M\n"
         "A replay estimates the counts of the whole run. Numbers may end in k, M or G."},
        {{"--warm-up"},
         "N",
         "instructions before each burst or interval that fill caches and predictors, and are not "
         "counted; default: 40,960 with --sample; with --simpoints 1M, or an interval if that is "
         "shorter"}};
    for (const OptionDescription& option : run_options())
        if (is_of_run(std::string_view(option.names.back()).substr(2)) &&
            option.names.back() != "--sample")
            options.push_back(option);
    return options;
}

int record_main(std::span<const std::string> arguments) {
    const collector::CommandLine line = collector::parse_command_line(arguments);
    collector::CoreSettings settings = collector::take_core_settings(line.settings);
    if (settings.help) {
        print_text(fmt::format("{}{}{}", kRecordHead, help_table(record_options()), kRecordTail));
        return 0;
    }
    if (settings.version) {
        print_text(version_line());
        return 0;
    }
    std::string out;
    for (const collector::Setting& setting : line.settings) {
        if (!is_option(setting.name))
            throw Error(
                fmt::format("{} is nothing to record by; it is an option of assay replay, "
                            "perhaps (see: assay record --help)",
                            collector::describe(setting)));
        if (setting.name == "out") out = setting.value;
    }
    take_content(settings);
    take_points(settings);
    set_bursts(settings);
    if (!settings.points.points.empty())
        check_points(settings, std::any_of(line.settings.begin(), line.settings.end(),
                                           [](const collector::Setting& setting) {
                                               return setting.name == "trace-children" &&
                                                      setting.value == "yes";
                                           }));
    if (line.program.empty())
        throw Error(
            "no program to record: assay record [-o TRACE] [options] [--] PROGRAM [ARG...]");
    log::set_quiet(settings.quiet);
    settings.record = file_of(out, line.program);
    const collector::Ending ending = collector::run(settings, line.program);
    if (ending.signal == 0) return ending.exit_status;
    collector::end_like(ending);
}

}  // namespace assay
