// The cache profiler: Cachegrind's I1, D1 and LL behind assay's profiler interface.
#include "plugins/cache/machine_run.h"
#include "plugins/cache/misses_over_time.h"
#include "plugins/cache/settings.h"
#include "plugins/cache/simulator.h"
#include "plugins/cache/site_counts.h"
#include "plugins/common/sites.h"
#include "plugins/machine/describe.h"
#include "plugins/machine/policy_library.h"

#include <assay/profiler.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>

namespace cache {
namespace {

constexpr std::array<vp_event_t, kEvents> kEventTable{{
    {"Ir", "instructions executed", "instructions"},
    {"I1mr", "level-1 instruction cache read misses", "misses"},
    {"ILmr", "last-level cache instruction read misses", "misses"},
    {"Dr", "data reads", "reads"},
    {"D1mr", "level-1 data cache read misses", "misses"},
    {"DLmr", "last-level cache data read misses", "misses"},
    {"Dw", "data writes", "writes"},
    {"D1mw", "level-1 data cache write misses", "misses"},
    {"DLmw", "last-level cache data write misses", "misses"},
}};

// The weights of Cy are KCachegrind's. A sampled run has the last figure instead of the first one.
constexpr std::array<vp_derived_t, 8> kDerivedTable{{
    {"Cy", "Ir + 10 * (I1mr + D1mr + D1mw) + 100 * (ILmr + DLmr + DLmw)", "cycles"},
    {"I1 miss rate", "I1mr / Ir", "%"},
    {"LLi miss rate", "ILmr / Ir", "%"},
    {"D1 miss rate", "(D1mr + D1mw) / (Dr + Dw)", "%"},
    {"LLd miss rate", "(DLmr + DLmw) / (Dr + Dw)", "%"},
    {"LL refs", "I1mr + D1mr + D1mw", ""},
    {"LL miss rate", "(ILmr + DLmr + DLmw) / (Ir + Dr + Dw)", "%"},
    {"Cy", "Ir + 10 * (I1mr + D1mr + D1mw)", "cycles"},
}};

// A filter with fewer sets than the cache leaves out less.
uint32_t filter_sets(const Geometry& shape) {
    constexpr uint64_t kMost = uint64_t{1} << 31;  // a power of two, because sets() is one
    return static_cast<uint32_t>(std::min(shape.sets(), kMost));
}

// References are cut to the smallest line. If D1's line is larger, a filter by D1's lines, or a D1
// simulated in the program, would count the second line of a reference as touched. The simulation
// never sees that line.
bool cuts_below_d1(const Geometries& shapes) {
    return std::min(shapes.i1.line, shapes.ll.line) < shapes.d1.line;
}

trace_cache_t first_level(const Geometry& shape) {
    return {sizeof(trace_cache_t), shape.line, filter_sets(shape), shape.ways, TRACE_LRU};
}

class CacheProfiler final : public assay::Profiler {
  public:
    static constexpr const char* kName = "cache";
    static constexpr const char* kDescription =
        "simulates I1, D1 and LL caches and counts each instruction's references and misses";
    static constexpr const auto& kEvents = kEventTable;
    static constexpr const auto& kDerived = kDerivedTable;
    static constexpr const auto& kOptions = kOptionTable;

    std::span<const vp_event_t> events() const {
        return machine_ ? machine_->events() : std::span<const vp_event_t>(kEventTable);
    }
    std::span<const vp_derived_t> derived() const {
        if (machine_) return machine_->derived();
        const std::span<const vp_derived_t> all(kDerivedTable);
        return is_sampled() ? all.subspan(1) : all.first(all.size() - 1);
    }

    void option(std::string_view name, const std::string& value) override {
        apply(settings_, name, value);
    }
    // Iterations arrive with the references, which are captured only for the simulation.
    void check_options() override {
        if (settings_.count_iterations && !settings_.simulate)
            throw std::invalid_argument(
                "--rep=iterations cannot be combined with --cache-sim=no; leave one of them out");
        read_machine(settings_);
        if (settings_.machine || settings_.of_host) check_with_machine(settings_, is_sampled());
        if (settings_.interval != 0 && (is_sampled() || !settings_.simulate))
            throw std::invalid_argument(std::string("--misses-over-time cannot be combined with ") +
                                        (is_sampled() ? "--sample" : "--cache-sim=no") +
                                        "; leave one of them out");
        if (!settings_.machine) return;
        for (const std::string& library : machine::libraries(*settings_.machine))
            if (!may_load(library))
                throw std::runtime_error(library + " needs a process of its own");
        take_machine();
    }

