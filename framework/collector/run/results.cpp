#include "framework/collector/run/results.h"

#include "framework/collector/results/generated_names.h"
#include "framework/collector/results/object_groups.h"
#include "framework/collector/results/profile.h"
#include "framework/events/formula.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <optional>
#include <set>

namespace assay::collector {

void Results::add_profiler(const ProfilerHandle& profiler, bool captures_calls) {
    captures_calls_.push_back(captures_calls);
    described_.push_back(profiler.descriptions().size());
    first_list_.push_back(static_cast<std::uint32_t>(list_names_.size()));
    for (const std::string& list : profiler.value_lists())
        list_names_.push_back(list.empty() ? profiler.name() : profiler.name() + "." + list);
}

void Results::take(std::size_t profiler, const vsample_t& sample, std::uint32_t mapping,
                   const ContextTree& contexts) {
    Counts* counts = &counts_;
    // Each has been replayed by itself: what parts and contexts there are only that process knows.
    if (sample.context1 != 0 && has_points()) return;
    if (sample.context1 != 0)
        counts =
            &parts_.try_emplace({profiler, sample.context1}, session_.columns.size()).first->second;
    add(*counts, profiler, {sample.pc, mapping}, sample, contexts);
}

void Results::add(Counts& counts, std::size_t profiler, const SampleDatabase::Key& key,
                  const vsample_t& sample, const ContextTree& contexts) const {
    const std::size_t first = session_.columns.first(profiler);
    if (ProfilerHandle::is_value(sample)) {
        // It makes a row, even if nothing is counted there.
        TopValues& values =
            counts.hotlists.of(counts.samples.add(key, first, 0),
                               first_list_[profiler] + ProfilerHandle::list_of(sample));
        if (ProfilerHandle::is_rest(sample))
            values.add_rest(sample.weight, sample.value);
        else
            values.add(sample.value, sample.weight);
        return;
    }
    const std::size_t column = first + sample.event;
    const std::uint32_t row = counts.samples.add(key, column, sample.weight);
    if (sample.context0 == 0 || has_points()) return;
    const bool known = sample.context0 < contexts.table().size();
    const ContextTree::Origin origin =
        known ? contexts.origin(static_cast<std::uint32_t>(sample.context0))
              : ContextTree::Origin{0};
    const bool shared = origin.object == ReferencedObjects::kAsReferences;
    if (session_.settings.objects && &counts == &counts_ && !shared) {
        if (origin.object != ContextTree::kNone && is_of_data(session_.columns.event(column).unit))
            counts.objects.add(origin.object, row, column, sample.weight);
        add_told(counts.told_object, row, column, sample.weight);
    }
    const bool all_have_contexts = session_.settings.contexts;
    if (session_.settings.threads && &counts == &counts_) {
        if (origin.thread != ContextTree::kNone)
            counts.threads.add(origin.thread, row, column, sample.weight);
        add_told(counts.told_thread, row, column, sample.weight);
    }
    if (!captures_calls_[profiler] && !all_have_contexts) return;
    if (known && (origin.context != 0 || all_have_contexts))
        counts.contexts.add(origin.context, row, column, sample.weight);
    if (all_have_contexts && &counts == &counts_) add_told(counts.told, row, column, sample.weight);
}

void Results::add_told(std::vector<std::uint64_t>& told, std::uint32_t row, std::size_t column,
                       std::uint64_t weight) const {
    const std::size_t end = (row + std::size_t{1}) * session_.columns.size();
    if (told.size() < end) told.resize(end + end / 2);
    told[end - session_.columns.size() + column] += weight;
}

std::uint64_t Results::untold(std::span<const std::uint64_t> told, std::uint32_t row,
                              std::size_t column) const {
    const std::size_t at = row * session_.columns.size() + column;
    return counts_.samples.counts(row)[column] - (at < told.size() ? told[at] : 0);
}

// A profiler that captures calls knows what is in no context.
std::vector<std::uint64_t> Results::untold_of_contexts() const {
    const std::size_t columns = session_.columns.size();
    std::vector<std::uint64_t> untold(counts_.samples.rows() * columns);
    for (std::size_t i = 0; i < session_.profilers.size(); ++i) {
        const std::size_t first = session_.columns.first(i);
        const std::size_t events = session_.profilers[i]->events().size();
        if (captures_calls_[i] || session_.profilers[i]->lost()) continue;
        for (std::size_t column = first; column < first + events; ++column) {
            // They count where they lead to.
            if (session_.columns.event(column).unit == "calls") continue;
            for (std::uint32_t row = 0; row < counts_.samples.rows(); ++row)
                untold[row * columns + column] = this->untold(counts_.told, row, column);
        }
    }
    return untold;
}

std::vector<std::uint32_t> Results::rows_of_instructions(const Origin& origin) const {
    std::vector<std::uint32_t> rows;
    rows.reserve(origin.code.instrs.size());
    AddressMap::Finder mappings(origin.addresses);
    for (const trace_instr_t& instr : origin.code.instrs)
        rows.push_back(counts_.samples.find({instr.pc, mappings.find(instr.pc)}));
    return rows;
}

// Once, even if the file is written twice.
void Results::share_counts(const Origin& origin, std::span<const std::uint32_t> alike) {
    if (std::exchange(shared_, true)) return;
    ContextShares shares(
        {origin.code, origin.executions, origin.mispredictions, rows_of_instructions(origin)},
        untold_of_contexts(), session_.columns.size(), alike);
    origin.executions_by_context([&](std::span<const ContextExecutions> executions) {
        shares.add(executions, counts_.contexts);
    });
}

// Once, even if the file is written twice.
void Results::share_among_objects(const Origin& origin) {
    if (std::exchange(objects_shared_, true)) return;
    const ObjectShares shares(origin.objects->counts(), origin.code, rows_of_instructions(origin));
    const std::size_t columns = session_.columns.size();
    for (std::size_t column = 0; column < columns; ++column) {
        if (!is_of_data(session_.columns.event(column).unit)) continue;
        const auto untold = [&](std::uint32_t row) {
            return this->untold(counts_.told_object, row, column);
        };
        shares.add(column, untold, counts_.objects);
    }
}

// Once, even if the file is written twice.
void Results::share_among_threads(const Origin& origin) {
    if (std::exchange(threads_shared_, true)) return;
    const std::size_t columns = session_.columns.size();
    std::vector<std::uint64_t> left(counts_.samples.rows() * columns);
    std::vector<std::uint32_t> rows(counts_.samples.rows());
    std::iota(rows.begin(), rows.end(), 0);
    for (const std::uint32_t row : rows)
        for (std::size_t column = 0; column < columns; ++column)
            left[row * columns + column] = untold(counts_.told_thread, row, column);
    ContextShares shares(
        {origin.code, origin.executions, origin.mispredictions, rows_of_instructions(origin)}, left,
        columns, rows);
    origin.executions_by_thread([&](std::span<const ContextExecutions> executions) {
        shares.add(executions, counts_.threads);
    });
}

// By row: references to data, executions of instructions that have one counted once for each.
std::vector<std::uint64_t> Results::references(const Origin& origin) const {
    std::vector<std::uint64_t> references(counts_.samples.rows());
    if (origin.executions.size() < origin.code.instrs.size()) return references;
    const std::vector<std::uint32_t> rows = rows_of_instructions(origin);
    for (const trace_site_t& site : origin.code.sites) {
        const bool is_data = site.kind == TRACE_SITE_READ || site.kind == TRACE_SITE_WRITE ||
                             site.kind == TRACE_SITE_MODIFY;
        if (is_data && rows[site.instr] != SampleDatabase::kNoRow)
            references[rows[site.instr]] += origin.executions[site.instr];
    }
    return references;
}

void Results::scale(const Sampling& sampling) {
    scale(counts_, sampling);
    for (auto& [part, counts] : parts_) scale(counts, sampling);
}

void Results::scale(Counts& counts, const Sampling& sampling) const {
    std::vector<bool> unscaled(session_.columns.size());
    for (std::size_t i = 0; i < session_.profilers.size(); ++i)
        for (std::size_t event = 0; event < session_.profilers[i]->events().size(); ++event)
            unscaled[session_.columns.first(i) + event] = session_.profilers[i]->is_unscaled(event);
    std::uint64_t left = 0;
    counts.samples.change_rows(
        [&](std::span<std::uint64_t> row) { sampling.scale_row(row, unscaled, left); });
    counts.contexts.change_counts([&](std::size_t column, std::uint64_t count) {
        return unscaled[column] ? count : sampling.scaled_part(count);
    });
    counts.hotlists.scale(sampling.factor());
}

// Of the columns, for people.
std::string Results::errors(const Sampling& sampling) const {
    std::string text;
    for (std::size_t i = 0; i < session_.profilers.size(); ++i) {
        const ProfilerHandle& profiler = *session_.profilers[i];
        if (profiler.lost()) continue;
        for (std::size_t event = 0; event < profiler.events().size(); ++event) {
            if (profiler.leaves_out(event)) continue;
            text += (text.empty() ? "" : ", ") +
                    session_.columns.event(session_.columns.first(i) + event).name;
            const bool known = profiler.told_total(event) && sampling.tells_errors();
            const auto error =
                known ? sampling.error(session_.columns.first(i) + event) : std::nullopt;
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

// How threads took turns, where there were several or the user has asked for it.
std::string Results::schedule_of(const Origin& origin) const {
    const std::uint32_t slice = session_.settings.slice;
    if (slice != 0) return fmt::format("fair, one thread at a time for {} instructions", slice);
    if (origin.threads == 1) return "";
    return fmt::format(
        "parallel, {} threads; figures of caches that they share are estimates, and other ones in "
        "another run (see --schedule)",
        origin.threads);
}

// Of one instruction: its target is told by its last bytes (SDM volume 2, JMP and Jcc).
void Results::add_jumps(Profile& profile, const Origin& origin) {
    constexpr std::uint16_t kShort = TRACE_OPCODE(0, 0xeb), kNear = TRACE_OPCODE(0, 0xe9);
    for (std::size_t i = 0; i < origin.executions.size(); ++i) {
        const trace_instr_t& instr = origin.code.instrs[i];
        const bool conditional = instr.flags & TRACE_INSTR_CONDITIONAL;
        if (origin.executions[i] == 0) continue;
        constexpr unsigned kNoJump = TRACE_INSTR_CALL | TRACE_INSTR_RETURN;
        if (instr.flags & TRACE_INSTR_INDIRECT && !(instr.flags & kNoJump))
            profile.jumps.push_back({instr.pc, 0});
        if (!conditional && instr.opcode != kShort && instr.opcode != kNear) continue;
        std::int8_t near = 0;
        std::int32_t far = 0;
        const bool is_far = instr.opcode == kNear || (conditional && instr.length >= 6);
        std::memcpy(&near, instr.bytes + instr.length - sizeof near, sizeof near);
        if (is_far) std::memcpy(&far, instr.bytes + instr.length - sizeof far, sizeof far);
        const std::int64_t distance = is_far ? far : near;
        profile.jumps.push_back(
            {instr.pc, instr.pc + instr.length + static_cast<std::uint64_t>(distance)});
    }
}

// Without columns.
Profile Results::profile_of(const Counts& counts, const Origin& origin) const {
    Profile profile{.header = {},
                    .columns = {},
                    .samples = &counts.samples,
                    .hotlists = &counts.hotlists,
                    .list_names = std::vector<std::string>(list_names_.size()),
                    .context_counts = &counts.contexts,
                    .share_counts = {},
                    .contexts = origin.contexts,
                    .jumps = {},
                    .object_counts = &counts.objects,
                    .objects = origin.objects ? &origin.objects->memory() : nullptr,
                    .thread_counts = &counts.threads,
                    .thread_names = session_.settings.threads ? origin.thread_names : nullptr,
                    .addresses = &origin.addresses,
                    .symbolizer = &session_.symbolizer,
                    .generated = &generated_,
                    .dump_instructions = session_.settings.dump_instructions,
                    .types = session_.settings.types,
                    .debug_cache = session_.debug_cache,
                    .references = {}};
    profile.header.command = image_.command;
    profile.header.pid = static_cast<std::uint32_t>(image_.pid);
    profile.header.incomplete = origin.incomplete;
    if (!image_.rank.empty()) profile.header.descriptions.emplace_back("Rank", image_.rank);
    const std::string schedule = schedule_of(origin);
    if (!schedule.empty()) profile.header.descriptions.emplace_back("Schedule", schedule);
    if (origin.sampling.wanted()) {
        profile.header.descriptions.emplace_back("Sampled", origin.sampling.description());
        if (!has_points())
            profile.header.descriptions.emplace_back("Error, 95 % confidence",
                                                     errors(origin.sampling));
    }
    return profile;
}

void Results::add_columns(Profile& profile, std::size_t profiler) const {
    const ProfilerHandle& of = *session_.profilers[profiler];
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
    // What it says behind its start is of the one point that it has seen.
    const std::span all(of.descriptions());
    append(profile.header.descriptions,
           has_points() ? all.first(std::min(described_[profiler], all.size())) : all);
}

void Results::add_series(Profile& profile) const {
    if (has_points()) return;  // likewise
    std::vector<events::Series>& kept = profile.header.series;
    std::size_t given = 0;
    for (const auto& profiler : session_.profilers) {
        if (profiler->lost()) continue;
        const std::vector<events::Series>& series = profiler->series();
        given += series.size();
        const std::size_t room = events::kMostSeries - kept.size();
        kept.insert(kept.end(), series.begin(),
                    series.begin() + static_cast<std::ptrdiff_t>(std::min(room, series.size())));
    }
    if (given > kept.size())
        log::remark(fmt::format("{} series of the profilers are left out: a file has at most {}",
                                given - kept.size(), events::kMostSeries));
}

void Results::write(const Origin& origin) {
    generated_ = read_generated_names(image_.pid, origin.addresses, session_.begin_of_run);
    if (origin.objects != nullptr) {
        share_among_objects(origin);
        origin.objects->memory().read_debug_information();
        origin.objects->memory().end();
    }
    if (origin.executions_by_thread) share_among_threads(origin);
    Profile profile = profile_of(counts_, origin);
    if (profile.types) profile.references = references(origin);
    for (std::size_t i = 0; i < session_.profilers.size(); ++i)
        if (!session_.profilers[i]->lost()) add_columns(profile, i);
    add_series(profile);
    if (!counts_.contexts.empty() || session_.settings.contexts) add_jumps(profile, origin);
    if (session_.settings.contexts && origin.executions_by_context)
        profile.share_counts = [this, &origin](std::span<const std::uint32_t> alike) {
            share_counts(origin, alike);
        };
    if (profile.columns.empty()) return;  // profilers without events have their own output
    const std::string& out = session_.settings.out;
    const std::string file =
        origin.replaced ? file_of_image(out, image_) : file_of_process(out, image_);
    try {
        write_profile(file, profile);
        file_ = file;
    } catch (const Error& e) {
        throw Error(fmt::format("{}; {}", e.what(), fall_back(file, profile)));
    }
    write_parts(file, origin);
}

void Results::write_parts(const std::string& file, const Origin& origin) {
    std::set<std::string> files{file};  // a device is not written once more
    for (const auto& [part, counts] : parts_) {
        const ProfilerHandle& profiler = *session_.profilers[part.first];
        if (profiler.lost()) continue;
        const std::string& name = profiler.parts()[part.second - 1];
        std::string own = file_of_part(file, name);
        if (own == file) continue;
        // Names that differ in what a file's name has not.
        for (int i = 2; !files.insert(own).second; ++i)
            own = file_of_part(file, fmt::format("{}-{}", name, i));
        Profile profile = profile_of(counts, origin);
        add_columns(profile, part.first);
        profile.header.descriptions.emplace_back("part", name);
        write_profile(own, profile);
        ++part_files_;
    }
}

// Saves the profile from a full disk.
std::string Results::fall_back(const std::string& wanted, const Profile& profile) const {
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

// As Cachegrind's readers know it: each line behind the process id.
std::string Results::summaries(const Sampling& sampling) const {
    std::string summaries;
    if (sampling.is_point())
        return printable_lines(
            fmt::format("=={}== Sampled: {}\n", image_.pid, sampling.description()) +
            totals_of_points());
    if (sampling.wanted())
        summaries = fmt::format("=={0}== Sampled: {1}\n=={0}== Error, 95 % confidence: {2}\n",
                                image_.pid, sampling.description(), errors(sampling));
    for (std::size_t i = 0; i < session_.profilers.size(); ++i) {
        if (session_.profilers[i]->lost()) continue;
        std::string text = session_.profilers[i]->summary(totals(i));
        if (text.ends_with('\n')) text.pop_back();
        if (text.empty()) continue;
        if (!summaries.empty()) summaries += fmt::format("=={}==\n", image_.pid);
        for (const std::string& line : split(text, '\n'))
            summaries += fmt::format("=={}=={}{}\n", image_.pid, line.empty() ? "" : " ", line);
    }
    return printable_lines(summaries);
}

std::vector<Results::Total> Results::file_totals() const {
    std::vector<Total> found;
    for (std::size_t i = 0; i < session_.profilers.size(); ++i) {
        const ProfilerHandle& profiler = *session_.profilers[i];
        if (profiler.lost()) continue;
        const std::vector<std::uint64_t> sums = totals(i);
        for (std::size_t event = 0; event < sums.size(); ++event)
            if (!profiler.leaves_out(event))
                found.push_back(
                    {session_.columns.event(session_.columns.first(i) + event).name, sums[event]});
    }
    return found;
}

std::vector<std::uint64_t> Results::totals(std::size_t profiler) const {
    std::vector<std::uint64_t> sums(session_.profilers[profiler]->events().size());
    for (std::size_t row = 0; row < counts_.samples.rows(); ++row) {
        const auto counts = counts_.samples.counts(row).subspan(session_.columns.first(profiler));
        for (std::size_t event = 0; event < sums.size(); ++event) sums[event] += counts[event];
    }
    return sums;
}

}  // namespace assay::collector
