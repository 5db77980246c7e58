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

// Sends the findings of a check to the parent process. Shared memory holds the name of the current
// call, so that the parent knows where a check crashed. The descriptor carries one finding per
// line:
//     !FUNCTION TEXT  the function breaks a rule
//     ?FUNCTION TEXT  advice
//     =NAME TYPE      an option of the profiler
//     -FUNCTION TEXT  the profiler refuses to start; nothing else can be checked
//     ~TEXT           reason why the trace cannot check this profiler
//     .               the check has ended
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

// Names of options, with their values.
using Settings = std::vector<std::pair<std::string, std::string>>;

// The profiler being checked. Crashes are not caught, so use it in a separate process only. Each
// function reports the rules that the profiler breaks.
class Subject final : private collector::Host {
  public:
    // Throws Error if the profiler cannot be loaded.
    Subject(const std::string& path, Report& report);
    Subject(const Subject&) = delete;
    Subject& operator=(const Subject&) = delete;

    const vp_dispatch_t& table() const { return table_; }
    // The number of parts that the profiler has named.
    std::size_t parts() const { return parts_.size(); }
    Report& report() { return report_; }
    // The reason that the last call gave for its failure.
    const std::string& error() const { return error_; }

    // Calls a function of the profiler. Reports exceptions that leave it.
    template <typename Function>
    void call(std::string_view name, Function&& function) {
        report_.calling(name);
        error_.clear();
        try {
            function();
        } catch (...) {
            report_.broken(name,
                           "throws a C++ exception, which C callers cannot catch: catch it, call "
                           "host->error with the reason, and return -1");
        }
        report_.calling("");
    }
    // Calls a function that returns a status. Returns false if it failed.
    template <typename Function>
    bool try_call(std::string_view name, Function&& function) {
        int status = -1;
        call(name, [&] { status = function(); });
        if (status < 0 && error_.empty())
            report_.broken(name, "fails without a reason: call host->error first");
        return status >= 0;
    }

    // From vp_init on, the host tells the profiler that the run uses --sample.
    void set_sampling() {
        say_sampling(true);
        sampled_ = true;
    }

    bool init();
    void release();
    // Adds the defaults of options that name a file, as a run does.
    bool options(const Settings& settings);
    // Null on failure.
    trace_vlist_table_t* prof_init();
    void prof_release();

    std::vector<vp_event_t> events();
    std::vector<vp_derived_t> derived();
    std::vector<const char*> value_lists();
    std::vector<vp_option_t> option_table();

    // Checks that the text exists and has one line. Returns false if there is no text. Accepts
    // bytes that are not UTF-8, because the text may quote a value from the user.
    bool check_line(std::string_view function, const char* text);
    // Same as check_line() for the profiler's own text, which must be UTF-8.
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

    // Reports that the profiler refuses to start.
    void refuses(std::string_view function);

    Report& report_;
    vp_dispatch_t table_{};
    std::vector<std::string> parts_;
    std::uint32_t series_ = 0;  // number of series that the profiler has declared
    std::string error_;
    bool with_options_ = false, sampled_ = false;
};

}  // namespace assay::check
