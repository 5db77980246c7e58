#include "plugins/cache/machine_run.h"

#include "plugins/common/sites.h"
#include "plugins/machine/needed_records.h"
#include "plugins/machine/part.h"

#include <assay/text.hpp>

#include <algorithm>
#include <utility>

namespace cache {
using machine::Machine;

MachineRun::MachineRun(Machine machine, bool count_iterations)
    : machine_(std::move(machine)),
      count_iterations_(count_iterations),
      columns_(machine_),
      hierarchy_(machine_, columns_),
      placement_(machine_),
      front_(machine_, columns_, sites_, Pipeline<MachinePart>::can_have_thread()),
      pipeline_(
          front_.finds_steps(), [this](MachinePart& part) { front_.prepare(part); },
          [this](MachinePart& part) { simulate(part); }) {}

void MachineRun::capture(assay::Captures& wanted) const {
    wanted.block_counts();
    if (front_.takes_pages_from_mappings()) wanted.mappings();
    if (machine_.tells_late()) wanted.blocks();
    const machine::NeededRecords needed = machine::needed_records(machine_);
    // Prefetches, clflush and similar instructions.
    for (const unsigned opcode : {0x0d, 0x18, 0x1c, 0xae})
        wanted.values({TRACE_EFFECTIVE_ADDRESS},
                      static_cast<std::uint16_t>(TRACE_OPCODE(1, opcode)));
    wanted.fetches(machine_.line, needed.fetch_sets);
    if (needed.data_sets != 0)
        wanted.first_writes(machine_.line, needed.data_sets);
    else
        wanted.references(machine_.line);
}

// The front end may be reading the known sites at the same time, so they must not move.
void MachineRun::learn(const assay::Trace& trace, const Code& code) {
    if (code.sites.size() <= sites_.size()) return;
    if (!sites_.has_room(code.sites.size())) pipeline_.settle();
    sites_.learn(trace, code);
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

void MachineRun::process(assay::Trace& trace) {
    learn(trace, Code(trace));
    // The hierarchy has taken over the first caches: the first stage has no more work.
    if (std::exchange(took_first_caches_, false)) pipeline_.do_without_thread();
    auto part = pipeline_.empty();
    const bool ends = trace.thread_end() != nullptr;
    part->fill(trace, sites_, placement_.core_of(trace.thread()), ends, pipeline_.has_thread());
    pipeline_.put(std::move(part));
    if (ends) placement_.end(trace.thread());
}

// The interface that machine::run_part() expects.
struct MachineRun::Records {
    MachineRun& run;
    const MachinePart& part;

    std::size_t size() const { return part.records.size(); }
    const MachineSite& site(std::size_t record) const {
        return run.sites_[part.records[record].site];
    }
    bool is_reference(std::size_t record) const {
        const MachineSite::Role role = site(record).role;
        return (role == MachineSite::Role::kReference &&
                !run.machine_.is_uncached(part.records[record].value)) ||
               role == MachineSite::Role::kOperation;
    }
    machine::Reference reference(std::size_t record) const {
        const std::uint64_t executed = part.executed.empty() ? 0 : part.executed[record];
        const MachineSite& of = site(record);
        return of.role == MachineSite::Role::kOperation
                   ? of.operation(part.records[record], executed)
                   : of.reference(part.records[record], executed);
    }
    std::uint64_t* counts(std::size_t record) const {
        return run.row_of(part.records[record].site,
                          part.contexts.empty() ? nullptr : &part.contexts[record]);
    }
    // Adds up a record of a TRACE_SITE_COUNT.
    void said(std::size_t record) const {
        std::uint64_t* const row = counts(record);
        row[kReferences] += part.records[record].value;
        row[kEndedEarly] += part.records[record].aux;
    }
};

void MachineRun::simulate(MachinePart& part) {
    const Records records{*this, part};
    machine::referring_thread = part.thread;
    for (machine::Steps::Given& given : part.steps.given) {
        hierarchy_.take(given.core, given.caches);
        took_first_caches_ = true;
    }
    part.steps.given.clear();
    if (part.has_steps) {
        machine::run_part(hierarchy_, part.core, part.steps, records);
        for (const std::uint32_t record : part.said) records.said(record);
    } else {
        simulate_all(records);
    }
    if (part.ends_thread && machine_.cores == 0) hierarchy_.forget(part.core);
}

void MachineRun::simulate_all(const Records& records) {
    const std::uint32_t core = records.part.core;
    for (std::size_t i = 0; i < records.size(); ++i) {
        const MachineSite& site = records.site(i);
        if (site.role == MachineSite::Role::kReference) [[likely]] {
            const machine::Reference reference = records.reference(i);
            if (machine_.is_uncached(reference.address)) continue;
            const auto counts = [&] { return records.counts(i); };
            if (!hierarchy_.refer_quickly(core, reference, {}, counts))
                hierarchy_.refer(core, reference, {}, counts());
        } else if (site.role == MachineSite::Role::kOperation) {
            hierarchy_.operate(core, records.reference(i), records.counts(i));
        } else if (site.role == MachineSite::Role::kCount) {
            records.said(i);
        }
    }
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
    pipeline_.finish();
    learn(trace, code);
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
    const MachineSite::Role role = sites_[at].role;
    if (role != MachineSite::Role::kReference && role != MachineSite::Role::kOperation) return;
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
