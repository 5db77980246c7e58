#include "tools/cli/run.h"

#include "framework/collector/launch/program.h"
#include "framework/collector/run/run.h"
#include "framework/collector/run/settings.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/mpi_rank.h"
#include "framework/support/text.h"
#include "tools/block_vectors/simulation_points.h"
#include "tools/cli/commands.h"
#include "tools/output/output.h"
#include "tools/summary/summary.h"

#include <fmt/core.h>
#include <unistd.h>
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace assay {
namespace {

constexpr std::string_view kFirstSteps =
    R"(Runs a program under profilers and writes their results to an events file.

  assay [--plugin=NAME[,NAME...]] [options] [--] PROGRAM [ARG...]

First steps:

  assay ls -l                           where does ls miss the caches?
  assay summary                         the answer on one screen
  assay annotate                        all functions and source lines
  assay --plugin=cache --D1=32768,8,64 --out=small.out -- ./program input.txt
  assay plugins                         other profilers
  assay plugins cache                   what --D1 means, and what is counted
  assay run --help                      all options of a run

Other commands; each has its own --help:

)";

constexpr std::string_view kRunHead =
    R"(Runs a program under profilers and writes their results to an events file.

  assay [run] [--plugin=NAME[,NAME...]] [options] [--] PROGRAM [ARG...]

The program behaves as it would alone: input, output, exit status and signals
pass through. Build it with -g to get source lines. Without --plugin, assay
counts with --plugin=cache,syscalls --branch-sim=yes --types; with --contexts,
without syscalls.

Options, before PROGRAM:

)";

constexpr std::string_view kRunTail = R"(
Every option of a profiler is an option of the run, written --NAME=VALUE, or
--PROFILER.NAME=VALUE if two profilers have an option of that name.

Exit status: that of the program, or 124 after --timeout, 125 if assay itself
failed, 126 if the program cannot be executed, 127 if it was not found.
)";

std::string command_table() {
    constexpr std::size_t kWidth = 33;
    std::string table;
    for (const Command& command : commands()) {
        if (command.name == "run") continue;
        table += help_row(fmt::format("  assay {} {}", command.name, command.arguments),
                          command.summary, kWidth);
    }
    return table;
}

// Chooses what a run without --plugin measures: what most users look for first, and what costs
// little. Under QEMU, programs have neither system calls nor types, and branches only if assay
// knows the instructions. With contexts, system calls would need records of all calls, which take
// time and know no lines of interpreted programs.
void choose_first_answer(collector::CoreSettings& settings, std::span<const Setting> given,
                         const std::vector<std::string>& program) {
    const auto is_given = [&](std::string_view name) {
        return std::any_of(given.begin(), given.end(),
                           [&](const Setting& setting) { return setting.name == name; });
    };
    const isa::ElfKind elf = collector::find_program(program).elf;
    const bool under_qemu =
        settings.driver == "qemu" || !settings.image.empty() || !isa::runs_natively(elf);
    settings.plugins = {"cache"};
    if (!under_qemu) {
        if (!settings.contexts) settings.plugins.emplace_back("syscalls");
        if (!is_given("types")) settings.types = true;
    }
    if (isa::architecture_of(elf)->describe != nullptr)
        settings.others.insert(settings.others.begin(), {"branch-sim", "yes", ""});
    settings.summarized = !settings.verbose;
}

// Prints the summary of a run without --plugin.
void print_summary(const std::string& profile) {
    try {
        Output output(stderr);
        summary::write({profile}, NameStyle::kShort, {}, output);
        output.finish();
    } catch (const Error& e) {
        log::problem(e.what());
    }
}

// Throws Error if the first word is a misspelled command and no such program exists.
void check_is_no_command(const std::vector<std::string>& program) {
    const std::string meant = nearest_command(program.front());
    if (meant.empty()) return;
    try {
        collector::find_program(program);
    } catch (const Error&) {
        throw Error(fmt::format("there is no command or program {}; did you mean {}?",
                                program.front(), meant));
    }
}

}  // namespace

