#include "framework/collector/profilers/profiler.h"

#include "framework/collector/profilers/trace_spec.h"
#include "framework/events/formula.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/version.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>

namespace assay::collector {
namespace {

// Up to and including the last required function of version 1.
constexpr std::size_t kSmallestTable = offsetof(vp_dispatch_t, vp_prof_init) + sizeof(void*);
constexpr std::size_t kLargestTable = 65'536;  // anything above is no size

// They become lines of the events file, and readers of that refuse lines above 1 MB.
constexpr std::size_t kLongestName = 256;
constexpr std::size_t kLongestText = 4096;

bool is_name(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return std::isalnum(c) || c == '_' || c == '-';
    });
}

// Names that stand in the events file begin with a letter there.
bool is_column_name(std::string_view text) {
    return is_name(text) && std::isalpha(static_cast<unsigned char>(text[0]));
}

std::string text_or_empty(const char* text) {
    return text ? text : "";
}

// The first kLongestText bytes, without half a character.
std::string cut(std::string_view text) {
    if (text.size() <= kLongestText) return std::string(text);
    std::size_t end = kLongestText;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    return std::string(text.substr(0, end));
}

std::string first_line(std::string_view text) {
    return std::string(text.substr(0, text.find('\n')));
}

std::string one_line(std::string_view text) {
    std::string line = first_line(text);
    return line.empty() ? "it does not say why" : line;
}

// Of this thread.
std::chrono::nanoseconds processor_time() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// Reads a table of the profiler: a function that stores a length and returns an array.
template <typename Row, typename Get, typename Take>
void read_table(Get get, const Take& take) {
    if (!get) return;
    std::uint32_t count = 0;
    const Row* rows = get(&count);
    for (std::uint32_t i = 0; rows && i < count; ++i) take(rows[i]);
}

}  // namespace

struct Profiler::Library {
    const Profiler& profiler;
    void* handle;
    bool unload = true;
    Library(const Profiler& of, void* opened) : profiler(of), handle(opened) {}
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;
    ~Library() {
        if (!unload) return;
        const std::string crash = profiler.guard_.run([this] { dlclose(handle); });
        if (!crash.empty())
            log::problem(fmt::format("the profiler {}: its destructors {}", profiler.path_, crash));
    }
};

Profiler::Profiler(const std::string& path, std::string command, CrashGuard& guard)
    : path_(path), command_(std::move(command)), guard_(guard) {
    void* const handle = open_library();
    library_ = std::make_unique<Library>(*this, handle);
    name_ = std::filesystem::path(path).stem();
    check_table(dlsym(handle, VP_DISPATCH_SYMBOL));

    host_.size = sizeof host_;
    host_.abi_version = VP_ABI_VERSION;
    host_.version = kVersion;
    host_.command = command_.c_str();
    host_.error = [](const vp_host_t* host, const char* message) {
        self(host).last_error_ = text_or_empty(message);
    };
    host_.warning = [](const vp_host_t* host, const char* message) {
        log::remark(fmt::format("{}: {}", self(host).name_, one_line(text_or_empty(message))));
    };
    host_.describe = [](const vp_host_t* host, const char* name, const char* text) {
        self(host).descriptions_.emplace_back(cut(text_or_empty(name)), cut(text_or_empty(text)));
    };
    host_.leave_out = [](const vp_host_t* host, std::uint32_t event) {
        self(host).left_out_.insert(event);
    };
    host_.unscaled = [](const vp_host_t* host, std::uint32_t event) {
        self(host).unscaled_.insert(event);
    };
    host_.no_error = [](const vp_host_t* host, std::uint32_t event, const char* why) {
        self(host).no_error_[event] = cut(one_line(text_or_empty(why)));
    };
    host_.reserved = this;
    host_.part = [](const vp_host_t* host, const char* name) {
        return self(host).part(text_or_empty(name));
    };

    int status = 0;
    if (!call("vp_init", [&] { status = table_.vp_init ? table_.vp_init(&host_) : 0; })) return;
    if (status < 0) failed("vp_init");
    if (!read_tables()) {
        forget_tables();
        return;
    }
    check_lengths();
    check_names();
}

