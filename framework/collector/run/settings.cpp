#include "framework/collector/run/settings.h"

#include "framework/collector/profilers/profiler_handle.h"
#include "framework/support/error.h"
#include "framework/support/mpi_rank.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace assay::collector {
namespace {

constexpr std::array kCoreOptions{
    CoreOption{"plugin", "NAME,...",
               "the profilers, by name or by path (see: assay plugins)\n"
               "Names are looked for in the folders of ASSAY_PLUGIN_PATH, then where assay is "
               "installed."},
    CoreOption{"out", "FILE",
               "where the results go; %p is the process id, %n the program's name, %r the rank "
               "under MPI, %q{VAR} an environment variable, - standard output; .gz and .zst "
               "compress; default: assay.out.%p\n"
               "Under mpirun, each rank has a file of its own: the default is assay.out.rank%r "
               "there, and .rank%r is appended to a name without %r, %p and %q.",
               'o'},
    CoreOption{"dump-instr", "yes|no", "write counts of single instructions too; default: no"},
    CoreOption{"contexts", "",
               "count by the stack of calls that led there, too\n"
               "For tables, exports and flame graphs by stack, with whichever profiler. Not with "
               "--sample."},
    CoreOption{"recursion", "N|all",
               "with contexts, how many calls of a function within one another have contexts of "
               "their own; default: 1\nWith 1 a recursion is one context, however deep."},
    CoreOption{"objects", "",
               "count by the data that is referenced, too: variables, blocks of the heap by where "
               "they were allocated, stacks, mapped files\n"
               "For annotate --by=object. All references are captured then. Not with --sample."},
    CoreOption{
        "types", "",
        "count by the types and members of the data that is referenced, too\n"
        "For annotate --by=type and --by=member. Found from debug information and the machine "
        "code, for all events of data."},
    CoreOption{
        "alloc-functions", "NAME(ROLE=N,...),...",
        "with --objects, further functions that allocate memory: which argument has which "
        "role, from 1\n"
        "Roles are size, count (the block has their product), old (the block that the new "
        "one replaces), result (where its address is stored; else it is returned), and free. "
        "As in pool_alloc(size=2),pool_free(free=2). malloc(3), its relatives and C++'s "
        "operators are known."},
    CoreOption{"threads", "", "count by thread, too\nFor annotate --by=thread. Not with --sample."},
    CoreOption{"aslr", "yes|no",
               "randomise addresses as the kernel does; runs differ then; default: no"},
    CoreOption{
        "schedule", "parallel|fair[:N]",
        "fair: one thread of a process at a time, N instructions each, so that programs with "
        "threads give the same results each time; N is 100k by default; default: parallel\n"
        "Figures of caches that threads share are exact for that order. Not the same are "
        "programs whose course depends on times, on what other processes do, or on signals."},
    CoreOption{"cpu", "LEVEL",
               "the processor that the program sees: host, x86-64-v2, x86-64-v3 or x86-64-v4; "
               "default: host\n"
               "host is this one; the others have the features of a level, the same on every "
               "machine."},
    CoreOption{
        "collect-at-start", "yes|no",
        "profile from the start, or only once the program says so (assay/client.h); default: yes"},
    CoreOption{"toggle", "FUNCTION,...",
               "profile only while one of these functions runs, with what it calls; * and ? are "
               "wildcards; may be repeated"},
    CoreOption{"from-instruction", "N",
               "begin with the Nth instruction of the first thread; 4M is 4000000\n"
               "Exact up to a basic block."},
    CoreOption{"to-instruction", "M",
               "end with the Mth instruction of the first thread; 4M is 4000000\n"
               "Exact up to a basic block."},
    CoreOption{"sample", "A/B",
               "profile bursts of A out of every B instructions, and estimate the counts of the "
               "whole run from them; 1/100 is 40k/4M\n"
               "Numbers may end in k, M or G, for 1000, 1000000 and 1000000000. The errors of the "
               "estimates stand in the results."},
    CoreOption{"warm-up", "N",
               "with --sample, so many instructions before each burst fill caches and predictors, "
               "and are not counted; default: as many as the profilers ask for"},
    CoreOption{"trace-children", "yes|no",
               "profile the processes that the program starts too, each with a file of its own; "
               "default: yes\n"
               "Where --out has no %p, the process id of a child is appended to its name. What a "
               "process was before it executed another program has a number appended: .1, .2."},
    CoreOption{"debug-cache", "yes|no",
               "keep decompressed debug information in ~/.cache/assay; default: yes\n"
               "Or in $XDG_CACHE_HOME/assay, if that is set."},
    CoreOption{"timeout", "SECONDS",
               "end the program after that time, by SIGTERM, and by SIGKILL 5 s later; also 10m, "
               "1h; exit status 124\nThe profile is written nevertheless."},
    CoreOption{"profiler-timeout", "SECONDS",
               "give a profiler up, with its columns, when one call of it takes longer; 0: never; "
               "default: 60"},
    CoreOption{"config", "FILE", "YAML with the same options as keys; the command line wins"},
    CoreOption{"progress", "auto|yes|no",
               "show on the terminal that the run is going on; default: auto\n"
               "A line on standard error. With auto, only until the program uses the terminal or "
               "starts a process, and not if standard output is a pipe, --quiet is given or the "
               "terminal is in raw mode; the line is erased then, as at the end. With yes, in any "
               "case, and in files and pipes a line every ten seconds."},
    CoreOption{"quiet", "", "say nothing but errors", 'q'},
    CoreOption{"verbose", "",
               "where several programs run, print the profilers' summaries of each, and all "
               "processes in the overview"},
    CoreOption{"help", "", "show the options", 'h'},
    CoreOption{"version", "",
               "show the version; with --verbose also the processor, the kernel and the "
               "libraries, for reports of bugs"},
    CoreOption{"driver", "PATH", ""},
    CoreOption{"stress", "yes|no", ""},
    CoreOption{"hide", "FEATURE,...", ""},
};

const CoreOption* core_option(std::string_view name) {
    const auto found = std::find_if(kCoreOptions.begin(), kCoreOptions.end(),
                                    [&](const CoreOption& o) { return o.name == name; });
    return found == kCoreOptions.end() ? nullptr : &*found;
}

// Of a word as "-q".
const CoreOption* core_option_of_letter(std::string_view word) {
    if (word.size() != 2 || word[0] != '-') return nullptr;
    const auto found = std::find_if(kCoreOptions.begin(), kCoreOptions.end(),
                                    [&](const CoreOption& o) { return o.letter == word[1]; });
    return found == kCoreOptions.end() ? nullptr : &*found;
}

[[noreturn]] void bad_value(const Setting& setting, std::string_view expected) {
    throw Error(fmt::format("{}: \"{}\" is not {}", describe(setting), setting.value, expected));
}

trace::CpuLevel cpu_level(const Setting& setting) {
    const auto found = std::find_if(trace::kCpuLevels.begin(), trace::kCpuLevels.end(),
                                    [&](const auto& l) { return l.name == setting.value; });
    if (found == trace::kCpuLevels.end())
        bad_value(setting, "host, x86-64-v2, x86-64-v3 or x86-64-v4");
    return found->level;
}

// A whole number; k or K, M and G stand for thousands, millions and billions. Nothing if it is not
// one below 2^64.
std::optional<std::uint64_t> count(std::string_view text) {
    std::uint64_t number = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    const std::string_view unit(stop, end);
    const std::uint64_t factor = unit.empty()                 ? 1
                                 : unit == "k" || unit == "K" ? 1'000
                                 : unit == "M"                ? 1'000'000
                                 : unit == "G"                ? 1'000'000'000
                                                              : 0;
    if (error != std::errc() || factor == 0 || number > UINT64_MAX / factor) return std::nullopt;
    return number * factor;
}

std::uint64_t positive(const Setting& setting) {
    constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
    const std::uint64_t number = count(setting.value).value_or(0);
    if (number == 0 || number > kMost)
        bad_value(setting, "a whole number from 1 to 2^63-1, as 4000000, 4000k or 4M");
    return number;
}

std::uint32_t recursion(const Setting& setting) {
    constexpr std::uint32_t kAll = std::numeric_limits<std::uint32_t>::max();
    if (setting.value == "all") return kAll;
    std::uint32_t number = 0;
    const char* end = setting.value.data() + setting.value.size();
    const auto [stop, error] = std::from_chars(setting.value.data(), end, number);
    if (error != std::errc() || stop != end || number == 0)
        bad_value(setting, "a whole number from 1 on, or all");
    return number;
}

std::chrono::milliseconds duration(const Setting& setting) {
    double number = 0;
    const char* end = setting.value.data() + setting.value.size();
    const auto [stop, error] = std::from_chars(setting.value.data(), end, number);
    const std::string_view unit(stop, end);
    const double seconds = unit.empty() || unit == "s" ? 1
                           : unit == "m"               ? 60
                           : unit == "h"               ? 3600
                                                       : 0;
    constexpr double kMost = 1e9;
    if (error != std::errc() || !(number > 0) || seconds == 0 || number * seconds > kMost)
        bad_value(setting, "a time, for example 90, 1.5, 10s, 5m or 1h");
    return std::chrono::milliseconds(std::max(1LL, std::llround(number * seconds * 1000)));
}

ShowProgress progress(const Setting& setting) {
    if (setting.value == "auto") return ShowProgress::kWhereHarmless;
    if (setting.value != "yes" && setting.value != "no") bad_value(setting, "auto, yes or no");
    return setting.value == "yes" ? ShowProgress::kAlways : ShowProgress::kNever;
}

// At commas, but not at those between the parameters of a function or a template.
std::vector<std::string> split_functions(const std::string& list) {
    std::vector<std::string> out{""};
    int depth = 0;
    for (const char c : list) {
        if (c == '(' || c == '<') ++depth;
        if (c == ')' || c == '>') --depth;
        if (c == ',' && depth <= 0)
            out.emplace_back();
        else
            out.back() += c;
    }
    return out;
}

// 0 if it is no number of instructions, or none that a period can have.
std::uint64_t instructions(std::string_view text) {
    constexpr std::uint64_t kMost = 1'000'000'000'000'000;
    const std::uint64_t number = count(text).value_or(0);
    return number > kMost ? 0 : number;
}

// Two small numbers are a ratio, of bursts of the usual length.
void set_sampling(trace::Regions& regions, const Setting& setting) {
    constexpr std::uint64_t kShortestBurst = 1000, kUsualBurst = 40'000;
    const std::size_t slash = setting.value.find('/');
    std::uint64_t burst = 0, period = 0;
    if (slash != std::string::npos) {
        burst = instructions(std::string_view(setting.value).substr(0, slash));
        period = instructions(std::string_view(setting.value).substr(slash + 1));
    }
    if (burst == 0 || period == 0)
        bad_value(setting, "two numbers of instructions, for example 1/100 or 100k/10M");
    if (burst >= period)
        throw Error(fmt::format("{}: bursts of {} are not a part of {} instructions",
                                describe(setting), burst, period));
    if (burst < kShortestBurst && period < kShortestBurst * kShortestBurst) {
        period = (period * kUsualBurst + burst / 2) / burst;
        burst = kUsualBurst;
    }
    if (burst < kShortestBurst)
        throw Error(fmt::format("{}: bursts of {} instructions are too short: at least {}",
                                describe(setting), burst, kShortestBurst));
    regions.sample_burst = burst;
    regions.sample_period = period;
}

std::uint64_t warm_up(const Setting& setting) {
    const std::optional<std::uint64_t> number = count(setting.value);
    if (!number) bad_value(setting, "a whole number of instructions, as 40000, 40k or 1M");
    return *number;
}

// A block has up to 64 instructions, and is executed as a whole.
std::uint32_t slice(const Setting& setting) {
    constexpr std::uint64_t kUsual = 100'000, kLeast = 100, kMost = 1'000'000'000;
    constexpr std::string_view kFair = "fair";
    if (setting.value == "parallel") return 0;
    if (setting.value == kFair) return kUsual;
    const std::string_view value = setting.value;
    const bool fair = value.starts_with(kFair) && value[kFair.size()] == ':';
    const std::uint64_t wanted = fair ? instructions(value.substr(kFair.size() + 1)) : 0;
    if (wanted < kLeast || wanted > kMost)
        bad_value(setting,
                  "parallel, fair, or fair:N with N from 100 to 1G instructions, for example "
                  "fair:10k");
    return static_cast<std::uint32_t>(wanted);
}

void add_functions(trace::Regions& regions, const Setting& setting) {
    std::string all = regions.functions;
    for (const std::string& name : split_functions(setting.value)) {
        if (name.empty() || name.find('\n') != std::string::npos)
            bad_value(setting, "a list of function names");
        all += (all.empty() ? "" : "\n") + name;
    }
    if (all.size() >= sizeof regions.functions)
        throw Error(fmt::format("{}: more than {} characters of function names: use wildcards",
                                describe(setting), sizeof regions.functions));
    std::copy(all.begin(), all.end(), regions.functions);
}

// True for a function name with the roles of its arguments: "take(size=2,old=1)".
bool names_roles(std::string_view text) {
    constexpr std::array<std::string_view, 5> kRoles{"size", "count", "old", "free", "result"};
    const std::size_t open = text.find('(');
    if (open == 0 || open == std::string_view::npos || !text.ends_with(')') ||
        text.substr(0, open).find_first_of("), \t\n\v\f\r") != std::string_view::npos)
        return false;
    std::string_view rest = text.substr(open + 1, text.size() - open - 2);
    for (bool first = true;; first = false) {
        const std::string_view one = rest.substr(0, rest.find(','));
        const std::size_t equals = one.find('=');
        const std::string_view role = one.substr(0, equals);
        if (equals == std::string_view::npos || equals + 2 != one.size() || one.back() < '1' ||
            one.back() > '6' || std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end() ||
            (role == "free" && !first))
            return false;
        if (one.size() == rest.size()) return true;
        rest.remove_prefix(one.size() + 1);
    }
}

// As the driver takes them: trace/allocation_functions.h of it.
void add_allocation_functions(std::string& all, const Setting& setting) {
    for (const std::string& function : split_functions(setting.value)) {
        const bool allocates = function.find("size=") != std::string::npos;
        const bool frees = function.find("free=") != std::string::npos;
        if (!names_roles(function) || allocates == frees)
            bad_value(setting,
                      "a list of functions with the roles of their arguments, as in "
                      "pool_alloc(size=2),pool_free(free=1)");
        all += (all.empty() ? "" : "\n") + function;
    }
    if (all.size() >= trace::kMostNames)
        throw Error(fmt::format("{}: more than {} characters of functions", describe(setting),
                                trace::kMostNames));
}

// What the profiler gets.
std::string value_of(const Setting& setting, const ProfilerOption& option) {
    if (option.type == VP_OPTION_YES_NO || option.type == VP_OPTION_PROFILER) yes_or_no(setting);
    if (option.type == VP_OPTION_COUNT) {
        const std::optional<std::uint64_t> number = count(setting.value);
        if (!number) bad_value(setting, "a whole number below 2^64, as 4000000, 4000k or 4M");
        return std::to_string(*number);
    }
    if (option.type != VP_OPTION_UNSIGNED) return setting.value;
    std::uint64_t number = 0;
    const char* end = setting.value.data() + setting.value.size();
    const auto [stop, error] = std::from_chars(setting.value.data(), end, number);
    if (error != std::errc() || stop != end) bad_value(setting, "a whole number below 2^64");
    return setting.value;
}

// The error for an option that nobody has, with the nearest one that somebody has.
[[noreturn]] void unknown(const Setting& setting, std::span<ProfilerHandle* const> profilers) {
    std::vector<std::string> names;
    for (const CoreOption& option : kCoreOptions)
        if (!option.help.empty()) names.emplace_back(option.name);
    for (const ProfilerHandle* profiler : profilers)
        for (const ProfilerOption& option : profiler->options()) {
            names.push_back(option.name);
            names.push_back(profiler->name() + "." + option.name);
        }
    const std::string meant = nearest(setting.name, names);
    const std::string dashes = setting.origin.empty() ? "--" : "";
    std::string owner;
    for (const ProfilerHandle* profiler : profilers)
        if (profiler->option(meant)) owner = fmt::format(" (of the profiler {})", profiler->name());
    const std::string where = setting.origin.empty() ? "" : setting.origin + ": ";
    throw Error(fmt::format("{}unknown option {}{}; {}", where, dashes, setting.name,
                            meant.empty()
                                ? std::string("see: assay --help, assay plugins NAME")
                                : fmt::format("did you mean {}{}{}?", dashes, meant, owner)));
}

// The profiler that a setting is for, and the name of its option there.
std::pair<std::size_t, std::string> owner(const Setting& setting,
                                          std::span<ProfilerHandle* const> profilers) {
    const std::size_t dot = setting.name.find('.');
    const bool qualified = dot != std::string::npos;
    const std::string name = qualified ? setting.name.substr(dot + 1) : setting.name;
    std::vector<std::size_t> owners;
    for (std::size_t i = 0; i < profilers.size(); ++i) {
        if (qualified && profilers[i]->name() != std::string_view(setting.name).substr(0, dot))
            continue;
        if (profilers[i]->option(name)) owners.push_back(i);
    }
    if (owners.empty()) unknown(setting, profilers);
    if (owners.size() > 1)
        throw Error(fmt::format("{} belongs to several profilers: write {}.{} or {}.{}",
                                describe(setting), profilers[owners[0]]->name(), name,
                                profilers[owners[1]]->name(), name));
    return {owners[0], name};
}

void take(CoreSettings& core, const Setting& setting) {
    if (setting.name == "plugin") {
        core.plugins.clear();
        for (const std::string& name : split(setting.value, ','))
            if (!name.empty()) core.plugins.push_back(name);
    } else if (setting.name == "out") {
        if (setting.value.empty()) bad_value(setting, "a file name");
        core.out = setting.value == "-" ? "/dev/stdout" : setting.value;
    } else if (setting.name == "dump-instr") {
        core.dump_instructions = yes_or_no(setting);
    } else if (setting.name == "contexts") {
        core.contexts = setting.value.empty() || yes_or_no(setting);
    } else if (setting.name == "objects") {
        core.objects = setting.value.empty() || yes_or_no(setting);
    } else if (setting.name == "recursion") {
        core.recursion = recursion(setting);
    } else if (setting.name == "threads") {
        core.threads = setting.value.empty() || yes_or_no(setting);
    } else if (setting.name == "types") {
        core.types = setting.value.empty() || yes_or_no(setting);
    } else if (setting.name == "alloc-functions") {
        add_allocation_functions(core.allocation_functions, setting);
    } else if (setting.name == "aslr") {
        core.randomize_addresses = yes_or_no(setting);
    } else if (setting.name == "schedule") {
        core.slice = slice(setting);
    } else if (setting.name == "cpu") {
        core.cpu_level = cpu_level(setting);
    } else if (setting.name == "trace-children") {
        core.trace_children = yes_or_no(setting);
    } else if (setting.name == "debug-cache") {
        core.debug_cache = yes_or_no(setting);
    } else if (setting.name == "stress") {
        core.stress = yes_or_no(setting);
    } else if (setting.name == "hide") {
        if (setting.value.size() >= trace::kMostNames)
            throw Error(fmt::format("{}: more than {} characters of features", describe(setting),
                                    trace::kMostNames));
        core.hidden_features = setting.value;
    } else if (setting.name == "collect-at-start") {
        core.regions.off_at_start = yes_or_no(setting) ? 0 : 1;
    } else if (setting.name == "toggle") {
        add_functions(core.regions, setting);
    } else if (setting.name == "from-instruction") {
        core.regions.from_instruction = positive(setting);
    } else if (setting.name == "to-instruction") {
        core.regions.to_instruction = positive(setting);
    } else if (setting.name == "sample") {
        set_sampling(core.regions, setting);
    } else if (setting.name == "warm-up") {
        core.warm_up = warm_up(setting);
    } else if (setting.name == "timeout") {
        core.timeout = duration(setting);
        core.timeout_option = "--timeout=" + setting.value;
    } else if (setting.name == "profiler-timeout") {
        const bool never = setting.value == "0";
        core.profiler_timeout = never ? std::chrono::milliseconds(0) : duration(setting);
    } else if (setting.name == "driver") {
        core.driver = setting.value;
    } else if (setting.name == "progress") {
        core.progress = progress(setting);
    } else if (setting.name == "quiet") {
        core.quiet = setting.value.empty() || yes_or_no(setting);
    } else if (setting.name == "verbose") {
        core.verbose = setting.value.empty() || yes_or_no(setting);
    } else if (setting.name == "help") {
        core.help = true;
    } else if (setting.name == "version") {
        core.version = true;
    } else if (setting.name != "config") {
        core.others.push_back(setting);
    } else if (!setting.origin.empty()) {
        throw Error(fmt::format("{}: a configuration file cannot name another", setting.origin));
    }
}

}  // namespace

