#include "tools/cli/replay.h"

#include "framework/collector/run/replay.h"
#include "framework/collector/run/settings.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "tools/cli/run.h"
#include "tools/output/output.h"

#include <fmt/core.h>
#include <string_view>

namespace assay {
namespace {

constexpr std::string_view kReplayHead =
    R"(Runs profilers over a trace instead of a program. The events files are those of
the run itself.

  assay record [-o TRACE] [--] PROGRAM [ARG...]
  assay replay --plugin=NAME[,NAME...] [options] TRACE

Options, before TRACE:

)";

constexpr std::string_view kReplayTail = R"(
Every option of a profiler is an option here, written --NAME=VALUE.

Exit status: 0, or 125 if the trace is damaged, or cannot be profiled so.
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
        throw Error("no profiler: say which with --plugin=NAME (see: assay plugins)");
    if (line.program.size() != 1)
        throw Error("one trace is replayed at a time: assay replay --plugin=NAME [options] TRACE");
    log::set_quiet(settings.quiet);
    return collector::replay(settings, line.program.front());
}

}  // namespace assay