// Constructors of static objects run in it.
void* Profiler::open_library() const {
    // The declaration of dlopen promises that nothing is thrown: a call by a pointer does not.
    void* (*const volatile open)(const char*, int) = dlopen;
    void* handle = nullptr;
    const std::string crash =
        guard_.run([&] { handle = open(path_.c_str(), RTLD_NOW | RTLD_LOCAL); });
    if (!crash.empty()) unusable("its constructors " + crash);
    if (handle) return handle;
    std::string_view reason = dlerror();
    if (reason.starts_with(path_ + ": ")) reason.remove_prefix(path_.size() + 2);
    unusable(std::string(reason));
}

Profiler::~Profiler() {
    stop();  // where an error has ended the run early
    if (library_ && table_.vp_release) call("vp_release", [this] { table_.vp_release(); });
}

void Profiler::check_table(const void* table) {
    if (!table) unusable("it does not export " VP_DISPATCH_SYMBOL ": not a profiler of assay");
    std::uint32_t size = 0;
    std::memcpy(&size, table, sizeof size);
    if (size < kSmallestTable || size > kLargestTable)
        unusable(fmt::format("its " VP_DISPATCH_SYMBOL
                             ".size is {}, but a table of version {} has {} bytes: set it "
                             "to sizeof(vp_dispatch_t)",
                             size, VP_ABI_VERSION, sizeof(vp_dispatch_t)));
    // What an older profiler does not have stays NULL.
    std::memcpy(&table_, table, std::min<std::size_t>(size, sizeof table_));
    if (table_.abi_version == 0 || table_.abi_version > VP_ABI_VERSION)
        unusable(fmt::format(
            "it was built for version {} of the profiler interface, and assay {} knows version {}: "
            "rebuild it with the headers of this assay, or install a newer assay",
            table_.abi_version, kVersion, VP_ABI_VERSION));
    for (const auto& [given, name] : {std::pair{table_.vp_name != nullptr, "vp_name"},
                                      std::pair{table_.vp_prof_init != nullptr, "vp_prof_init"}})
        if (!given)
            unusable(fmt::format("its " VP_DISPATCH_SYMBOL " has no {}, which is required", name));
}

bool Profiler::read_tables() {
    return call("vp_name", [this] { name_ = text_or_empty(table_.vp_name()); }) &&
           call("vp_description",
                [this] {
                    if (table_.vp_description)
                        description_ = text_or_empty(table_.vp_description());
                }) &&
           call("vp_events", [this] { read_events(); }) &&
           call("vp_derived", [this] { read_derived(); }) &&
           call("vp_value_lists", [this] { read_value_lists(); }) &&
           call("vp_option_table", [this] { read_options(); });
}

// What a profiler has declared until it crashed there would count as columns and options.
void Profiler::forget_tables() {
    events_.clear();
    derived_.clear();
    options_.clear();
    value_lists_.clear();
    totals_.clear();
    value_totals_.clear();
}

void Profiler::read_events() {
    read_table<vp_event_t>(table_.vp_events, [this](const vp_event_t& row) {
        events_.push_back(
            {text_or_empty(row.name), text_or_empty(row.description), text_or_empty(row.unit)});
    });
    totals_.resize(events_.size());
}

// A profiler that only returns values, as DCPI's do, has a column all the same: how many.
void Profiler::read_value_lists() {
    std::uint32_t count = 0;
    const char* const* names = table_.vp_value_lists ? table_.vp_value_lists(&count) : nullptr;
    for (std::uint32_t i = 0; names && i < count; ++i)
        value_lists_.push_back(text_or_empty(names[i]));
    if (value_lists_.empty()) value_lists_.emplace_back();
    counts_values_ = events_.empty() && (has_preface() || table_.vp_format);
    if (counts_values_) events_.push_back({"Values", "values returned", "values"});
    totals_.resize(events_.size());
    value_totals_.resize(value_lists_.size());
}

void Profiler::read_derived() {
    read_table<vp_derived_t>(table_.vp_derived, [this](const vp_derived_t& row) {
        derived_.push_back(
            {text_or_empty(row.name), text_or_empty(row.formula), text_or_empty(row.unit)});
    });
}

void Profiler::read_options() {
    read_table<vp_option_t>(table_.vp_option_table, [this](const vp_option_t& row) {
        std::optional<std::string> default_value;
        if (row.default_value) default_value = row.default_value;
        options_.push_back({text_or_empty(row.name), text_or_empty(row.argument),
                            text_or_empty(row.help), std::move(default_value),
                            static_cast<vp_option_type>(row.type)});
    });
}

