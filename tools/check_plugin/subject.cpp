#include "tools/check_plugin/subject.h"

#include "framework/collector/profilers/columns.h"
#include "framework/support/error.h"
#include "framework/support/text.h"

#include <dlfcn.h>
#include <unistd.h>
#include <algorithm>
#include <cstring>
#include <string>

namespace assay::check {

void Report::write(char kind, std::string_view function, std::string_view text) {
    std::string line = kind + std::string(function) + '\t' + std::string(text);
    std::replace(line.begin(), line.end(), '\n', ' ');
    line += '\n';
    for (std::string_view rest = line; !rest.empty();) {
        const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
        if (written <= 0) return;
        rest.remove_prefix(static_cast<std::size_t>(written));
    }
}

void Report::option(std::string_view name, unsigned type) {
    write('=', name, std::to_string(type));
}

namespace {

bool is_one_line(std::string_view text) {
    return text.find('\n') == std::string_view::npos;
}

// A short excerpt for messages.
std::string beginning(std::string_view text) {
    return printable(text.substr(0, 40));
}

}  // namespace

Subject::Subject(const std::string& path, Report& report)
    : Host("./program argument"), report_(report) {
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    const void* const table = library ? dlsym(library, VP_DISPATCH_SYMBOL) : nullptr;
    if (!table) throw Error("cannot be loaded");  // check_loading has reported the reason
    std::uint32_t size = 0;
    std::memcpy(&size, table, sizeof size);
    std::memcpy(&table_, table, std::min<std::size_t>(size, sizeof table_));
}

bool Subject::init() {
    parts_.clear();
    series_ = 0;
    with_options_ = false;
    if (try_call("vp_init", [&] { return table_.vp_init ? table_.vp_init(host_table()) : 0; }))
        return true;
    refuses("vp_init");
    return false;
}

void Subject::release() {
    if (table_.vp_release) call("vp_release", [&] { table_.vp_release(); });
}

bool Subject::options(const Settings& settings) {
    std::vector<vp_setting_t> given;
    const Settings files = default_files(settings);
    for (const Settings* const list : {&settings, &files})
        for (const auto& [name, value] : *list) given.push_back({name.c_str(), value.c_str()});
    with_options_ = !settings.empty();
    const bool good = try_call("vp_options", [&] {
        // Without settings, the vector may give a null pointer and the length 0.
        return table_.vp_options
                   ? table_.vp_options(given.data(), static_cast<std::uint32_t>(given.size()))
                   : 0;
    });
    if (!good) refuses("vp_options");
    return good;
}

// Defaults of options that name a file and are not in `given`.
Settings Subject::default_files(const Settings& given) {
    Settings files;
    for (const vp_option_t& option : option_table()) {
        const auto is_this = [&](const auto& setting) { return setting.first == option.name; };
        if (option.type != VP_OPTION_OUTPUT_FILE || option.default_value == nullptr ||
            std::any_of(given.begin(), given.end(), is_this))
            continue;
        try {
            files.emplace_back(option.name,
                               expand_file_name(option.default_value, getpid(), "check-plugin"));
        } catch (const Error& error) {
            report_.broken("vp_option_table",
                           fmt::format("has a default for {} that is not the name of a file: {}",
                                       option.name, error.what()));
        }
    }
    return files;
}

trace_vlist_table_t* Subject::prof_init() {
    trace_vlist_table_t* wanted = nullptr;
    call("vp_prof_init", [&] { wanted = table_.vp_prof_init(); });
    if (!wanted && error_.empty())
        report_.broken("vp_prof_init", "returns NULL without a reason: call host->error first");
    if (!wanted) refuses("vp_prof_init");
    return wanted;
}

void Subject::prof_release() {
    if (table_.vp_prof_release) call("vp_prof_release", [&] { table_.vp_prof_release(); });
}

template <typename Row, typename Function>
std::vector<Row> Subject::read(std::string_view name, Function function) {
    std::vector<Row> rows;
    if (!function) return rows;
    call(name, [&] {
        std::uint32_t count = UINT32_MAX;
        const Row* const first = function(&count);
        if (count == UINT32_MAX) {
            report_.broken(name, "does not set *count: store the length of the table there");
        } else if (!first && count != 0) {
            report_.broken(name, fmt::format("returns NULL for a table of {} rows: store 0 in "
                                             "*count, or return the table",
                                             count));
        } else if (count > 10'000) {
            report_.broken(name, fmt::format("says that its table has {} rows: store its "
                                             "length in *count",
                                             count));
        } else {
            rows.assign(first, first + count);
        }
    });
    return rows;
}

std::vector<vp_event_t> Subject::events() {
    return read<vp_event_t>("vp_events", table_.vp_events);
}
std::vector<vp_derived_t> Subject::derived() {
    return read<vp_derived_t>("vp_derived", table_.vp_derived);
}
std::vector<const char*> Subject::value_lists() {
    return read<const char*>("vp_value_lists", table_.vp_value_lists);
}
std::vector<vp_option_t> Subject::option_table() {
    return read<vp_option_t>("vp_option_table", table_.vp_option_table);
}

bool Subject::check_line(std::string_view function, const char* text) {
    if (!text) {
        report_.broken(function, "has NULL for a text: give \"\"");
        return false;
    }
    if (!is_one_line(text))
        report_.broken(function,
                       fmt::format("has a line break in \"{}\": one line only", beginning(text)));
    return true;
}

bool Subject::check_text(std::string_view function, const char* text) {
    if (!check_line(function, text)) return false;
    check_utf8(function, text);
    return true;
}

void Subject::check_utf8(std::string_view function, std::string_view text) {
    if (!is_utf8(text))
        report_.broken(function,
                       fmt::format("has \"{}\", which is not UTF-8: use UTF-8", beginning(text)));
}

// Reports a refusal, except in a run with options or --sample, which a profiler may refuse. call()
// has already reported a missing reason.
void Subject::refuses(std::string_view function) {
    if (!with_options_ && !sampled_) report_.refused(function, error_);
}

void Subject::take_error(const char* message) {
    if (check_line("host->error", message)) error_ = message;
    if (error_.empty()) error_ = "?";
}

void Subject::take_warning(const char* message) {
    check_line("host->warning", message);
}

void Subject::take_description(const char* name, const char* text) {
    check_line("host->describe", name);
    check_line("host->describe", text);
}

std::uint32_t Subject::take_part(const char* name) {
    if (!check_line("host->part", name)) return 0;
    const std::size_t length = std::strlen(name);
    if (length > collector::kLongestPartName)
        report_.broken("host->part",
                       fmt::format("is given a name of {} bytes: with more than {}, the run loses "
                                   "the profiler; shorten names from the program",
                                   length, collector::kLongestPartName));
    return collector::part_number(parts_, name);
}

void Subject::take_left_out(std::uint32_t event) {
    check_event("host->leave_out", event);
}

void Subject::take_unscaled(std::uint32_t event) {
    check_event("host->unscaled", event);
}

void Subject::take_no_error(std::uint32_t event, const char* why) {
    check_event("host->no_error", event);
    check_line("host->no_error", why);
}

std::uint32_t Subject::take_series(const vp_series_t* series) {
    const collector::GivenSeries copied = collector::copy_series(series);
    if (!copied.problem.empty())
        report_.broken("host->series",
                       "is given " + copied.problem + ", with which the profiler is lost");
    if (series_ == VP_SERIES_MAX || !copied.problem.empty()) return 0;
    check_text("host->series", series->name);
    if (series->description) check_line("host->series", series->description);
    ++series_;
    return 1;
}

std::uint32_t Subject::take_library(const char* path) {
    check_line("host->library", path);
    return 1;
}

void Subject::check_event(std::string_view function, std::uint32_t event) {
    const std::size_t declared = events().size();
    if (event >= declared)
        report_.broken(function, fmt::format("is called for event {}, but vp_events declares {}: "
                                             "give the index of one",
                                             event, declared));
}

}  // namespace assay::check