std::vector<Option> run_options() {
    return collector::options_of(collector::kRun);
}

std::string first_help() {
    return fmt::format("{}{}", kFirstSteps, command_table());
}

int run_main(std::span<const std::string> arguments) {
    const collector::CommandWords line = collector::parse_command_line(arguments);
    collector::CoreSettings settings = collector::take_core_settings(line.settings);
    if (settings.help) {
        print_text(fmt::format("{}{}{}", kRunHead, help_table(run_options()), kRunTail));
        return 0;
    }
    if (settings.version) {
        print_text(settings.verbose ? version_report(settings.driver, settings.hidden_features)
                                    : version_line());
        return 0;
    }
    log::set_quiet(settings.quiet);
    if (line.program.empty())
        throw Error("no program to run: assay [--plugin=NAME] [options] [--] PROGRAM [ARG...]");
    if (settings.plugins.empty()) {
        if (arguments.front() == line.program.front()) check_is_no_command(line.program);
        choose_first_answer(settings, line.settings, line.program);
    }
    const collector::Ending ending = collector::run(settings, line.program);
    if (settings.summarized && !settings.quiet && !ending.profile.empty() &&
        isatty(STDERR_FILENO) != 0)
        print_summary(ending.profile);
    if (ending.signal == 0) return ending.exit_status;
    collector::end_like(ending);
}

namespace {

constexpr std::string_view kRecordHead =
    R"(Runs a program and writes its execution to a trace, for any number of replays.

  assay record [-o TRACE] [options] [--] PROGRAM [ARG...]
  assay replay --plugin=NAME TRACE

The trace has each executed basic block, each data reference, calls and system
calls, of all threads and all processes. If the program is killed, the trace ends
there.

Options, before PROGRAM:

)";

constexpr std::string_view kRecordTail = R"(
Exit status: that of the program, or 124 after --timeout, 125 if assay itself
failed, 126 if the program cannot be executed, 127 if it was not found.
)";

// The name of the trace file. Each MPI rank writes its own file.
std::string file_of(const std::string& pattern, const std::vector<std::string>& program) {
    const std::string rank = mpi_rank();
    const bool by_rank = pattern.empty() && !rank.empty();
    const std::string name =
        pattern.empty() ? by_rank ? "assay.trace.rank%r" : "assay.trace" : pattern;
    const std::string_view path = program.front();
    return expand_file_name(name, getpid(), path.substr(path.rfind('/') + 1));
}

// The files of points and weights. A name without a comma is the file of block vectors: assay
// simpoint writes the points beside it.
std::pair<std::string, std::string> files_of_points(const std::string& value) {
    const std::size_t comma = value.find(',');
    if (comma == std::string::npos) {
        const SimulationPointFiles usual = simulation_point_files(value);
        return {usual.points, usual.weights};
    }
    return {value.substr(0, comma), value.substr(comma + 1)};
}

// A recording has only the first thread. Throws Error if the points come from the vectors of
// another thread; only vectors beside the points tell.
void check_thread(const std::string& points) {
    const std::optional<FoundVectors> vectors = vectors_beside(points);
    if (!vectors) return;
    const VectorComments& first = vectors->comments;
    if (first.thread != 1)
        throw Error(
            fmt::format("--simpoints: {} has the vectors of thread {}, but only the first thread "
                        "is recorded: choose the points from the first thread's vectors",
                        vectors->path, first.thread));
    if (first.files.size() > 1)
        throw Error(
            fmt::format("--simpoints: {} has the vectors of {} files ({}), but only the first "
                        "thread is recorded: choose the points from the first thread's vectors",
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
        "that bbv has seen, are missing from the counts of every replay",
        threads, 100 * static_cast<double>(others) / all));
}

void check_length(const char* option, std::uint64_t instructions) {
    if (instructions < trace::kShortestWarmUp)
        throw Error(fmt::format("{}: {} instructions are too few: at least {}", option,
                                instructions, trace::kShortestWarmUp));
}