void Profiler::check_lengths() const {
    const auto check = [this](const std::string& text, std::size_t most, const std::string& what) {
        if (text.size() > most)
            unusable(fmt::format("{} has {} bytes, more than {}", what, text.size(), most));
    };
    const auto name = [&](const std::string& text, const std::string& of) {
        check(text, kLongestName, fmt::format("the name of {}", of));
    };
    const auto say = [&](const std::string& text, const char* what, const std::string& of) {
        check(text, kLongestText, fmt::format("the {} of {}", what, of));
    };
    check(name_, kLongestName, "its name");
    check(description_, kLongestText, "its description");
    for (std::size_t i = 0; i < events_.size(); ++i) {
        name(events_[i].name, fmt::format("its event {}", i));
        say(events_[i].description, "description", "its event " + events_[i].name);
        say(events_[i].unit, "unit", "its event " + events_[i].name);
    }
    for (std::size_t i = 0; i < derived_.size(); ++i) {
        name(derived_[i].name, fmt::format("its figure {}", i));
        say(derived_[i].formula, "formula", "its figure " + derived_[i].name);
        say(derived_[i].unit, "unit", "its figure " + derived_[i].name);
    }
    for (std::size_t i = 0; i < value_lists_.size(); ++i)
        name(value_lists_[i], fmt::format("its list of values {}", i));
    for (std::size_t i = 0; i < options_.size(); ++i) {
        name(options_[i].name, fmt::format("its option {}", i));
        say(options_[i].argument, "argument", "its option " + options_[i].name);
        say(options_[i].help, "help", "its option " + options_[i].name);
        say(options_[i].default_value.value_or(""), "default", "its option " + options_[i].name);
    }
}

void Profiler::check_names() const {
    constexpr const char* kRule = "use letters, digits, _ and -, a letter first";
    if (!is_column_name(name_)) unusable(fmt::format("its name is \"{}\": {}", name_, kRule));
    std::vector<events::Event> columns;
    for (const ProfilerEvent& event : events_) {
        if (!is_column_name(event.name))
            unusable(fmt::format("it declares an event named \"{}\": {}", event.name, kRule));
        for (const events::Event& before : columns)
            if (before.name == event.name)
                unusable(fmt::format("it declares the event {} twice", event.name));
        columns.push_back({event.name, {}, {}, {}});
    }
    for (const ProfilerDerived& figure : derived_) {
        try {
            events::Formula(figure.formula, columns);
        } catch (const Error& e) {
            unusable(fmt::format("its figure \"{}\": {}", figure.name, e.what()));
        }
    }
    if (value_lists_.size() > VP_VALUE_LISTS_MAX)
        unusable(fmt::format("it declares {} lists of values, more than {}", value_lists_.size(),
                             unsigned{VP_VALUE_LISTS_MAX}));
    for (const std::string& list : value_lists_)
        if (value_lists_.size() > 1 || !list.empty())
            if (!is_name(list))
                unusable(
                    fmt::format("its list of values \"{}\": use letters, digits, _ and -", list));
    for (const ProfilerOption& option : options_)
        if (!is_name(option.name) || option.type > VP_OPTION_PROFILER)
            unusable(
                fmt::format("its option \"{}\" has no legal name, or a type ({}) that this assay "
                            "does not know",
                            option.name, static_cast<unsigned>(option.type)));
}

const ProfilerOption* Profiler::option(std::string_view name) const {
    const auto found = std::find_if(options_.begin(), options_.end(),
                                    [&](const ProfilerOption& o) { return o.name == name; });
    return found == options_.end() ? nullptr : &*found;
}

void Profiler::set_command(std::string command) {
    command_ = std::move(command);
    host_.command = command_.c_str();
}

void Profiler::lose(const std::string& why) {
    if (lost_) return;
    lost_ = true;
    library_->unload = false;  // its threads or its half-done work may still need the code
    log::problem(fmt::format("the profiler {} is lost{}: {}", name_,
                             written_ ? "" : ", and its columns with it", why));
}

template <typename Function>
bool Profiler::call(const char* name, Function&& function) {
    if (lost_) return false;
    last_error_.clear();
    const std::string crash = guard_.run(function);
    if (!crash.empty()) lose(fmt::format("its {} {}", name, crash));
    return !lost_;
}

