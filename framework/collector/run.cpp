#include "framework/collector/run.h"

#include "framework/collector/columns.h"
#include "framework/collector/context_counts.h"
#include "framework/collector/parser.h"
#include "framework/collector/plugin_search.h"
#include "framework/collector/profile.h"
#include "framework/collector/profiler.h"
#include "framework/collector/program.h"
#include "framework/collector/progress.h"
#include "framework/collector/sample_database.h"
#include "framework/collector/segment.h"
#include "framework/collector/shadow_stack.h"
#include "framework/collector/trace_reader.h"
#include "framework/collector/trace_spec.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/text.h"
#include "framework/symbols/symbolizer.h"
#include "framework/trace/futex.h"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

namespace assay::collector {
namespace {

std::string command_of(const std::vector<std::string>& program) {
    std::string command = join(program, " ");
    std::replace_if(
        command.begin(), command.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    return command;
}

// One run. The members stand in the order in which a run needs them.
class Run {
  public:
    Run(const CoreSettings& settings, const std::vector<std::string>& program);
    Ending execute();

  private:
    void set_up_profilers();
    void process(std::uint32_t thread, std::span<const trace_record_t> records);
    void collect();
    bool take_buffers();
    void prepare_c_library();
    void prepare_mappings();
    void wait(std::uint32_t bell, std::chrono::milliseconds at_most);
    void end_of_collection();
    void finish_profilers();
    Ending report();
    void write();
    std::string fall_back(const std::string& wanted, const Profile& profile);
    void print_summaries();

    // A parser's view of records, with the tables as they are now.
    trace_parser parser(std::uint32_t thread, std::span<const trace_record_t> records);
    // Calls `call(profiler, sink)` for each, with a sink for its samples.
    template <typename Call>
    void for_each_profiler(const Call& call);
    bool any_left() const;
    std::vector<std::uint64_t> totals(std::size_t profiler) const;
    // Only the first reason is kept.
    void incomplete(const std::string& why);

    const CoreSettings& settings_;
    const std::string command_;
    const Program program_;
    CrashGuard guard_;
    std::vector<std::unique_ptr<Profiler>> profilers_;
    std::vector<Given> given_;
    Columns columns_;
    SampleDatabase samples_;
    ContextCounts context_counts_;
    std::vector<bool> captures_calls_;  // by profiler
    ShadowStacks stacks_;
    Segment segment_;
    Child child_;
    std::string out_;
    TraceReader reader_;
    symbols::Symbolizer symbolizer_;
    std::size_t prepared_ = 0;           // mappings
    std::vector<std::uint64_t> counts_;  // by instruction, at the end
    bool damaged_ = false;               // the trace cannot be read any further
    bool written_ = false;               // the events file is
    std::string incomplete_;             // why the profile is
    Ending ending_;
};

std::vector<std::unique_ptr<Profiler>> load(const CoreSettings& settings,
                                            const std::string& command, CrashGuard& guard) {
    std::vector<std::unique_ptr<Profiler>> loaded;
    for (const std::string& name : settings.plugins) {
        loaded.push_back(std::make_unique<Profiler>(find_plugin(name), command, guard));
        for (std::size_t i = 0; i + 1 < loaded.size(); ++i)
            if (loaded[i]->name() == loaded.back()->name())
                throw Error(fmt::format("the profiler {} is named twice ({}, {})",
                                        loaded[i]->name(), loaded[i]->path(),
                                        loaded.back()->path()));
    }
    return loaded;
}

std::vector<Given> assign(const CoreSettings& settings,
                          const std::vector<std::unique_ptr<Profiler>>& profilers) {
    std::vector<Profiler*> pointers(profilers.size());
    std::transform(profilers.begin(), profilers.end(), pointers.begin(),
                   [](const auto& profiler) { return profiler.get(); });
    return assign_to_profilers(settings.others, pointers);
}

Child::Settings child_settings(const CoreSettings& settings, const Program& program,
                               const Segment& segment) {
    std::vector<std::string> argv{settings.driver.empty() ? find_native_driver() : settings.driver,
                                  fmt::format("--segment-fd={}", segment.fd()),
                                  "--exe=" + program.file, "--"};
    argv.insert(argv.end(), program.argv.begin(), program.argv.end());
    return {std::move(argv), segment.fd(), settings.randomize_addresses,
            &segment.control().doorbell};
}

Run::Run(const CoreSettings& settings, const std::vector<std::string>& program)
    : settings_(settings),
      command_(command_of(program)),
      program_(find_program(program)),
      profilers_(load(settings, command_, guard_)),
      given_(assign(settings, profilers_)),
      columns_(profilers_),
      samples_(columns_.size()),
      context_counts_(columns_.size()),
      child_(child_settings(settings, program_, segment_)),
      out_(expand_file_name(settings.out, child_.pid(), program_.name)),
      reader_(segment_, [this](std::uint32_t thread, std::span<const trace_record_t> records) {
          process(thread, records);
      }) {}

Ending Run::execute() {
    set_up_profilers();
    check_writable(out_);
    child_.start();
    prepare_c_library();
    collect();
    end_of_collection();
    finish_profilers();
    return report();
}

void Run::set_up_profilers() {
    trace::Spec& spec = segment_.control().spec;
    for (std::size_t i = 0; i < profilers_.size(); ++i) {
        Profiler& profiler = *profilers_[i];
        for (auto& [name, value] : given_[i])
            if (profiler.option(name)->type == VP_OPTION_OUTPUT_FILE)
                value = expand_file_name(value, child_.pid(), program_.name);
        profiler.set_options(given_[i]);
        const trace::Spec wanted = profiler.start();
        captures_calls_.push_back(wanted.captures & trace::kCaptureCalls);
        spec = combine(spec, wanted);
    }
    spec.cpu_level = settings_.cpu_level;
    spec.stress = settings_.stress ? 1 : 0;
}

void Run::process(std::uint32_t thread, std::span<const trace_record_t> records) {
    trace_parser view = parser(thread, records);
    if (segment_.control().spec.captures & trace::kCaptureCalls) {
        view.contexts = stacks_.follow(thread, records, reader_.code());
        view.context_table = stacks_.contexts().table();
    }
    for_each_profiler([&](Profiler& profiler, const Profiler::SampleSink& sink) {
        profiler.process(view.pid, view, sink);
    });
}

// No wake-up is lost: whoever rings the doorbell changes it first, and futex(2) does not sleep
// on a doorbell that is no longer what it was before the last look at the buffers. Nobody rings
// for a mapping, but most libraries are mapped soon after the program's start, for which the
// driver rings: the first sleeps are short.
void Run::collect() {
    constexpr std::chrono::milliseconds kFirstSleep{1}, kLongestSleep{1000};  // for the progress
    std::chrono::milliseconds sleep = kFirstSleep;
    std::uint32_t last_bell = 0;
    Progress progress(!settings_.quiet, [this] { return reader_.instructions(); });
    for (;;) {
        const std::uint32_t bell = segment_.control().doorbell.load(std::memory_order_seq_cst);
        const bool ended = child_.ended().has_value();
        const bool busy = take_buffers();
        prepare_mappings();
        progress.update();
        if (busy) continue;
        if (ended) return;
        sleep = bell == last_bell ? std::min(sleep * 2, kLongestSleep) : kFirstSleep;
        last_bell = bell;
        wait(bell, sleep);
    }
}

bool Run::take_buffers() {
    if (!damaged_) {
        try {
            const bool any = reader_.consume();
            if (!any) reader_.refresh();
            return any;
        } catch (const Error& damage) {
            damaged_ = true;
            incomplete(damage.what());
            log::problem(damage.what());
        }
    }
    return reader_.discard();
}

// The debug information of the C library takes longer to open than a small program to run. Most
// programs will map it, and glibc installs it beside its dynamic linker.
void Run::prepare_c_library() {
    namespace fs = std::filesystem;
    if (columns_.size() == 0 || program_.dynamic_linker.empty()) return;
    std::error_code error;
    const fs::path folder = fs::canonical(program_.dynamic_linker, error).parent_path();
    const fs::path library = fs::canonical(folder / "libc.so.6", error);
    if (!error) symbolizer_.prepare(library);
}

// The debug information of what has been mapped is opened while the program runs.
void Run::prepare_mappings() {
    const std::vector<Mapping>& mappings = reader_.addresses().mappings();
    for (; columns_.size() > 0 && prepared_ < mappings.size(); ++prepared_)
        symbolizer_.prepare(*mappings[prepared_].path);
}

void Run::wait(std::uint32_t bell, std::chrono::milliseconds at_most) {
    trace::Control& control = segment_.control();
    control.collector_sleeps.store(1, std::memory_order_seq_cst);
    const timespec timeout{at_most.count() / 1000, at_most.count() % 1000 * 1'000'000};
    if (control.doorbell.load(std::memory_order_seq_cst) == bell)
        trace::futex_wait(control.doorbell, bell, &timeout);
    control.collector_sleeps.store(0, std::memory_order_relaxed);
}

// The driver has ended: takes its last records and finds out how it ended.
void Run::end_of_collection() {
    ending_ = *child_.ended();
    if (!damaged_) {
        try {
            reader_.consume_rest();
        } catch (const Error& damage) {
            damaged_ = true;
            incomplete(damage.what());
            log::problem(damage.what());
        }
    }
    if (damaged_ && ending_.signal == 0) ending_.exit_status = kExitFailure;
    const trace::DriverState state = segment_.control().state.load(std::memory_order_acquire);
    if (!reader_.refusal().empty() || state == trace::DriverState::kRefused) {
        const std::string why =
            reader_.refusal().empty() ? "the driver refused to go on" : reader_.refusal();
        incomplete(why);
        log::problem(why);
        // A program that cannot be started has the status that a shell would give it.
        if (ending_.exit_status != kExitNotExecutable && ending_.exit_status != kExitNotFound)
            ending_.exit_status = kExitFailure;
        ending_.signal = 0;
    } else if (state != trace::DriverState::kFinished && ending_.signal != 0) {
        incomplete(fmt::format("the program was killed by signal {}", ending_.signal));
    } else if (state != trace::DriverState::kFinished) {
        const std::string why =
            fmt::format("the driver ended by itself with status {}", ending_.exit_status);
        incomplete(why);
        log::problem(why);
        ending_ = {kExitFailure, 0};
    }
}

void Run::finish_profilers() {
    if (stacks_.contexts().overflowed())
        log::remark(fmt::format(
            "the program has more than {} calling contexts: later ones count as their callers",
            ContextTree::kMostContexts));
    if (segment_.control().spec.captures & trace::kCaptureBlockCounts)
        counts_ = reader_.instruction_counts();
    for_each_profiler([&](Profiler& profiler, const Profiler::SampleSink& sink) {
        trace_parser view = parser(0, {});
        if (segment_.control().spec.captures & trace::kCaptureCalls)
            view.context_table = stacks_.contexts().table();
        profiler.finish(view.pid, view, sink);
    });
}

Ending Run::report() {
    // A driver that refused the program at once has measured nothing.
    if (!reader_.code().blocks.empty()) {
        if (any_left()) write();
        if (!settings_.quiet) print_summaries();
    }
    if (!any_left() && ending_.signal == 0) ending_.exit_status = kExitFailure;
    for (const auto& profiler : profilers_) profiler->stop();
    return ending_;
}

void Run::write() {
    Profile profile{.header = {},
                    .columns = {},
                    .samples = &samples_,
                    .context_counts = &context_counts_,
                    .contexts = stacks_.contexts().table(),
                    .addresses = &reader_.addresses(),
                    .symbolizer = &symbolizer_,
                    .dump_instructions = settings_.dump_instructions};
    profile.header.command = command_;
    profile.header.pid = static_cast<std::uint32_t>(child_.pid());
    profile.header.incomplete = incomplete_;
    for (std::size_t i = 0; i < profilers_.size(); ++i) {
        if (profilers_[i]->lost()) continue;
        for (std::size_t event = 0; event < profilers_[i]->events().size(); ++event) {
            profile.columns.push_back(columns_.first(i) + event);
            profile.header.events.push_back(columns_.event(profile.columns.back()));
        }
        const auto append = [](auto& to, const auto& from) {
            to.insert(to.end(), from.begin(), from.end());
        };
        append(profile.header.derived, columns_.derived(i));
        append(profile.header.descriptions, profilers_[i]->descriptions());
    }
    if (profile.columns.empty()) return;  // profilers without events have their own output
    try {
        write_profile(out_, profile);
        written_ = true;
    } catch (const Error& e) {
        throw Error(fmt::format("{}; {}", e.what(), fall_back(out_, profile)));
    }
}

// Saves the profile from a full disk.
std::string Run::fall_back(const std::string& wanted, const Profile& profile) {
    const char* given = std::getenv("TMPDIR");
    const std::filesystem::path folder = given && *given ? given : "/tmp";
    const std::string path =
        folder / fmt::format("assay.out.{}", static_cast<unsigned>(child_.pid()));
    if (std::filesystem::path(wanted).parent_path() == folder) return "the profile is lost";
    try {
        write_profile(path, profile);
        return "the profile is in " + path;
    } catch (const Error& e) {
        return fmt::format("the profile is lost: {}", e.what());
    }
}

// As Cachegrind's readers know it: each line behind the process id.
void Run::print_summaries() {
    for (std::size_t i = 0; i < profilers_.size(); ++i) {
        if (profilers_[i]->lost()) continue;
        std::string text = profilers_[i]->summary(totals(i));
        if (text.ends_with('\n')) text.pop_back();
        if (text.empty()) continue;
        for (const std::string& line : split(text, '\n'))
            fmt::print(stderr, "=={}=={}{}\n", child_.pid(), line.empty() ? "" : " ", line);
    }
    if (written_) log::remark(fmt::format("wrote {}; read it with: assay annotate {}", out_, out_));
}

trace_parser Run::parser(std::uint32_t thread, std::span<const trace_record_t> records) {
    return {.pid = static_cast<std::uint32_t>(child_.pid()),
            .thread = thread,
            .records = records,
            .code = reader_.code(),
            .counts = counts_,
            .addresses = &reader_.addresses(),
            .contexts = {},
            .context_table = {}};
}

template <typename Call>
void Run::for_each_profiler(const Call& call) {
    for (std::size_t i = 0; i < profilers_.size(); ++i) {
        if (profilers_[i]->lost()) continue;
        const std::size_t first = columns_.first(i);
        // Of the last sample: profilers emit those of one instruction one after the other.
        SampleDatabase::Key key{0, reader_.addresses().find(0)};
        call(*profilers_[i], [&, i, first, key](const vsample_t& sample) mutable {
            if (sample.pc != key.pc) key = {sample.pc, reader_.addresses().find(sample.pc)};
            samples_.add(key, first + sample.event, sample.weight);
            if (sample.context0 != 0 && captures_calls_[i] &&
                sample.context0 < stacks_.contexts().table().size())
                context_counts_.add(static_cast<std::uint32_t>(sample.context0),
                                    first + sample.event, sample.weight);
        });
    }
}

bool Run::any_left() const {
    return std::any_of(profilers_.begin(), profilers_.end(),
                       [](const auto& profiler) { return !profiler->lost(); });
}

std::vector<std::uint64_t> Run::totals(std::size_t profiler) const {
    std::vector<std::uint64_t> sums(profilers_[profiler]->events().size());
    for (std::size_t row = 0; row < samples_.rows(); ++row) {
        const auto counts = samples_.counts(row).subspan(columns_.first(profiler));
        for (std::size_t event = 0; event < sums.size(); ++event) sums[event] += counts[event];
    }
    return sums;
}

void Run::incomplete(const std::string& why) {
    if (incomplete_.empty()) incomplete_ = why;
}

}  // namespace

Ending run(const CoreSettings& settings, const std::vector<std::string>& program) {
    return Run(settings, program).execute();
}

}  // namespace assay::collector
