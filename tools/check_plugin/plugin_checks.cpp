#include "tools/check_plugin/plugin_checks.h"

#include "framework/collector/profiler.h"
#include "framework/collector/source_places.h"
#include "framework/collector/trace_spec.h"
#include "framework/events/formula.h"
#include "framework/support/error.h"
#include "framework/symbols/symbolizer.h"
#include "framework/version.h"
#include "tools/check_plugin/guarded_memory.h"
#include "tools/check_plugin/synthetic_trace.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <unordered_set>

namespace assay::check {
namespace {

constexpr std::uint32_t kPid = 4711;
constexpr std::uint64_t kCode = 0x401000;
constexpr std::size_t kBufferRecords = trace::kRecordsPerBuffer;

using Settings = std::vector<std::pair<std::string, std::string>>;

bool is_one_line(std::string_view text) {
    return text.find('\n') == std::string_view::npos;
}

// The profiler, called without protection.
class Subject {
  public:
    Subject(const std::string& path, Report& report) : report_(report) {
        void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        const void* const table = library ? dlsym(library, VP_DISPATCH_SYMBOL) : nullptr;
        if (!table) throw Error("cannot be loaded");  // check_loading has said why
        std::uint32_t size = 0;
        std::memcpy(&size, table, sizeof size);
        std::memcpy(&table_, table, std::min<std::size_t>(size, sizeof table_));
        host_.size = sizeof host_;
        host_.abi_version = VP_ABI_VERSION;
        host_.version = kVersion;
        host_.command = "./program argument";
        host_.error = [](const vp_host_t* host, const char* message) {
            self(host).take_error(message);
        };
        host_.warning = [](const vp_host_t* host, const char* message) {
            self(host).check_line("host->warning", message);
        };
        host_.describe = [](const vp_host_t* host, const char* name, const char* text) {
            self(host).check_line("host->describe", name);
            self(host).check_line("host->describe", text);
        };
        host_.part = [](const vp_host_t* host, const char* name) { return self(host).part(name); };
        host_.leave_out = [](const vp_host_t* host, std::uint32_t event) {
            self(host).leave_out(event);
        };
        host_.reserved = this;
    }
    Subject(const Subject&) = delete;
    Subject& operator=(const Subject&) = delete;

    const vp_dispatch_t& table() const { return table_; }
    // How many it has named.
    std::size_t parts() const { return parts_.size(); }
    Report& report() { return report_; }

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

    bool init() {
        parts_.clear();
        return try_call("vp_init", [&] { return table_.vp_init ? table_.vp_init(&host_) : 0; });
    }
    void release() {
        if (table_.vp_release) call("vp_release", [&] { table_.vp_release(); });
    }
    bool options(const Settings& settings) {
        std::vector<vp_setting_t> given;
        for (const auto& [name, value] : settings) given.push_back({name.c_str(), value.c_str()});
        return try_call("vp_options", [&] {
            // NULL and 0 where there are none, as a span of none has it.
            return table_.vp_options
                       ? table_.vp_options(given.data(), static_cast<std::uint32_t>(given.size()))
                       : 0;
        });
    }
    trace_vlist_table_t* prof_init() {
        trace_vlist_table_t* wanted = nullptr;
        call("vp_prof_init", [&] { wanted = table_.vp_prof_init(); });
        if (!wanted && error_.empty())
            report_.broken("vp_prof_init",
                           "returns NULL without a reason: call host->error before");
        return wanted;
    }
    void prof_release() {
        if (table_.vp_prof_release) call("vp_prof_release", [&] { table_.vp_prof_release(); });
    }

    std::vector<vp_event_t> events() { return read<vp_event_t>("vp_events", table_.vp_events); }
    std::vector<vp_derived_t> derived() {
        return read<vp_derived_t>("vp_derived", table_.vp_derived);
    }
    std::vector<const char*> value_lists() {
        return read<const char*>("vp_value_lists", table_.vp_value_lists);
    }
    std::vector<vp_option_t> option_table() {
        return read<vp_option_t>("vp_option_table", table_.vp_option_table);
    }