std::span<const CoreOption> core_options() {
    return kCoreOptions;
}

std::string describe(const Setting& setting) {
    return setting.origin.empty() ? "--" + setting.name
                                  : fmt::format("{}: {}", setting.origin, setting.name);
}

CommandLine parse_command_line(std::span<const std::string> arguments) {
    CommandLine line;
    std::size_t i = 0;
    for (; i < arguments.size(); ++i) {
        std::string_view word = arguments[i];
        if (word == "--") {
            ++i;
            break;
        }
        if (const CoreOption* option = core_option_of_letter(word)) {
            Setting setting{std::string(option->name), "", ""};
            if (!option->argument.empty()) {
                if (i + 1 == arguments.size())
                    throw Error(
                        fmt::format("{} needs a value: {} {}", word, word, option->argument));
                setting.value = arguments[++i];
            }
            line.settings.push_back(std::move(setting));
            continue;
        }
        if (!word.starts_with("-")) break;
        if (!word.starts_with("--")) throw Error(fmt::format("unknown option {}", word));
        word.remove_prefix(2);
        const std::size_t equals = word.find('=');
        Setting setting{std::string(word.substr(0, equals)), "", ""};
        const CoreOption* core = core_option(setting.name);
        const bool has_value = equals != std::string_view::npos;
        if (has_value) setting.value = word.substr(equals + 1);
        if (core && core->argument.empty() && has_value)
            throw Error(fmt::format("--{} takes no value", setting.name));
        // Which options profilers have is not known yet: theirs need the equals sign.
        const bool needs_value = !core || !core->argument.empty();
        if (needs_value && !has_value) {
            if (!core || i + 1 == arguments.size())
                throw Error(fmt::format("--{} needs a value: --{}={}", setting.name, setting.name,
                                        core ? core->argument : "VALUE"));
            setting.value = arguments[++i];
        }
        line.settings.push_back(std::move(setting));
    }
    line.program.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end());
    return line;
}

