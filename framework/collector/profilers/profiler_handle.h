// A value profiler, for the code that runs it and writes its counts.
//
// Loading throws Error if the library is unusable. A profiler that fails or crashes later is lost:
// assay reports it in one line and never calls it again. Subclasses decide where its code runs: in
// this process (LoadedProfiler) or in a separate one (HostedProfiler).
#pragma once

#include "assay/vprofiler.h"
#include "framework/events/series.h"
#include "framework/trace/segment_layout.h"

#include <cstdint>
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

// The facts that a profiler has told so far.
struct ProfilerFacts {
    std::string name, description;
    std::vector<ProfilerEvent> events;
    std::vector<ProfilerDerived> derived;
    std::vector<ProfilerOption> options;
    std::vector<std::string> value_lists;  // by name; "" for the only list
    bool has_preface = false;

    // Known after start().
    bool warms_up = false;
    std::set<std::uint32_t> left_out, unscaled;
    std::map<std::uint32_t, std::string> no_error;  // why

    std::vector<std::pair<std::string, std::string>> descriptions;  // desc: lines, as name and text
    std::vector<std::string> parts;      // context1 of samples is the index + 1
    std::vector<events::Series> series;  // at most events::kMostSeries
    // Known after finish(), by event: true if totals_so_far() has told the whole total.
    std::vector<bool> told_totals;
};

class ProfilerHandle {
  public:
    // For a sample that has passed the checks: true if it is a value (or the rest of the values)
    // and not a count.
    static bool is_value(const vsample_t& sample) { return sample.event >= kFirstValueEvent; }
    static bool is_rest(const vsample_t& sample) { return (VP_VALUE - sample.event) % 2 == 1; }
    static std::uint32_t list_of(const vsample_t& sample) { return (VP_VALUE - sample.event) / 2; }

    virtual ~ProfilerHandle() = default;
    ProfilerHandle(const ProfilerHandle&) = delete;
    ProfilerHandle& operator=(const ProfilerHandle&) = delete;

    const std::string& path() const { return path_; }
    const std::string& name() const { return facts_.name; }
    const std::string& description() const { return facts_.description; }
    const std::vector<ProfilerEvent>& events() const { return facts_.events; }
    const std::vector<ProfilerDerived>& derived() const { return facts_.derived; }
    const std::vector<ProfilerOption>& options() const { return facts_.options; }
    const ProfilerOption* option(std::string_view name) const;
    const std::vector<std::pair<std::string, std::string>>& descriptions() const {
        return facts_.descriptions;
    }
    const std::vector<std::string>& parts() const { return facts_.parts; }
    // The profiler's series for the events file. Complete after finish().
    const std::vector<events::Series>& series() const { return facts_.series; }
    const std::vector<std::string>& value_lists() const { return facts_.value_lists; }
    // The values that the profiler asks for; nullptr if it asks for none. Valid after start().
    const trace::ValueLists* wanted_values() const { return wanted_values_.get(); }
    // True if the profiler takes the records of warm-ups. Valid after start().
    bool warms_up() const { return facts_.warms_up; }
    // True if the event has no column in the file.
    bool leaves_out(std::size_t event) const {
        return facts_.left_out.contains(static_cast<std::uint32_t>(event));
    }
    // True for events whose counts are not multiplied when only a part of the run is captured.
    bool is_unscaled(std::size_t event) const {
        return facts_.unscaled.contains(static_cast<std::uint32_t>(event));
    }
    // Why the error of the estimate is unknown; "" if it is known.
    std::string why_no_error(std::size_t event) const {
        const auto found = facts_.no_error.find(static_cast<std::uint32_t>(event));
        return found == facts_.no_error.end() ? "" : found->second;
    }
    bool told_total(std::size_t event) const {
        return event < facts_.told_totals.size() && facts_.told_totals[event];
    }
    const ProfilerFacts& facts() const { return facts_; }
    // The paths of the user's libraries that the profiler has loaded. Valid after set_options().
    virtual std::vector<std::string> libraries() const { return {}; }

    bool lost() const { return lost_; }
    // A loss of the profiler no longer costs its columns: the file has them already, or a tool uses
    // the profiler.
    void has_no_columns_to_lose() { written_ = true; }

    // Change vp_host_t.command and .samples.
    virtual void set_command(std::string command) = 0;
    virtual void set_sampling(bool samples) = 0;

    // The steps of a run before and after collecting, in the order of vprofiler.h. They do nothing
    // once the profiler is lost. set_options() throws Error if the profiler rejects a value.
    virtual void set_options(std::span<const std::pair<std::string, std::string>> settings) = 0;
    // Returns the data to capture, or an empty Spec if the profiler is lost. Throws Error if
    // capturing it is impossible.
    virtual trace::Spec start() = 0;
    // Call after its columns have been written.
    virtual std::string summary(std::span<const std::uint64_t> totals) = 0;
    virtual void stop() = 0;

    // For tools: the text before the values of an instruction, or none if the profiler leaves the
    // values out. Call preface() before format(). format() returns none if the profiler gives no
    // text for the value.
    bool has_preface() const { return facts_.has_preface; }
    // `list`: a name in value_lists().
    virtual std::optional<std::string> preface(const trace_instr_t& instr,
                                               std::string_view list) = 0;
    virtual std::optional<std::string> format(const trace_instr_t& instr, std::uint64_t value) = 0;

  protected:
    static constexpr std::uint32_t kFirstValueEvent = VP_VALUE - 2 * VP_VALUE_LISTS_MAX + 1;

    explicit ProfilerHandle(const std::string& path);

    // Reports that this profiler is lost, and why.
    void lose(const std::string& why);
    ProfilerFacts facts_;
    std::unique_ptr<trace::ValueLists> wanted_values_;
    // Replaces the report of a loss to the user.
    std::function<void(const std::string& why)> tell_loss_;

  private:
    std::string path_;
    bool lost_ = false;
    bool written_ = false;
};

}  // namespace assay::collector
