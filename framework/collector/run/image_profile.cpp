#include "framework/collector/run/image_profile.h"

#include "framework/collector/results/call_counts.h"
#include "framework/collector/results/groups.h"
#include "framework/collector/results/profile.h"
#include "framework/collector/results/shares.h"
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

ImageProfile::ImageProfile(Session& session, const Image& image)
    : session_(session), image_(image), counts_(session.columns.size()) {
    counts_.contexts.divides = session.settings.contexts;
    counts_.objects.divides = session.settings.objects;
    counts_.threads.divides = session.settings.threads;
}

std::vector<bool> ImageProfile::columns_that(
    const std::function<bool(std::size_t profiler, std::size_t event)>& is_one) const {
    std::vector<bool> columns(session_.columns.size());
    for (std::size_t i = 0; i < session_.profilers.size(); ++i)
        for (std::size_t event = 0; event < session_.profilers[i]->events().size(); ++event)
            columns[session_.columns.first(i) + event] = is_one(i, event);
    return columns;
}

template <typename Visit>
void ImageProfile::for_each_column(const Visit& visit) const {
    for (std::size_t i = 0; i < session_.profilers.size(); ++i) {
        const ProfilerHandle& profiler = *session_.profilers[i];
        if (profiler.lost()) continue;
        for (std::size_t event = 0; event < profiler.events().size(); ++event)
            if (!profiler.leaves_out(event))
                visit(profiler, event, session_.columns.first(i) + event);
    }
}

void ImageProfile::add_profiler(const ProfilerHandle& profiler, bool captures_calls) {
    captures_calls_.push_back(captures_calls);
    described_.push_back(profiler.descriptions().size());
    first_list_.push_back(static_cast<std::uint32_t>(list_names_.size()));
    for (const std::string& list : profiler.value_lists())
        list_names_.push_back(list.empty() ? profiler.name() : profiler.name() + "." + list);
}

void ImageProfile::take(std::size_t profiler, const vsample_t& sample, std::uint32_t mapping,
                        const ContextTree& contexts) {
    Counts* counts = &counts_;
    // Each point was replayed by itself, so numbers of parts and contexts differ between points.
    if (sample.context1 != 0 && has_points()) return;
    if (sample.context1 != 0)
        counts =
            &parts_.try_emplace({profiler, sample.context1}, session_.columns.size()).first->second;
    add(*counts, profiler, {sample.pc, mapping}, sample, contexts);
}

