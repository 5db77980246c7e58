#include "tools/cli/record.h"

#include "framework/collector/run/run.h"
#include "framework/collector/run/settings.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/mpi_rank.h"
#include "framework/support/text.h"
#include "tools/cli/run.h"
#include "tools/output/output.h"

#include <fmt/core.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <string_view>

namespace assay {
namespace {

constexpr std::string_view kHead =
    R"(Runs a program and writes what it does to a trace, for any number of replays.

  assay record [-o TRACE] [options] [--] PROGRAM [ARG...]
  assay replay --plugin=NAME TRACE

The trace has each basic block that is executed, each data reference, calls and
system calls, of all threads and all processes. A program that is killed leaves
what it has done until then.

Options, before PROGRAM:

)";

constexpr std::string_view kTail = R"(
Exit status: that of the program, or 124 after --timeout, 125 if assay itself
failed, 126 if the program cannot be executed, 127 if it was not found.
)";

// Options of a run that say what is collected, how, and of what.
constexpr std::array<std::string_view, 15> kOptions{
    "aslr",   "schedule",         "cpu",     "collect-at-start", "toggle",
    "config", "from-instruction", "timeout", "to-instruction",   "trace-children",
    "quiet",  "verbose",          "help",    "progress",         "version"};

bool is_option(std::string_view name) {
    return name == "out" || name == "driver" || name == "stress" ||
           std::find(kOptions.begin(), kOptions.end(), name) != kOptions.end();
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

}  // namespace

std::vector<OptionDescription> record_options() {
    std::vector<OptionDescription> options{
        {{"-o", "--out"},
         "FILE",
         "the trace; %p is assay's process id, %n the program's name, %r the rank under MPI, "
         "%q{VAR} an environment variable; default: assay.trace"}};
    for (const OptionDescription& option : run_options())
        if (is_option(std::string_view(option.names.back()).substr(2)) &&
            option.names.back() != "--out")
            options.push_back(option);
    return options;
}

int record_main(std::span<const std::string> arguments) {
    const collector::CommandLine line = collector::parse_command_line(arguments);
    collector::CoreSettings settings = collector::take_core_settings(line.settings);
    if (settings.help) {
        print_text(fmt::format("{}{}{}", kHead, help_table(record_options()), kTail));
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
