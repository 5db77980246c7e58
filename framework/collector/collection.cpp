#include "framework/collector/collection.h"

#include "framework/collector/launch/progress.h"
#include "framework/collector/profilers/trace_spec.h"
#include "framework/collector/results/profile.h"
#include "framework/events/formula.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/text.h"
#include "framework/trace/futex.h"

#include <fmt/core.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

namespace assay::collector {

Collection::Collection(Session& session, const Image& image, Segment& segment,
                       const Lifeline& lifeline)
    : session_(session),
      image_(image),
      segment_(segment),
      lifeline_(lifeline),
      counts_(session.columns.size()),
      sampling_(session.settings.regions),
      reader_(segment_, [this](TraceReader::Source source, std::span<const trace_record_t> records,
                               std::span<const trace_marker_t> markers) {
          process(source, records, markers);
      }) {
    start_profilers();
}

// Which image of a process is its last is not known yet: the files of profilers have the number of
// each but the first.
void Collection::start_profilers() {
    for (std::size_t i = 0; i < session_.profilers.size(); ++i) {
        Profiler& profiler = *session_.profilers[i];
        Given given = session_.given[i];
        for (auto& [name, value] : given)
            if (profiler.option(name)->type == VP_OPTION_OUTPUT_FILE)
                value = image_.number == 1 ? file_of_process(value, image_)
                                           : file_of_image(value, image_);
        profiler.set_command(image_.command);
        profiler.set_sampling(sampling_.wanted());
        profiler.set_options(given);
        const trace::Spec wanted = profiler.start();
        captures_calls_.push_back(wanted.captures & trace::kCaptureCalls);
        spec_ = combine(spec_, wanted);
        if (profiler.wanted_values()) add(value_lists_, *profiler.wanted_values());
        first_list_.push_back(static_cast<std::uint32_t>(list_names_.size()));
        for (const std::string& list : profiler.value_lists())
            list_names_.push_back(list.empty() ? profiler.name() : profiler.name() + "." + list);
    }
    spec_.cpu_level = session_.settings.cpu_level;
    spec_.regions = session_.settings.regions;
    spec_.stress = session_.settings.stress ? 1 : 0;
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
    view.markers = markers;
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
    for_each_profiler([&](Profiler& profiler, const Profiler::SampleSink& sink) {
        view.next_interval = 0;
        view.wanted = profiler.wanted_values();
        view.next = 0;
        const bool given = !view.warm_up || profiler.warms_up();
        view.records = given ? records : records.first(0);
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
        prepare_mappings();
        progress.update();
        if (busy) continue;
        if (ended) return;
        sleep = bell == last_bell ? std::min(sleep * 2, kLongestSleep) : kFirstSleep;
        last_bell = bell;
        wait(bell, sleep);
    }
}

bool Collection::take_buffers() {
    if (!damaged_) {
        try {
            const bool any = reader_.consume();
            if (!any) reader_.refresh();
            return any;
        } catch (const Error& damage) {
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

// The debug information of what has been mapped is opened while the program runs.
void Collection::prepare_mappings() {
    const std::vector<Mapping>& mappings = reader_.addresses().mappings();
    for (; session_.columns.size() > 0 && prepared_ < mappings.size(); ++prepared_)
        session_.symbolizer.prepare(*mappings[prepared_].path);
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
        if (!session_.settings.quiet) print_summaries();
    }
    if (!session_.any_profiler_left()) outcome_.failed = true;
    for (const auto& profiler : session_.profilers) profiler->stop();
    return outcome_;
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
    if (!sampling_.wanted()) return;
    scale(counts_);
    for (auto& [part, counts] : parts_) scale(counts);
}

// How much of the program has been captured.
void Collection::estimate() {
    for (std::uint32_t slot = 0; slot < reader_.slots(); ++slot)
        sampling_.executed(reader_.thread_of(slot), reader_.executed(slot));
    for (std::uint32_t slot = 0; slot < reader_.slots(); ++slot)
        sampling_.take_rest(slot, reader_.block_counts(slot), reader_.code());
    sampling_.take_off_warm_up(executions_, mispredictions_);
    if (executions_.empty() || sampling_.factor() != 1 || sampling_.executed() == 0) return;
    const std::string why = fmt::format(
        "no burst of --sample was reached in {} instructions: make its second number smaller",
        sampling_.executed());
    incomplete(why);
    problem(why);
}

void Collection::scale(Counts& counts) const {
    std::vector<bool> unscaled(session_.columns.size());
    for (std::size_t i = 0; i < session_.profilers.size(); ++i)
        for (std::size_t event = 0; event < session_.profilers[i]->events().size(); ++event)
            unscaled[session_.columns.first(i) + event] = session_.profilers[i]->is_unscaled(event);
    const auto change = [&](std::size_t column, std::uint64_t count) {
        return unscaled[column] ? count : sampling_.scaled(count);
    };
    counts.samples.change_counts(change);
    counts.contexts.change_counts(change);
    counts.hotlists.scale(sampling_.factor());
}

// Of the columns, for people.
std::string Collection::errors() const {
    std::string text;
    for (std::size_t i = 0; i < session_.profilers.size(); ++i) {
        const Profiler& profiler = *session_.profilers[i];
        if (profiler.lost()) continue;
        for (std::size_t event = 0; event < profiler.events().size(); ++event) {
            if (profiler.leaves_out(event)) continue;
            text += (text.empty() ? "" : ", ") +
                    session_.columns.event(session_.columns.first(i) + event).name;
            const bool known = profiler.told_total(event) && sampling_.tells_errors();
            const auto error =
                known ? sampling_.error(session_.columns.first(i) + event) : std::nullopt;
            const std::string why = profiler.why_no_error(event);
            text += profiler.is_unscaled(event) ? " not scaled"
                    : !why.empty()              ? fmt::format(" unknown ({})", why)
                    : error                     ? fmt::format(" {:.1f} %", 100 * *error)
                    : known                     ? " none counted"
                                                : " unknown";
        }
    }
    return text;
}

Profile Collection::empty_profile() const {
    Profile profile{.header = {},
                    .columns = {},
                    .samples = &counts_.samples,
                    .hotlists = &counts_.hotlists,
                    .list_names = std::vector<std::string>(list_names_.size()),
                    .context_counts = &counts_.contexts,
                    .contexts = stacks_.contexts().table(),
                    .addresses = &reader_.addresses(),
                    .symbolizer = &session_.symbolizer,
                    .dump_instructions = session_.settings.dump_instructions};
    profile.header.command = image_.command;
    profile.header.pid = static_cast<std::uint32_t>(image_.pid);
    profile.header.incomplete = incomplete_;
    if (sampling_.wanted()) {
        profile.header.descriptions.emplace_back("Sampled", sampling_.description());
        profile.header.descriptions.emplace_back("Error, 95 % confidence", errors());
    }
    return profile;
}

void Collection::add_columns(Profile& profile, std::size_t profiler) const {
    const Profiler& of = *session_.profilers[profiler];
    std::copy_n(list_names_.begin() + first_list_[profiler], of.value_lists().size(),
                profile.list_names.begin() + first_list_[profiler]);
    for (std::size_t event = 0; event < of.events().size(); ++event) {
        if (of.leaves_out(event)) continue;
        profile.columns.push_back(session_.columns.first(profiler) + event);
        profile.header.events.push_back(session_.columns.event(profile.columns.back()));
    }
    const auto append = [](auto& to, const auto& from) {
        to.insert(to.end(), from.begin(), from.end());
    };
    for (const events::Derived& figure : session_.columns.derived(profiler))
        if (events::is_computable(figure.formula, profile.header.events))
            profile.header.derived.push_back(figure);
    append(profile.header.descriptions, of.descriptions());
}

void Collection::write() {
    Profile profile = empty_profile();
    for (std::size_t i = 0; i < session_.profilers.size(); ++i)
        if (!session_.profilers[i]->lost()) add_columns(profile, i);
    if (profile.columns.empty()) return;  // profilers without events have their own output
    const std::string& out = session_.settings.out;
    const std::string file = replaced() ? file_of_image(out, image_) : file_of_process(out, image_);
    try {
        write_profile(file, profile);
        file_ = file;
    } catch (const Error& e) {
        throw Error(fmt::format("{}; {}", e.what(), fall_back(file, profile)));
    }
    write_parts(file);
}

void Collection::write_parts(const std::string& file) {
    std::set<std::string> files{file};  // a device is not written once more
    for (const auto& [part, counts] : parts_) {
        const Profiler& profiler = *session_.profilers[part.first];
        if (profiler.lost()) continue;
        const std::string& name = profiler.parts()[part.second - 1];
        std::string own = file_of_part(file, name);
        if (own == file) continue;
        // Names that differ in what a file's name has not.
        for (int i = 2; !files.insert(own).second; ++i)
            own = file_of_part(file, fmt::format("{}-{}", name, i));
        Profile profile = empty_profile();
        profile.samples = &counts.samples;
        profile.hotlists = &counts.hotlists;
        profile.context_counts = &counts.contexts;
        add_columns(profile, part.first);
        profile.header.descriptions.emplace_back("part", name);
        write_profile(own, profile);
        ++part_files_;
    }
}

// Saves the profile from a full disk.
std::string Collection::fall_back(const std::string& wanted, const Profile& profile) {
    const char* given = std::getenv("TMPDIR");
    const std::filesystem::path folder = given && *given ? given : "/tmp";
    const std::string path =
        folder / fmt::format("assay.out.{}", static_cast<unsigned>(image_.pid));
    if (std::filesystem::path(wanted).parent_path() == folder) return "the profile is lost";
    try {
        write_profile(path, profile);
        return "the profile is in " + path;
    } catch (const Error& e) {
        return fmt::format("the profile is lost: {}", e.what());
    }
}

// As Cachegrind's readers know it: each line behind the process id. In one piece, since other
// collectors may be printing theirs.
void Collection::print_summaries() {
    std::string summaries;
    if (sampling_.wanted())
        summaries = fmt::format("=={0}== Sampled: {1}\n=={0}== Error, 95 % confidence: {2}\n",
                                image_.pid, sampling_.description(), errors());
    for (std::size_t i = 0; i < session_.profilers.size(); ++i) {
        if (session_.profilers[i]->lost()) continue;
        std::string text = session_.profilers[i]->summary(totals(i));
        if (text.ends_with('\n')) text.pop_back();
        if (text.empty()) continue;
        if (!summaries.empty()) summaries += fmt::format("=={}==\n", image_.pid);
        for (const std::string& line : split(text, '\n'))
            summaries += fmt::format("=={}=={}{}\n", image_.pid, line.empty() ? "" : " ", line);
    }
    fmt::print(stderr, "{}", summaries);
    if (file_.empty()) return;
    const std::string parts =
        part_files_ == 0 ? "" : fmt::format(" and {}.* of {} parts", file_, part_files_);
    log::remark(fmt::format("wrote {}{}; read it with: assay annotate {}", file_, parts, file_));
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
            const SampleDatabase::Key key{sample.pc, mappings.find(sample.pc)};
            Counts* counts = &counts_;
            if (sample.context1 != 0)
                counts = &parts_.try_emplace({i, sample.context1}, session_.columns.size())
                              .first->second;
            count(*counts, i, key, sample);
        });
    }
}

void Collection::count(Counts& counts, std::size_t profiler, const SampleDatabase::Key& key,
                       const vsample_t& sample) {
    const std::size_t first = session_.columns.first(profiler);
    if (Profiler::is_value(sample)) {
        // It makes a row, even if nothing is counted there.
        TopValues& values = counts.hotlists.of(counts.samples.add(key, first, 0),
                                               first_list_[profiler] + Profiler::list_of(sample));
        if (Profiler::is_rest(sample))
            values.add_rest(sample.weight, sample.value);
        else
            values.add(sample.value, sample.weight);
        return;
    }
    const std::size_t column = first + sample.event;
    const std::uint32_t row = counts.samples.add(key, column, sample.weight);
    if (sample.context0 != 0 && captures_calls_[profiler] &&
        sample.context0 < stacks_.contexts().table().size())
        counts.contexts.add(static_cast<std::uint32_t>(sample.context0), row, column,
                            sample.weight);
}

std::vector<std::uint64_t> Collection::totals(std::size_t profiler) const {
    std::vector<std::uint64_t> sums(session_.profilers[profiler]->events().size());
    for (std::size_t row = 0; row < counts_.samples.rows(); ++row) {
        const auto counts = counts_.samples.counts(row).subspan(session_.columns.first(profiler));
        for (std::size_t event = 0; event < sums.size(); ++event) sums[event] += counts[event];
    }
    return sums;
}

void Collection::incomplete(const std::string& why) {
    if (incomplete_.empty()) incomplete_ = why;
}

}  // namespace assay::collector