template <typename Function>
bool Profiler::call_in_run(const char* name, Function&& function) {
    if (lost_) return false;
    const bool done = call(name, function);
    if (own_files_ && !own_files_->are_open())
        throw Error(
            fmt::format("the profiler {} has closed files that are not its own, in its {}: "
                        "the run cannot go on",
                        name_, name));
    return done;
}

void Profiler::failed(const char* function) {
    lose(fmt::format("its {} failed: {}", function, one_line(last_error_)));
}

void Profiler::set_options(std::span<const std::pair<std::string, std::string>> settings) {
    if (!table_.vp_options) return;
    std::vector<vp_setting_t> given;
    for (const auto& [name, value] : settings) given.push_back({name.c_str(), value.c_str()});
    int status = 0;
    const auto count = static_cast<std::uint32_t>(given.size());
    if (call_in_run("vp_options", [&] { status = table_.vp_options(given.data(), count); }) &&
        status < 0)
        throw Error(fmt::format("{}: {}", name_, one_line(last_error_)));
}

trace::Spec Profiler::start() {
    const trace_vlist_table_t* wanted = nullptr;
    trace::Spec spec{};
    started_ = true;
    const bool called = call_in_run("vp_prof_init", [&] {
        wanted = table_.vp_prof_init();
        if (!wanted) return;
        spec = wanted->spec;
        warms_up_ = spec.warm_up != 0;
        if (spec.captures & trace::kCaptureValues) wanted_values_ = collector::value_lists(*wanted);
    });
    if (!called) return {};
    if (!wanted) {
        failed("vp_prof_init");
        return {};
    }
    try {
        check(spec);
    } catch (const Error& e) {
        throw Error(fmt::format("the profiler {} cannot run: {}", name_, e.what()));
    }
    return spec;
}

void Profiler::process(std::uint32_t pid, trace_parser_t& parser, const SampleSink& sink) {
    if (!table_.vp_prof_process) return;
    const vsample_t* samples = nullptr;
    int count = 0;
    if (!call_in_run("vp_prof_process",
                     [&] { count = table_.vp_prof_process(pid, &parser, &samples); }))
        return;
    if (count < 0) return failed("vp_prof_process");
    take("vp_prof_process", samples, static_cast<std::size_t>(count), sink);
}

void Profiler::finish(std::uint32_t pid, trace_parser_t& parser, const SampleSink& sink) {
    totals_before_finish_ = totals_;
    if (!table_.vp_finish) return;
    for (const auto begin = processor_time(); !lost_;) {
        const vsample_t* samples = nullptr;
        int count = 0;
        if (!call_in_run("vp_finish", [&] { count = table_.vp_finish(pid, &parser, &samples); }))
            return;
        if (count < 0) return failed("vp_finish");
        if (count == 0) return;
        take("vp_finish", samples, static_cast<std::size_t>(count), sink);
        if (guard_.limit().count() != 0 && processor_time() - begin > guard_.limit())
            lose("its vp_finish still returns samples after " + seconds(guard_.limit()));
    }
}

std::vector<std::uint64_t> Profiler::totals_so_far(std::uint32_t pid, trace_parser_t& parser) {
    if (!table_.vp_totals) return totals_;
    std::vector<std::uint64_t> totals(events_.size());
    int status = 0;
    const auto count = static_cast<std::uint32_t>(totals.size());
    if (call_in_run("vp_totals",
                    [&] { status = table_.vp_totals(pid, &parser, totals.data(), count); }) &&
        status < 0)
        failed("vp_totals");
    return totals;
}

// They are copied under the guard, since nobody knows what the address is that a profiler returns.
void Profiler::take(const char* function, const vsample_t* samples, std::size_t count,
                    const SampleSink& sink) {
    constexpr std::size_t kBatch = 1024;
    if (count != 0 && !samples)
        return lose(
            fmt::format("its {} returned no samples, but says that there are {}", function, count));
    for (std::size_t begin = 0; begin < count && !lost_; begin += kBatch) {
        batch_.resize(std::min(kBatch, count - begin));
        const std::string crash = guard_.run(
            [&] { std::memcpy(batch_.data(), samples + begin, batch_.size() * sizeof batch_[0]); });
        if (!crash.empty())
            return lose(fmt::format("its {} returned {} samples at an address where there are none",
                                    function, count));
        pass_on(batch_, sink);
    }
}