CoreSettings take_core_settings(const std::vector<Setting>& command_line) {
    CoreSettings core;
    for (const Setting& setting : command_line)
        if (setting.name == "config")
            for (const Setting& configured : read_configuration(setting.value))
                take(core, configured);
    for (const Setting& setting : command_line) take(core, setting);
    if (core.out.empty()) core.out = mpi_rank().empty() ? "assay.out.%p" : "assay.out.rank%r";
    const std::uint64_t from = core.regions.from_instruction, to = core.regions.to_instruction;
    if (to != 0 && from > to)
        throw Error(fmt::format("--from-instruction={} lies behind --to-instruction={}", from, to));
    if (core.regions.sample_period != 0 && (from != 0 || to != 0))
        throw Error(
            "--sample cannot be combined with --from-instruction or --to-instruction; leave one of "
            "them out");
    const std::uint64_t before_burst = core.regions.sample_period - core.regions.sample_burst;
    if (core.regions.sample_period != 0 && core.warm_up.value_or(0) > before_burst)
        throw Error(fmt::format(
            "--warm-up: {} instructions do not fit before bursts of {} in every {}: at most {}",
            *core.warm_up, core.regions.sample_burst, core.regions.sample_period, before_burst));
    // What is called between bursts is in no context.
    if (core.regions.sample_period != 0 && core.contexts)
        throw Error("--contexts cannot be combined with --sample; leave one of them out");
    if (!core.allocation_functions.empty() && !core.objects)
        throw Error("--alloc-functions is for --objects: give both");
    if (core.regions.sample_period != 0 && core.objects)
        throw Error("--objects cannot be combined with --sample; leave one of them out");
    if (core.regions.sample_period != 0 && core.threads)
        throw Error("--threads cannot be combined with --sample; leave one of them out");
    return core;
}

bool yes_or_no(const Setting& setting) {
    if (setting.value == "yes") return true;
    if (setting.value != "no") bad_value(setting, "yes or no");
    return false;
}

std::uint64_t instructions_of(const Setting& setting) {
    return positive(setting);
}

std::vector<Given> assign_to_profilers(std::span<const Setting> settings,
                                       std::span<ProfilerHandle* const> profilers) {
    std::vector<Given> given(profilers.size());
    for (const Setting& setting : settings) {
        const auto [index, name] = owner(setting, profilers);
        const std::string value = value_of(setting, *profilers[index]->option(name));
        Given& own = given[index];
        std::erase_if(own,
                      [&own_name = name](const auto& before) { return before.first == own_name; });
        own.emplace_back(name, value);
    }
    return given;
}

}  // namespace assay::collector
