#include "framework/collector/run/collection.h"

#include "framework/collector/run/output_files.h"
#include "framework/collector/run/overview.h"
#include "framework/driver/replay/mixed_programs.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/trace/captures.h"
#include "framework/trace/futex.h"

#include <fmt/core.h>
#include <algorithm>

namespace assay::collector {
namespace {

// The options can determine which columns there are.
Session& with_options(Session& session, const Image& image) {
    session.set_options(image);
    session.columns = Columns(session.profilers);
    return session;
}

std::string no_burst(std::uint64_t instructions) {
    return fmt::format(
        "no burst of --sample was reached in {} instructions: make its second number smaller",
        instructions);
}

}  // namespace

Collection::Collection(Session& session, const Image& image, Segment& segment,
                       const Lifeline& lifeline, const Shared* shared)
    : session_(with_options(session, image)),
      image_(image),
      replays_(shared != nullptr),
      instructions_(shared ? shared->instructions : 0),
      segment_(segment),
      lifeline_(lifeline),
      profile_(session, image_),
      parent_(segment.control().parent != 0 ? segment.control().parent : parent_of(image.pid)),
      feed_(segment_, TraceReader::Role::kFirst, image.pid,
            session.trace ? trace::Regions{} : session.settings.regions, session.symbolizer) {
    check_files();
    if (session.trace) start_recorder();
    if (shared) feed_.reader().read_as_one_of(shared->readers, shared->number);
    start_profilers(shared);
}

void Collection::start_recorder() {
    const recording::TraceContent& content = session_.settings.recorded;
    recorder_.emplace(*session_.trace, segment_, feed_.reader(), image_, parent_, content);
    feed_.at_records = [this](TraceReader::Source source, std::span<const trace_record_t> records,
                              std::span<const trace_marker_t> markers) {
        recorder_->take(source, records, markers);
    };
    spec_ = ImageRecorder::spec(content);
    *value_lists_ = *recording::recorded_values(content);
    const std::vector<trace_point_t>& points = session_.settings.points.points;
    if (points.empty()) return;
    recorder_->set_points(session_.settings.points);
    std::transform(points.begin(), points.end(), segment_.points().begin(),
                   [](const trace_point_t& point) {
                       return trace::SimulationPoint{point.begin, point.end};
                   });
}

void Collection::end_recorder(const std::optional<Ending>& ending) {
    const trace::DriverState end = state();
    const std::uint32_t told = damaged_                               ? TRACE_IMAGE_DAMAGED
                               : outcome_.refused                     ? TRACE_IMAGE_REFUSED
                               : end == trace::DriverState::kReplaced ? TRACE_IMAGE_REPLACED
                               : end == trace::DriverState::kFinished ? TRACE_IMAGE_ENDED
                                                                      : TRACE_IMAGE_KILLED;
    try {
        recorder_->end(told, ending);
        if (!session_.settings.points.points.empty()) check_points();
        check_recorded_bursts();
    } catch (const Error& e) {
        problem(e.what());
        outcome_.lost = true;
    }
}

// A missing point means that the program has not reached it: the program or its input may differ
// from those of the files.
void Collection::check_points() {
    const SimulationPoints& wanted = session_.settings.points;
    const std::size_t complete = recorder_->complete_points();
    if (complete == wanted.points.size()) return;
    problem(fmt::format(
        "interval {} of --simpoints ends at instruction {}, but the program has executed {}: {} of "
        "{} intervals are recorded; give --interval-size, program and arguments as they were for "
        "the bbv profiler",
        wanted.points[complete].number, wanted.points[complete].end, recorder_->instructions(),
        complete, wanted.points.size()));
}

// Corresponds to check_bursts(), which also writes the message to the events file.
void Collection::check_recorded_bursts() {
    if (recorder_->missed_bursts() && image_.of_first_process)
        problem(no_burst(recorder_->executed()));
}

// Checks the first image only. For later images only the folder can differ, and an events file then
// goes to another folder.
void Collection::check_files() const {
    const std::vector<OutputFile> files = output_files(session_, image_);
    check_distinct(files);
    if (image_.of_first_process && image_.number == 1) check_writable(files);
}

void Collection::start_profilers(const Shared* shared) {
    for (std::size_t i = 0; i < session_.profilers.size(); ++i) start_profiler(i);
    if (session_.settings.objects) capture_objects();
    spec_.cpu_level = session_.settings.cpu_level;
    spec_.recursion = session_.settings.recursion;
    spec_.slice = session_.settings.slice;
    spec_.regions = session_.settings.regions;
    spec_.stress = session_.settings.stress ? 1 : 0;
    const std::string& hidden = session_.settings.hidden_features;
    std::copy(hidden.begin(), hidden.end(), spec_.hidden_features);
    spec_.random_addresses = session_.settings.randomize_addresses ? 1 : 0;
    if (session_.settings.threads) {
        spec_.captures |= trace::kCaptureBlockCounts;
        spec_.threads = 1;
    }
    interval_ = spec_.interval;
    if (feed_.sampling().wanted()) sample();
    if (session_.settings.contexts) {
        spec_.captures |= trace::kCaptureContexts | trace::kCaptureBlockCounts;
        if (!trace::tells_contexts(spec_)) spec_.captures |= trace::kCaptureCalls;
    }
    if (shared) spec_ = shared->agree(spec_, *value_lists_);
    feed_.begin({spec_, interval_, session_.settings.contexts});
}

// Adds the calls that lead to allocations, and all references. If the profilers do with those that
// pass a filter, each of the others only has a record for its object.
void Collection::capture_objects() {
    const bool contexts = spec_.captures & trace::kCaptureCalls;
    const bool filtered = spec_.captures & trace::kCaptureReferences && spec_.data.sets != 0 &&
                          spec_.data.kind == trace::Filter::kRecentLines;
    const std::uint32_t references = filtered ? 0U : std::uint32_t{trace::kCaptureReferences};
    spec_ = combine(spec_, trace::Spec{.captures = references | trace::kCaptureBlockCounts |
                                                   trace::kCaptureCalls});
    spec_.objects = contexts || session_.settings.contexts ? trace::Spec::kObjectsAndContexts
                                                           : trace::Spec::kObjectsOnly;
    const std::string& functions = session_.settings.allocation_functions;
    std::copy(functions.begin(), functions.end(), spec_.allocation_functions);
}

void Collection::start_profiler(std::size_t index) {
    ProfilerHandle& profiler = *session_.profilers[index];
    const trace::Spec wanted = profiler.start();
    profile_.add_profiler(profiler, wanted.captures & trace::kCaptureCalls);
    spec_ = combine(spec_, wanted);
    if (profiler.wanted_values()) add(*value_lists_, *profiler.wanted_values());
    hosted_.push_back(dynamic_cast<HostedProfiler*>(&profiler));
    if (hosted_.back()) return;
    fed_.push_back(index);
    feed_.add(static_cast<LoadedProfiler&>(profiler), sink(index));
}

Feed::Sink Collection::sink(std::size_t index) {
    return [this, index](const vsample_t& sample, std::uint32_t mapping) {
        if (image_.mixed && replay::program_of(sample.pc) != *image_.mixed) return;
        profile_.take(index, sample, mapping, feed_.contexts());
    };
}

// Another process can know of a mapping that this process has not read yet.
HostedProfiler::Sink Collection::sink_of_other(std::size_t index) {
    return [this, take = sink(index)](const vsample_t& sample, std::uint32_t mapping) {
        const std::vector<Mapping>& known = feed_.reader().addresses().mappings();
        if (mapping >= known.size() && mapping != kNoMapping && !damaged_) feed_.reader().refresh();
        take(sample, mapping < known.size() ? mapping : kNoMapping);
    };
}

// Starts the profilers of other processes, and the work for them in this process.
void Collection::begin() {
    feed_.at_totals = [this] { look_at_totals(); };
    bool any = false;
    for (std::size_t i = 0; i < hosted_.size(); ++i) {
        if (!hosted_[i]) continue;
        any = true;
        hosted_[i]->collect({.pid = image_.pid,
                             .segment = segment_.fd(),
                             .spec = spec_,
                             .interval = interval_,
                             .contexts = session_.settings.contexts},
                            sink_of_other(i));
    }
    if (any)
        feed_.reader().keep_buffers([this](std::uint32_t slot) {
            for (HostedProfiler* profiler : hosted_)
                if (profiler) profiler->take(slot);
        });
}

// With bursts, the driver does not make intervals itself.
void Collection::sample() {
    trace::Regions& regions = spec_.regions;
    if (feed_.sampling().is_point()) {
        if (interval_ != 0)
            throw Error(
                "the trace has simulation points, and a profiler wants intervals of the whole "
                "program: record it without --simpoints");
        spec_.captures |= trace::kCaptureBlockCounts;
        regions.sample_warm_up = std::max<std::uint64_t>(spec_.warm_up, 1);
        return;
    }
    // Ensures that each interval contains a burst, wherever it begins.
    if (interval_ != 0 && interval_ / 2 < regions.sample_period)
        throw Error(fmt::format(
            "intervals of {} instructions are too short for --sample, with a burst in every {}: "
            "make them at least twice that, or --sample shorter",
            interval_, regions.sample_period));
    spec_.captures |= trace::kCaptureBlockCounts;
    if (spec_.data.runs()) spec_.data = {};  // a run of references could extend beyond a burst
    regions.sample_interval = std::exchange(spec_.interval, 0);
    const std::uint64_t most = regions.sample_period - regions.sample_burst;
    const std::uint64_t wanted = std::min(spec_.warm_up, most);
    const std::optional<std::uint64_t>& given = session_.settings.warm_up;
    regions.sample_warm_up = given ? std::min(*given, most) : wanted;
    if (replays_ && wanted > regions.sample_warm_up) missing_warm_up_ = wanted;
}

// Passes on what the profilers have counted up to the end of a burst.
void Collection::look_at_totals() {
    std::vector<std::uint64_t> totals(session_.columns.size());
    const auto put = [&](std::size_t profiler, const std::vector<std::uint64_t>& own) {
        if (session_.profilers[profiler]->lost()) return;
        std::copy(own.begin(), own.end(),
                  totals.begin() + static_cast<std::ptrdiff_t>(session_.columns.first(profiler)));
    };
    for (std::size_t i = 0; i < fed_.size(); ++i) put(fed_[i], feed_.totals_so_far(i));
    for (std::size_t i = 0; i < hosted_.size(); ++i)
        if (hosted_[i]) put(i, hosted_[i]->next_totals());
    feed_.sampling().totals(std::move(totals));
}

trace::DriverState Collection::state() const {
    return segment_.control().state.load(std::memory_order_acquire);
}

bool Collection::replaced() const {
    return state() == trace::DriverState::kReplaced;
}

// No wake-up is lost. Each sender changes the doorbell before it wakes the collector, and futex(2)
// does not sleep if the doorbell has changed since the last look at the buffers. A new mapping does
// not ring the doorbell. Most libraries are mapped soon after the start of the program, which does
// ring: the first sleeps are therefore short.
void Collection::collect() {
    constexpr std::chrono::milliseconds kFirstSleep{1}, kLongestSleep{1000};  // for the progress
    std::chrono::milliseconds sleep = kFirstSleep;
    std::uint32_t last_bell = 0;
    lifeline_.ring_at_end(segment_.control().doorbell);
    begin();
    Progress progress(
        image_.of_first_process && shows_progress(session_.settings, replays_),
        [this] { return in_millions(feed_.reader().counts().instructions(), instructions_); });
    for (;;) {
        const std::uint32_t bell = segment_.control().doorbell.load(std::memory_order_seq_cst);
        const bool ended = lifeline_.ended();
        look_at_others();
        const bool busy = take_buffers();
        open_debug_information();
        progress.update();
        if (busy) continue;
        if (ended) break;
        sleep = bell == last_bell ? std::min(sleep * 2, kLongestSleep) : kFirstSleep;
        last_bell = bell;
        wait(bell, sleep);
    }
}

bool Collection::take_buffers() {
    if (!damaged_) {
        try {
            const bool any = feed_.reader().consume();
            if (!any) feed_.reader().refresh();
            return any;
        } catch (const Error& damage) {
            damaged(damage.what());
        }
    }
    return feed_.reader().discard();
}

void Collection::look_at_others() {
    for (HostedProfiler* profiler : hosted_)
        if (profiler) profiler->look();
    release_taken();
    for (const HostedProfiler* profiler : hosted_)
        if (profiler && !profiler->damage().empty() && !damaged_) damaged(profiler->damage());
}

// Gives back those buffers that all profilers have read.
void Collection::release_taken() {
    std::uint64_t taken = UINT64_MAX;
    for (const HostedProfiler* profiler : hosted_)
        if (profiler) taken = std::min(taken, profiler->taken());
    feed_.reader().release(taken);
}

// Waits until the slowest profiler has done something.
void Collection::wait_for_others() {
    HostedProfiler* last = nullptr;
    for (HostedProfiler* profiler : hosted_)
        if (profiler && (!last || profiler->taken() < last->taken())) last = profiler;
    if (last && !last->lost()) last->wait();
    release_taken();
}

void Collection::take_rest() {
    TraceReader& reader = feed_.reader();
    while (reader.consume() || reader.keeps_any()) {
        wait_for_others();
        look_at_others();
        if (damaged_) return;
    }
    for (HostedProfiler* profiler : hosted_)
        if (profiler) profiler->take_rest();
    reader.consume_rest();
}

// From now on the driver overwrites buffers at once, so nobody may still read them.
void Collection::damaged(const std::string& how) {
    damaged_ = true;
    incomplete(how);
    problem(how);
    while (feed_.reader().keeps_any()) wait_for_others();
}

void Collection::problem(const std::string& what) const {
    log::problem(image_.of_first_process ? what : fmt::format("{}: {}", image_.program, what));
}

// Opens the debug information of mapped files while the program runs.
void Collection::open_debug_information() {
    if (session_.columns.size() == 0) return;
    if (feed_.sampling().is_point() && !image_.of_first_process)
        return;  // only the last point writes a file
    const std::vector<Mapping>& mappings = feed_.reader().addresses().mappings();
    for (; opened_ < mappings.size(); ++opened_)
        session_.symbolizer.prepare(*mappings[opened_].path);
}

void Collection::wait(std::uint32_t bell, std::chrono::milliseconds at_most) {
    trace::Control& control = segment_.control();
    control.collector_sleeps.fetch_add(1, std::memory_order_seq_cst);
    const timespec timeout{at_most.count() / 1000, at_most.count() % 1000 * 1'000'000};
    if (control.doorbell.load(std::memory_order_seq_cst) == bell)
        trace::futex_wait(control.doorbell, bell, &timeout);
    control.collector_sleeps.fetch_sub(1, std::memory_order_relaxed);
}

void Collection::take_to_end() {
    if (!damaged_) {
        try {
            take_rest();
        } catch (const Error& damage) {
            damaged(damage.what());
        }
    }
    check_counts();
    outcome_.failed = damaged_;
    incomplete(session_.end_by_deadline());
}

Collection::Outcome Collection::finish_point() {
    take_to_end();
    finish_profilers();
    for (const auto& profiler : session_.profilers) profiler->stop();
    return outcome_;
}

Collection::Outcome Collection::finish(const std::optional<Ending>& ending) {
    take_to_end();
    find_outcome(ending);
    if (recorder_) end_recorder(ending);
    finish_profilers();
    // If there is no code, the driver has refused the program at once.
    if (!feed_.reader().code().blocks.empty()) {
        if (session_.any_profiler_left()) write();
        for (const auto& profiler : session_.profilers) profiler->has_no_columns_to_lose();
        log();
    }
    if (!session_.any_profiler_left() && !recorder_) outcome_.failed = true;
    for (const auto& profiler : session_.profilers) profiler->stop();
    return outcome_;
}

void Collection::check_counts() {
    const std::string impossible = feed_.impossible_counts(session_.time());
    if (!impossible.empty() && !damaged_) damaged(impossible);
}

// A full disk must not prevent the summaries and the files of other processes.
void Collection::write() {
    try {
        profile_.write(feed_, incomplete_, replaced());
        if (!feed_.knows_contexts())
            log::remark(
                "some calling contexts are missing, because there was no room for them or the "
                "program has overwritten them: counts from there have no context");
    } catch (const Error& e) {
        log::problem(e.what());
        outcome_.lost = true;
    }
}

// Adds the data for the end of the run.
void Collection::log() {
    ProfileLog::Entry entry;
    entry.profile.file = profile_.file();
    entry.profile.pid = image_.pid;
    entry.profile.image = image_.number;
    entry.profile.command = image_.command;
    entry.profile.rank = image_.rank;
    entry.profile.incomplete = incomplete_;
    for (const ImageProfile::Total& total : profile_.file_totals()) {
        entry.events.push_back(total.event);
        entry.profile.counts.push_back(total.count);
    }
    entry.parent_pid = parent_;
    entry.earlier = image_.earlier;
    entry.place = image_.place;
    entry.part_files = profile_.part_files();
    if (!session_.settings.quiet) entry.summary = profile_.summaries(feed_.sampling());
    session_.log->add(entry);
}

void Collection::find_outcome(const std::optional<Ending>& ending) {
    const trace::DriverState end = state();
    if (!feed_.reader().refusal().empty() || end == trace::DriverState::kRefused) {
        const std::string why = feed_.reader().refusal().empty() ? "the driver refused to go on"
                                                                 : feed_.reader().refusal();
        incomplete(why);
        problem(why);
        outcome_.refused = true;
    } else if (end == trace::DriverState::kFinished || end == trace::DriverState::kReplaced) {
        if (!feed_.reader().leaves_for().empty()) log::remark(feed_.reader().leaves_for());
    } else if (!ending) {
        incomplete("the program was killed");
    } else if (ending->signal != 0) {
        incomplete(fmt::format("the program was killed by signal {}", ending->signal));
    } else {
        const std::string why =
            fmt::format("the driver ended by itself with status {}", ending->exit_status);
        incomplete(why);
        problem(why);
        outcome_.failed = true;
    }
}

void Collection::finish_profilers() {
    if (feed_.contexts().overflowed())
        log::remark(
            fmt::format("the program has more than {} calling contexts: counts of later ones go to "
                        "their callers",
                        ContextTree::kMostContexts));
    for (HostedProfiler* profiler : hosted_)
        if (profiler) profiler->begin_finish(session_.time());
    feed_.end();
    if (feed_.sampling().wanted() && !feed_.sampling().is_point()) check_bursts();
    feed_.finish();
    if (feed_.lacks_facts()) {
        problem(
            "a profiler needs facts about instructions, which assay has for x86-64 only: its "
            "counts are wrong");
        outcome_.failed = true;
    }
    for (HostedProfiler* profiler : hosted_) {
        if (!profiler) continue;
        profiler->finish();
        if (!profiler->damage().empty() && !damaged_) {
            damaged(profiler->damage());
            outcome_.failed = true;
        }
    }
    if (feed_.sampling().wanted()) profile_.scale(feed_.sampling());
    for (const Counts& other : others_) profile_.add(other);
}

// Reports a run without bursts, or with too little warm-up.
void Collection::check_bursts() {
    const Sampling& sampling = feed_.sampling();
    if (missing_warm_up_ != 0 && image_.of_first_process && image_.number == 1)
        log::remark(
            fmt::format("the trace has {} instructions to warm up before each burst, but the "
                        "profilers ask for {}: record it with --warm-up={}",
                        spec_.regions.sample_warm_up, missing_warm_up_, missing_warm_up_));
    if (feed_.executions().empty() || sampling.factor() != 1 || sampling.executed() == 0) return;
    const std::string why = no_burst(sampling.executed());
    incomplete(why);
    if (image_.of_first_process)
        problem(why);  // hundreds of short processes report it in their files only
}

void Collection::incomplete(const std::string& why) {
    if (incomplete_.empty()) incomplete_ = why;
}

}  // namespace assay::collector
