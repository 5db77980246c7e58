// The table of the options of assay run, record and replay, and the rules for combining them.
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

// Options of the output and of the counts.
void add_results(CommandLine& line, CoreSettings& s) {
    const auto set_out = [&s](const Setting& given) {
        if (given.value.empty()) bad_value(given, "a file name");
        s.out = given.value == "-" ? "/dev/stdout" : given.value;
    };
    line.add("--plugin", "NAME,...",
             "the profilers, by name or by path; `assay plugins` lists them\nassay looks for names "
             "in the folders of ASSAY_PLUGIN_PATH, then where assay is installed.",
             [&s](const Setting& given) { s.plugins = names_in(given); })
        .of(kRun | kReplay);
    line.add("-o,--out", "FILE",
             "write the results to FILE; %p is the process id, %n the program's name, %r the rank "
             "under MPI, %q{VAR} an environment variable, - standard output; .gz and .zst "
             "compress; default: assay.out.%p\nUnder mpirun, the default is assay.out.rank%r. "
             "assay appends .rank%r to a name without %r, %p and %q.",
             set_out)
        .of(kRun | kReplay);
    line.add_yes_no("--dump-instr", s.dump_instructions,
                    "also write the counts of single instructions; default: no")
        .of(kRun | kReplay);
    line.add_flag("--contexts", s.contexts,
                  "also count by the stack of calls\nEvery profiler can do this. annotate --calls, "
                  "reports, exports and flame graphs show it. Not with --sample.")
        .of(kRun | kReplay);
    line.add("--recursion", "N|all",
             "with --contexts, keep N calls of a recursive function apart; default: 1\nWith 1, a "
             "recursion has one context, however deep it is.",
             [&s](const Setting& given) { s.recursion = recursion(given); })
        .of(kRun | kReplay);
    line.add_flag("--objects", s.objects,
                  "also count by variable, block of the heap, stack and mapped file\nBlocks are "
                  "known by the calls that allocated them. annotate --by=object shows the counts. "
                  "All references are captured, which takes longer. Not with --sample.")
        .of(kRun);
    line.add_flag("--types", s.types,
                  "also count by type and member of the data\nannotate --by=type and --by=member "
                  "show the counts. assay finds the types from debug information and machine code, "
                  "for all events of data.")
        .of(kRun | kReplay);
    line.add(
            "--alloc-functions", "NAME(ROLE=N,...),...",
            "with --objects, name more functions that allocate memory, and the roles of their "
            "arguments, counted from 1\nRoles are: size and count (the block has their product), "
            "old (the block that the new one replaces), result (the place where the address is "
            "stored, if the function does not return it), and free. Example: "
            "pool_alloc(size=2),pool_free(free=2). assay knows malloc(3), its relatives and C++'s "
            "operators.",
            [&s](const Setting& given) { add_allocation_functions(s.allocation_functions, given); })
        .of(kRun);
    line.add_list("--own", s.own, "PATH",
                  "with --objects, name a block of memory after the first of the calls to its "
                  "allocation that is in a source or binary PATH, or below; may be repeated\n"
                  "Default: all code outside of the system's headers and libraries.")
        .of(kRun | kReplay);
    line.add_flag("--threads", s.threads,
                  "also count by thread\nannotate --by=thread shows the counts. Not with --sample.")
        .of(kRun | kReplay);
}

// Options of a trace, and of its replay.
void add_traces(CommandLine& line, CoreSettings& s) {
    line.add("-o,--out", "FILE",
             "write the trace to FILE; %p is assay's process id, %n the program's name, %r the "
             "rank under MPI, %q{VAR} an environment variable; default: assay.trace",
             [&s](const Setting& given) { s.out = given.value; })
        .of(kRecord);
    line.add("--capture", "LIST",
             "record these, separated by commas: references, fetches, branches, calls, "
             "system-calls, values; default: all except values\n'default' and 'all' stand for "
             "several. Fetches and branches follow from the blocks of every trace, and take no "
             "room. values=loads+stores records some values only, of: addresses, operands, loads, "
             "stores, results, branches. A replay refuses a profiler that needs more than the "
             "trace has.",
             [&s](const Setting& given) { s.recorded = recording::content_of_words(given.value); })
        .of(kRecord);
    line.add_text("--simpoints", s.simpoints, "SIMPTS,WEIGHTS",
                  "record only the intervals that SimPoint or assay simpoint chose: its two "
                  "files\nThe files have lines INTERVAL CLUSTER and WEIGHT CLUSTER. Intervals are "
                  "those of bbv, in the first thread of the first program. A name without a comma "
                  "is that of the block vectors; .simpts and .weights are appended.")
        .of(kRecord);
    line.add("--interval-size", "N",
             "with --simpoints, the number of instructions of an interval, as given to bbv; "
             "default: 100M",
             [&s](const Setting& given) { s.interval_size = instructions_of(given); })
        .of(kRecord);
    line.add_yes_no(
            "--weights", s.weights,
            "multiply the counts of simulation points by their weights, to estimate the whole "
            "program; default: yes\nWith no, the counts are the sum of the recorded intervals.")
        .of(kReplay);
    line.add_number(
            "--jobs", s.jobs, 1, 4096, "N",
            "replay so many processes of the trace at once; default: one for each processor")
        .of(kReplay);
}

