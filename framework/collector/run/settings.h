// The options of a run, for assay itself and for the profilers. They come from the command line and
// from a configuration file.
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

// The commands whose options are in one table.
enum Command : unsigned { kRun = 1, kRecord = 2, kReplay = 4 };

struct CoreSettings;
// Declares the options of all these commands. `line` takes those of its own command.
void add_options(CommandLine& line, CoreSettings& settings);
// Returns the options of one command, without those that are not for users.
std::vector<Option> options_of(Command command);
// Returns an option of any of the commands, or null. Its values are not stored anywhere.
const Option* find_option(std::string_view name);

// The options before the program, and the program with its arguments.
struct CommandWords {
    std::vector<Setting> settings;
    std::vector<std::string> program;
};
// Throws Error if an option lacks the value that it needs.
CommandWords parse_command_line(std::span<const std::string> words, Command command = kRun);

// Reads the settings of a YAML file. Keys are option names; values are text or lists of text. A map
// as value holds a profiler's options. Throws Error.
std::vector<Setting> read_configuration(const std::string& path);

enum class ShowProgress : std::uint8_t { kInReplays, kAlways, kNever };

// The settings of assay itself.
struct CoreSettings {
    std::vector<std::string> plugins;
    std::string out;                            // pattern for expand_file_name()
    std::string driver = "auto";                // auto, native, qemu; or the path of a native one
    std::string qemu;                           // path of QEMU's program; "": on PATH
    std::string image;                          // what an emulated machine runs; "": no machine
    std::string sysroot;                        // "": Debian's, for programs under QEMU
    std::string record;                         // the trace file of assay record, or ""
    recording::TraceContent recorded;           // content of the trace file
    std::string simpoints;                      // files of the points to record
    std::uint64_t interval_size = 100'000'000;  // of these points, in instructions; as for bbv
    bool dump_instructions = false;
    bool types = false;
    bool contexts = false;  // for all profilers
    bool objects = false;
    bool threads = false;
    std::uint32_t recursion = 1;
    std::uint32_t slice = 0;           // Spec::slice
    std::string allocation_functions;  // Spec::allocation_functions
    std::vector<std::string> own;      // paths of OwnCode
    bool randomize_addresses = false;
    bool trace_children = true;
    bool debug_cache = true;
    trace::CpuLevel cpu_level = trace::CpuLevel::kHost;
    std::string hidden_features;  // Spec::hidden_features
    bool stress = false;          // see framework/driver/native/code_cache/stress.h
    trace::Regions regions{};
    // Instructions before each burst of --sample. Empty: as many as the profilers ask for.
    std::optional<std::uint64_t> warm_up;
    SimulationPoints points;  // points to record; empty: record everything
    bool weights = true;      // scale the counts of a trace's points to the program
    unsigned jobs = 0;        // images of a trace to replay at once; 0: as many as processors
    // Limit of the whole run; 0: no limit.
    std::chrono::milliseconds timeout{0};
    std::string timeout_option;  // as written by the user
    // Limit of one call of a profiler; 0: no limit.
    std::chrono::milliseconds profiler_timeout{60'000};
    ShowProgress progress = ShowProgress::kInReplays;
    bool quiet = false;
    bool verbose = false;
    bool summarized = false;  // profilers print no summaries
    bool help = false;
    bool version = false;
    std::vector<Setting> others;  // for the profilers
};
// Also reads the file of --config. Later settings win, and the command line wins over the file.
// Throws Error.
CoreSettings take_core_settings(const std::vector<Setting>& command_line, Command command = kRun);

// Returns names and values for each profiler, in the order of the profilers. Throws Error if no
// profiler or several profilers have an option, or if its value does not fit its type.
using Given = std::vector<std::pair<std::string, std::string>>;
std::vector<Given> assign_to_profilers(std::span<const Setting> settings,
                                       std::span<ProfilerHandle* const> profilers);

}  // namespace assay::collector
