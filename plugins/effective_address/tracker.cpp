#include "plugins/effective_address/tracker.h"

#include "plugins/effective_address/footprint.h"

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
        end_runs(thread);  // earlier references are not shared
        thread.alone = false;
    }
    alone ? follow<true>(thread, records) : follow<false>(thread, records);
}

// The profiler spends most of its time here. Branches must be predictable: the kind of an operand
// follows from the program's path, and the kind tells whether runs usually continue.
//
// The result does not depend on which references the driver omits, or on which continuing
// references have a record. The records of a thread are in order. Work that depends on the order of
// threads is done at the record that ends a run, which always exists.
template <bool kAlone>
void Tracker::follow(Thread& thread, std::span<const trace_record_t> records) {
    const std::uint32_t* const operands = operand_of_site_.data();
    const Operand::Kind* const kinds = kinds_.data();
    Stream* const streams = thread.streams.data();
    for (const trace_record_t& record : records) {
        const std::uint32_t operand = operands[record.site];
        Stream& stream = streams[operand];
        const Operand::Kind kind = kinds[operand];
        if (kAlone && kind != Operand::kRuns && stream.known) {
            take_each(stream, operand, record);
            continue;
        }
        if (kind == Operand::kIrregular && stream.known) {
            take_irregular(thread, operand, record);
            continue;
        }
        const std::uint64_t last =
            stream.last + record.aux * static_cast<std::uint64_t>(stream.stride);
        const std::uint64_t count = stream.count + record.aux;
        const auto stride = static_cast<std::int64_t>(record.value - last);
        stream.last = record.value;
        if (stride == stream.stride) {
            stream.count = count + 1;
            continue;
        }
        const ReferenceRun ended{last, std::exchange(stream.stride, stride), count};
        stream.count = 1;
        if (unsigned{kind == Operand::kRuns} | unsigned{count != 1} | unsigned{!stream.known}) {
            begin_run(thread, operand, ended, record.site);
            continue;
        }
        take_single(operand, ended.end, ended.stride);
        thread.latest_site = std::max(thread.latest_site, record.site);
        share(thread, operand, ended, std::exchange(stream.since, thread.latest_site));
    }
}

// For a single thread, the order of references is always the same, even if some are omitted.
inline void Tracker::take_each(Stream& stream, std::uint32_t operand,
                               const trace_record_t& record) {
    if (record.aux != 0) [[unlikely]]
        take_left_out(stream, operand, record.aux);
    const std::uint64_t last = std::exchange(stream.last, record.value);
    stream.stride = static_cast<std::int64_t>(record.value - last);
    take_single(operand, record.value, stream.stride);
}

[[gnu::noinline]] void Tracker::take_left_out(Stream& stream, std::uint32_t operand,
                                              std::uint32_t references) {
    for (std::uint32_t i = 0; i < references; ++i)
        take_single(operand, stream.last += static_cast<std::uint64_t>(stream.stride),
                    stream.stride);
}

// Work that does not depend on order is done for each reference. The end of a run is computed
// without a branch.
inline void Tracker::take_irregular(Thread& thread, std::uint32_t operand,
                                    const trace_record_t& record) {
    Stream& stream = thread.streams.data()[operand];
    Operand& known = operands_[operand];
    if (record.aux != 0) [[unlikely]] {
        stream.last += record.aux * static_cast<std::uint64_t>(stream.stride);
        stream.count += record.aux;
        known.add_references({stream.last, stream.stride, record.aux}, budget_);
    }
    const std::uint64_t last = std::exchange(stream.last, record.value);
    const auto stride = static_cast<std::int64_t>(record.value - last);
    const ReferenceRun ended{last, std::exchange(stream.stride, stride), stream.count};
    const bool ends = stride != ended.stride;
    stream.count = ends ? 1 : ended.count + 1;
    if (!known.add_single(record.value, budget_)) [[unlikely]]
        known.add_references({record.value, 0, 1}, budget_);
    if (known.is_looked_at(ended.count, ends)) [[unlikely]]
        known.look_at(ended);
    if (!ends) return;
    thread.latest_site = std::max(thread.latest_site, record.site);
    const std::uint32_t since = std::exchange(stream.since, thread.latest_site);
    if (ended.count != 0) share(thread, operand, ended, since);
}

