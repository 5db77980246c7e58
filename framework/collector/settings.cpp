#include "framework/collector/settings.h"

#include "framework/collector/profiler.h"
#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <charconv>

namespace assay::collector {
namespace {

constexpr std::array kCoreOptions{
    CoreOption{"plugin", "NAME,...", "the profilers, by name or by path (see: assay plugins)"},
    CoreOption{"out", "FILE",
               "where the results go; %p is the process id, %n the program's name, %q{VAR} an "
               "environment variable; default: assay.out.%p"},
    CoreOption{"dump-instr", "yes|no", "write counts of single instructions too; default: no"},
    CoreOption{"aslr", "yes|no",
               "randomise addresses as the kernel does; runs differ then; default: no"},
    CoreOption{"cpu", "LEVEL",
               "the processor that the program sees: host, x86-64-v2, x86-64-v3 or x86-64-v4; "
               "default: host"},
    CoreOption{"trace-children", "yes|no",
               "profile the processes that the program starts too, each with a file of its own; "
               "default: yes"},
    CoreOption{"config", "FILE", "YAML with the same options as keys; the command line wins"},
    CoreOption{"quiet", "", "say nothing but errors (-q)"},
    CoreOption{"help", "", "show this (-h)"},
    CoreOption{"version", "", "show the version"},
    CoreOption{"driver", "PATH", ""},
    CoreOption{"stress", "yes|no", ""},
};

const CoreOption* core_option(std::string_view name) {
    const auto found = std::find_if(kCoreOptions.begin(), kCoreOptions.end(),
                                    [&](const CoreOption& o) { return o.name == name; });
    return found == kCoreOptions.end() ? nullptr : &*found;
}

[[noreturn]] void bad_value(const Setting& setting, std::string_view expected) {
    throw Error(fmt::format("{}: \"{}\" is not {}", describe(setting), setting.value, expected));
}

bool yes_or_no(const Setting& setting) {
    if (setting.value == "yes") return true;
    if (setting.value != "no") bad_value(setting, "yes or no");
    return false;
}

trace::CpuLevel cpu_level(const Setting& setting) {
    const auto found = std::find_if(trace::kCpuLevels.begin(), trace::kCpuLevels.end(),
                                    [&](const auto& l) { return l.name == setting.value; });
    if (found == trace::kCpuLevels.end())
        bad_value(setting, "host, x86-64-v2, x86-64-v3 or x86-64-v4");
    return found->level;
}

void check_type(const Setting& setting, const ProfilerOption& option) {
    if (option.type == VP_OPTION_YES_NO) yes_or_no(setting);
    if (option.type != VP_OPTION_UNSIGNED) return;
    std::uint64_t number = 0;
    const char* end = setting.value.data() + setting.value.size();
    const auto [stop, error] = std::from_chars(setting.value.data(), end, number);
    if (error != std::errc() || stop != end) bad_value(setting, "a whole number below 2^64");
}

// The error for an option that nobody has, with the nearest one that somebody has.
[[noreturn]] void unknown(const Setting& setting, std::span<Profiler* const> profilers) {
    std::vector<std::string> names;
    for (const CoreOption& option : kCoreOptions)
        if (!option.help.empty()) names.emplace_back(option.name);
    for (const Profiler* profiler : profilers)
        for (const ProfilerOption& option : profiler->options()) {
            names.push_back(option.name);
            names.push_back(profiler->name() + "." + option.name);
        }
    const std::string meant = nearest(setting.name, names);
    const std::string dashes = setting.origin.empty() ? "--" : "";
    std::string owner;
    for (const Profiler* profiler : profilers)
        if (profiler->option(meant)) owner = fmt::format(" (of the profiler {})", profiler->name());
    const std::string where = setting.origin.empty() ? "" : setting.origin + ": ";
    throw Error(fmt::format("{}unknown option {}{}; {}", where, dashes, setting.name,
                            meant.empty()
                                ? std::string("see: assay --help, assay plugins NAME")
                                : fmt::format("did you mean {}{}{}?", dashes, meant, owner)));
}

// The profiler that a setting is for, and the name of its option there.
std::pair<std::size_t, std::string> owner(const Setting& setting,
                                          std::span<Profiler* const> profilers) {
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
        core.out = setting.value;
    } else if (setting.name == "dump-instr") {
        core.dump_instructions = yes_or_no(setting);
    } else if (setting.name == "aslr") {
        core.randomize_addresses = yes_or_no(setting);
    } else if (setting.name == "cpu") {
        core.cpu_level = cpu_level(setting);
    } else if (setting.name == "trace-children") {
        core.trace_children = yes_or_no(setting);
    } else if (setting.name == "stress") {
        core.stress = yes_or_no(setting);
    } else if (setting.name == "driver") {
        core.driver = setting.value;
    } else if (setting.name == "quiet") {
        core.quiet = setting.value.empty() || yes_or_no(setting);
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
        if (word == "-q") word = "--quiet";
        if (word == "-h") word = "--help";
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
    return core;
}

std::vector<Given> assign_to_profilers(std::span<const Setting> settings,
                                       std::span<Profiler* const> profilers) {
    std::vector<Given> given(profilers.size());
    for (const Setting& setting : settings) {
        const auto [index, name] = owner(setting, profilers);
        check_type(setting, *profilers[index]->option(name));
        Given& own = given[index];
        std::erase_if(own,
                      [&own_name = name](const auto& before) { return before.first == own_name; });
        own.emplace_back(name, setting.value);
    }
    return given;
}

}  // namespace assay::collector
