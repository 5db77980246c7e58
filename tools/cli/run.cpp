#include "tools/cli/run.h"

#include "framework/collector/run/run.h"
#include "framework/collector/run/settings.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "tools/cli/commands.h"
#include "tools/output/output.h"

#include <fmt/core.h>

namespace assay {
namespace {

constexpr std::string_view kRunHead =
    R"(Runs a program under profilers and writes what they found to an events file.

  assay --plugin=NAME[,NAME...] [options] [--] PROGRAM [ARG...]

Other commands, each with a --help of its own:

)";

constexpr std::string_view kExamples = R"(
First steps:

  assay --plugin=cache -- ls -l         where does ls miss the caches?
  assay annotate assay.out.1234         with the name that the run has printed
  assay --plugin=cache --D1=32768,8,64 --out=small.out -- ./program input.txt
  assay plugins cache                   what --D1 means, and what is counted

The program behaves as it would alone: input, output, exit status and signals
pass through. Build it with -g to get source lines.

Options, before PROGRAM:

)";

constexpr std::string_view kRunTail = R"(
Every option of a profiler is an option of the run, written --NAME=VALUE, or
--PROFILER.NAME=VALUE where two profilers have one of that name.

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

}  // namespace

std::vector<Option> run_options() {
    return collector::options_of(collector::kRun);
}

std::string run_help() {
    return fmt::format("{}{}{}{}{}", kRunHead, command_table(), kExamples,
                       help_table(run_options()), kRunTail);
}

int run_main(std::span<const std::string> arguments) {
    const collector::CommandWords line = collector::parse_command_line(arguments);
    const collector::CoreSettings settings = collector::take_core_settings(line.settings);
    if (settings.help) {
        print_text(run_help());
        return 0;
    }
    if (settings.version) {
        print_text(settings.verbose ? version_report(settings.driver, settings.hidden_features)
                                    : version_line());
        return 0;
    }
    log::set_quiet(settings.quiet);
    if (line.program.empty())
        throw Error("no program to run: assay --plugin=NAME [options] [--] PROGRAM [ARG...]");
    if (settings.plugins.empty() && arguments.front() == line.program.front())
        if (const std::string meant = nearest_command(arguments.front()); !meant.empty())
            throw Error(
                fmt::format("there is no command {}; did you mean {}? (A program needs "
                            "--plugin=NAME)",
                            arguments.front(), meant));
    if (settings.plugins.empty())
        throw Error("no profiler: say which with --plugin=NAME (see: assay plugins)");
    const collector::Ending ending = collector::run(settings, line.program);
    if (ending.signal == 0) return ending.exit_status;
    collector::end_like(ending);
}

}  // namespace assay
