#include "framework/collector/collection.h"

#include "framework/collector/launch/output_files.h"
#include "framework/collector/launch/progress.h"
#include "framework/collector/profilers/trace_spec.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/trace/futex.h"

#include <fmt/core.h>
#include <algorithm>

namespace assay::collector {
namespace {

// For who is not given the records.
std::vector<trace_marker_t> before_any_record(std::span<const trace_marker_t> markers) {
    std::vector<trace_marker_t> moved(markers.begin(), markers.end());
    for (trace_marker_t& marker : moved) marker.record = 0;
    return moved;
}

}  // namespace

Collection::Collection(Session& session, const Image& image, Segment& segment,
                       const Lifeline& lifeline)
    : session_(session),
      image_(image),
      segment_(segment),
      lifeline_(lifeline),
      results_(session, image_),
      sampling_(session.settings.regions),
      reader_(segment_, [this](TraceReader::Source source, std::span<const trace_record_t> records,
                               std::span<const trace_marker_t> markers) {
          process(source, records, markers);
      }) {
    check_files();
    own_files_.add(segment.fd());
    own_files_.add(lifeline.reading_end());
    start_profilers();
}

// Of what later images write, only the places can differ, and an events file has another one to go
// to then.
void Collection::check_files() const {
    const std::vector<OutputFile> files = output_files(session_, image_);
    check_distinct(files);
    if (image_.of_first_process && image_.number == 1) check_writable(files);
}

void Collection::start_profilers() {
    for (std::size_t i = 0; i < session_.profilers.size(); ++i) {
        Profiler& profiler = *session_.profilers[i];
        profiler.respect(own_files_);
        profiler.set_command(image_.command);
        profiler.set_sampling(sampling_.wanted());
        profiler.set_options(given_to(profiler, session_.given[i], image_));
        const trace::Spec wanted = profiler.start();
        results_.add_profiler(profiler, wanted.captures & trace::kCaptureCalls);
        spec_ = combine(spec_, wanted);
        if (profiler.wanted_values()) add(*value_lists_, *profiler.wanted_values());
    }
    spec_.cpu_level = session_.settings.cpu_level;
    spec_.regions = session_.settings.regions;
    spec_.stress = session_.settings.stress ? 1 : 0;
    spec_.random_addresses = session_.settings.randomize_addresses ? 1 : 0;
    interval_ = spec_.interval;
    if (sampling_.wanted()) sample();
}

// In the driver, intervals are the bursts' business then.
void Collection::sample() {
    trace::Regions& regions = spec_.regions;
    // Only then there is a burst in each of them, wherever they begin.
    if (interval_ != 0 && interval_ / 2 < regions.sample_period)
        throw Error(fmt::format(
            "intervals of {} instructions are too short for --sample, with a burst in every {}: "
            "make them at least twice that, or --sample shorter",
            interval_, regions.sample_period));
    spec_.captures |= trace::kCaptureBlockCounts;
    spec_.runs = 0;  // a run could go on behind a burst
    regions.sample_interval = std::exchange(spec_.interval, 0);
    regions.sample_warm_up = std::min(spec_.warm_up, regions.sample_period - regions.sample_burst);
    sampling_.warm_up(regions.sample_warm_up);
    intervals_.estimate();
}

void Collection::process(TraceReader::Source source, std::span<const trace_record_t> records,
                         std::span<const trace_marker_t> markers) {
    trace_parser view = parser(source.thread, records);
    view.footprints = reader_.footprints();
    std::span<const std::uint32_t> contexts;
    if (spec_.captures & trace::kCaptureCalls) {
        contexts = stacks_.follow(source.thread, records, reader_.code());
        view.context_table = stacks_.contexts().table();
    }
    if (interval_ != 0)
        view.intervals = intervals_.take(source.thread, source.slot, records, reader_.code(),
                                         sampling_.is_warm_up(source.slot));
    view.warm_up = sampling_.is_warm_up(source.slot);
    std::vector<trace_marker_t> without_records;
    if (view.warm_up) without_records = before_any_record(markers);
    for_each_profiler([&](Profiler& profiler, const Profiler::SampleSink& sink) {
        view.next_interval = 0;
        view.wanted = profiler.wanted_values();
        view.next = 0;
        const bool given = !view.warm_up || profiler.warms_up();
        view.records = given ? records : records.first(0);
        view.markers = given ? markers : without_records;
        view.contexts = given ? contexts : contexts.first(0);
        profiler.process(view.pid, view, sink);
    });
    if (sampling_.wanted() && sampling_.take(source.thread, source.slot, records, reader_.code()))
        look_at_totals();
}

// What profilers have counted up to the end of a burst.
void Collection::look_at_totals() {
    std::vector<std::uint64_t> totals(session_.columns.size());
    trace_parser view = parser(0, {});
    view.counts = sampling_.executions();
    view.mispredictions = sampling_.mispredictions();
    for (std::size_t i = 0; i < session_.profilers.size(); ++i) {
        if (session_.profilers[i]->lost()) continue;
        const auto own = session_.profilers[i]->totals_so_far(view.pid, view);
        std::copy(own.begin(), own.end(),
                  totals.begin() + static_cast<std::ptrdiff_t>(session_.columns.first(i)));
    }
    sampling_.totals(std::move(totals));
}

trace::DriverState Collection::state() const {
    return segment_.control().state.load(std::memory_order_acquire);
}

bool Collection::replaced() const {
    return state() == trace::DriverState::kReplaced;
}

// No wake-up is lost: whoever rings the doorbell changes it first, and futex(2) does not sleep
// on a doorbell that is no longer what it was before the last look at the buffers. Nobody rings
// for a mapping, but most libraries are mapped soon after the program's start, for which the
// driver rings: the first sleeps are short.
void Collection::collect() {
    constexpr std::chrono::milliseconds kFirstSleep{1}, kLongestSleep{1000};  // for the progress
    std::chrono::milliseconds sleep = kFirstSleep;
    std::uint32_t last_bell = 0;
    lifeline_.ring_at_end(segment_.control().doorbell);
    Progress progress(!session_.settings.quiet && image_.of_first_process,
                      [this] { return reader_.instructions(); });
    for (;;) {
        const std::uint32_t bell = segment_.control().doorbell.load(std::memory_order_seq_cst);
        const bool ended = lifeline_.ended();
        const bool busy = take_buffers();
        prepare_positions();
        progress.update();
        if (busy) continue;
        if (ended) break;
        sleep = bell == last_bell ? std::min(sleep * 2, kLongestSleep) : kFirstSleep;
        last_bell = bell;
        wait(bell, sleep);
    }
    // Not by a function, but by a thread of it.
    if (!own_files_.are_open())
        throw Error("a profiler has closed files that are not its own: the run cannot go on");
}

bool Collection::take_buffers() {
    if (!damaged_) {
        try {
            const bool any = reader_.consume();
            if (!any) reader_.refresh();
            return any;
        } catch (const Error& damage) {
            if (!own_files_.are_open()) throw;  // the trace is not to blame
            damaged(damage.what());
        }
    }
    return reader_.discard();
}

void Collection::damaged(const std::string& how) {
    damaged_ = true;
    incomplete(how);
    problem(how);
}

void Collection::problem(const std::string& what) const {
    log::problem(image_.of_first_process ? what : fmt::format("{}: {}", image_.program, what));
}

// The debug information of what has been mapped is opened while the program runs. Positions are
// found in advance for the first image only: the supervisor's collectors know what earlier ones
// have executed, which is less than they have translated.
void Collection::prepare_positions() {
    if (session_.columns.size() == 0) return;
    const std::vector<Mapping>& mappings = reader_.addresses().mappings();
    for (; opened_ < mappings.size(); ++opened_)
        session_.symbolizer.prepare(*mappings[opened_].path);
    if (image_.of_first_process && image_.number == 1)
        early_positions_.prepare(reader_.code(), reader_.addresses());
}

void Collection::wait(std::uint32_t bell, std::chrono::milliseconds at_most) {
    trace::Control& control = segment_.control();
    control.collector_sleeps.store(1, std::memory_order_seq_cst);
    const timespec timeout{at_most.count() / 1000, at_most.count() % 1000 * 1'000'000};
    if (control.doorbell.load(std::memory_order_seq_cst) == bell)
        trace::futex_wait(control.doorbell, bell, &timeout);
    control.collector_sleeps.store(0, std::memory_order_relaxed);
}

Collection::Outcome Collection::finish(const std::optional<Ending>& ending) {
    if (!damaged_) {
        try {
            reader_.consume_rest();
        } catch (const Error& damage) {
            if (!own_files_.are_open()) throw;
            damaged(damage.what());
        }
    }
    outcome_.failed = damaged_;
    incomplete(session_.end_by_deadline());
    find_outcome(ending);
    finish_profilers();
    // A driver that refused the program at once has measured nothing.
    if (!reader_.code().blocks.empty()) {
        if (session_.any_profiler_left()) write();
        if (!session_.settings.quiet) results_.print_summaries(sampling_);
    }
    if (!session_.any_profiler_left()) outcome_.failed = true;
    for (const auto& profiler : session_.profilers) profiler->stop();
    return outcome_;
}

// The summaries, and what other processes leave, are none the worse for a full disk.
void Collection::write() {
    try {
        results_.write(
            {reader_.addresses(), stacks_.contexts().table(), sampling_, incomplete_, replaced()});
    } catch (const Error& e) {
        log::problem(e.what());
        outcome_.lost = true;
    }
}

void Collection::find_outcome(const std::optional<Ending>& ending) {
    const trace::DriverState end = state();
    if (!reader_.refusal().empty() || end == trace::DriverState::kRefused) {
        const std::string why =
            reader_.refusal().empty() ? "the driver refused to go on" : reader_.refusal();
        incomplete(why);
        problem(why);
        outcome_.refused = true;
    } else if (end == trace::DriverState::kFinished || end == trace::DriverState::kReplaced) {
        if (!reader_.leaves_for().empty()) log::remark(reader_.leaves_for());
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
    if (stacks_.contexts().overflowed())
        log::remark(fmt::format(
            "the program has more than {} calling contexts: later ones count as their callers",
            ContextTree::kMostContexts));
    if (spec_.captures & trace::kCaptureBlockCounts) executions_ = reader_.instruction_counts();
    if (session_.columns.size() > 0 && image_.of_first_process && image_.number == 1)
        early_positions_.prepare_rest(reader_.code(), reader_.addresses(), executions_);
    mispredictions_ = reader_.mispredictions();
    if (sampling_.wanted()) estimate();
    if (interval_ != 0)
        for (std::uint32_t slot = 0; slot < reader_.slots(); ++slot)
            if (!sampling_.is_warm_up(slot))
                intervals_.take_rest(reader_.thread_of(slot), slot, reader_.block_counts(slot),
                                     reader_.code());
    const std::span<const Interval> rests =
        intervals_.rests([this](std::uint32_t thread) { return sampling_.executed_by(thread); });
    for_each_profiler([&](Profiler& profiler, const Profiler::SampleSink& sink) {
        trace_parser view = parser(0, {});
        if (spec_.captures & trace::kCaptureCalls) view.context_table = stacks_.contexts().table();
        view.intervals = rests;
        view.scale = sampling_.factor();
        profiler.finish(view.pid, view, sink);
    });
    if (sampling_.wanted()) results_.scale(sampling_);
}

// How much of the program has been captured.
void Collection::estimate() {
    for (std::uint32_t slot = 0; slot < reader_.slots(); ++slot)
        sampling_.executed(reader_.thread_of(slot), reader_.executed(slot));
    for (std::uint32_t slot = 0; slot < reader_.slots(); ++slot)
        sampling_.take_rest(slot, reader_.block_counts(slot), reader_.mispredictions(slot),
                            reader_.code());
    sampling_.take_off_warm_up(executions_, mispredictions_);
    if (executions_.empty() || sampling_.factor() != 1 || sampling_.executed() == 0) return;
    const std::string why = fmt::format(
        "no burst of --sample was reached in {} instructions: make its second number smaller",
        sampling_.executed());
    incomplete(why);
    if (image_.of_first_process) problem(why);  // of hundreds of short ones, their files say it
}

trace_parser Collection::parser(std::uint32_t thread, std::span<const trace_record_t> records) {
    return {.pid = static_cast<std::uint32_t>(image_.pid),
            .thread = thread,
            .records = records,
            .code = reader_.code(),
            .counts = executions_,
            .mispredictions = mispredictions_,
            .addresses = &reader_.addresses(),
            .places = &places_,
            .contexts = {},
            .context_table = {},
            .wanted = nullptr,
            .next = 0,
            .present = 0};
}

template <typename Call>
void Collection::for_each_profiler(const Call& call) {
    for (std::size_t i = 0; i < session_.profilers.size(); ++i) {
        if (session_.profilers[i]->lost()) continue;
        // Profilers emit the samples of one instruction one after the other.
        AddressMap::Finder mappings(reader_.addresses());
        call(*session_.profilers[i], [&, i](const vsample_t& sample) {
            results_.take(i, sample, mappings.find(sample.pc), stacks_.contexts().table());
        });
    }
}

void Collection::incomplete(const std::string& why) {
    if (incomplete_.empty()) incomplete_ = why;
}

}  // namespace assay::collector