// Options of the program's execution.
void add_execution(CommandLine& line, CoreSettings& s) {
    line.add_yes_no("--aslr", s.randomize_addresses,
                    "randomise addresses as the kernel does, so that runs differ; default: no")
        .of(kRun | kRecord);
    line.add("--schedule", "parallel|fair[:N]",
             "fair: run one thread of a process at a time, for N instructions, so that programs "
             "with threads give the same results each time; N is 100k by default; default: "
             "parallel\nCounts of shared caches are exact for that order. Programs that depend on "
             "times, other processes or signals still differ. In a replay, threads take turns "
             "anew, with N from 1; default there: as recorded.",
             [&s, &line](const Setting& given) { s.slice = slice(given, line.is_of(kReplay)); })
        .of(kRun | kRecord | kReplay);
    line.add("--driver", "auto|native|qemu",
             "how the program runs: native for x86-64 programs, qemu for all; default: auto\nauto "
             "takes qemu for programs of other processors, which the header of the file tells.",
             [&s](const Setting& given) { s.driver = driver(given); })
        .of(kRun | kRecord);
    line.add("--sysroot", "DIR",
             "with QEMU, look for the program's libraries in DIR first; default: "
             "/usr/TRIPLET, where Debian's cross compilers have them",
             [&s](const Setting& given) { s.sysroot = given.value; })
        .of(kRun | kRecord);
    line.add("--qemu", "PATH", "run this program of QEMU; default: qemu-ARCHITECTURE on PATH",
             [&s](const Setting& given) { s.qemu = given.value; })
        .of(kRun | kRecord);
    line.add("--image", "FILE",
             "profile the machine that PROGRAM emulates: qemu-system-arm or another QEMU. FILE is "
             "the ELF file of its firmware or kernel",
             [&s](const Setting& given) { s.image = given.value; })
        .of(kRun | kRecord);
    line.add("--cpu", "LEVEL",
             "show the program this processor: host, x86-64-v2, x86-64-v3 or x86-64-v4; default: "
             "host\nhost is the real processor. A level has the same features on every machine.",
             [&s](const Setting& given) { s.cpu_level = cpu_level(given); })
        .of(kRun | kRecord);
}

// Options that choose which parts of the program are profiled.
void add_regions(CommandLine& line, CoreSettings& s) {
    const auto sample = [&s](const Setting& given) { set_sampling(s.regions, given); };
    const auto warm_up = [&s](const Setting& given) { s.warm_up = warm_up_of(given); };
    line.add("--collect-at-start", "yes|no",
             "profile from the start, or only after the program asks for it (assay/client.h); "
             "default: yes",
             [&s](const Setting& given) { s.regions.off_at_start = yes_or_no(given) ? 0 : 1; })
        .of(kRun | kRecord);
    line.add("--toggle", "FUNCTION,...",
             "profile only while one of these functions runs, with all that it calls; * and ? are "
             "wildcards; may be repeated",
             [&s](const Setting& given) { add_functions(s.regions, given); })
        .of(kRun | kRecord);
    line.add("--from-instruction", "N",
             "begin with the Nth instruction of the first thread; 4M is 4000000\nA basic block "
             "belongs to the range of its last instruction.",
             [&s](const Setting& given) { s.regions.from_instruction = instructions_of(given); })
        .of(kRun | kRecord | kReplay);
    line.add("--to-instruction", "M",
             "end with the Mth instruction of the first thread; 4M is 4000000\nA basic block "
             "belongs to the range of its last instruction.",
             [&s](const Setting& given) { s.regions.to_instruction = instructions_of(given); })
        .of(kRun | kRecord | kReplay);
    line.add("--sample", "A/B",
             "profile bursts of A out of every B instructions, and estimate the counts of the "
             "whole run; 1/100 is 40k/4M\nNumbers may end in k, M or G. The results state the "
             "errors of the estimates.",
             sample)
        .of(kRun | kReplay);
    line.add("--warm-up", "N",
             "with --sample, fill caches and predictors for N instructions before each burst, "
             "without counting; default: the largest number that a profiler asks for",
             warm_up)
        .of(kRun | kReplay);
    line.add(
            "--sample", "A/B",
            "record only bursts of A out of every B instructions of each thread; 1/100 is "
            "40k/4M\nA replay estimates the counts of the whole run. Numbers may end in k, M or G.",
            sample)
        .of(kRecord);
    line.add("--warm-up", "N",
             "fill caches and predictors for N instructions before each burst or interval, without "
             "counting; default: 40,960 with --sample; with --simpoints 1M, or an interval if that "
             "is shorter",
             warm_up)
        .of(kRecord);
}

