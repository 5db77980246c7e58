// The profiler that is being checked, as its checks call it.
#pragma once

#include "assay/vprofiler.h"
#include "framework/collector/profilers/host.h"

#include <fmt/core.h>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::check {

// What the checks of a profiler tell the process that waits for them.

// Where checks write to; another process reads it. What is being called stands in memory that both
// share. To the descriptor, a line each:
//     !FUNCTION TEXT  breaks a rule
//     ?FUNCTION TEXT  could be better
//     =NAME TYPE      an option that the profiler has
//     -FUNCTION TEXT  refuses to start, and why; nothing else can be checked
//     ~TEXT           why the trace says nothing about it
//     .               the checks came to their end
class Report {
  public:
    static constexpr std::size_t kRoom = 128;
    Report(int descriptor, char (&current_call)[kRoom])
        : descriptor_(descriptor), current_call_(current_call) {}

    void calling(std::string_view function) {
        current_call_[function.copy(current_call_, kRoom - 1)] = '\0';
    }
    void broken(std::string_view function, std::string_view text) { write('!', function, text); }
    void advice(std::string_view function, std::string_view text) { write('?', function, text); }
    void refused(std::string_view function, std::string_view why) { write('-', function, why); }
    void impossible(std::string_view why) { write('~', "", why); }
    void option(std::string_view name, unsigned type);
    void finished() { write('.', "", ""); }

  private:
    void write(char kind, std::string_view function, std::string_view text);

    int descriptor_;
    char (&current_call_)[kRoom];
};

// Options and their values.
using Settings = std::vector<std::pair<std::string, std::string>>;

// Called without protection: whoever has one is in a process of its own. Each function says in the
// report what the profiler breaks.
class Subject final : private collector::Host {
  public:
    // Throws Error if it cannot be loaded.
    Subject(const std::string& path, Report& report);
    Subject(const Subject&) = delete;
    Subject& operator=(const Subject&) = delete;

    const vp_dispatch_t& table() const { return table_; }
    // How many it has named.
    std::size_t parts() const { return parts_.size(); }
    Report& report() { return report_; }
    // What the function that was called last has given as the reason of its failure.
    const std::string& error() const { return error_; }

    // Calls it, and says so if it lets an exception out.
    template <typename Function>
    void call(std::string_view name, Function&& function) {
        report_.calling(name);
        error_.clear();
        try {
            function();
        } catch (...) {
            report_.broken(name,
                           "lets a C++ exception out, which no C caller can take: catch it, tell "
                           "host->error why, and return -1");
        }
        report_.calling("");
    }
    // The same of a function that returns a status. False if it failed.
    template <typename Function>
    bool try_call(std::string_view name, Function&& function) {
        int status = -1;
        call(name, [&] { status = function(); });
        if (status < 0 && error_.empty())
            report_.broken(name, "fails without a reason: call host->error before");
        return status >= 0;
    }

    // From vp_init on, the host says that the run is one with --sample.
    void set_sampling() {
        say_sampling(true);
        sampled_ = true;
    }

    bool init();
    void release();
    // With the defaults of options that name a file, as in a run.
    bool options(const Settings& settings);
    // Null if it failed.
    trace_vlist_table_t* prof_init();
    void prof_release();

    std::vector<vp_event_t> events();
    std::vector<vp_derived_t> derived();
    std::vector<const char*> value_lists();
    std::vector<vp_option_t> option_table();

    // A text that must be there, and of one line. Whether it is there. What may quote a value that
    // the user gave need not be UTF-8.
    bool check_line(std::string_view function, const char* text);
    // The same of a text of the profiler's own.
    bool check_text(std::string_view function, const char* text);
    void check_utf8(std::string_view function, std::string_view text);

  private:
    Settings default_files(const Settings& given);
    void take_error(const char* message) override;
    void take_warning(const char* message) override;
    void take_description(const char* name, const char* text) override;
    std::uint32_t take_part(const char* name) override;
    void take_left_out(std::uint32_t event) override;
    void take_unscaled(std::uint32_t event) override;
    void take_no_error(std::uint32_t event, const char* why) override;
    std::uint32_t take_series(const vp_series_t* series) override;
    std::uint32_t take_library(const char* path) override;
    void check_event(std::string_view function, std::uint32_t event);
    template <typename Row, typename Function>
    std::vector<Row> read(std::string_view name, Function function);

    // A function that has failed says so for every user of the profiler.
    void refuses(std::string_view function);

    Report& report_;
    vp_dispatch_t table_{};
    std::vector<std::string> parts_;
    std::uint32_t series_ = 0;  // that it has given
    std::string error_;
    bool with_options_ = false, sampled_ = false;
};

}  // namespace assay::check