void Profiler::pass_on(std::span<const vsample_t> samples, const SampleSink& sink) {
    for (const vsample_t& sample : samples) {
        if (sample.context1 > parts_.size())
            return lose(fmt::format("it returned a sample of part {}, but has named {}",
                                    sample.context1, parts_.size()));
        if (sample.event < events_.size()) {
            if (add_to_total(sample)) sink(sample);
        } else if (is_value(sample)) {
            pass_on_value(sample, sink);
        } else {
            return lose(fmt::format("it returned a sample of event {}, but declares {}",
                                    sample.event, events_.size()));
        }
        if (lost_) return;
    }
}

void Profiler::pass_on_value(const vsample_t& sample, const SampleSink& sink) {
    const std::uint32_t list = list_of(sample);
    if (list >= value_lists_.size())
        return lose(fmt::format("it returned a value of list {}, but declares {}", list,
                                value_lists_.size()));
    if (events_.empty())
        return lose("it returned a value, but declares neither an event nor vp_format");
    if (__builtin_add_overflow(value_totals_[list], sample.weight, &value_totals_[list]))
        return lose("it returned more values than 64 bits count");
    sink(sample);
    if (!counts_values_) return;
    vsample_t counted = sample;
    counted.event = 0;
    if (add_to_total(counted)) sink(counted);
}

bool Profiler::add_to_total(const vsample_t& sample) {
    std::uint64_t& total = totals_[sample.event];
    if (!__builtin_add_overflow(total, sample.weight, &total)) return true;
    lose(fmt::format("its counts of {} exceed 64 bits", events_[sample.event].name));
    return false;
}

std::string Profiler::summary(std::span<const std::uint64_t> totals) {
    written_ = true;
    if (!table_.vp_summary) return {};
    std::string text;
    call("vp_summary", [&] {
        text = text_or_empty(
            table_.vp_summary(totals.data(), static_cast<std::uint32_t>(totals.size())));
    });
    return lost_ ? std::string() : text;
}

void Profiler::stop() {
    if (std::exchange(started_, false) && table_.vp_prof_release)
        call("vp_prof_release", [this] { table_.vp_prof_release(); });
}

std::optional<std::string> Profiler::preface(const trace_instr_t& instr, std::string_view list) {
    written_ = true;
    std::optional<std::string> text;
    const auto take = [&](const char* preface) {
        if (preface) text = first_line(preface);
    };
    const auto known = std::find(value_lists_.begin(), value_lists_.end(), list);
    if (table_.vp_list_preface && known != value_lists_.end()) {
        const auto number = static_cast<std::uint32_t>(known - value_lists_.begin());
        call("vp_list_preface", [&] { take(table_.vp_list_preface(&instr, number)); });
    } else if (table_.vp_preface) {
        call("vp_preface", [&] { take(table_.vp_preface(&instr)); });
        if (text && !list.empty()) text = fmt::format("{} {}", list, *text);
    }
    return text;
}

std::optional<std::string> Profiler::format(const trace_instr_t& instr, std::uint64_t value) {
    std::optional<std::string> text;
    if (table_.vp_format)
        call("vp_format", [&] {
            if (const char* formatted = table_.vp_format(&instr, value))
                text = first_line(formatted);
        });
    return text;
}

std::uint32_t Profiler::part(const std::string& name) {
    constexpr std::size_t kMost = 1000;
    if (name.size() > kLongestName) {
        lose(fmt::format("it has named a part with {} bytes, more than {}", name.size(),
                         kLongestName));
        return 0;
    }
    const auto known = std::find(parts_.begin(), parts_.end(), name);
    if (known == parts_.end()) {
        if (parts_.size() == kMost) return 0;
        parts_.push_back(name);
        return static_cast<std::uint32_t>(parts_.size());
    }
    return static_cast<std::uint32_t>(known - parts_.begin()) + 1;
}

void Profiler::unusable(const std::string& why) const {
    throw Error(fmt::format("cannot use the profiler {}: {}", path_, why));
}

Profiler& Profiler::self(const vp_host_t* host) {
    return *static_cast<Profiler*>(host->reserved);
}

}  // namespace assay::collector
