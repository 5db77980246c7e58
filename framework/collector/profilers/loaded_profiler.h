// A profiler whose code runs in this process: a shared library behind assay/vprofiler.h.
//
// Every call is guarded (crash_guard.h), which does not help against one that ends the process,
// say: only assay's own profilers are loaded into the collector.
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

// Of the process that a profiler is loaded into.
struct Surroundings {
    // Of which the process can do without none: a profiler that closes one is lost.
    OwnFiles own_files = {};
    // Is told why the profiler is lost, in place of the user.
    std::function<void(const std::string& why)> tell_loss = {};
    // Is told which library of the user's the profiler is about to load. Only the process of a
    // profiler that is alone in it has this.
    std::function<void(const std::string& path)> tell_library = {};
};

// Thrown by set_options(): the profiler loads a library of the user's, which needs a process of the
// profiler's own (HostedProfiler).
struct NeedsOwnProcess {};

class LoadedProfiler final : public ProfilerHandle, private Host {
  public:
    using SampleSink = std::function<void(const vsample_t&)>;

    // Loads, checks, and calls vp_init. `command` is what vp_host_t.command says.
    LoadedProfiler(const std::string& path, std::string command, CrashGuard& guard,
                   Surroundings surroundings = {});
    ~LoadedProfiler() override;

    void set_command(std::string command) override { say_command(std::move(command)); }
    void set_sampling(bool samples) override { say_sampling(samples); }
    // Also throws NeedsOwnProcess. The profiler is of no use then.
    void set_options(std::span<const std::pair<std::string, std::string>> settings) override;
    trace::Spec start() override;
    // Whether it asks for calls itself. From start() on.
    bool captures_calls() const { return captures_calls_; }
    std::string summary(std::span<const std::uint64_t> totals) override;
    void stop() override;
    std::optional<std::string> preface(const trace_instr_t& instr, std::string_view list) override;
    std::optional<std::string> format(const trace_instr_t& instr, std::uint64_t value) override;

    // The steps between start() and summary(), likewise.
    void process(std::uint32_t pid, trace_parser_t& parser, const SampleSink& sink);
    void finish(std::uint32_t pid, trace_parser_t& parser, const SampleSink& sink);
    // What has been counted so far, by event: as vp_totals says, or as samples have arrived.
    std::vector<std::uint64_t> totals_so_far(std::uint32_t pid, trace_parser_t& parser);

  private:
    struct Library;

    void* open_library() const;
    void check_table(const void* table);
    bool read_tables();   // false if that crashed
    bool read_columns();  // likewise
    void forget_tables();
    void read_events();
    void read_derived();
    void read_options();
    void read_value_lists();
    void check_lengths() const;
    void check_names() const;
    // Calls `function` under the guard, with the name of the interface function for messages.
    // False if the profiler is lost now or was before.
    template <typename Function>
    bool call(const char* name, Function&& function);
    // A step that returned a negative number.
    void failed(const char* function);
    // Passes on samples that `function` has returned, if they can be read.
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
    std::vector<std::uint64_t> totals_;        // by event, to see that they fit 64 bits
    std::vector<std::uint64_t> value_totals_;  // by list
    bool needs_own_process_ = false;
    bool started_ = false;
    bool captures_calls_ = false;
    bool counts_values_ = false;  // its one event is how many values there are
};

}  // namespace assay::collector