    void capture(assay::Captures& wanted) override {
        if (settings_.machine)
            for (const auto& [name, text] : machine::describe(*settings_.machine))
                describe(name, text);
        if (machine_) return machine_->capture(wanted);
        wanted.block_counts();
        if (settings_.simulate)
            capture_simulated(wanted);
        else
            for (uint32_t event = kIr + 1; event < cache::kEvents; ++event) leave_out(event);
    }

    void process(assay::Trace& trace, assay::Samples&) override {
        if (machine_) return machine_->process(trace);
        if (!simulator_) return;
        const auto sites = trace.sites();
        const auto records = trace.records();
        const uint32_t thread = trace.thread();
        simulator_->learn(sites.data(), sites.size());
        const uint32_t misses = trace.misses();
        simulator_->records_are_misses(SiteCode::kInstruction, misses & TRACE_FETCH_MISSES);
        simulator_->records_are_misses(SiteCode::kData, misses & TRACE_DATA_MISSES);
        const auto simulate = [&](std::size_t first, std::size_t count) {
            if (trace.is_warm_up())
                simulator_->warm_up(thread, records.data() + first, count);
            else if (trace.has_context())
                simulator_->process(thread, records.subspan(first, count),
                                    trace.contexts().subspan(first, count));
            else
                simulator_->process(thread, records.data() + first, count);
        };
        try {
            if (over_time_)
                over_time_->process(*simulator_, thread, sites, records, simulate);
            else
                simulate(0, records.size());
        } catch (const std::bad_alloc&) {
            throw std::runtime_error("no memory for the simulated caches of thread " +
                                     std::to_string(thread + 1) +
                                     "; make them smaller with --I1 or --D1");
        }
        if (trace.thread_end()) simulator_->end(thread);
    }

    // Sums the samples of finish_more().
    void totals(assay::Trace& trace, std::span<uint64_t> by_event) {
        const auto sum = [by_event](uint64_t, uint32_t event, uint64_t weight, uint64_t = 0) {
            by_event[event] += weight;
        };
        const Code code(trace);
        for (uint32_t i = 0; i < code.instrs.size(); ++i) sum(0, kIr, trace.count(i));
        if (!simulator_) return;
        simulator_->learn(code.sites.data(), code.sites.size());
        for (std::size_t i = 0; i < code.sites.size(); ++i) count_site(trace, code, i, sum);
    }

    bool finish_more(assay::Trace& trace, assay::Samples& samples) override {
        constexpr std::size_t kPortion = 8192;
        if (machine_) return machine_->finish_more(trace, samples);
        const Code code(trace);
        const std::size_t sites = simulator_ ? code.sites.size() : 0;
        if (simulator_) simulator_->learn(code.sites.data(), sites);
        return walk_.step(
            trace, code, sites, [&](uint64_t pc, uint64_t times) { samples.count(pc, kIr, times); },
            [&](std::size_t site) {
                count_site(trace, code, site,
                           [&](uint64_t pc, uint32_t event, uint64_t weight, uint64_t context = 0) {
                               samples.count(pc, event, weight, context);
                           });
            },
            [&] { return samples.size() >= kPortion; });
    }

    void finish(assay::Trace&, assay::Samples&) override {
        if (over_time_)
            over_time_->each_series([this](const assay::Series& each) { return series(each); });
    }

    std::string summary(std::span<const uint64_t> totals) override {
        if (machine_) return machine_->summary(totals);
        return summarise(totals.data(), settings_.simulate, !is_sampled());
    }

  private:
    void take_machine() try {
        machine_ = std::make_unique<MachineRun>(*settings_.machine, settings_.count_iterations);
    } catch (const std::bad_alloc&) {
        throw std::runtime_error("no memory for the caches of the machine; make them smaller");
    }

