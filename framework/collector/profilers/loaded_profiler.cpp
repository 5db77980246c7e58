#include "framework/collector/profilers/loaded_profiler.h"

#include "framework/collector/profilers/columns.h"
#include "framework/collector/profilers/declarations.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/trace/captures.h"
#include "framework/version.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>

namespace assay::collector {
namespace {

// The size up to the last required function of version 1.
constexpr std::size_t kSmallestTable = offsetof(vp_dispatch_t, vp_prof_init) + sizeof(void*);
constexpr std::size_t kLargestTable = 65'536;  // a larger number cannot be a size

// The first kLongestText bytes, without a partial character at the end.
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

// The processor time of this thread.
std::chrono::nanoseconds processor_time() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

struct LoadedProfiler::Library {
    const LoadedProfiler& profiler;
    void* handle;
    Library(const LoadedProfiler& of, void* opened) : profiler(of), handle(opened) {}
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;
    ~Library() {
        if (profiler.lost()) return;  // its threads or its half-done work may still need the code
        const std::string crash = profiler.guard_.run([this] { dlclose(handle); }, "destructors");
        if (!crash.empty())
            log::problem(
                fmt::format("the profiler {}: its destructors {}", profiler.path(), crash));
    }
};

LoadedProfiler::LoadedProfiler(const std::string& path, std::string command, CrashGuard& guard,
                               Surroundings surroundings)
    : ProfilerHandle(path),
      Host(std::move(command)),
      guard_(guard),
      own_files_(std::move(surroundings.own_files)),
      tell_library_(std::move(surroundings.tell_library)) {
    tell_loss_ = std::move(surroundings.tell_loss);
    void* const handle = open_library();
    library_ = std::make_unique<Library>(*this, handle);
    check_table(dlsym(handle, VP_DISPATCH_SYMBOL));
    facts_.has_preface = table_.vp_preface || table_.vp_list_preface;
    int status = 0;
    if (!call("vp_init", [&] { status = table_.vp_init ? table_.vp_init(host_table()) : 0; }))
        return;
    if (status < 0) failed("vp_init");
    if (!read_tables()) {
        forget_tables();
        return;
    }
    check_declared();
}

void LoadedProfiler::take_error(const char* message) {
    last_error_ = text_or_empty(message);
}

void LoadedProfiler::take_warning(const char* message) {
    log::remark(fmt::format("{}: {}", name(), one_line(text_or_empty(message))));
}

void LoadedProfiler::take_description(const char* name, const char* text) {
    facts_.descriptions.emplace_back(cut(text_or_empty(name)), cut(text_or_empty(text)));
}

std::uint32_t LoadedProfiler::take_part(const char* given) {
    const std::string name = text_or_empty(given);
    if (name.size() <= kLongestPartName) return part_number(facts_.parts, name);
    lose(fmt::format("it has named a part with {} bytes, more than {}", name.size(),
                     kLongestPartName));
    return 0;
}

void LoadedProfiler::take_no_error(std::uint32_t event, const char* why) {
    facts_.no_error[event] = cut(one_line(text_or_empty(why)));
}

std::uint32_t LoadedProfiler::take_series(const vp_series_t* given) {
    if (facts_.series.size() == events::kMostSeries) return 0;
    GivenSeries copied = copy_series(given);
    if (!copied.problem.empty()) {
        lose("it has given " + copied.problem);
        return 0;
    }
    copied.series.profiler = name();
    facts_.series.push_back(std::move(copied.series));
    return 1;
}

std::uint32_t LoadedProfiler::take_library(const char* path) {
    needs_own_process_ = !tell_library_;
    if (tell_library_) tell_library_(text_or_empty(path));
    return needs_own_process_ ? 0 : 1;
}

// Runs the constructors of static objects.
void* LoadedProfiler::open_library() const {
    // dlopen is declared to throw nothing, but constructors may throw. A call through a pointer
    // does not rely on the declaration.
    void* (*const volatile open)(const char*, int) = dlopen;
    void* handle = nullptr;
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::status(path(), error);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
        unusable("it is not a regular file");  // opening a FIFO would block
    const std::string crash =
        guard_.run([&] { handle = open(path().c_str(), RTLD_NOW | RTLD_LOCAL); }, "constructors");
    if (!crash.empty()) unusable("its constructors " + crash);
    if (handle) return handle;
    std::string_view reason = dlerror();
    if (reason.starts_with(path() + ": ")) reason.remove_prefix(path().size() + 2);
    unusable(std::string(reason));
}

LoadedProfiler::~LoadedProfiler() {
    stop();  // an error may have ended the run early
    if (library_ && table_.vp_release) call("vp_release", [this] { table_.vp_release(); });
}

void LoadedProfiler::check_table(const void* table) {
    if (!table) unusable("it does not export " VP_DISPATCH_SYMBOL ": not a profiler of assay");
    std::uint32_t size = 0;
    std::memcpy(&size, table, sizeof size);
    if (size < kSmallestTable || size > kLargestTable)
        unusable(fmt::format("its " VP_DISPATCH_SYMBOL
                             ".size is {}, but a table of version {} has {} bytes: set it "
                             "to sizeof(vp_dispatch_t)",
                             size, VP_ABI_VERSION, sizeof(vp_dispatch_t)));
    // Functions that an older profiler does not have stay NULL.
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

bool LoadedProfiler::read_tables() {
    return call("vp_name", [this] { facts_.name = text_or_empty(table_.vp_name()); }) &&
           call("vp_description",
                [this] {
                    if (table_.vp_description)
                        facts_.description = text_or_empty(table_.vp_description());
                }) &&
           read_columns() &&
           call("vp_value_lists",
                [this] {
                    read_value_lists(table_, facts_);
                    value_totals_.resize(facts_.value_lists.size());
                }) &&
           call("vp_option_table", [this] { read_options(table_, facts_); });
}

// Called before and after vp_options, because the columns can depend on the options.
bool LoadedProfiler::read_columns() {
    facts_.events.clear();
    facts_.derived.clear();
    if (!call("vp_events", [this] { read_events(table_, facts_); })) return false;
    // A profiler that only returns values, like DCPI's profilers, has one column: the number of
    // values.
    counts_values_ = facts_.events.empty() && (has_preface() || table_.vp_format);
    if (counts_values_) facts_.events.push_back({"Values", "values returned", "values"});
    totals_.resize(facts_.events.size());
    return call("vp_derived", [this] { read_derived(table_, facts_); });
}

void LoadedProfiler::check_declared() const {
    try {
        check_declarations(facts_);
    } catch (const Error& e) {
        unusable(e.what());
    }
}

// Discards declarations of a profiler that crashed, so that they do not count as columns and
// options.
void LoadedProfiler::forget_tables() {
    facts_.events.clear();
    facts_.derived.clear();
    facts_.options.clear();
    facts_.value_lists.clear();
    totals_.clear();
    value_totals_.clear();
}

template <typename Function>
bool LoadedProfiler::call(const char* name, Function&& function) {
    if (lost()) return false;
    last_error_.clear();
    const std::string crash = guard_.run(function, name);
    if (!crash.empty())
        lose(fmt::format("its {} {}{}", name, crash, crash.starts_with(kTooLong) ? kMoreTime : ""));
    if (!own_files_.are_open())
        lose(fmt::format("it has closed files that are not its own, in its {}", name));
    return !lost();
}

void LoadedProfiler::failed(const char* function) {
    lose(fmt::format("its {} failed: {}", function, one_line(last_error_)));
}

void LoadedProfiler::set_options(std::span<const std::pair<std::string, std::string>> settings) {
    if (!table_.vp_options) return;
    std::vector<vp_setting_t> given;
    for (const auto& [name, value] : settings) given.push_back({name.c_str(), value.c_str()});
    int status = 0;
    const auto count = static_cast<std::uint32_t>(given.size());
    const bool called =
        call("vp_options", [&] { status = table_.vp_options(given.data(), count); });
    if (called && needs_own_process_) throw NeedsOwnProcess();
    if (called && status < 0)
        throw Error(fmt::format("{}: {}", facts_.name, one_line(last_error_)));
    if (!read_columns()) return forget_tables();
    check_declared();
}

trace::Spec LoadedProfiler::start() {
    const trace_vlist_table_t* wanted = nullptr;
    trace::Spec spec{};
    started_ = true;
    const bool called = call("vp_prof_init", [&] {
        wanted = table_.vp_prof_init();
        if (!wanted) return;
        spec = wanted->spec;
        facts_.warms_up = spec.warm_up != 0;
        captures_calls_ = spec.captures & trace::kCaptureCalls;
        if (spec.captures & trace::kCaptureValues) wanted_values_ = trace::value_lists(*wanted);
    });
    if (!called) return {};
    if (!wanted) {
        failed("vp_prof_init");
        return {};
    }
    try {
        check(spec);
    } catch (const Error& e) {
        throw Error(fmt::format("the profiler {} cannot run: {}", facts_.name, e.what()));
    }
    return spec;
}

void LoadedProfiler::process(std::uint32_t pid, trace_parser_t& parser, const SampleSink& sink) {
    if (!table_.vp_prof_process) return;
    const vsample_t* samples = nullptr;
    int count = 0;
    if (!call("vp_prof_process", [&] { count = table_.vp_prof_process(pid, &parser, &samples); }))
        return;
    if (count < 0) return failed("vp_prof_process");
    take("vp_prof_process", samples, static_cast<std::size_t>(count), sink);
}

void LoadedProfiler::finish(std::uint32_t pid, trace_parser_t& parser, const SampleSink& sink) {
    const std::vector<std::uint64_t> before = totals_;
    finish_all(pid, parser, sink);
    for (std::size_t event = 0; event < totals_.size(); ++event)
        facts_.told_totals.push_back(table_.vp_totals || before[event] == totals_[event]);
}

void LoadedProfiler::finish_all(std::uint32_t pid, trace_parser_t& parser, const SampleSink& sink) {
    if (!table_.vp_finish) return;
    for (const auto begin = processor_time(); !lost();) {
        const vsample_t* samples = nullptr;
        int count = 0;
        if (!call("vp_finish", [&] { count = table_.vp_finish(pid, &parser, &samples); })) return;
        if (count < 0) return failed("vp_finish");
        if (count == 0) return;
        take("vp_finish", samples, static_cast<std::size_t>(count), sink);
        if (guard_.limit().count() != 0 && processor_time() - begin > guard_.limit())
            lose("its vp_finish still returns samples after " + seconds(guard_.limit()) +
                 std::string(kMoreTime));
    }
}

std::vector<std::uint64_t> LoadedProfiler::totals_so_far(std::uint32_t pid,
                                                         trace_parser_t& parser) {
    if (!table_.vp_totals) return totals_;
    std::vector<std::uint64_t> totals(facts_.events.size());
    int status = 0;
    const auto count = static_cast<std::uint32_t>(totals.size());
    if (call("vp_totals", [&] { status = table_.vp_totals(pid, &parser, totals.data(), count); }) &&
        status < 0)
        failed("vp_totals");
    return totals;
}

// Copies the samples under the guard, because the address that a profiler returns may be invalid.
void LoadedProfiler::take(const char* function, const vsample_t* samples, std::size_t count,
                          const SampleSink& sink) {
    constexpr std::size_t kBatch = 1024;
    if (count != 0 && !samples)
        return lose(
            fmt::format("its {} returned no samples, but says that there are {}", function, count));
    for (std::size_t begin = 0; begin < count && !lost(); begin += kBatch) {
        batch_.resize(std::min(kBatch, count - begin));
        const std::string crash = guard_.run(
            [&] { std::memcpy(batch_.data(), samples + begin, batch_.size() * sizeof batch_[0]); });
        if (!crash.empty())
            return lose(
                fmt::format("its {} returned {} samples at an invalid address", function, count));
        pass_on(batch_, sink);
    }
}

void LoadedProfiler::pass_on(std::span<const vsample_t> samples, const SampleSink& sink) {
    for (const vsample_t& sample : samples) {
        if (sample.context1 > facts_.parts.size())
            return lose(fmt::format("it returned a sample of part {}, but has named {}",
                                    sample.context1, facts_.parts.size()));
        if (sample.event < facts_.events.size()) {
            if (add_to_total(sample)) sink(sample);
        } else if (is_value(sample)) {
            pass_on_value(sample, sink);
        } else {
            return lose(fmt::format("it returned a sample of event {}, but declares {}",
                                    sample.event, facts_.events.size()));
        }
        if (lost()) return;
    }
}

void LoadedProfiler::pass_on_value(const vsample_t& sample, const SampleSink& sink) {
    const std::uint32_t list = list_of(sample);
    if (list >= facts_.value_lists.size())
        return lose(fmt::format("it returned a value of list {}, but declares {}", list,
                                facts_.value_lists.size()));
    if (facts_.events.empty())
        return lose("it returned a value, but declares neither an event nor vp_format");
    if (__builtin_add_overflow(value_totals_[list], sample.weight, &value_totals_[list]))
        return lose("it returned more values than a 64-bit counter can count");
    sink(sample);
    if (!counts_values_) return;
    vsample_t counted = sample;
    counted.event = 0;
    if (add_to_total(counted)) sink(counted);
}

bool LoadedProfiler::add_to_total(const vsample_t& sample) {
    std::uint64_t& total = totals_[sample.event];
    if (!__builtin_add_overflow(total, sample.weight, &total)) return true;
    lose(fmt::format("its counts of {} exceed 64 bits", facts_.events[sample.event].name));
    return false;
}

std::string LoadedProfiler::summary(std::span<const std::uint64_t> totals) {
    if (!table_.vp_summary) return {};
    std::string text;
    call("vp_summary", [&] {
        text = text_or_empty(
            table_.vp_summary(totals.data(), static_cast<std::uint32_t>(totals.size())));
    });
    return lost() ? std::string() : text;
}

void LoadedProfiler::stop() {
    if (std::exchange(started_, false) && table_.vp_prof_release)
        call("vp_prof_release", [this] { table_.vp_prof_release(); });
}

std::optional<std::string> LoadedProfiler::preface(const trace_instr_t& instr,
                                                   std::string_view list) {
    std::optional<std::string> text;
    const auto take = [&](const char* preface) {
        if (preface) text = first_line(preface);
    };
    const auto known = std::find(facts_.value_lists.begin(), facts_.value_lists.end(), list);
    if (table_.vp_list_preface && known != facts_.value_lists.end()) {
        const auto number = static_cast<std::uint32_t>(known - facts_.value_lists.begin());
        call("vp_list_preface", [&] { take(table_.vp_list_preface(&instr, number)); });
    } else if (table_.vp_preface) {
        call("vp_preface", [&] { take(table_.vp_preface(&instr)); });
        if (text && !list.empty()) text = fmt::format("{} {}", list, *text);
    }
    return text;
}

std::optional<std::string> LoadedProfiler::format(const trace_instr_t& instr, std::uint64_t value) {
    std::optional<std::string> text;
    if (table_.vp_format)
        call("vp_format", [&] {
            if (const char* formatted = table_.vp_format(&instr, value))
                text = first_line(formatted);
        });
    return text;
}

void LoadedProfiler::unusable(const std::string& why) const {
    throw Error(fmt::format("cannot use the profiler {}: {}", path(), why));
}

}  // namespace assay::collector