// `ended` has ended, because the next reference does not continue it. Operand 0 stands for no
// reference.
void Tracker::begin_run(Thread& thread, std::uint32_t operand, const ReferenceRun& ended,
                        std::uint32_t site) {
    if (operand == 0) return;
    Stream& stream = thread.streams.data()[operand];
    if (!thread.alone) thread.latest_site = std::max(thread.latest_site, site);
    const std::uint32_t since = std::exchange(stream.since, thread.latest_site);
    const Operand::Kind kind = kinds_[operand];
    const bool was_known = std::exchange(stream.known, true);
    if (ended.count != 0) {
        add_run(thread, operand, ended, since);
        if (kind != Operand::kRuns) take_at_once(thread, operand);
    } else if (!was_known) {
        // The first reference belongs to no run, because its stride is its address.
        stream.count = 0;
        add_run(thread, operand, {stream.last, kNoStride, 1}, stream.since);
    }
}

// The next references may continue with the same stride.
void Tracker::end_run(Thread& thread, std::uint32_t operand) {
    Stream& stream = thread.streams.data()[operand];
    const ReferenceRun run = stream.run();
    stream.count = 0;
    if (run.count == 0) return;
    if (kinds_[operand] != Operand::kIrregular || !stream.known)
        return add_run(thread, operand, run, stream.since);
    Operand& known = operands_[operand];
    if (known.is_looked_at(run.count, true)) known.look_at(run);
    share(thread, operand, run, stream.since);
}

// Adds a run whose references have not been added yet.
void Tracker::add_run(const Thread& thread, std::uint32_t operand, const ReferenceRun& run,
                      std::uint32_t since) {
    Operand& known = operands_[operand];
    const Operand::Kind kind = kinds_[operand];
    const bool whole = kind == Operand::kRuns || kind == Operand::kIrregular ||
                       run.count >= Operand::kLongRun || run.stride == kNoStride;
    if (whole) known.add(run, budget_);
    // For a short run, add() would take longer.
    for (std::uint64_t i = whole ? 0 : run.count; i-- > 0;)
        take_single(operand, run.address(i), run.stride);
    if (known.kind() != kinds_[operand]) change_kind(operand);
    share(thread, operand, run, since);
}

// For an operand that is not added in whole runs.
inline void Tracker::take_single(std::uint32_t operand, std::uint64_t address,
                                 std::int64_t stride) {
    Operand& known = operands_[operand];
    const Operand::Kind kind = kinds_[operand];
    bool taken = false;
    if (kind == Operand::kIrregular)
        taken = known.add_single(address, budget_);
    else if (kind == Operand::kFew)
        taken = known.add_known(address);
    else
        taken = take_with_stride(operand, address, stride);
    if (!taken) [[unlikely]]
        add_other(operand, address);
    if (known.is_looked_at(1, true)) [[unlikely]]
        known.look_at({address, stride, 1});
}

void Tracker::add_other(std::uint32_t operand, std::uint64_t address) {
    operands_[operand].add_other(address, budget_);
    if (operands_[operand].kind() != kinds_[operand]) change_kind(operand);
}

// In bzip2, 2 % of the records belong to operands with few strides. Inlined into follow(), this
// code slowed all others down by 5 %.
[[gnu::noinline]] bool Tracker::take_with_stride(std::uint32_t operand, std::uint64_t address,
                                                 std::int64_t stride) {
    Operand& known = operands_[operand];
    const Operand::Kind kind = kinds_[operand];
    if (!known.count_stride(stride)) {
        known.add_stride(stride);
        if (known.kind() != kind) change_kind(operand);
    }
    return kind & Operand::kIrregular ? known.add_single(address, budget_)
                                      : known.add_known(address);
}

void Tracker::change_kind(std::uint32_t operand) {
    kinds_[operand] = operands_[operand].kind();
    for (auto& [number, thread] : threads_)
        if (thread.streams.data()[operand].known) take_at_once(thread, operand);
}

// The operand is no longer added in whole runs: adds the references that were waiting for the end
// of their run.
void Tracker::take_at_once(Thread& thread, std::uint32_t operand) {
    Stream& stream = thread.streams.data()[operand];
    const ReferenceRun run = stream.run();
    if (run.count == 0) return;
    if (!thread.alone) {
        if (kinds_[operand] == Operand::kIrregular) operands_[operand].add_references(run, budget_);
        return;
    }
    stream.count = 0;
    for (std::uint64_t i = run.count; i-- > 0;) take_single(operand, run.address(i), run.stride);
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
