// The table of subcommands.
#include "tools/cli/commands.h"
#include "framework/support/text.h"
#include "tools/annotate/annotate.h"
#include "tools/check_plugin/check_plugin.h"
#include "tools/cli/run.h"
#include "tools/diff/diff.h"
#include "tools/diff/history.h"
#include "tools/export/export.h"
#include "tools/list/list.h"
#include "tools/merge/merge.h"
#include "tools/report/report.h"
#include "tools/simpoint/simpoint.h"
#include "tools/summary/summary.h"
#include "tools/sweep/options.h"
#include "tools/trace/trace.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <utility>

namespace assay {
namespace {

std::vector<std::string> rest(int argc, char** argv) {
    return {argv + 1, argv + argc};
}

std::vector<Option> no_options() {
    return {{{"-h", "--help"}, "", "show the usage"}, {{"--version"}, "", "show the version"}};
}

constexpr std::array kCommands = {
    Command{"run", "[--plugin=NAME[,NAME...]] [options] [--] PROGRAM [ARG...]",
            "profiles a program; the word may be left out",
            [](int argc, char** argv) { return run_main(rest(argc, argv)); }, run_options},
    Command{"record", "[-o TRACE] [options] [--] PROGRAM [ARG...]",
            "writes a trace of a program, to be replayed",
            [](int argc, char** argv) { return record_main(rest(argc, argv)); }, record_options},
    Command{"replay", "--plugin=NAME[,NAME...] [options] TRACE",
            "profiles a trace instead of a program",
            [](int argc, char** argv) { return replay_main(rest(argc, argv)); }, replay_options},
    Command{"sweep", "--plugin=NAME [--OPTION=VALUES...] [--] PROGRAM [ARG...]",
            "runs a program with every combination of options' values", sweep::sweep_main,
            sweep::options},
    Command{"trace", "TRACE", "shows what is in a trace", trace_main, tracing::options},
    Command{"summary", "[FILE...]", "shows what is slow in a profile, and why, on one screen",
            summary_main, summary::options},
    Command{"annotate", "[FILE...]", "shows events files beside the source", annotate_main,
            annotate::options},
    Command{"merge", "-o OUT FILE...", "adds up events files into one", merge_main, merge_options},
    Command{"diff", "OLD NEW", "shows what changed from one file to another", diff_main,
            diff::options},
    Command{"history", "DIR", "shows counts over a series of versions, and where functions grew",
            history_main, diff::history_options},
    Command{"export", "--format=FORMAT FILE...",
            "converts events files for KCachegrind, pprof, speedscope and others", export_main,
            exporting::options},
    Command{"list", "FILE [PROGRAM]", "shows counts and values of single instructions", list_main,
            list::options},
    Command{"simpoint", "BBFILE", "finds a program's phases in block vectors", simpoint_main,
            simpoint::options},
    Command{"report", "[FILE...]", "makes a page of HTML for browsers", report_main,
            report::options},
    Command{"plugins", "[NAME]", "lists profilers, or the options and events of one",
            [](int argc, char** argv) { return plugins_main(rest(argc, argv)); }, no_options},
    Command{"check-plugin", "FILE.so...",
            "checks that profilers keep to the rules of the interface", check_plugin_main,
            check::options},
    Command{"completion", "SHELL", "prints a script that completes commands in a shell",
            completion_main, no_options},
};

}  // namespace

std::span<const Command> commands() {
    return kCommands;
}

const Command* find_command(std::string_view name) {
    const std::span<const Command> all = commands();
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const Command& command) { return command.name == name; });
    return found == all.end() ? nullptr : &*found;
}

std::string nearest_command(std::string_view word) {
    std::vector<std::string> names{"help"};
    for (const Command& command : commands()) names.emplace_back(command.name);
    return nearest(word, names);
}

}  // namespace assay
