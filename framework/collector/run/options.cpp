// The table of the options of assay run, record and replay, and the rules of what fits together.
#include "framework/collector/run/option_values.h"
#include "framework/collector/run/settings.h"
#include "framework/support/error.h"
#include "framework/support/mpi_rank.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <algorithm>

namespace assay::collector {
namespace {

constexpr const char* kOfWholeProgram =
    "--simpoints counts the instructions of the whole program: leave --from-instruction, "
    "--to-instruction, --toggle and --collect-at-start out";

std::vector<std::string> names_in(const Setting& setting) {
    std::vector<std::string> names = split(setting.value, ',');
    std::erase(names, "");
    return names;
}

// What is written, and what is counted by what.
void add_results(CommandLine& line, CoreSettings& s) {
    const auto set_out = [&s](const Setting& given) {
        if (given.value.empty()) bad_value(given, "a file name");
        s.out = given.value == "-" ? "/dev/stdout" : given.value;
    };
    line.add("--plugin", "NAME,...",
             "the profilers, by name or by path (see: assay plugins)\n"
             "Names are looked for in the folders of ASSAY_PLUGIN_PATH, then where assay is "
             "installed.",
             [&s](const Setting& given) { s.plugins = names_in(given); })
        .of(kRun | kReplay);
    line.add("-o,--out", "FILE",
             "where the results go; %p is the process id, %n the program's name, %r the rank "
             "under MPI, %q{VAR} an environment variable, - standard output; .gz and .zst "
             "compress; default: assay.out.%p\n"
             "Under mpirun, each rank has a file of its own: the default is assay.out.rank%r "
             "there, and .rank%r is appended to a name without %r, %p and %q.",
             set_out)
        .of(kRun | kReplay);
    line.add_yes_no("--dump-instr", s.dump_instructions,
                    "write counts of single instructions too; default: no")
        .of(kRun | kReplay);
    line.add_flag(
            "--contexts", s.contexts,
            "count by the stack of calls that led there, too\n"
            "For tables, exports and flame graphs by stack, with whichever profiler. Not with "
            "--sample.")
        .of(kRun | kReplay);
    line.add("--recursion", "N|all",
             "with contexts, how many calls of a function within one another have contexts of "
             "their own; default: 1\nWith 1 a recursion is one context, however deep.",
             [&s](const Setting& given) { s.recursion = recursion(given); })
        .of(kRun | kReplay);
    line.add_flag(
            "--objects", s.objects,
            "count by the data that is referenced, too: variables, blocks of the heap by where "
            "they were allocated, stacks, mapped files\n"
            "For annotate --by=object. All references are captured then. Not with --sample.")
        .of(kRun);
    line.add_flag(
            "--types", s.types,
            "count by the types and members of the data that is referenced, too\n"
            "For annotate --by=type and --by=member. Found from debug information and the machine "
            "code, for all events of data.")
        .of(kRun | kReplay);
    line.add(
            "--alloc-functions", "NAME(ROLE=N,...),...",
            "with --objects, further functions that allocate memory: which argument has which "
            "role, from 1\n"
            "Roles are size, count (the block has their product), old (the block that the new "
            "one replaces), result (where its address is stored; else it is returned), and free. "
            "As in pool_alloc(size=2),pool_free(free=2). malloc(3), its relatives and C++'s "
            "operators are known.",
            [&s](const Setting& given) { add_allocation_functions(s.allocation_functions, given); })
        .of(kRun);
    line.add_flag("--threads", s.threads,
                  "count by thread, too\nFor annotate --by=thread. Not with --sample.")
        .of(kRun | kReplay);
}

// What a trace has, and how it is replayed.
void add_traces(CommandLine& line, CoreSettings& s) {
    line.add("-o,--out", "FILE",
             "the trace; %p is assay's process id, %n the program's name, %r the rank under MPI, "
             "%q{VAR} an environment variable; default: assay.trace",
             [&s](const Setting& given) { s.out = given.value; })
        .of(kRecord);
    line.add(
            "--capture", "LIST",
            "what the trace has, for profilers that need it: some of references, fetches, "
            "branches, "
            "calls, system-calls, values, with commas between them; default: all but values\n"
            "default and all stand for several. Fetches and branches are known from the blocks "
            "that "
            "every trace has, and take no room. values=loads+stores has only some values, of "
            "addresses, operands, loads, stores, results, branches. A replay under a profiler that "
            "needs what is not there is refused.",
            [&s](const Setting& given) { s.recorded = recording::content_of_words(given.value); })
        .of(kRecord);
    line.add_text(
            "--simpoints", s.simpoints, "SIMPTS,WEIGHTS",
            "record only the intervals that SimPoint or assay simpoint has chosen: its two files\n"
            "Lines INTERVAL CLUSTER and WEIGHT CLUSTER; intervals are those of the bbv profiler, "
            "of "
            "the first thread of the first program. A name without a comma is that of the block "
            "vectors, with .simpts and .weights beside it.")
        .of(kRecord);
    line.add("--interval-size", "N",
             "with --simpoints, the instructions of an interval, as they were for bbv; default: "
             "100M",
             [&s](const Setting& given) { s.interval_size = instructions_of(given); })
        .of(kRecord);
    line.add_yes_no("--weights", s.weights,
                    "of a trace of simulation points: multiply by the intervals' weights, so that "
                    "counts are "
                    "estimates of the whole program; default: yes\n"
                    "With no, they are what the recorded intervals have together.")
        .of(kReplay);
    line.add_number("--jobs", s.jobs, 1, 4096, "N",
                    "of a trace of several processes: replay so many at once; default: as many as "
                    "there are "
                    "processors")
        .of(kReplay);
}

// How the program is executed.
void add_execution(CommandLine& line, CoreSettings& s) {
    line.add_yes_no("--aslr", s.randomize_addresses,
                    "randomise addresses as the kernel does; runs differ then; default: no")
        .of(kRun | kRecord);
    line.add("--schedule", "parallel|fair[:N]",
             "fair: one thread of a process at a time, N instructions each, so that programs with "
             "threads give the same results each time; N is 100k by default; default: parallel\n"
             "Figures of caches that threads share are exact for that order. Not the same are "
             "programs whose course depends on times, on what other processes do, or on signals.",
             [&s](const Setting& given) { s.slice = slice(given); })
        .of(kRun | kRecord);
    line.add("--cpu", "LEVEL",
             "the processor that the program sees: host, x86-64-v2, x86-64-v3 or x86-64-v4; "
             "default: host\n"
             "host is this one; the others have the features of a level, the same on every "
             "machine.",
             [&s](const Setting& given) { s.cpu_level = cpu_level(given); })
        .of(kRun | kRecord);
}

// Which parts of it are profiled.
void add_regions(CommandLine& line, CoreSettings& s) {
    const auto sample = [&s](const Setting& given) { set_sampling(s.regions, given); };
    const auto warm_up = [&s](const Setting& given) { s.warm_up = warm_up_of(given); };
    line.add("--collect-at-start", "yes|no",
             "profile from the start, or only once the program says so (assay/client.h); default: "
             "yes",
             [&s](const Setting& given) { s.regions.off_at_start = yes_or_no(given) ? 0 : 1; })
        .of(kRun | kRecord);
    line.add("--toggle", "FUNCTION,...",
             "profile only while one of these functions runs, with what it calls; * and ? are "
             "wildcards; may be repeated",
             [&s](const Setting& given) { add_functions(s.regions, given); })
        .of(kRun | kRecord);
    line.add("--from-instruction", "N",
             "begin with the Nth instruction of the first thread; 4M is 4000000\n"
             "Exact up to a basic block.",
             [&s](const Setting& given) { s.regions.from_instruction = instructions_of(given); })
        .of(kRun | kRecord);
    line.add("--to-instruction", "M",
             "end with the Mth instruction of the first thread; 4M is 4000000\n"
             "Exact up to a basic block.",
             [&s](const Setting& given) { s.regions.to_instruction = instructions_of(given); })
        .of(kRun | kRecord);
    line.add("--sample", "A/B",
             "profile bursts of A out of every B instructions, and estimate the counts of the "
             "whole run from them; 1/100 is 40k/4M\n"
             "Numbers may end in k, M or G, for 1000, 1000000 and 1000000000. The errors of the "
             "estimates stand in the results.",
             sample)
        .of(kRun);
    line.add("--warm-up", "N",
             "with --sample, so many instructions before each burst fill caches and predictors, "
             "and are not counted; default: as many as the profilers ask for",
             warm_up)
        .of(kRun);
    line.add("--sample", "A/B",
             "record only bursts of A out of every B instructions of each thread, as a run with "
             "--sample profiles them; 1/100 is 40k/4M\n"
             "A replay estimates the counts of the whole run. Numbers may end in k, M or G.",
             sample)
        .of(kRecord);
    line.add("--warm-up", "N",
             "instructions before each burst or interval that fill caches and predictors, and are "
             "not "
             "counted; default: 40,960 with --sample; with --simpoints 1M, or an interval if that "
             "is "
             "shorter",
             warm_up)
        .of(kRecord);
}

// Of assay itself.
void add_own(CommandLine& line, CoreSettings& s) {
    line.add_yes_no(
            "--trace-children", s.trace_children,
            "profile the processes that the program starts too, each with a file of its own; "
            "default: yes\n"
            "Where --out has no %p, the process id of a child is appended to its name. What a "
            "process was before it executed another program has a number appended: .1, .2.")
        .of(kRun | kRecord);
    line.add_yes_no("--debug-cache", s.debug_cache,
                    "keep decompressed debug information in ~/.cache/assay; default: yes\n"
                    "Or in $XDG_CACHE_HOME/assay, if that is set.")
        .of(kRun | kReplay);
    line.add("--timeout", "SECONDS",
             "end the program after that time, by SIGTERM, and by SIGKILL 5 s later; also 10m, "
             "1h; exit status 124\nThe profile is written nevertheless.",
             [&s](const Setting& given) {
                 s.timeout = duration(given);
                 s.timeout_option = "--timeout=" + given.value;
             })
        .of(kRun | kRecord);
    line.add("--profiler-timeout", "SECONDS",
             "give a profiler up, with its columns, when one call of it takes longer; 0: never; "
             "default: 60",
             [&s](const Setting& given) {
                 const bool never = given.value == "0";
                 s.profiler_timeout = never ? std::chrono::milliseconds(0) : duration(given);
             })
        .of(kRun | kReplay);
    line.add("--config", "FILE", "YAML with the same options as keys; the command line wins",
             [](const Setting& given) {
                 if (!given.origin.empty())
                     throw Error(
                         fmt::format("{}: a configuration file cannot name another", given.origin));
             });
    line.add("--progress", "auto|yes|no",
             "say on standard error how far the run is; default: auto\n"
             "With auto, only a replay does, in a line on a terminal, and not with --quiet: the "
             "terminal of a run is the program's. With yes, every run does, and in files and "
             "pipes a line every ten seconds.",
             [&s](const Setting& given) { s.progress = progress(given); });
    line.add_flag("-q,--quiet", s.quiet, "say nothing but errors");
    line.add_flag("--verbose", s.verbose,
                  "where several programs run, print the profilers' summaries of each, and all "
                  "processes in the overview");
    line.add_flag("-h,--help", s.help, "show the options");
    line.add_flag("--version", s.version,
                  "show the version; with --verbose also the processor, the kernel and the "
                  "libraries, for reports of bugs");
    line.add("--driver", "PATH", "", [&s](const Setting& given) { s.driver = given.value; })
        .of(kRun | kRecord);
    line.add_yes_no("--stress", s.stress, "").of(kRun | kRecord);
    line.add("--hide", "FEATURE,...", "",
             [&s](const Setting& given) {
                 if (given.value.size() >= trace::kMostNames)
                     throw Error(fmt::format("{}: more than {} characters of features",
                                             describe(given), trace::kMostNames));
                 s.hidden_features = given.value;
             })
        .of(kRun | kRecord);
}

void add_rules(CommandLine& line, Command command) {
    // What is called between bursts is in no context.
    for (const char* const whole : {"contexts", "objects", "threads", "simpoints"})
        line.excludes(whole, "sample");
    for (const char* const end : {"from-instruction", "to-instruction"})
        line.excludes("sample", end,
                      "--sample cannot be combined with --from-instruction or --to-instruction; "
                      "leave one of them out");
    for (const char* const part : {"from-instruction", "to-instruction", "toggle"})
        line.excludes("simpoints", part, kOfWholeProgram);
    line.excludes("simpoints", "trace-children",
                  "--simpoints records the first process only: leave --trace-children=yes out");
    line.needs("alloc-functions", "objects");
    if (command == kRun) line.needs("warm-up", "sample");
    if (command != kRecord) return;
    constexpr const char* kPoints = "simpoints";
    line.needs("interval-size", kPoints,
               "--interval-size is for --simpoints=FILE.simpts,FILE.weights: give both");
    if (!line.has("sample"))
        line.needs(
            "warm-up", kPoints,
            "--warm-up is for --simpoints=FILE.simpts,FILE.weights, or for --sample: give both");
}

// Rules of values.
void check_values(const CoreSettings& s) {
    const std::uint64_t from = s.regions.from_instruction, to = s.regions.to_instruction;
    if (to != 0 && from > to)
        throw Error(fmt::format("--from-instruction={} lies behind --to-instruction={}", from, to));
    if (!s.simpoints.empty() && s.regions.off_at_start != 0) throw Error(kOfWholeProgram);
    const std::uint64_t before_burst = s.regions.sample_period - s.regions.sample_burst;
    if (s.regions.sample_period != 0 && s.warm_up.value_or(0) > before_burst)
        throw Error(fmt::format(
            "--warm-up: {} instructions do not fit before bursts of {} in every {}: at most {}",
            *s.warm_up, s.regions.sample_burst, s.regions.sample_period, before_burst));
}

constexpr const char* kNothingToRecordBy =
    "is nothing to record by; it is an option of assay replay, perhaps (see: assay record --help)";

// Options that only the other commands have can also be a profiler's, where there are profilers.
// But those of a run mean that the user expects a replay to change it.
void refuse_others(CommandLine& line, Command command) {
    if (command == kRecord) line.refuse_those_of(kRun | kReplay, kNothingToRecordBy);
    if (command == kReplay)
        line.refuse_those_of(
            kRun, "is of the run, which a replay does not change (see: assay replay --help)");
}

// The options of a command, where nothing is taken.
struct Declared {
    explicit Declared(Command command = kRun) : line(command) {
        add_options(line, settings);
        line.take_others([](const Setting&) {});
        refuse_others(line, command);
    }
    CoreSettings settings;
    CommandLine line;
};

}  // namespace

void add_options(CommandLine& line, CoreSettings& settings) {
    add_results(line, settings);
    add_traces(line, settings);
    add_execution(line, settings);
    add_regions(line, settings);
    add_own(line, settings);
}

std::vector<Option> options_of(Command command) {
    const Declared declared;
    std::vector<Option> options;
    for (const Option& option : declared.line.options())
        if (option.commands & command && !option.help.empty()) options.push_back(option);
    return options;
}

const Option* find_option(std::string_view name) {
    static const Declared all;
    return all.line.find(name);
}

CommandWords parse_command_line(std::span<const std::string> words, Command command) {
    Declared declared(command);
    CommandWords parsed;
    declared.line.add_program(parsed.program);
    parsed.settings = declared.line.parse(words, Order::kOptionsFirst);
    return parsed;
}

CoreSettings take_core_settings(const std::vector<Setting>& command_line, Command command) {
    CoreSettings settings;
    CommandLine line(command);
    add_options(line, settings);
    refuse_others(line, command);
    line.take_others([&](const Setting& other) {
        if (command == kRecord && other.origin.empty())
            throw Error(fmt::format("{} {}", describe(other), kNothingToRecordBy));
        settings.others.push_back(other);
    });
    for (const Setting& setting : command_line)
        if (setting.name == "config") line.take(read_configuration(setting.value));
    line.take(command_line);
    add_rules(line, command);
    line.check();
    check_values(settings);
    if (settings.out.empty() && command != kRecord)
        settings.out = mpi_rank().empty() ? "assay.out.%p" : "assay.out.rank%r";
    return settings;
}

}  // namespace assay::collector