// Options of assay itself.
void add_own(CommandLine& line, CoreSettings& s) {
    line.add_yes_no(
            "--trace-children", s.trace_children,
            "also profile the processes that the program starts; each has its own file; default: "
            "yes\nIf --out has no %p, assay appends the process id of a child. If a process "
            "executes another program, the file of the earlier program gets a number: .1, .2.")
        .of(kRun | kRecord);
    line.add_yes_no("--debug-cache", s.debug_cache,
                    "keep decompressed debug information in ~/.cache/assay, or in "
                    "$XDG_CACHE_HOME/assay; default: yes")
        .of(kRun | kReplay);
    line.add("--timeout", "SECONDS",
             "end the program after that time with SIGTERM, and 5 s later with SIGKILL; also 10m, "
             "1h; exit status 124\nThe profile is still written.",
             [&s](const Setting& given) {
                 s.timeout = duration(given);
                 s.timeout_option = "--timeout=" + given.value;
             })
        .of(kRun | kRecord);
    line.add("--profiler-timeout", "SECONDS",
             "give up a profiler and its columns if one of its calls takes longer; 0: never; "
             "default: 60",
             [&s](const Setting& given) {
                 const bool never = given.value == "0";
                 s.profiler_timeout = never ? std::chrono::milliseconds(0) : duration(given);
             })
        .of(kRun | kReplay);
    line.add("--config", "FILE",
             "read options from a YAML file, with their names as keys; the command line wins",
             [](const Setting& given) {
                 if (!given.origin.empty())
                     throw Error(
                         fmt::format("{}: a configuration file cannot name another", given.origin));
             });
    line.add("--progress", "auto|yes|no",
             "show progress on standard error; default: auto\nauto shows it only in a replay on a "
             "terminal, without --quiet, because the terminal of a run belongs to the program. yes "
             "shows it in every run; in files and pipes with one line every ten seconds.",
             [&s](const Setting& given) { s.progress = progress(given); });
    line.add_flag("-q,--quiet", s.quiet, "print errors only");
    line.add_flag("--verbose", s.verbose,
                  "after a run of several programs, print the summaries of each, and all processes "
                  "in the overview");
    line.add_flag("-h,--help", s.help, "show the options");
    line.add_flag("--version", s.version,
                  "show the version; with --verbose also the processor, the kernel and the "
                  "libraries, for bug reports");
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
    // Bursts miss calls, so contexts would be wrong.
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
    line.needs("own", "objects");
    if (command != kRecord) return line.needs("warm-up", "sample");
    constexpr const char* kPoints = "simpoints";
    line.needs("interval-size", kPoints,
               "--interval-size is for --simpoints=FILE.simpts,FILE.weights: give both");
    if (!line.has("sample"))
        line.needs(
            "warm-up", kPoints,
            "--warm-up is for --simpoints=FILE.simpts,FILE.weights, or for --sample: give both");
}

// Checks rules between values.
void check_values(const CoreSettings& s) {
    const std::uint64_t from = s.regions.from_instruction, to = s.regions.to_instruction;
    if (to != 0 && from > to)
        throw Error(fmt::format("--from-instruction={} is after --to-instruction={}", from, to));
    if (!s.simpoints.empty() && s.regions.off_at_start != 0) throw Error(kOfWholeProgram);
    const std::uint64_t before_burst = s.regions.sample_period - s.regions.sample_burst;
    if (s.regions.sample_period != 0 && s.warm_up.value_or(0) > before_burst)
        throw Error(fmt::format(
            "--warm-up: {} instructions do not fit before bursts of {} in every {}: at most {}",
            *s.warm_up, s.regions.sample_burst, s.regions.sample_period, before_burst));
}

constexpr const char* kNothingToRecordBy =
    "does not change a recording; it may be an option of assay replay (see: assay record --help)";

// Options of other commands can also be options of a profiler, if there are profilers. But a replay
// refuses the options of a run, because the user expects an effect that a replay cannot have.
void refuse_others(CommandLine& line, Command command) {
    if (command == kRecord) line.refuse_those_of(kRun | kReplay, kNothingToRecordBy);
    if (command == kReplay)
        line.refuse_those_of(
            kRun, "belongs to the run, which a replay cannot change (see: assay replay --help)");
}

// The options of a command. Their values are not used.
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
