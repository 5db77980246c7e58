// The options of a run: from the command line and a configuration file, for assay itself and for
// the profilers.
#pragma once

#include "framework/collector/run/simulation_points.h"
#include "framework/recording/trace_content.h"
#include "framework/support/command_line.h"
#include "framework/trace/launch.h"
#include "framework/trace/segment_layout.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::collector {

class ProfilerHandle;

// The commands whose options stand in one table.
enum Command : unsigned { kRun = 1, kRecord = 2, kReplay = 4 };

struct CoreSettings;
// Declares the options of these commands, of which `line` takes those of its own.
void add_options(CommandLine& line, CoreSettings& settings);
// Those of one command; none that are not for users.
std::vector<Option> options_of(Command command);
// An option of any of them; null if there is none. What it takes goes nowhere.
const Option* find_option(std::string_view name);

// What stands before the program, and the program with its arguments.
struct CommandWords {
    std::vector<Setting> settings;
    std::vector<std::string> program;
};
// Throws Error on an option without the value that it needs.
CommandWords parse_command_line(std::span<const std::string> words, Command command = kRun);

// The settings of a YAML file: keys are option names, values text or lists of text; a map as value
// holds a profiler's options. Throws Error.
std::vector<Setting> read_configuration(const std::string& path);

enum class ShowProgress : std::uint8_t { kWhereHarmless, kAlways, kNever };

// What assay itself was told.
struct CoreSettings {
    std::vector<std::string> plugins;
    std::string out;                   // a pattern: expand_file_name()
    std::string driver;                // "" for the one that was installed
    std::string record;                // the trace file of assay record; "" if none is written
    recording::TraceContent recorded;  // what it has
    std::string simpoints;             // the files of the points that are recorded
    std::uint64_t interval_size = 100'000'000;  // of these points, in instructions, as bbv's
    bool dump_instructions = false;
    bool types = false;
    bool contexts = false;  // of all profilers
    bool objects = false;
    bool threads = false;
    std::uint32_t recursion = 1;
    std::uint32_t slice = 0;           // Spec::slice
    std::string allocation_functions;  // Spec::allocation_functions
    bool randomize_addresses = false;
    bool trace_children = true;
    bool debug_cache = true;
    trace::CpuLevel cpu_level = trace::CpuLevel::kHost;
    std::string hidden_features;  // Spec::hidden_features
    bool stress = false;          // see framework/driver/native/code_cache/stress.h
    trace::Regions regions{};
    // Before each burst of --sample, in instructions; none: what the profilers ask for.
    std::optional<std::uint64_t> warm_up;
    SimulationPoints points;  // that are recorded; none: all is
    bool weights = true;      // of the points of a trace: their counts stand for the program
    unsigned jobs = 0;        // images of a trace replayed at once; 0: as many as processors
    // Of the whole run; 0: none.
    std::chrono::milliseconds timeout{0};
    std::string timeout_option;  // as it was given
    // Of one call of a profiler; 0: none.
    std::chrono::milliseconds profiler_timeout{60'000};
    ShowProgress progress = ShowProgress::kWhereHarmless;
    bool quiet = false;
    bool verbose = false;
    bool help = false;
    bool version = false;
    std::vector<Setting> others;  // for the profilers
};
// Follows --config; later settings win, and the command line wins over the file. Throws Error.
CoreSettings take_core_settings(const std::vector<Setting>& command_line, Command command = kRun);

// Names and values for each of the profilers, in their order. Throws Error on an option that none
// of them has, that several have, or whose value does not fit its type.
using Given = std::vector<std::pair<std::string, std::string>>;
std::vector<Given> assign_to_profilers(std::span<const Setting> settings,
                                       std::span<ProfilerHandle* const> profilers);

}  // namespace assay::collector
