// A profiler whose code runs in this process: a shared library with the interface of
// assay/vprofiler.h.
//
// Every call is guarded (crash_guard.h). The guard does not help if a call ends the process, for
// example. Only assay's own profilers are therefore loaded into the collector.
#pragma once

#include "framework/collector/profilers/crash_guard.h"
#include "framework/collector/profilers/host.h"
#include "framework/collector/profilers/plugin_search.h"
#include "framework/collector/profilers/profiler_handle.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::collector {

// The environment of a profiler in the process that it is loaded into.
struct Surroundings {
    // The process needs all these files: a profiler that closes one is lost.
    OwnFiles own_files = {};
    // Gets the reason for the loss of the profiler, instead of the user.
    std::function<void(const std::string& why)> tell_loss = {};
    // Gets the path of a library of the user's before the profiler loads it. Set only in the
    // process that a profiler has to itself.
    std::function<void(const std::string& path)> tell_library = {};
};

// Thrown by set_options(): the profiler loads a library of the user's, which needs a process for
// the profiler alone (HostedProfiler).
struct NeedsOwnProcess {};

class LoadedProfiler final : public ProfilerHandle, private Host {
  public:
    using SampleSink = std::function<void(const vsample_t&)>;

    // Loads and checks the library, and calls vp_init. `command`: the value of vp_host_t.command.
    LoadedProfiler(const std::string& path, std::string command, CrashGuard& guard,
                   Surroundings surroundings = {});
    ~LoadedProfiler() override;

    void set_command(std::string command) override { say_command(std::move(command)); }
    void set_sampling(bool samples) override { say_sampling(samples); }
    // Also throws NeedsOwnProcess. The profiler is unusable afterwards.
    void set_options(std::span<const std::pair<std::string, std::string>> settings) override;
    trace::Spec start() override;
    // True if the profiler itself captures calls. Valid after start().
    bool captures_calls() const { return captures_calls_; }
    std::string summary(std::span<const std::uint64_t> totals) override;
    void stop() override;
    std::optional<std::string> preface(const trace_instr_t& instr, std::string_view list) override;
    std::optional<std::string> format(const trace_instr_t& instr, std::uint64_t value) override;

    // The steps between start() and summary(). They do nothing once the profiler is lost.
    void process(std::uint32_t pid, trace_parser_t& parser, const SampleSink& sink);
    void finish(std::uint32_t pid, trace_parser_t& parser, const SampleSink& sink);
    // The counts so far, by event: from vp_totals, or from the samples that have arrived.
    std::vector<std::uint64_t> totals_so_far(std::uint32_t pid, trace_parser_t& parser);

  private:
    struct Library;

    void* open_library() const;
    void check_table(const void* table);
    bool read_tables();   // false if that crashed
    bool read_columns();  // the same
    void forget_tables();
    void check_declared() const;
    // Calls `function` under the guard. `name`: the name of the interface function, for messages.
    // Returns false if the profiler is lost, now or before.
    template <typename Function>
    bool call(const char* name, Function&& function);
    // Handles a step that returned a negative number.
    void failed(const char* function);
    // Passes on samples that `function` has returned, if they are readable.
    void take(const char* function, const vsample_t* samples, std::size_t count,
              const SampleSink& sink);
    void pass_on(std::span<const vsample_t> samples, const SampleSink& sink);
    void pass_on_value(const vsample_t& sample, const SampleSink& sink);
    bool add_to_total(const vsample_t& sample);
    void finish_all(std::uint32_t pid, trace_parser_t& parser, const SampleSink& sink);
    [[noreturn]] void unusable(const std::string& why) const;

    void take_error(const char* message) override;
    void take_warning(const char* message) override;
    void take_description(const char* name, const char* text) override;
    std::uint32_t take_part(const char* name) override;
    void take_left_out(std::uint32_t event) override { facts_.left_out.insert(event); }
    void take_unscaled(std::uint32_t event) override { facts_.unscaled.insert(event); }
    void take_no_error(std::uint32_t event, const char* why) override;
    std::uint32_t take_series(const vp_series_t* series) override;
    std::uint32_t take_library(const char* path) override;

    CrashGuard& guard_;
    const OwnFiles own_files_;
    const std::function<void(const std::string& path)> tell_library_;
    std::unique_ptr<Library> library_;
    vp_dispatch_t table_{};
    std::string last_error_;
    std::vector<vsample_t> batch_;             // in take()
    std::vector<std::uint64_t> totals_;        // by event, to check that they fit in 64 bits
    std::vector<std::uint64_t> value_totals_;  // by list
    bool needs_own_process_ = false;
    bool started_ = false;
    bool captures_calls_ = false;
    bool counts_values_ = false;  // its only event is the number of values
};

}  // namespace assay::collector