    // A text that must be there, and of one line.
    bool check_line(std::string_view function, const char* text) {
        if (!text)
            report_.broken(function, "has NULL for a text: give \"\"");
        else if (!is_one_line(text))
            report_.broken(function, fmt::format("has a line break in \"{}\": one line only",
                                                 std::string_view(text).substr(0, 40)));
        return text != nullptr;
    }

  private:
    static Subject& self(const vp_host_t* host) { return *static_cast<Subject*>(host->reserved); }

    void take_error(const char* message) {
        if (check_line("host->error", message)) error_ = message;
        if (error_.empty()) error_ = "?";
    }

    std::uint32_t part(const char* name) {
        if (!check_line("host->part", name)) return 0;
        const auto known = std::find(parts_.begin(), parts_.end(), name);
        const auto index = static_cast<std::uint32_t>(known - parts_.begin());
        if (known == parts_.end()) parts_.emplace_back(name);
        return index + 1;
    }

    void leave_out(std::uint32_t event) {
        const std::size_t declared = events().size();
        if (event >= declared)
            report_.broken("host->leave_out",
                           fmt::format("is called for event {}, but vp_events declares {}: give "
                                       "the index of one",
                                       event, declared));
    }

    template <typename Row, typename Function>
    std::vector<Row> read(std::string_view name, Function function) {
        std::vector<Row> rows;
        if (!function) return rows;
        call(name, [&] {
            std::uint32_t count = UINT32_MAX;
            const Row* const first = function(&count);
            if (count == UINT32_MAX) {
                report_.broken(name,
                               "leaves *count as it was: store the length of the table there");
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

    Report& report_;
    vp_dispatch_t table_{};
    vp_host_t host_{};
    std::vector<std::string> parts_;
    std::string error_;
};

// --- Loading

// The collector's own checks: the table, names, formulas, types of options.
void check_loading(const std::string& path, Report& report) {
    collector::CrashGuard guard;
    try {
        report.calling("(loading)");
        collector::Profiler profiler(path, "", guard);
    } catch (const Error& error) {
        std::string_view text = error.what();
        const std::string known = fmt::format("cannot use the profiler {}: ", path);
        if (text.starts_with(known)) text.remove_prefix(known.size());
        report.broken(VP_DISPATCH_SYMBOL, text);
    }
    report.calling("");
}

// --- Names and tables

bool fits(const std::string& value, std::uint32_t type) {
    if (type == VP_OPTION_YES_NO) return value == "yes" || value == "no";
    if (type != VP_OPTION_UNSIGNED) return true;
    std::uint64_t number = 0;
    const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    return error == std::errc() && rest == value.data() + value.size();
}

// All texts of all tables, to be compared with what they are later.
std::vector<std::string> texts(Subject& subject) {
    std::vector<std::string> all;
    const auto add = [&](const char* text) { all.emplace_back(text ? text : "(null)"); };
    subject.call("vp_name", [&] { add(subject.table().vp_name()); });
    if (subject.table().vp_description)
        subject.call("vp_description", [&] { add(subject.table().vp_description()); });
    for (const vp_event_t& row : subject.events()) {
        add(row.name);
        add(row.description);
        add(row.unit);
    }
    for (const vp_derived_t& row : subject.derived()) {
        add(row.name);
        add(row.formula);
        add(row.unit);
    }
    for (const vp_option_t& row : subject.option_table()) {
        add(row.name);
        add(row.help);
    }
    for (const char* list : subject.value_lists()) add(list);
    return all;
}

void check_options_of_table(Subject& subject) {
    std::set<std::string> names;
    for (const vp_option_t& option : subject.option_table()) {
        const std::string name = option.name ? option.name : "";
        if (!names.insert(name).second)
            subject.report().broken(
                "vp_option_table",
                fmt::format("has the option {} twice: options have one name each", name));
        if (option.default_value && !fits(option.default_value, option.type))
            subject.report().broken(
                "vp_option_table",
                fmt::format("has \"{}\" as the default of {}, which is no value of its type: "
                            "correct one of them",
                            option.default_value, name));
        if (!option.help || !*option.help)
            subject.report().advice("vp_option_table",
                                    fmt::format("has no help for {}: say what it does", name));
        subject.check_line("vp_option_table", option.help ? option.help : "");
    }
}

void check_tables(const std::string& path, Report& report) {
    Subject subject(path, report);
    if (!subject.init()) return;
    const std::vector<std::string> first = texts(subject);
    for (const vp_event_t& event : subject.events()) {
        subject.check_line("vp_events", event.description ? event.description : "");
        subject.check_line("vp_events", event.unit ? event.unit : "");
        if (!event.description || !*event.description)
            report.advice("vp_events", fmt::format("has no description of {}: it is the legend of "
                                                   "every table",
                                                   event.name ? event.name : "?"));
    }
    if (subject.table().vp_description) {
        subject.call("vp_description", [&] {
            subject.check_line("vp_description", subject.table().vp_description());
        });
    } else {
        report.advice("vp_description", "is missing: assay plugins shows it");
    }
    check_options_of_table(subject);
    for (const vp_option_t& option : subject.option_table())
        report.option(option.name ? option.name : "", option.type);
    if (texts(subject) != first)
        report.broken("vp_events",
                      "gives other texts at its second call, or overwrites those of the "
                      "first: names and tables are the same at every call, and valid "
                      "until vp_release");
    subject.release();
}

// --- Specifications

// Nothing else may be in the folder before the program runs.
void check_no_files(Report& report) {
    if (!std::filesystem::is_empty("."))
        report.broken("vp_prof_init",
                      "or a function before it creates a file: tools call them without a program; "
                      "wait until vp_prof_process or vp_finish");
}

struct Wanted {
    trace::Spec spec{};
    std::unique_ptr<trace::ValueLists> values;  // null: none
};

Wanted start(Subject& subject) {
    const trace_vlist_table_t* const table = subject.prof_init();
    if (!table) return {};
    Wanted wanted{table->spec, nullptr};
    try {
        collector::check(table->spec);
        if (table->spec.captures & trace::kCaptureValues)
            wanted.values = std::make_unique<trace::ValueLists>(collector::value_lists(*table));
    } catch (const Error& error) {
        subject.report().broken("vp_prof_init",
                                fmt::format("asks for what cannot be captured: {}", error.what()));
    }
    return wanted;
}

void check_specification(const std::string& path, Report& report) {
    Subject subject(path, report);
    if (!subject.init() || !subject.options({})) return;
    const trace::Spec spec = start(subject).spec;
    check_no_files(report);
    subject.prof_release();
    subject.release();
    if (spec.captures == 0)
        report.advice("vp_prof_init", "captures nothing without options: nothing will be counted");
}

// --- Runs

class Run {
  public:
    Run(Subject& subject, SyntheticTrace& trace) : subject_(subject), trace_(trace) {
        totals_.resize(subject.events().size());
        lists_ = subject.value_lists().size();
    }

    bool begin(const Settings& settings) {
        if (!subject_.init()) return false;
        if (!subject_.options(settings)) {
            subject_.release();
            return false;
        }
        wanted_ = start(subject_);
        return true;
    }

    void process(const SyntheticTrace::Buffer& buffer) {
        auto* const function = subject_.table().vp_prof_process;
        if (!function) return;
        // All of it is at another address than in the call before.
        const GuardedCopy records(buffer.records);
        const GuardedCopy contexts(captures_calls() ? buffer.contexts
                                                    : std::vector<std::uint32_t>());
        std::vector<trace_marker_t> said = trace_.markers();
        for (trace_marker_t& marker : said)
            marker.record = std::min<std::uint64_t>(marker.record, buffer.records.size());
        const GuardedCopy markers(said);
        const Tables tables(*this);
        trace_parser parser = tables.parser(buffer.thread);
        parser.records = records.span();
        parser.contexts = contexts.span();
        parser.markers = markers.span();
        parser.wanted = wanted_.values.get();
        const vsample_t* samples = nullptr;
        int count = 0;
        if (!subject_.try_call("vp_prof_process",
                               [&] { return count = function(kPid, &parser, &samples); }))
            return;
        take("vp_prof_process", samples, count);
    }

    // Until there are no more samples.
    void finish(std::uint64_t times) {
        const GuardedCopy counts(wanted_.spec.captures & trace::kCaptureBlockCounts
                                     ? trace_.counts(times)
                                     : std::vector<std::uint64_t>());
        const Tables tables(*this);
        for (auto* function = subject_.table().vp_finish; function;) {
            trace_parser parser = tables.parser(0);
            parser.counts = counts.span();
            const vsample_t* samples = nullptr;
            int count = 0;
            if (!subject_.try_call("vp_finish",
                                   [&] { return count = function(kPid, &parser, &samples); }))
                return;
            if (count == 0) return;
            take("vp_finish", samples, count);
            if (samples_ > kMostSamples)
                return subject_.report().broken(
                    "vp_finish",
                    fmt::format("has returned {} samples of {} instructions and does not end: "
                                "return 0 when there are no more",
                                samples_, trace_.instrs().size()));
        }
    }

    void end() {
        if (subject_.table().vp_summary)
            subject_.call("vp_summary", [&] {
                const char* const text = subject_.table().vp_summary(
                    totals_.data(), static_cast<std::uint32_t>(totals_.size()));
                if (text && *text && !std::string_view(text).ends_with('\n'))
                    subject_.report().broken("vp_summary",
                                             "does not end its last line: add a newline");
            });
        subject_.prof_release();
        subject_.release();
    }

    const std::vector<std::uint64_t>& totals() const { return totals_; }

  private:
    static constexpr std::uint64_t kMostSamples = 100'000;

    // The tables as they are now, for one call.
    class Tables {
      public:
        explicit Tables(const Run& run)
            : run_(run),
              blocks_(run.trace_.blocks()),
              instrs_(run.trace_.instrs()),
              sites_(run.trace_.sites()),
              contexts_(run.captures_calls() ? run.trace_.contexts()
                                             : std::vector<trace_context_t>()) {}
        trace_parser parser(std::uint32_t thread) const {
            trace_parser parser{};
            parser.pid = kPid;
            parser.thread = thread;
            parser.code = {blocks_.span(), instrs_.span(), sites_.span()};
            parser.addresses = &run_.trace_.addresses();
            parser.places = &run_.places_;
            parser.context_table = contexts_.span();
            return parser;
        }

      private:
        const Run& run_;
        GuardedCopy<trace_block_t> blocks_;
        GuardedCopy<trace_instr_t> instrs_;
        GuardedCopy<trace_site_t> sites_;
        GuardedCopy<trace_context_t> contexts_;
    };

    bool captures_calls() const { return wanted_.spec.captures & trace::kCaptureCalls; }

    void take(std::string_view function, const vsample_t* samples, int count) {
        Report& report = subject_.report();
        if (count != 0 && !samples)
            return report.broken(function,
                                 fmt::format("returns {} and stores NULL in *samples: store where "
                                             "the samples are, or return 0",
                                             count));
        report.calling(fmt::format("{} (reading its {} samples)", function, count));
        for (int i = 0; i < count; ++i) check(function, samples[i]);
        report.calling("");
        samples_ += static_cast<std::uint64_t>(count);
    }

    void check(std::string_view function, const vsample_t& sample) {
        Report& report = subject_.report();
        if (sample.event < totals_.size()) {
            if (__builtin_add_overflow(totals_[sample.event], sample.weight,
                                       &totals_[sample.event]))
                report.broken(function, "returns counts whose sum exceeds 64 bits");
        } else if (!is_value(sample)) {
            report.broken(function,
                          fmt::format("returns a sample of event {}, but vp_events declares {}: "
                                      "events are numbered from 0",
                                      sample.event, totals_.size()));
        } else if (sample.weight == 0) {
            report.broken(function,
                          "returns a value with a weight of 0: it was seen at least once");
        }
        if (!is_instruction(sample.pc))
            report.broken(function,
                          fmt::format("returns a sample at pc {:#x}, where no instruction is: take "
                                      "trace_instr_t.pc or that of trace_parser_next",
                                      sample.pc));
        if (sample.context0 != 0 && sample.context0 >= trace_.contexts().size())
            report.broken(function, fmt::format("returns a sample of context {}, and there are {}: "
                                                "take numbers of trace_parser_contexts",
                                                sample.context0, trace_.contexts().size()));
        if (sample.context1 > subject_.parts())
            report.broken(function,
                          fmt::format("returns a sample of part {}, and has named {}: take "
                                      "numbers that host->part has given, or 0",
                                      sample.context1, subject_.parts()));
        if (sample.context0 != 0 && !captures_calls())
            report.broken(function,
                          "returns a context without having asked for calls: leave "
                          "context0 at 0, or call trace_capture_calls");
    }

    // VP_VALUE_OF or VP_VALUE_REST of one of its lists.
    bool is_value(const vsample_t& sample) const {
        return (VP_VALUE - sample.event) / 2 < std::max<std::size_t>(lists_, 1);
    }

    bool is_instruction(std::uint64_t pc) {
        if (pcs_.size() != trace_.instrs().size())
            for (const trace_instr_t& instr : trace_.instrs()) pcs_.insert(instr.pc);
        return pcs_.contains(pc);
    }

    Subject& subject_;
    SyntheticTrace& trace_;
    symbols::Symbolizer symbolizer_;
    mutable collector::SourcePlaces places_{trace_.addresses(), symbolizer_};
    Wanted wanted_;
    std::vector<std::uint64_t> totals_;
    std::size_t lists_ = 0;  // of values
    std::uint64_t samples_ = 0;
    std::unordered_set<std::uint64_t> pcs_;
};

// Two threads in turns, while code is being added.
std::vector<std::uint64_t> ordinary_run(Subject& subject, const Settings& settings) {
    SyntheticTrace trace;
    trace.add_code(kCode);
    Run run(subject, trace);
    if (!run.begin(settings)) return {};
    for (std::uint32_t i = 0; i < 4; ++i) {
        run.process(trace.ordinary(i % 2, i == 2 ? 1 : kBufferRecords));
        trace.add_code(kCode + 0x1000 * (i + 1));
    }
    run.process(trace.ordinary(0, kBufferRecords));
    run.finish(1000);
    run.end();
    return run.totals();
}

void check_ordinary_run(const std::string& path, Report& report) {
    Subject subject(path, report);
    ordinary_run(subject, {});
}

void check_second_run(const std::string& path, Report& report) {
    Subject subject(path, report);
    if (subject.init()) subject.release();
    if (subject.init() && subject.options({}) && subject.prof_init()) subject.prof_release();
    subject.release();
    const auto first = ordinary_run(subject, {});
    if (ordinary_run(subject, {}) != first)
        report.broken("vp_init",
                      "does not begin anew: after vp_release, the same run again has "
                      "other totals; set all variables in vp_init");
}

void check_empty_run(const std::string& path, Report& report) {
    Subject subject(path, report);
    SyntheticTrace trace;
    Run run(subject, trace);
    if (!run.begin({})) return;
    run.finish(0);
    run.end();
}

void check_strange_run(const std::string& path, Report& report) {
    Subject subject(path, report);
    SyntheticTrace trace;
    trace.add_code(kCode);
    trace.add_code(0xffff'ffff'ff60'0000);  // the vsyscall page
    Run run(subject, trace);
    if (!run.begin({})) return;
    for (const std::uint32_t thread : {0U, 5U, 1'000'000U, UINT32_MAX, 0U})
        run.process(trace.strange(thread, kBufferRecords));
    run.finish(std::uint64_t{1} << 50);
    run.end();
}

void check_many_threads(const std::string& path, Report& report) {
    Subject subject(path, report);
    SyntheticTrace trace;
    trace.add_code(kCode);
    Run run(subject, trace);
    if (!run.begin({})) return;
    for (std::uint32_t thread = 0; thread < 500; ++thread) run.process(trace.ordinary(thread, 32));
    run.finish(1);
    run.end();
}

// --- Printing values

void check_format(Subject& subject, const trace_instr_t& instr) {
    constexpr std::array<std::uint64_t, 9> kValues{0,
                                                   1,
                                                   0x80,
                                                   UINT64_MAX,
                                                   std::uint64_t{1} << 63,
                                                   0x3ff0'0000'0000'0000,
                                                   0x7ff0'0000'0000'0000,
                                                   0x7ff8'0000'0000'0001,
                                                   0x7fff'ffff'ffff};
    for (const std::uint64_t value : kValues)
        subject.call("vp_format", [&] {
            const char* const text = subject.table().vp_format(&instr, value);
            if (!text)
                subject.report().broken(
                    "vp_format",
                    "returns NULL for a value: return its text; vp_preface leaves out "
                    "whole lists");
            else
                subject.check_line("vp_format", text);
        });
}

void check_preface(Subject& subject, const trace_instr_t& instr, std::uint32_t list) {
    const vp_dispatch_t& table = subject.table();
    const std::string_view name = table.vp_list_preface ? "vp_list_preface" : "vp_preface";
    const char* text = nullptr;
    subject.call(name, [&] {
        text =
            table.vp_list_preface ? table.vp_list_preface(&instr, list) : table.vp_preface(&instr);
    });
    if (!text) return;
    subject.check_line(name, text);
    if (table.vp_format) check_format(subject, instr);
}

void check_printing(const std::string& path, Report& report) {
    Subject subject(path, report);
    const vp_dispatch_t& table = subject.table();
    if (table.vp_format && !table.vp_preface && !table.vp_list_preface)
        report.advice("vp_preface", "is missing: values are printed behind the profiler's name");
    if ((!table.vp_preface && !table.vp_list_preface) || !subject.init()) return;
    SyntheticTrace trace;
    trace.add_code(kCode);
    const GuardedCopy instrs(trace.instrs());
    const std::size_t lists = std::max<std::size_t>(subject.value_lists().size(), 1);
    for (const trace_instr_t& instr : instrs.span())
        for (std::uint32_t list = 0; list < lists; ++list) check_preface(subject, instr, list);
    subject.release();
}

constexpr std::array kChecks{
    Check{"while it is being loaded", check_loading},
    Check{"when its tables are read", check_tables},
    Check{"when its specification is built", check_specification},
    Check{"in a run", check_ordinary_run},
    Check{"in a second run", check_second_run},
    Check{"in a run in which nothing happens", check_empty_run},
    Check{"in a run with extreme addresses, counts, kinds and thread numbers", check_strange_run},
    Check{"in a run of many threads", check_many_threads},
    Check{"when values are printed", check_printing},
};

}  // namespace

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

std::span<const Check> checks() {
    return kChecks;
}

std::span<const std::string_view> values_of_type(unsigned type) {
    static constexpr std::array<std::string_view, 2> kYesNo{"yes", "no"};
    static constexpr std::array<std::string_view, 5> kNumbers{"0", "1", "7", "4096",
                                                              "18446744073709551615"};
    static constexpr std::array<std::string_view, 1> kFiles{"check-plugin.out"};
    static constexpr std::array<std::string_view, 8> kTexts{
        "", "x", ",,,", "-1", "1,2,3", "99999999999999999999,1,1", "%n%s%s", "\xff\xfe\x01"};
    switch (type) {
        case VP_OPTION_YES_NO:
            return kYesNo;
        case VP_OPTION_UNSIGNED:
            return kNumbers;
        case VP_OPTION_OUTPUT_FILE:
            return kFiles;
        default:
            return kTexts;
    }
}

// A value that the profiler refuses is no error; but it must say so.
void check_option(const std::string& path, const std::string& name, const std::string& value,
                  Report& report) {
    Subject subject(path, report);
    ordinary_run(subject, {{name, value}});
}

}  // namespace assay::check
