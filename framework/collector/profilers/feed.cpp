#include "framework/collector/profilers/feed.h"

#include "framework/isa/architecture.h"

#include <algorithm>
#include <utility>

namespace assay::collector {
namespace {

// Moves all markers before the first record, for profilers that get no records.
std::vector<trace_marker_t> before_any_record(std::span<const trace_marker_t> markers) {
    std::vector<trace_marker_t> moved(markers.begin(), markers.end());
    for (trace_marker_t& marker : moved) marker.record = 0;
    return moved;
}

}  // namespace

Feed::Feed(Segment& segment, TraceReader::Role role, int pid, const trace::Regions& regions,
           symbols::Symbolizer& symbolizer)
    : segment_(segment),
      pid_(pid),
      role_(role),
      executed_contexts_(segment, stacks_.contexts()),
      thread_contexts_(stacks_.contexts()),
      sampling_(regions),
      reader_(
          segment,
          [this](TraceReader::Source source, std::span<const trace_record_t> records,
                 std::span<const trace_marker_t> markers) { process(source, records, markers); },
          role),
      places_(reader_.addresses(), symbolizer),
      types_(reader_.addresses(), symbolizer) {}

void Feed::begin(const Wanted& wanted) {
    const trace::Spec& spec = spec_ = wanted.spec;
    interval_ = wanted.interval;
    contexts_of_all_ = wanted.contexts;
    stacks_.contexts().keep_recursion(std::max(spec.recursion, 1U));
    // The first reader also has the contexts of other processes' samples.
    const bool calls_wanted = std::any_of(
        fed_.begin(), fed_.end(), [](const Fed& fed) { return fed.profiler->captures_calls(); });
    if (spec.objects != trace::Spec::kNoObjects)
        objects_.emplace(segment_, reader_.mapped_files(), stacks_, spec, calls_wanted);
    follows_calls_ =
        spec.captures & trace::kCaptureCalls &&
        (role_ == TraceReader::Role::kFirst || contexts_of_all_ || objects_ || calls_wanted);
    tells_contexts_ = contexts_of_all_ && trace::tells_contexts(spec);
    if (sampling_.wanted()) {
        sampling_.warm_up(spec.regions.sample_warm_up);
        intervals_.estimate();
    }
    if (fed_.empty() && !at_records && !follows_calls_ && !tells_contexts_ && !sampling_.wanted())
        reader_.pass_over_records();
}

void Feed::process(TraceReader::Source source, std::span<const trace_record_t> records,
                   std::span<const trace_marker_t> markers) {
    if (at_records) at_records(source, records, markers);
    if (fed_.empty() && at_records) return;
    std::span<const std::uint32_t> contexts;
    std::vector<trace_marker_t> moved;
    if (objects_) {
        moved.assign(markers.begin(), markers.end());
        const auto followed = objects_->follow(
            {source.thread, reader_.allocations(), reader_.time()}, records, reader_.code(), moved);
        records = followed.records;
        contexts = followed.contexts;
        markers = moved;
    } else if (follows_calls_)
        contexts = stacks_.follow(source.thread, records, reader_.code());
    trace_parser view = parser(source.thread, records);
    view.footprints = reader_.footprints();
    if (tells_contexts_) contexts = executed_contexts_.follow(source.slot, records, reader_.code());
    if (spec_.threads != 0)
        contexts = thread_contexts_.follow(source.slot, source.thread, contexts, records.size());
    if (interval_ != 0 && !fed_.empty())
        view.intervals = intervals_.take(source.thread, source.slot, records, reader_.code(),
                                         sampling_.is_warm_up(source.slot));
    view.warm_up = sampling_.is_warm_up(source.slot);
    if (spec_.fetch.ways != 0) view.misses |= TRACE_FETCH_MISSES;
    if (spec_.data.ways != 0) view.misses |= TRACE_DATA_MISSES;
    std::vector<trace_marker_t> without_records;
    if (view.warm_up) without_records = before_any_record(markers);
    for_each([&](LoadedProfiler& profiler, const LoadedProfiler::SampleSink& sink) {
        view.next_interval = 0;
        view.wanted = profiler.wanted_values();
        view.next = 0;
        const bool given = !view.warm_up || profiler.warms_up();
        view.records = given ? records : records.first(0);
        view.markers = given ? markers : without_records;
        const bool has_contexts = this->has_contexts(profiler);
        view.contexts = given && has_contexts ? contexts : contexts.first(0);
        view.context_table = context_table(has_contexts);
        profiler.process(view.pid, view, sink);
    });
    const bool ends = std::any_of(markers.begin(), markers.end(), [](const trace_marker_t& marker) {
        return marker.operation == TRACE_MARKER_THREAD_END;
    });
    if (ends) stacks_.end_thread(source.thread);
    if (ends && objects_) objects_->end_thread(source.thread);
    if (sampling_.wanted() && sampling_.take(source.thread, source.slot, records, reader_.code()))
        at_totals();
}

std::vector<std::uint64_t> Feed::totals_so_far(std::size_t profiler) {
    trace_parser view = parser(0, {});
    view.counts = sampling_.executions();
    view.mispredictions = sampling_.mispredictions();
    return fed_[profiler].profiler->totals_so_far(view.pid, view);
}

std::string Feed::impossible_counts(std::chrono::duration<double> time) {
    if (!(spec_.captures & trace::kCaptureBlockCounts)) return "";
    return reader_.counts().impossible(time);
}

void Feed::end() {
    if (spec_.captures & trace::kCaptureBlockCounts)
        executions_ = reader_.counts().instruction_counts();
    mispredictions_ = reader_.counts().mispredictions();
    if (spec_.captures & trace::kCaptureContexts)
        executed_contexts_.enter_all(reader_.counts().slots());
    if (sampling_.wanted()) {
        for (std::uint32_t slot = 0; slot < reader_.counts().slots(); ++slot)
            sampling_.executed(reader_.counts().thread_of(slot), reader_.counts().executed(slot));
        for (std::uint32_t slot = 0; slot < reader_.counts().slots(); ++slot)
            sampling_.take_rest(slot, reader_.counts().block_counts(slot),
                                reader_.counts().mispredictions(slot), reader_.code());
        sampling_.take_off_warm_up(executions_, mispredictions_);
    }
    if (interval_ == 0) return;
    for (std::uint32_t slot = 0; slot < reader_.counts().slots(); ++slot)
        if (!sampling_.is_warm_up(slot))
            intervals_.take_rest(reader_.counts().thread_of(slot), slot,
                                 reader_.counts().block_counts(slot), reader_.code());
}

std::function<void(const Feed::TakeExecutions&)> Feed::executions_by_context() {
    if (!(spec_.captures & trace::kCaptureContexts)) return {};
    return [this](const TakeExecutions& take) {
        const CodeTables code = reader_.code();
        std::vector<ContextExecutions> portion;
        constexpr std::size_t kPortion = 8192;
        const auto visit = [&](const ExecutedContexts::Executed& executed) {
            const trace_block_t& block = code.blocks[executed.block];
            portion.push_back({executed.context, block.first_instr, executed.instr_count,
                               executed.executions, executed.mispredictions});
            if (portion.size() == kPortion) take(std::exchange(portion, {}));
        };
        executed_contexts_.for_each(
            reader_.counts().slots(),
            {code, executions_, mispredictions_, reader_.counts().left_early()}, visit);
        take(portion);
    };
}

std::vector<ContextCalls> Feed::calls() {
    if (!(spec_.captures & trace::kCaptureContexts)) return {};
    return executed_contexts_.calls(reader_.counts().slots());
}

std::function<void(const Feed::TakeExecutions&)> Feed::executions_by_thread() {
    if (spec_.threads == 0) return {};
    return [this](const TakeExecutions& take) {
        const CodeTables code = reader_.code();
        const std::vector<trace::PartialEvent> left_early = reader_.counts().left_early();
        for (std::uint32_t slot = 0; slot < reader_.counts().slots(); ++slot) {
            const std::uint32_t thread =
                ThreadContexts::number(slot, reader_.counts().thread_of(slot));
            std::vector<std::uint64_t> executions = reader_.counts().block_counts(slot);
            const std::vector<std::uint64_t> mispredictions = reader_.counts().mispredictions(slot);
            std::vector<ContextExecutions> portion;
            for (const trace::PartialEvent& left : left_early) {
                if (left.slot != slot) continue;
                std::uint64_t& whole = executions[left.block];
                if (left.counted) whole -= std::min(whole, left.times);
                if (left.executed != 0)
                    portion.push_back({thread, code.blocks[left.block].first_instr, left.executed,
                                       left.times, 0});
            }
            for (std::uint32_t block = 0; block < code.blocks.size(); ++block)
                if (executions[block] != 0)
                    portion.push_back({thread, code.blocks[block].first_instr,
                                       code.blocks[block].instr_count, executions[block],
                                       mispredictions.empty() ? 0 : mispredictions[block]});
            take(portion);
        }
    };
}

void Feed::finish() {
    const std::span<const Interval> rests =
        intervals_.rests([this](std::uint32_t thread) { return sampling_.executed_by(thread); });
    for_each([&](LoadedProfiler& profiler, const LoadedProfiler::SampleSink& sink) {
        trace_parser view = parser(0, {});
        view.context_table = context_table(has_contexts(profiler));
        view.intervals = rests;
        view.scale = sampling_.factor();
        profiler.finish(view.pid, view, sink);
    });
}

trace_parser Feed::parser(std::uint32_t thread, std::span<const trace_record_t> records) {
    const trace::InstructionSet& set = segment_.control().instruction_set;
    const bool is_x86 = set.emulated == 0 || set.elf_machine == isa::kX86.machine;
    return {.pid = static_cast<std::uint32_t>(pid_),
            .thread = thread,
            .records = records,
            .code = reader_.code(),
            .counts = executions_,
            .mispredictions = mispredictions_,
            .addresses = &reader_.addresses(),
            .places = &places_,
            .contexts = {},
            .context_table = {},
            .objects = objects_ ? &*objects_ : nullptr,
            .types = is_x86 ? &types_ : nullptr,
            .wanted = nullptr,
            .next = 0,
            .present = 0,
            .lacks_facts = is_x86 ? nullptr : &lacks_facts_};
}

std::span<const trace_context_t> Feed::context_table(bool given) const {
    if (!given) return {};
    return stacks_.contexts().table();
}

template <typename Call>
void Feed::for_each(const Call& call) {
    for (Fed& fed : fed_) {
        if (fed.profiler->lost()) continue;
        // Profilers emit the samples of one instruction one after the other, so a Finder is fast.
        AddressMap::Finder mappings(reader_.addresses());
        call(*fed.profiler,
             [&](const vsample_t& sample) { fed.sink(sample, mappings.find(sample.pc)); });
    }
}

}  // namespace assay::collector