    void capture_simulated(assay::Captures& wanted) {
        const Geometries shapes = geometries(settings_);
        for (const auto& [name, text] : cache::describe(settings_)) describe(name, text);
        try {
            simulator_ = std::make_unique<Simulator>(shapes);
        } catch (const std::bad_alloc&) {
            throw std::runtime_error(
                "no memory for the tables of the simulated caches; make them smaller with --I1, "
                "--D1 or --LL");
        }
        const bool cut = cuts_below_d1(shapes);
        if (settings_.interval != 0) {
            over_time_.emplace(settings_.interval);
            wanted.intervals(settings_.interval);
        }
        if (settings_.level1_in_program && !over_time_) {
            const trace_cache_t fetch = first_level(shapes.i1), data = first_level(shapes.d1);
            wanted.misses(&fetch, cut ? nullptr : &data);
        } else {
            wanted.fetches(shapes.i1.line, filter_sets(shapes.i1));
            if (!cut) wanted.references(shapes.d1.line, filter_sets(shapes.d1));
        }
        if (cut) wanted.references();
        if (is_sampled()) capture_bursts(shapes, wanted);
    }

    // Leaves out the events that bursts cannot tell. I1 and D1 are warm soon enough. But nearly all
    // lines that a burst misses in the last level would be there if the earlier references had been
    // simulated.
    void capture_bursts(const Geometries& shapes, assay::Captures& wanted) const {
        constexpr uint64_t kInstructionsPerLine = 20;  // enough for bzip2
        const uint64_t lines = shapes.i1.size / shapes.i1.line + shapes.d1.size / shapes.d1.line;
        wanted.warm_up(kInstructionsPerLine * lines);
        for (const uint32_t event : {kILmr, kDLmr, kDLmw}) leave_out(event);
    }

    // Calls `visit(context, references)` with the number of references of an instruction's
    // operands, as its TRACE_SITE_COUNT gives it.
    template <typename Visit>
    void counted_references(std::span<const trace_site_t> sites, std::size_t at,
                            const Visit& visit) const {
        const std::size_t count = sites::count_behind(sites, at);
        if (count < sites.size())
            simulator_->each_context(count, [&](uint64_t context, const SiteCounts& counts) {
                visit(context, counts.references);
            });
    }

    // Passes on the counts of a site: add(pc, event, count, context). There is no context if each
    // execution of the instruction counts the same.
    template <typename Add>
    void count_site(const assay::Trace& trace, const Code& code, std::size_t at,
                    const Add& add) const {
        const trace_site_t& site = code.sites[at];
        const trace_instr_t& instr = code.instrs[site.instr];
        if (site.kind == TRACE_SITE_COUNT) {
            // Cachegrind counts each iteration as an instruction, plus the check that finds rcx 0.
            // Ir already contains that check.
            if (!settings_.count_iterations || !(instr.flags & TRACE_INSTR_REPEATED)) return;
            simulator_->each_context(at, [&](uint64_t context, const SiteCounts& counts) {
                add(instr.pc, kIr, counts.references - counts.ended_early, context);
            });
            return;
        }
        const auto add_misses = [&](EventIndex l1, EventIndex ll) {
            simulator_->each_context(at, [&](uint64_t context, const SiteCounts& counts) {
                add(instr.pc, l1, counts.l1_misses, context);
                add(instr.pc, ll, counts.ll_misses, context);
            });
        };
        if (site.kind == TRACE_SITE_FETCH) return add_misses(kI1mr, kILmr);
        if (!sites::is_data(site)) return;  // another profiler of the run captures it
        const bool write = site.kind == TRACE_SITE_WRITE;
        const uint64_t times = references_each(site, instr);
        if (instr.flags & TRACE_INSTR_VARIABLE)
            counted_references(code.sites, at, [&](uint64_t context, uint64_t references) {
                add(instr.pc, write ? kDw : kDr, references * times, context);
            });
        else
            add(instr.pc, write ? kDw : kDr, trace.count(site.instr) * times);
        add_misses(write ? kD1mw : kD1mr, write ? kDLmw : kDLmr);
    }

    Settings settings_;
    std::unique_ptr<Simulator> simulator_;  // nullptr with --cache-sim=no
    std::optional<MissesOverTime> over_time_;
    std::unique_ptr<MachineRun> machine_;  // replaces the simulator for a machine
    BlockWalk walk_;                       // of finish_more()
};

}  // namespace
}  // namespace cache

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch =
    assay::dispatch<cache::CacheProfiler>();