void ImageProfile::add(Counts& counts, std::size_t profiler, const SampleDatabase::Key& key,
                       const vsample_t& sample, const ContextTree& contexts) const {
    const std::size_t first = session_.columns.first(profiler);
    if (ProfilerHandle::is_value(sample)) {
        // Adds a row even if it gets no count.
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
    const auto tell = [&](Breakdown& breakdown, bool is_known, std::uint32_t group) {
        breakdown.tell(is_known ? group : Breakdown::kNoGroup, row, column, sample.weight);
    };
    if (counts.objects.divides && origin.object != ReferencedObjects::kAsReferences)
        tell(counts.objects, is_of_data(session_.columns.event(column).unit), origin.object);
    if (counts.threads.divides) tell(counts.threads, true, origin.thread);
    const bool all_have_contexts = session_.settings.contexts;
    if (captures_calls_[profiler] || all_have_contexts)
        tell(counts.contexts, known && (origin.context != 0 || all_have_contexts), origin.context);
}

std::vector<std::uint32_t> ImageProfile::rows_of_instructions(Feed& feed) const {
    const CodeTables code = feed.reader().code();
    std::vector<std::uint32_t> rows;
    rows.reserve(code.instrs.size());
    AddressMap::Finder mappings(feed.reader().addresses());
    for (const trace_instr_t& instr : code.instrs)
        rows.push_back(counts_.samples.find({instr.pc, mappings.find(instr.pc)}));
    return rows;
}

void ImageProfile::divide_by_executions(Breakdown& breakdown, const std::vector<bool>& columns,
                                        Feed& feed, const Executions& executions,
                                        std::span<const std::uint32_t> alike) {
    if (!executions) return;
    ExecutionShares shares({feed.reader().code(), feed.executions(), feed.mispredictions(),
                            rows_of_instructions(feed)},
                           counts_.untold(breakdown, columns), columns.size(), alike);
    executions([&](std::span<const ContextExecutions> executed) {
        shares.add(executed, breakdown.counts);
    });
}

void ImageProfile::divide_among_objects(Feed& feed) {
    const std::vector<bool> columns = columns_that([&](std::size_t profiler, std::size_t event) {
        return is_of_data(session_.columns.event(session_.columns.first(profiler) + event).unit);
    });
    const ReferenceShares shares(feed.objects()->counts(), feed.reader().code(),
                                 rows_of_instructions(feed));
    shares.add(counts_.untold(counts_.objects, columns), columns.size(), counts_.objects.counts);
}

void ImageProfile::divide_among_threads(Feed& feed) {
    std::vector<std::uint32_t> rows(counts_.samples.rows());
    std::iota(rows.begin(), rows.end(), 0);
    divide_by_executions(counts_.threads, std::vector<bool>(session_.columns.size(), true), feed,
                         feed.executions_by_thread(), rows);
}

// Skips profilers that capture calls, because they know which counts have no context. Skips calls,
// because they count in the context that they enter.
void ImageProfile::divide_among_contexts(Feed& feed, const ProfileWriter& writer,
                                         std::span<const std::uint32_t> alike, Profile& profile) {
    const std::vector<bool> columns = columns_that([&](std::size_t profiler, std::size_t event) {
        return !captures_calls_[profiler] && !session_.profilers[profiler]->lost() &&
               session_.columns.event(session_.columns.first(profiler) + event).unit != "calls";
    });
    const Executions executions = feed.executions_by_context();
    const std::vector<bool> first_rows = writer.first_of_functions();
    const std::vector<std::uint32_t> rows = rows_of_instructions(feed);
    std::vector<bool> firsts;
    firsts.reserve(rows.size());
    for (const std::uint32_t row : rows)
        firsts.push_back(row != SampleDatabase::kNoRow && first_rows[row]);
    // The first instruction of a function is known only if all executed ones have rows.
    for (std::size_t i = 0; i < rows.size() && i < feed.executions().size(); ++i)
        if (feed.executions()[i] != 0 && rows[i] == SampleDatabase::kNoRow)
            firsts.assign(rows.size(), false);
    const CodeTables code = feed.reader().code();
    CallCounts counts(code, profile.contexts, profile.calls, firsts);
    const auto counted = [&](const Feed::TakeExecutions& take) {
        executions([&](std::span<const ContextExecutions> executed) {
            counts.add(executed);
            take(executed);
        });
    };
    divide_by_executions(counts_.contexts, columns, feed,
                         executions ? Executions(counted) : Executions(), alike);
    profile.jumped = counts.jumped();
}

// Returns the data references by row. Each execution of an instruction with references counts once.
std::vector<std::uint64_t> ImageProfile::references(Feed& feed) const {
    std::vector<std::uint64_t> references(counts_.samples.rows());
    const CodeTables code = feed.reader().code();
    if (feed.executions().size() < code.instrs.size()) return references;
    const std::vector<std::uint32_t> rows = rows_of_instructions(feed);
    for (const trace_site_t& site : code.sites) {
        const bool is_data = site.kind == TRACE_SITE_READ || site.kind == TRACE_SITE_WRITE ||
                             site.kind == TRACE_SITE_MODIFY;
        if (is_data && rows[site.instr] != SampleDatabase::kNoRow)
            references[rows[site.instr]] += feed.executions()[site.instr];
    }
    return references;
}

void ImageProfile::scale(const Sampling& sampling) {
    const std::vector<bool> unscaled = columns_that([&](std::size_t profiler, std::size_t event) {
        return session_.profilers[profiler]->is_unscaled(event);
    });
    counts_.scale(sampling, unscaled);
    for (auto& [part, counts] : parts_) counts.scale(sampling, unscaled);
}

// Returns a text for people about the errors of the columns.
std::string ImageProfile::errors(const Sampling& sampling) const {
    std::string text;
    for_each_column([&](const ProfilerHandle& profiler, std::size_t event, std::size_t column) {
        text += (text.empty() ? "" : ", ") + session_.columns.event(column).name;
        const bool known = profiler.told_total(event) && sampling.tells_errors();
        const auto error = known ? sampling.error(column) : std::nullopt;
        const std::string why = profiler.why_no_error(event);
        text += profiler.is_unscaled(event) ? " not scaled"
                : !why.empty()              ? fmt::format(" unknown ({})", why)
                : error                     ? fmt::format(" {:.1f} %", 100 * *error)
                : known                     ? " none counted"
                                            : " unknown";
    });
    return text;
}

// Returns how threads took turns, if there were several or the user has asked for an order.
std::string ImageProfile::schedule(std::uint32_t threads) const {
    const std::uint32_t slice = session_.settings.slice;
    if (slice != 0) return fmt::format("fair, one thread at a time for {} instructions", slice);
    if (threads == 1) return "";
    return fmt::format(
        "parallel, {} threads; figures of caches that they share are estimates, and other ones in "
        "another run (see --schedule)",
        threads);
}

// The last bytes of a direct jump are the distance to its target (SDM volume 2, JMP and Jcc).
void ImageProfile::add_jumps(Profile& profile, Feed& feed) {
    constexpr std::uint16_t kShort = TRACE_OPCODE(0, 0xeb), kNear = TRACE_OPCODE(0, 0xe9);
    const std::span<const std::uint64_t> executions = feed.executions();
    for (std::size_t i = 0; i < executions.size(); ++i) {
        const trace_instr_t& instr = feed.reader().code().instrs[i];
        const bool conditional = instr.flags & TRACE_INSTR_CONDITIONAL;
        if (executions[i] == 0) continue;
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

// The result has no columns yet.
Profile ImageProfile::profile_of(const Counts& counts, Feed& feed,
                                 const std::string& incomplete) const {
    Profile profile{.header = {},
                    .columns = {},
                    .counts = &counts,
                    .list_names = std::vector<std::string>(list_names_.size()),
                    .contexts = feed.contexts().table(),
                    .objects = feed.objects() ? &feed.objects()->memory() : nullptr,
                    .thread_names = &feed.reader().thread_names(),
                    .addresses = &feed.reader().addresses(),
                    .symbolizer = &session_.symbolizer,
                    .generated = &generated_,
                    .dump_instructions = session_.settings.dump_instructions,
                    .types = session_.settings.types,
                    .debug_cache = session_.debug_cache,
                    .own = OwnCode(session_.settings.own)};
    profile.header.command = image_.command;
    profile.header.pid = static_cast<std::uint32_t>(image_.pid);
    profile.header.incomplete = incomplete;
    if (!image_.rank.empty()) profile.header.descriptions.emplace_back("Rank", image_.rank);
    const std::string schedule = this->schedule(feed.reader().counts().threads());
    if (!schedule.empty()) profile.header.descriptions.emplace_back("Schedule", schedule);
    const Sampling& sampling = feed.sampling();
    if (sampling.wanted()) {
        profile.header.descriptions.emplace_back(events::kSampled, sampling.description());
        if (!has_points())
            profile.header.descriptions.emplace_back(events::kSamplingError, errors(sampling));
    }
    return profile;
}

void ImageProfile::add_columns(Profile& profile, std::size_t profiler) const {
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
    std::vector<events::Derived>& figures = profile.header.derived;
    for (const events::Derived& figure : session_.columns.derived(profiler)) {
        if (!events::is_computable(figure.formula, profile.header.events)) continue;
        const auto cycles = std::find_if(
            figures.begin(), figures.end(),
            [](const events::Derived& other) { return other.name == events::kCycles; });
        if (figure.name == events::kCycles && cycles != figures.end())
            cycles->formula += " + " + figure.formula;
        else
            figures.push_back(figure);
    }
    // Later descriptions are about the one point that the profiler has seen.
    const std::span all(of.descriptions());
    append(profile.header.descriptions,
           has_points() ? all.first(std::min(described_[profiler], all.size())) : all);
}

void ImageProfile::add_series(Profile& profile) const {
    if (has_points()) return;  // they would be of one point only
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

// First divides counts without a group among objects, threads and contexts. The sources determine
// which rows are alike.
void ImageProfile::write(Feed& feed, const std::string& incomplete, bool replaced) {
    std::vector<std::string> mapped_files;
    for (const Mapping& mapping : feed.reader().addresses().mappings())
        mapped_files.push_back(*mapping.path);
    generated_ =
        symbols::GeneratedCode::of_process(image_.pid, mapped_files, session_.begin_of_run);
    if (feed.objects()) {
        divide_among_objects(feed);
        feed.objects()->memory().areas().read_debug_information();
        feed.objects()->memory().end();
    }
    if (counts_.threads.divides) divide_among_threads(feed);

    Profile profile = profile_of(counts_, feed, incomplete);
    profile.all_have_contexts = session_.settings.contexts;
    if (profile.types) profile.references = references(feed);
    for (std::size_t i = 0; i < session_.profilers.size(); ++i)
        if (!session_.profilers[i]->lost()) add_columns(profile, i);
    add_series(profile);
    if (!counts_.contexts.counts.empty() || profile.all_have_contexts) add_jumps(profile, feed);
    if (profile.columns.empty()) return;  // profilers without events write their own output

    if (profile.all_have_contexts) profile.calls = added_up(feed.calls());
    ProfileWriter writer(profile);
    if (profile.all_have_contexts) {
        const std::vector<std::uint32_t> alike = writer.alike();
        divide_among_contexts(feed, writer, alike, profile);
    }
    const std::string& out = session_.settings.out;
    const std::string file = replaced ? file_of_image(out, image_) : file_of_process(out, image_);
    try {
        writer.write(file);
        file_ = file;
    } catch (const Error& e) {
        throw Error(fmt::format("{}; {}", e.what(), fall_back(file, writer)));
    }
    write_parts(file, feed, incomplete);
}

void ImageProfile::write_parts(const std::string& file, Feed& feed, const std::string& incomplete) {
    std::set<std::string> files{file};  // a device is written only once
    for (const auto& [part, counts] : parts_) {
        const ProfilerHandle& profiler = *session_.profilers[part.first];
        if (profiler.lost()) continue;
        const std::string& name = profiler.parts()[part.second - 1];
        std::string own = file_of_part(file, name);
        if (own == file) continue;
        // Different names of parts can give the same file name.
        for (int i = 2; !files.insert(own).second; ++i)
            own = file_of_part(file, fmt::format("{}-{}", name, i));
        Profile profile = profile_of(counts, feed, incomplete);
        add_columns(profile, part.first);
        profile.header.descriptions.emplace_back("part", name);
        ProfileWriter(profile).write(own);
        ++part_files_;
    }
}

// Writes the profile to another folder if the disk is full.
std::string ImageProfile::fall_back(const std::string& wanted, ProfileWriter& writer) const {
    const char* given = std::getenv("TMPDIR");
    const std::filesystem::path folder = given && *given ? given : "/tmp";
    const std::string path =
        folder / fmt::format("assay.out.{}", static_cast<unsigned>(image_.pid));
    if (std::filesystem::path(wanted).parent_path() == folder) return "the profile is lost";
    try {
        writer.write(path);
        return "the profile is in " + path;
    } catch (const Error& e) {
        return fmt::format("the profile is lost: {}", e.what());
    }
}

// Formats the text in the way of Cachegrind: each line begins with the process id.
std::string ImageProfile::summaries(const Sampling& sampling) const {
    std::string summaries;
    if (sampling.is_point())
        return printable_lines(
            fmt::format("=={}== Sampled: {}\n", image_.pid, sampling.description()) +
            totals_of_points());
    if (sampling.wanted())
        summaries = fmt::format("=={0}== Sampled: {1}\n=={0}== Error, 95 % confidence: {2}\n",
                                image_.pid, sampling.description(), errors(sampling));
    const std::vector<std::uint64_t> sums = totals();
    for (std::size_t i = 0; i < session_.profilers.size(); ++i) {
        if (session_.profilers[i]->lost()) continue;
        std::string text = session_.profilers[i]->summary(std::span(sums).subspan(
            session_.columns.first(i), session_.profilers[i]->events().size()));
        if (text.ends_with('\n')) text.pop_back();
        if (text.empty()) continue;
        if (!summaries.empty()) summaries += fmt::format("=={}==\n", image_.pid);
        for (const std::string& line : split(text, '\n'))
            summaries += fmt::format("=={}=={}{}\n", image_.pid, line.empty() ? "" : " ", line);
    }
    return printable_lines(summaries);
}

std::vector<ImageProfile::Total> ImageProfile::file_totals() const {
    const std::vector<std::uint64_t> sums = totals();
    std::vector<Total> found;
    for_each_column([&](const ProfilerHandle&, std::size_t, std::size_t column) {
        found.push_back({session_.columns.event(column).name, sums[column]});
    });
    return found;
}

std::vector<std::uint64_t> ImageProfile::totals() const {
    std::vector<std::uint64_t> sums(session_.columns.size());
    for (std::size_t row = 0; row < counts_.samples.rows(); ++row)
        for (std::size_t column = 0; column < sums.size(); ++column)
            sums[column] += counts_.samples.counts(row)[column];
    return sums;
}

// Replaces the profilers' own summaries, because a profiler has seen only one point.
std::string ImageProfile::totals_of_points() const {
    std::string text = fmt::format("=={}==\n", image_.pid);
    const std::vector<std::uint64_t> sums = totals();
    for_each_column([&](const ProfilerHandle&, std::size_t, std::size_t column) {
        const events::Event& event = session_.columns.event(column);
        text += fmt::format("=={}== {:<10}{:>20}  {}\n", image_.pid, event.name,
                            with_thousands(sums[column]), event.description);
    });
    return text;
}

}  // namespace assay::collector
