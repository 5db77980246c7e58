#include "plugins/cache/machine_run.h"

#include "plugins/common/sites.h"
#include "plugins/machine/replacement.h"

#include <assay/text.hpp>

#include <algorithm>
#include <bit>
#include <utility>

namespace cache {
namespace {

using machine::Cache;
using machine::Holds;
using machine::Kind;
using machine::Machine;

bool is_plain(const Cache& cache, const Machine& machine) {
    return cache.hash == machine::Hash::kModulus && cache.inclusion == machine::Inclusion::kNone &&
           !cache.counts_writes && cache.write_allocate && cache.replacement.policy == "lru" &&
           cache.prefetch.empty() && !cache.classify &&
           std::has_single_bit(cache.sets(machine.line));
}

const Cache* first_level(const Machine& machine, Holds holds) {
    for (const Cache& cache : machine.caches)
        if (cache.holds == holds || cache.holds == Holds::kBoth) return &cache;
    return nullptr;
}

std::uint32_t filter_sets(const Machine& machine, const Cache& cache) {
    constexpr std::uint64_t kMost = 1 << 16;
    return static_cast<std::uint32_t>(std::bit_floor(std::min(cache.sets(machine.line), kMost)));
}

}  // namespace

std::optional<Geometries> plain_shapes(const Machine& machine) {
    if (machine.caches.size() != 3 || !machine.tlbs.empty() || machine.clusters != 1 ||
        machine.protocol != machine::Protocol::kNone)
        return std::nullopt;
    constexpr struct {
        const char* name;
        Holds holds;
        machine::Of of;
        std::uint32_t level;
    } kWanted[] = {{"I1", Holds::kInstructions, machine::Of::kCore, 1},
                   {"D1", Holds::kData, machine::Of::kCore, 1},
                   {"LL", Holds::kBoth, machine::Of::kMachine, 2}};
    Geometries shapes;
    Geometry* const found[] = {&shapes.i1, &shapes.d1, &shapes.ll};
    for (std::size_t i = 0; i < std::size(kWanted); ++i) {
        const Cache& cache = machine.caches[i];
        if (cache.name != kWanted[i].name || cache.holds != kWanted[i].holds ||
            cache.of != kWanted[i].of || cache.level != kWanted[i].level ||
            !is_plain(cache, machine))
            return std::nullopt;
        *found[i] = {cache.size, cache.ways, machine.line};
    }
    return shapes;
}

MachineRun::MachineRun(Machine machine, bool count_iterations)
    : machine_(std::move(machine)),
      count_iterations_(count_iterations),
      columns_(machine_),
      hierarchy_(machine_, columns_),
      placement_(machine_),
      memory_(machine_.transparent) {}

// Whether a reference to the most recent line of its set changes nothing anywhere, unless it is the
// first that writes: then the driver need not record it. A line that is prefetched does not become
// the most recent one, of a cache of LRU with more than one way.
bool MachineRun::filter_loses_nothing() const {
    const Cache* const first = first_level(machine_, Holds::kData);
    const auto is_inclusive = [](const Cache& cache) {
        return cache.inclusion == machine::Inclusion::kInclusive;
    };
    if (!first || !machine_.tlbs.empty() || first->hash != machine::Hash::kModulus ||
        !std::has_single_bit(first->sets(machine_.line)) || first->classify ||
        !machine::forgets_repetition(first->replacement) || !first->write_allocate ||
        !first->write_back ||
        std::any_of(machine_.caches.begin(), machine_.caches.end(), is_inclusive))
        return false;
    return std::all_of(first->prefetch.begin(), first->prefetch.end(),
                       [first](const machine::Prefetch& prefetch) {
                           return !machine::sees_hits(prefetch) && first->ways > 1 &&
                                  first->replacement.policy == "lru";
                       });
}

void MachineRun::capture(assay::Captures& wanted) const {
    wanted.block_counts();
    if (takes_pages_from_mappings()) wanted.mappings();
    if (machine_.tells_late()) wanted.blocks();
    const bool filtered = filter_loses_nothing();
    const Cache* const code = first_level(machine_, Holds::kInstructions);
    const Cache* const data = first_level(machine_, Holds::kData);
    if (code) {
        const bool filtered_code = filtered && machine::forgets_repetition(code->replacement) &&
                                   code->prefetch.empty() && !code->classify &&
                                   code->holds == Holds::kInstructions &&
                                   code->hash == machine::Hash::kModulus;
        wanted.fetches(machine_.line, filtered_code ? filter_sets(machine_, *code) : 1);
    }
    if (data && filtered && data->holds == Holds::kData)
        wanted.first_writes(machine_.line, filter_sets(machine_, *data));
    else if (data)
        wanted.references(machine_.line);
}

void MachineRun::learn(const Code& code) {
    for (std::size_t i = sites_.size(); i < code.sites.size(); ++i) {
        const trace_site_t& site = code.sites[i];
        const trace_block_t& block = code.blocks[code.instr_of(site).block];
        Site known{.role = Site::Role::kReference,
                   .kind = Kind::kRead,
                   .writes = false,
                   .bytes = std::max<std::uint32_t>(site.bytes, 1),
                   .pc = code.instr_of(site).pc,
                   .position = site.instr - block.first_instr + 1,
                   .length = block.instr_count};
        if (site.kind == TRACE_SITE_FETCH)
            known.kind = Kind::kFetch;
        else if (site.kind == TRACE_SITE_BLOCK)
            known.role = Site::Role::kBlock;
        else if (site.kind == TRACE_SITE_BLOCK_LEFT)
            known.role = Site::Role::kBlockLeft;
        else if (site.kind == TRACE_SITE_COUNT)
            known.role = Site::Role::kCount;
        else if (!sites::is_data(site))
            known.role = Site::Role::kOther;
        else
            known.writes = site.kind != TRACE_SITE_READ;
        if (site.kind == TRACE_SITE_WRITE) known.kind = Kind::kWrite;
        sites_.push_back(known);
    }
    if (rows_.size() == 0) counts_.resize(sites_.size() * columns_.size());
}

std::uint64_t* MachineRun::row_of(std::uint32_t site, const std::uint32_t* context) {
    std::size_t at = site;
    if (context) {
        at = rows_.of(*context, site);
        if (counts_.size() < (at + 1) * columns_.size())
            counts_.resize((at + at / 2 + 64) * columns_.size());
    }
    return &counts_[at * columns_.size()];
}

void MachineRun::follow(const assay::Trace& trace, const trace_marker_t& marker) {
    using machine::Memory;
    static constexpr Memory kMemory[] = {Memory::kOther, Memory::kPrivate, Memory::kAdvised,
                                         Memory::k2M, Memory::k1G};
    const std::uint32_t thread = trace.thread();
    const std::uint64_t which = marker.operation - TRACE_MARKER_PAGES_4K;
    if (marker.operation == TRACE_MARKER_THREAD)
        memory_.create(thread, static_cast<std::uint32_t>(marker.address));
    else if (marker.operation == TRACE_MARKER_PAGES_SEEN)
        memory_.see(thread, marker.address);
    else if (which < std::size(kMemory))
        memory_.change(thread, marker.address, marker.bytes, kMemory[which]);
    hierarchy_.translate_by(placement_.core_of(thread), memory_.of(thread));
}

void MachineRun::note_executed(const Site& site, const trace_record_t& record,
                               std::uint64_t& executed, std::uint64_t& block_begin) {
    if (site.role == Site::Role::kBlock) {
        block_begin = executed;
        executed += site.length;
    } else if (site.role == Site::Role::kBlockLeft) {
        executed -= site.length - std::min<std::uint64_t>(record.value, site.length);
    }
}

void MachineRun::process(assay::Trace& trace) {
    learn(Code(trace));
    const auto records = trace.records();
    const auto contexts = trace.contexts();
    const std::uint32_t core = placement_.core_of(trace.thread());
    std::uint64_t& executed = executed_[core];
    std::uint64_t& block_begin = block_begins_[trace.thread()];
    std::span<const trace_marker_t> markers;
    if (takes_pages_from_mappings()) {
        markers = trace.markers();
        hierarchy_.translate_by(core, memory_.of(trace.thread()));
    }
    const auto follow_up_to = [&](std::size_t record) {
        for (; !markers.empty() && markers[0].record <= record; markers = markers.subspan(1))
            follow(trace, markers[0]);
    };
    for (std::size_t i = 0; i < records.size(); ++i) {
        follow_up_to(i);
        const trace_record_t& record = records[i];
        const Site& site = sites_[record.site];
        if (site.role > Site::Role::kCount) {
            note_executed(site, record, executed, block_begin);
            continue;
        }
        const machine::Reference reference{.kind = site.kind,
                                           .writes = site.writes,
                                           .bytes = site.bytes,
                                           .address = record.value,
                                           .pc = site.pc,
                                           .executed = block_begin + site.position};
        const auto row = [&] {
            return row_of(record.site, contexts.empty() ? nullptr : &contexts[i]);
        };
        if (site.role == Site::Role::kReference && hierarchy_.refer_quickly(core, reference, row))
            continue;
        std::uint64_t* const counts = row();
        if (site.role == Site::Role::kReference) {
            hierarchy_.refer(core, reference, counts);
        } else {
            counts[kReferences] += record.value;
            counts[kEndedEarly] += record.aux;
        }
    }
    follow_up_to(records.size());
    if (!trace.thread_end()) return;
    if (machine_.cores == 0) {
        hierarchy_.forget(core);
        executed_.erase(core);
    }
    placement_.end(trace.thread());
    memory_.end(trace.thread());
    block_begins_.erase(trace.thread());
}

template <typename Visit>
void MachineRun::each_context(std::size_t site, const Visit& visit) const {
    const auto counts = [this](std::size_t at) { return &counts_[at * columns_.size()]; };
    if (rows_.size() == 0) return visit(std::uint64_t{0}, counts(site));
    rows_.each(static_cast<std::uint32_t>(site),
               [&](std::uint32_t at) { visit(rows_.context_of_samples(at), counts(at)); });
}

bool MachineRun::finish_more(assay::Trace& trace, assay::Samples& samples) {
    constexpr std::size_t kPortion = 8192;
    const Code code(trace);
    learn(code);
    return walk_.step(
        trace, code, code.sites.size(),
        [&](std::uint64_t pc, std::uint64_t times) { samples.count(pc, columns_.ir, times); },
        [&](std::size_t site) { count_site(trace, code, site, samples); },
        [&] { return samples.size() >= kPortion; });
}

void MachineRun::count_site(const assay::Trace& trace, const Code& code, std::size_t at,
                            assay::Samples& samples) const {
    const trace_site_t& site = code.sites[at];
    const trace_instr_t& instr = code.instr_of(site);
    if (site.kind == TRACE_SITE_COUNT) {
        if (!count_iterations_ || !(instr.flags & TRACE_INSTR_REPEATED)) return;
        return each_context(at, [&](std::uint64_t context, const std::uint64_t* counts) {
            samples.count(instr.pc, columns_.ir, counts[kReferences] - counts[kEndedEarly],
                          context);
        });
    }
    if (sites_[at].role != Site::Role::kReference) return;
    each_context(at, [&](std::uint64_t context, const std::uint64_t* counts) {
        for (std::uint32_t column = 0; column < columns_.size(); ++column)
            if (counts[column] != 0) samples.count(instr.pc, column, counts[column], context);
    });
    if (!sites::is_data(site)) return;
    const std::uint32_t column = site.kind == TRACE_SITE_WRITE ? columns_.dw : columns_.dr;
    const std::uint64_t times = references_each(site, instr);
    if (!(instr.flags & TRACE_INSTR_VARIABLE))
        return samples.count(instr.pc, column, trace.count(site.instr) * times);
    const std::size_t count = sites::count_behind(code.sites, at);
    if (count < code.sites.size())
        each_context(count, [&](std::uint64_t context, const std::uint64_t* counts) {
            samples.count(instr.pc, column, counts[kReferences] * times, context);
        });
}

std::string MachineRun::summary(std::span<const std::uint64_t> totals) const {
    std::size_t name = 0, number = 0;
    for (std::uint32_t i = 0; i < columns_.size(); ++i) {
        name = std::max(name, std::string(columns_.events()[i].name).size());
        number = std::max(number, assay::with_commas(totals[i]).size());
    }
    std::string all;
    for (std::uint32_t i = 0; i < columns_.size(); ++i) {
        const vp_event_t& event = columns_.events()[i];
        const std::string called = event.name;
        all += called + std::string(name - called.size(), ' ') + "  " +
               assay::right(assay::with_commas(totals[i]), number) + "  " + event.description +
               "\n";
    }
    return all;
}

}  // namespace cache