void set_points(collector::CoreSettings& settings) {
    constexpr std::uint64_t kUsualWarmUp = 1'000'000;
    if (settings.simpoints.empty()) return;
    const std::uint64_t warm_up =
        settings.warm_up.value_or(std::min(settings.interval_size, kUsualWarmUp));
    check_length("--interval-size", settings.interval_size);
    check_length("--warm-up", warm_up);
    const auto [points, weights] = files_of_points(settings.simpoints);
    settings.points =
        collector::read_simulation_points(points, weights, settings.interval_size, warm_up);
    check_thread(points);
    settings.regions.points = static_cast<std::uint32_t>(settings.points.points.size());
    settings.regions.sample_warm_up = warm_up;
    settings.warm_up.reset();
    settings.trace_children = false;
}

// Chooses a usual warm-up, because the profilers of a later replay are not known yet.
void set_bursts(collector::CoreSettings& settings) {
    constexpr std::uint64_t kUsualWarmUp = 40'960;  // cache's, for I1 and D1 of 64 KiB
    trace::Regions& regions = settings.regions;
    if (regions.sample_period == 0) return;
    regions.recorded = 1;
    regions.sample_warm_up = settings.warm_up.value_or(
        std::min(kUsualWarmUp, regions.sample_period - regions.sample_burst));
}

}  // namespace

std::vector<Option> record_options() {
    return collector::options_of(collector::kRecord);
}

int record_main(std::span<const std::string> arguments) {
    const collector::CommandWords line =
        collector::parse_command_line(arguments, collector::kRecord);
    collector::CoreSettings settings =
        collector::take_core_settings(line.settings, collector::kRecord);
    if (settings.help) {
        print_text(fmt::format("{}{}{}", kRecordHead, help_table(record_options()), kRecordTail));
        return 0;
    }
    if (settings.version) {
        print_text(version_line());
        return 0;
    }
    set_points(settings);
    set_bursts(settings);
    if (line.program.empty())
        throw Error(
            "no program to record: assay record [-o TRACE] [options] [--] PROGRAM [ARG...]");
    log::set_quiet(settings.quiet);
    settings.record = file_of(settings.out, line.program);
    const collector::Ending ending = collector::run(settings, line.program);
    if (ending.signal == 0) return ending.exit_status;
    collector::end_like(ending);
}

namespace {

constexpr std::string_view kReplayHead =
    R"(Runs profilers over a trace instead of a program. The events files are the same
as those of a run under the profilers.

  assay record [-o TRACE] [--] PROGRAM [ARG...]
  assay replay --plugin=NAME[,NAME...] [options] TRACE
  assay replay --plugin=cache --machine=FILE [options] TRACE TRACE...

Several traces are programs that share the machine, each with its own memory.

Options, before TRACE:

)";

constexpr std::string_view kReplayTail = R"(
Every option of a profiler is an option here, written --NAME=VALUE.

Exit status: 0, or 125 if the trace is damaged, or lacks what a profiler captures.
)";

}  // namespace

std::vector<Option> replay_options() {
    return collector::options_of(collector::kReplay);
}

int replay_main(std::span<const std::string> arguments) {
    const collector::CommandWords line =
        collector::parse_command_line(arguments, collector::kReplay);
    const collector::CoreSettings settings =
        collector::take_core_settings(line.settings, collector::kReplay);
    if (settings.help) {
        print_text(fmt::format("{}{}{}", kReplayHead, help_table(replay_options()), kReplayTail));
        return 0;
    }
    if (settings.version) {
        print_text(version_line());
        return 0;
    }
    if (settings.plugins.empty())
        throw Error("no profiler: name one with --plugin=NAME (see: assay plugins)");
    if (line.program.empty()) throw Error("no trace: assay replay --plugin=NAME [options] TRACE");
    log::set_quiet(settings.quiet);
    if (line.program.size() > 1) return collector::replay(settings, line.program);
    return collector::replay(settings, line.program.front());
}

}  // namespace assay
