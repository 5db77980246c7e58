// A value profiler: a shared library behind assay/vprofiler.h.
//
// Loading throws Error if the library is unusable. Afterwards every call is guarded: a profiler
// that fails or crashes is lost, which is said in one line, and never called again.
#pragma once

#include "assay/vprofiler.h"
#include "framework/collector/profilers/crash_guard.h"
#include "framework/collector/profilers/own_files.h"
#include "framework/trace/segment_layout.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::collector {

struct ProfilerEvent {
    std::string name, description, unit;
};

struct ProfilerDerived {
    std::string name, formula, unit;
};

struct ProfilerOption {
    std::string name, argument, help;
    std::optional<std::string> default_value;
    vp_option_type type;
};

class Profiler {
  public:
    using SampleSink = std::function<void(const vsample_t&)>;

    // Of a sample that has passed the checks: a value (or the rest of them) and not a count.
    static bool is_value(const vsample_t& sample) { return sample.event >= kFirstValueEvent; }
    static bool is_rest(const vsample_t& sample) { return (VP_VALUE - sample.event) % 2 == 1; }
    static std::uint32_t list_of(const vsample_t& sample) { return (VP_VALUE - sample.event) / 2; }

    // Loads, checks, and calls vp_init. `command` is what vp_host_t.command says.
    Profiler(const std::string& path, std::string command, CrashGuard& guard);
    ~Profiler();
    Profiler(const Profiler&) = delete;
    Profiler& operator=(const Profiler&) = delete;

    const std::string& name() const { return name_; }
    const std::string& path() const { return path_; }
    const std::string& description() const { return description_; }
    const std::vector<ProfilerEvent>& events() const { return events_; }
    const std::vector<ProfilerDerived>& derived() const { return derived_; }
    const std::vector<ProfilerOption>& options() const { return options_; }
    const ProfilerOption* option(std::string_view name) const;
    // desc: lines, name and text.
    const std::vector<std::pair<std::string, std::string>>& descriptions() const {
        return descriptions_;
    }

    // Names of the parts that it has given its profile; context1 of samples is the index + 1.
    const std::vector<std::string>& parts() const { return parts_; }
    // Of the lists that it keeps for an instruction: "" if it keeps but one.
    const std::vector<std::string>& value_lists() const { return value_lists_; }
    // What it asks for; nullptr if it asks for no values. Valid from start() on.
    const trace::ValueLists* wanted_values() const { return wanted_values_.get(); }
    // Whether it takes the records of warm-ups. From start() on.
    bool warms_up() const { return warms_up_; }
    // True for events whose columns shall not be written.
    bool leaves_out(std::size_t event) const {
        return left_out_.contains(static_cast<std::uint32_t>(event));
    }

    // True for events whose counts are not multiplied when only a part of the run is captured.
    bool is_unscaled(std::size_t event) const {
        return unscaled_.contains(static_cast<std::uint32_t>(event));
    }

    // Why the error of its estimate is not known; "" if it is.
    std::string why_no_error(std::size_t event) const {
        const auto found = no_error_.find(static_cast<std::uint32_t>(event));
        return found == no_error_.end() ? "" : found->second;
    }

    bool lost() const { return lost_; }
    // Says that this profiler is lost, and why.
    void lose(const std::string& why);

    // What vp_host_t.command says from now on.
    void set_command(std::string command);
    // What vp_host_t.samples says.
    void set_sampling(bool samples) { host_.samples = samples ? 1 : 0; }

    // The run cannot go on without these: the steps of it throw Error if the profiler has closed
    // one. They must live until the last step.
    void respect(const OwnFiles& files) { own_files_ = &files; }

    // The steps of a run, in the order of vprofiler.h. Each does nothing once the profiler is lost.
    // Throws Error if the profiler rejects a value.
    void set_options(std::span<const std::pair<std::string, std::string>> settings);
    // What to capture; throws Error if that is impossible. Captures nothing if lost.
    trace::Spec start();
    void process(std::uint32_t pid, trace_parser_t& parser, const SampleSink& sink);
    void finish(std::uint32_t pid, trace_parser_t& parser, const SampleSink& sink);
    // What has been counted so far, by event: as vp_totals says, or as samples have arrived.
    std::vector<std::uint64_t> totals_so_far(std::uint32_t pid, trace_parser_t& parser);
    // After finish(): whether totals_so_far() has told all of an event.
    bool told_total(std::size_t event) const {
        return table_.vp_totals || totals_before_finish_[event] == totals_[event];
    }
    // After its columns have been written.
    std::string summary(std::span<const std::uint64_t> totals);
    void stop();

    // For tools. What stands before the values of an instruction; none if the profiler leaves them
    // out. To be called before format(), which has nothing to say if the profiler does not.
    bool has_preface() const { return table_.vp_preface || table_.vp_list_preface; }
    // `list`: the name of one of value_lists().
    std::optional<std::string> preface(const trace_instr_t& instr, std::string_view list);
    std::optional<std::string> format(const trace_instr_t& instr, std::uint64_t value);

  private:
    struct Library;

    static constexpr std::uint32_t kFirstValueEvent = VP_VALUE - 2 * VP_VALUE_LISTS_MAX + 1;

    void* open_library() const;
    void check_table(const void* table);
    bool read_tables();  // false if that crashed
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
    // The same of a step of the run. Throws Error.
    template <typename Function>
    bool call_in_run(const char* name, Function&& function);
    // A step that returned a negative number.
    void failed(const char* function);
    // Passes on samples that `function` has returned, if they can be read.
    void take(const char* function, const vsample_t* samples, std::size_t count,
              const SampleSink& sink);
    void pass_on(std::span<const vsample_t> samples, const SampleSink& sink);
    void pass_on_value(const vsample_t& sample, const SampleSink& sink);
    bool add_to_total(const vsample_t& sample);
    [[noreturn]] void unusable(const std::string& why) const;

    std::uint32_t part(const std::string& name);
    static Profiler& self(const vp_host_t* host);

    std::string path_;
    std::string command_;
    CrashGuard& guard_;
    const OwnFiles* own_files_ = nullptr;
    std::unique_ptr<Library> library_;
    vp_dispatch_t table_{};
    vp_host_t host_{};
    std::string name_, description_, last_error_;
    std::vector<ProfilerEvent> events_;
    std::vector<ProfilerDerived> derived_;
    std::vector<ProfilerOption> options_;
    std::vector<std::pair<std::string, std::string>> descriptions_;
    std::vector<std::string> parts_;
    std::vector<vsample_t> batch_;       // in take()
    std::vector<std::uint64_t> totals_;  // by event, to see that they fit 64 bits
    std::vector<std::uint64_t> totals_before_finish_;
    std::set<std::uint32_t> left_out_, unscaled_;
    std::map<std::uint32_t, std::string> no_error_;  // why
    bool lost_ = false;
    bool started_ = false;
    bool warms_up_ = false;
    bool written_ = false;  // its columns are
    std::vector<std::string> value_lists_;
    std::vector<std::uint64_t> value_totals_;  // by list
    bool counts_values_ = false;               // its one event is how many values there are
    std::unique_ptr<trace::ValueLists> wanted_values_;
};

}  // namespace assay::collector
