#include "plugins/effective_address/tracker.h"

#include "plugins/effective_address/hash.h"

#include <algorithm>
#include <utility>

namespace effective_address {

std::size_t Tracker::KeyHash::operator()(const Key& key) const {
    return hash(key.pc ^ hash(key.operand));
}

Tracker::Tracker() {
    add_operand(0, 1, 0, false);
}

void Tracker::add_operand(std::uint64_t pc, std::uint16_t bytes, std::uint8_t number, bool writes) {
    operands_.emplace_back(pc, bytes, number, writes);
    kinds_.push_back(Operand::kRuns);
}

void Tracker::learn(std::span<const trace_site_t> sites, const trace_instr_t* instrs) {
    for (std::size_t i = operand_of_site_.size(); i < sites.size(); ++i) {
        operand_of_site_.push_back(operand_of(sites[i], instrs[sites[i].instr]));
        sites_.resize(operands_.size(), static_cast<std::uint32_t>(i));
    }
}

std::uint32_t Tracker::operand_of(const trace_site_t& site, const trace_instr_t& instr) {
    const bool data = site.kind == TRACE_SITE_READ || site.kind == TRACE_SITE_WRITE ||
                      site.kind == TRACE_SITE_MODIFY;
    if (!data || site.bytes == 0) return 0;
    const Key key{instr.pc, std::uint64_t{site.operand} << 24 | std::uint64_t{site.kind} << 16 |
                                std::uint64_t{site.bytes}};
    const auto next = static_cast<std::uint32_t>(operands_.size());
    const auto [found, added] = numbers_.try_emplace(key, next);
    if (added) add_operand(instr.pc, site.bytes, site.operand, site.kind != TRACE_SITE_READ);
    return found->second;
}

void Tracker::process(std::uint32_t number, bool alone, std::span<const trace_record_t> records) {
    if (notes_changes_) note(records);
    Thread& thread = thread_of(number);
    if (thread.alone && !alone) {
        end_runs(thread);  // what was before is not shared
        thread.alone = false;
    }
    const auto follow_any = [&](std::span<const trace_record_t> some) {
        alone ? follow<true>(thread, some) : follow<false>(thread, some);
    };
    // Between two samples there is a pseudo-random number of records, lest it follow a rhythm of
    // the program.
    while (next_sample_ < records.size()) {
        follow_any(records.first(next_sample_));
        sample(thread, records[next_sample_]);
        records = records.subspan(next_sample_);
        next_sample_ = 1 + random_() % (2 * Operand::kSampleOf - 1);
    }
    next_sample_ -= records.size();
    follow_any(records);
}

// The profiler's time goes here. A branch is worth its while only if it can be predicted: which
// kind an operand is of follows from the program's path, and that a run goes on is what makes its
// kind.
template <bool kAlone>
void Tracker::follow(Thread& thread, std::span<const trace_record_t> records) {
    const std::uint32_t* const operands = operand_of_site_.data();
    const Operand::Kind* const kinds = kinds_.data();
    Stream* const streams = thread.streams.data();
    for (const trace_record_t& record : records) {
        const std::uint32_t operand = operands[record.site];
        const std::uint64_t address = record.value;
        Stream& stream = streams[operand];
        if (kinds[operand] == Operand::kRuns) {
            pass_left_out(stream, record.aux);
            const std::uint64_t last = std::exchange(stream.last, address);
            const auto stride = static_cast<std::int64_t>(address - last);
            if (stride == stream.stride)
                ++stream.count;
            else
                begin_run(thread, operand, {last, stream.stride, stream.count}, stride,
                          record.site);
            continue;
        }
        if ((stream.count | record.aux) != 0) [[unlikely]] {
            pass_left_out(stream, record.aux);
            end_run(thread, operand);
        }
        stream.stride = static_cast<std::int64_t>(address - std::exchange(stream.last, address));
        Operand& known = operands_[operand];
        const Operand::Kind kind = kinds[operand];
        bool taken = false;
        if (kind == Operand::kIrregular)
            taken = known.add_single(address, budget_);
        else if (kind == Operand::kFew)
            taken = known.add_known(address);
        else
            taken = take_with_stride(stream, operand);
        if (!taken) [[unlikely]]
            add_other(operand, address);
        if constexpr (!kAlone) {
            thread.latest_site = std::max(thread.latest_site, record.site);
            share(thread, operand, {address, 0, 1}, thread.latest_site);
        }
    }
}

void Tracker::pass_left_out(Stream& stream, std::uint32_t references) {
    stream.last += references * static_cast<std::uint64_t>(stream.stride);
    stream.count += references;
}

// `ended` has come to its end, since the next reference is `stride` away. What is no reference has
// operand 0.
void Tracker::begin_run(Thread& thread, std::uint32_t operand, const ReferenceRun& ended,
                        std::int64_t stride, std::uint32_t site) {
    Stream& stream = thread.streams.data()[operand];
    const bool had_first = stream.first;
    if (!thread.alone) thread.latest_site = std::max(thread.latest_site, site);
    const std::uint32_t since = std::exchange(stream.since, thread.latest_site);
    stream.first = !stream.known && ended.count == 0;
    stream.known = true;
    stream.stride = stride;
    stream.count = 1;
    if (operand == 0 || ended.count == 0) return;
    add_run(thread, operand, ended, had_first, since);
    if (kinds_[operand] == Operand::kRuns) return;
    // The reference that began the new run is the first that is taken alone.
    stream.count = 0;
    add_stride(stream, operand);
    add_other(operand, stream.last);
    share(thread, operand, {stream.last, 0, 1}, stream.since);
}

// What follows may go on with the same stride.
void Tracker::end_run(Thread& thread, std::uint32_t operand) {
    Stream& stream = thread.streams.data()[operand];
    const ReferenceRun run = stream.run();
    stream.count = 0;
    if (operand != 0 && run.count != 0)
        add_run(thread, operand, run, std::exchange(stream.first, false), stream.since);
}

void Tracker::add_run(const Thread& thread, std::uint32_t operand, const ReferenceRun& run,
                      bool first, std::uint32_t since) {
    if (first) {
        add_run(thread, operand, {run.address(run.count - 1), kNoStride, 1}, false, since);
        if (run.count > 1)
            add_run(thread, operand, {run.end, run.stride, run.count - 1}, false, since);
        return;
    }
    operands_[operand].add(run, budget_);
    kinds_[operand] = operands_[operand].kind();
    share(thread, operand, run, since);
}

void Tracker::add_other(std::uint32_t operand, std::uint64_t address) {
    operands_[operand].add_other(address, budget_);
    kinds_[operand] = operands_[operand].kind();
}

// In bzip2, 2 % of the records are of operands with few strides. Within follow(), this cost 5 % of
// the time for all others.
[[gnu::noinline]] bool Tracker::take_with_stride(Stream& stream, std::uint32_t operand) {
    Operand& known = operands_[operand];
    const Operand::Kind kind = kinds_[operand];
    if (!stream.known || !known.count_stride(stream.stride)) add_stride(stream, operand);
    return kind & Operand::kIrregular ? known.add_single(stream.last, budget_)
                                      : known.add_known(stream.last);
}

void Tracker::add_stride(Stream& stream, std::uint32_t operand) {
    if (!(kinds_[operand] & Operand::kFewStrides)) return;
    if (std::exchange(stream.known, true))
        operands_[operand].add_stride(stream.stride);
    else
        operands_[operand].add_first();
    kinds_[operand] = operands_[operand].kind();
}

void Tracker::sample(const Thread& thread, const trace_record_t& record) {
    const std::uint32_t operand = operand_of_site_[record.site];
    if (kinds_[operand] == Operand::kRuns) return;
    Stream stream = thread.streams.data()[operand];
    pass_left_out(stream, record.aux);
    operands_[operand].sample(record.value, static_cast<std::int64_t>(record.value - stream.last));
}

void Tracker::share(const Thread& thread, std::uint32_t operand, const ReferenceRun& run,
                    std::uint32_t since) {
    if (!thread.alone) sharing_.add(run, operand, operands_[operand].bytes(), thread.number, since);
}

Tracker::Thread& Tracker::thread_of(std::uint32_t number) {
    if (threads_.size() >= kMostThreads && !threads_.contains(number)) {
        const auto idle = std::min_element(
            threads_.begin(), threads_.end(),
            [](const auto& a, const auto& b) { return a.second.last_used < b.second.last_used; });
        end(idle);
    }
    Thread& thread = threads_[number];
    thread.number = number;
    thread.last_used = ++buffers_;
    return thread;
}

void Tracker::end_runs(Thread& thread) {
    for (std::uint32_t operand = 1; operand < operands_.size(); ++operand) end_run(thread, operand);
}

void Tracker::end(std::uint32_t number, std::uint64_t sites) {
    ends_[number] = sites;
    const auto thread = threads_.find(number);
    if (thread != threads_.end()) end(thread);
}

void Tracker::end(std::map<std::uint32_t, Thread>::iterator thread) {
    end_runs(thread->second);
    threads_.erase(thread);
}

void Tracker::note(std::span<const trace_record_t> records) {
    is_changed_.resize(operands_.size());
    for (const trace_record_t& record : records) {
        const std::uint32_t operand = operand_of_site_[record.site];
        if (operand == 0 || is_changed_[operand]) continue;
        is_changed_[operand] = true;
        changed_.push_back(operand);
    }
}

std::vector<std::uint32_t> Tracker::take_changed() {
    for (const std::uint32_t operand : changed_) {
        for (auto& [number, thread] : threads_) end_run(thread, operand);
        is_changed_[operand] = false;
    }
    return std::exchange(changed_, {});
}

void Tracker::finish() {
    for (auto& [number, thread] : threads_) end_runs(thread);
    threads_.clear();
}

}  // namespace effective_address
