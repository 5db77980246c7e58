// The cache profiler: Cachegrind's I1, D1 and LL behind assay's profiler interface.
#include "plugins/cache/settings.h"
#include "plugins/cache/simulator.h"
#include "plugins/cache/summary.h"

#include <assay/profiler.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <new>
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

constexpr std::array<vp_derived_t, 6> kDerivedTable{{
    {"I1 miss rate", "I1mr / Ir", "%"},
    {"LLi miss rate", "ILmr / Ir", "%"},
    {"D1 miss rate", "(D1mr + D1mw) / (Dr + Dw)", "%"},
    {"LLd miss rate", "(DLmr + DLmw) / (Dr + Dw)", "%"},
    {"LL refs", "I1mr + D1mr + D1mw", ""},
    {"LL miss rate", "(ILmr + DLmr + DLmw) / (Ir + Dr + Dw)", "%"},
}};

// A filter with fewer sets than the cache leaves out less.
uint32_t filter_sets(const Geometry& shape) {
    constexpr uint64_t kMost = uint64_t{1} << 31;  // a power of two, as are the sets
    return static_cast<uint32_t>(std::min(shape.sets(), kMost));
}

// References are cut to the smallest line. Where D1's is larger, a filter by D1's lines, or D1
// itself where the program runs, would take the second line of a reference for touched that the
// simulation, having cut it, never saw.
bool cuts_below_d1(const Geometries& shapes) {
    return std::min(shapes.i1.line, shapes.ll.line) < shapes.d1.line;
}

trace_cache_t first_level(const Geometry& shape) {
    return {sizeof(trace_cache_t), shape.line, filter_sets(shape), shape.ways, TRACE_LRU};
}

// Valgrind takes a locked instruction apart into a load and a compare-and-swap, two references;
// only the compare-and-exchange instructions themselves need no load.
// Intel SDM volume 2: LOCK; XCHG with a memory operand locks by itself.
bool is_locked(const trace_instr_t& instr) {
    const bool exchanges = instr.opcode == TRACE_OPCODE(1, 0xb0) ||
                           instr.opcode == TRACE_OPCODE(1, 0xb1) ||
                           instr.opcode == TRACE_OPCODE(1, 0xc7);
    if (exchanges) return false;
    if (instr.opcode == TRACE_OPCODE(0, 0x86) || instr.opcode == TRACE_OPCODE(0, 0x87)) return true;
    const auto* end = instr.bytes + std::min<unsigned>(instr.length, 4);
    for (const uint8_t* byte = instr.bytes; byte != end; ++byte) {
        if (*byte == 0xf0) return true;
        const bool is_segment = *byte == 0x26 || *byte == 0x2e || *byte == 0x36 || *byte == 0x3e ||
                                *byte == 0x64 || *byte == 0x65;
        const bool is_prefix =
            is_segment || *byte == 0x66 || *byte == 0x67 || *byte == 0xf2 || *byte == 0xf3;
        if (!is_prefix) return false;
    }
    return false;
}

class CacheProfiler final : public assay::Profiler {
  public:
    static constexpr const char* kName = "cache";
    static constexpr const char* kDescription =
        "simulates I1, D1 and LL caches and counts each instruction's references and misses";
    static constexpr const auto& kEvents = kEventTable;
    static constexpr const auto& kDerived = kDerivedTable;
    static constexpr const auto& kOptions = kOptionTable;

    void option(std::string_view name, const std::string& value) override {
        apply(settings_, name, value);
    }
    // Iterations arrive with the references, which are captured for the simulation only.
    void check_options() override {
        if (settings_.count_iterations && !settings_.simulate)
            throw std::invalid_argument(
                "--rep=iterations cannot be combined with --cache-sim=no; leave one of them out");
    }

    void capture(assay::Captures& wanted) override {
        wanted.block_counts();
        if (settings_.simulate)
            capture_simulated(wanted);
        else
            for (uint32_t event = kIr + 1; event < cache::kEvents; ++event) leave_out(event);
    }

    void process(assay::Trace& trace, assay::Samples&) override {
        if (!simulator_) return;
        const auto sites = trace.sites();
        const auto records = trace.records();
        const uint32_t thread = trace.thread();
        simulator_->learn(sites.data(), sites.size());
        const uint32_t misses = trace.misses();
        simulator_->records_are_misses(SiteCode::kInstruction, misses & TRACE_FETCH_MISSES);
        simulator_->records_are_misses(SiteCode::kData, misses & TRACE_DATA_MISSES);
        try {
            if (trace.is_warm_up())
                simulator_->warm_up(thread, records.data(), records.size());
            else if (trace.has_context())
                simulator_->process(thread, records, trace.contexts());
            else
                simulator_->process(thread, records.data(), records.size());
        } catch (const std::bad_alloc&) {
            throw std::runtime_error("no memory for the simulated caches of thread " +
                                     std::to_string(thread) +
                                     "; make them smaller with --I1 or --D1");
        }
        if (trace.thread_end()) simulator_->end(thread);
    }

    // What finish_more() would add up to.
    void totals(assay::Trace& trace, std::span<uint64_t> by_event) {
        const auto sum = [by_event](uint64_t, uint32_t event, uint64_t weight, uint64_t = 0) {
            by_event[event] += weight;
        };
        const Tables tables(trace);
        for (uint32_t i = 0; i < tables.instrs.size(); ++i) sum(0, kIr, trace.count(i));
        if (!simulator_) return;
        simulator_->learn(tables.sites.data(), tables.sites.size());
        for (std::size_t i = 0; i < tables.sites.size(); ++i) count_site(trace, tables, i, sum);
    }

    // Block by block, instructions and their sites: the host is quick at what lies close together.
    bool finish_more(assay::Trace& trace, assay::Samples& samples) override {
        constexpr std::size_t kPortion = 8192;
        const Tables tables(trace);
        const auto blocks = trace.blocks();
        const std::size_t sites = simulator_ ? tables.sites.size() : 0;
        const auto add = [&samples](uint64_t pc, uint32_t event, uint64_t weight,
                                    uint64_t context = 0) {
            samples.count(pc, event, weight, context);
        };
        if (simulator_) simulator_->learn(tables.sites.data(), sites);
        while (next_block_ < blocks.size() && samples.size() < kPortion) {
            const trace_block_t& block = blocks[next_block_++];
            const uint32_t end = block.first_instr + block.instr_count;
            for (uint32_t i = block.first_instr; i < end; ++i)
                add(tables.instrs[i].pc, kIr, trace.count(i));
            for (; next_site_ < sites && tables.sites[next_site_].instr < end; ++next_site_)
                count_site(trace, tables, next_site_, add);
        }
        return next_block_ < blocks.size();
    }

    std::string summary(std::span<const uint64_t> totals) override {
        return summarise(totals.data(), settings_.simulate, !is_sampled());
    }

  private:
    // Looked up once for many sites.
    struct Tables {
        explicit Tables(const assay::Trace& trace) : sites(trace.sites()), instrs(trace.instrs()) {}
        std::span<const trace_site_t> sites;
        std::span<const trace_instr_t> instrs;
    };

    void capture_simulated(assay::Captures& wanted) {
        std::string warning;
        const Geometries shapes = geometries(settings_, warning);
        if (!warning.empty()) warn(warning);
        describe("I1 cache", cache::describe(shapes.i1));
        describe("D1 cache", cache::describe(shapes.d1));
        describe("LL cache", cache::describe(shapes.ll));
        try {
            simulator_ = std::make_unique<Simulator>(shapes);
        } catch (const std::bad_alloc&) {
            throw std::runtime_error(
                "no memory for the tables of the simulated caches; make them smaller with --I1, "
                "--D1 or --LL");
        }
        const bool cut = cuts_below_d1(shapes);
        if (settings_.level1_in_program) {
            const trace_cache_t fetch = first_level(shapes.i1), data = first_level(shapes.d1);
            wanted.misses(&fetch, cut ? nullptr : &data);
        } else {
            wanted.fetches(shapes.i1.line, filter_sets(shapes.i1));
            if (!cut) wanted.references(shapes.d1.line, filter_sets(shapes.d1));
        }
        if (cut) wanted.references();
        if (is_sampled()) capture_bursts(shapes, wanted);
    }

    // What bursts can tell: of caches that are warm soon enough. Nearly all lines that a burst
    // finds missing in the last level would have been there, had it seen what came before.
    void capture_bursts(const Geometries& shapes, assay::Captures& wanted) const {
        constexpr uint64_t kInstructionsPerLine = 20;  // enough for bzip2
        const uint64_t lines = shapes.i1.size / shapes.i1.line + shapes.d1.size / shapes.d1.line;
        wanted.warm_up(kInstructionsPerLine * lines);
        for (const uint32_t event : {kILmr, kDLmr, kDLmw}) leave_out(event);
    }

    // Calls `visit(context, references)` with how often the operands of an instruction were
    // referenced, as it says itself.
    template <typename Visit>
    void counted_references(std::span<const trace_site_t> sites, std::size_t at,
                            const Visit& visit) const {
        const uint32_t instr = sites[at].instr;
        while (at < sites.size() && sites[at].instr == instr && sites[at].kind != TRACE_SITE_COUNT)
            ++at;
        if (at < sites.size() && sites[at].instr == instr)
            simulator_->each_context(at, [&](uint64_t context, const SiteCounts& counts) {
                visit(context, counts.references);
            });
    }

    // Passes on what has been counted at a site: add(pc, event, count, context), or without a
    // context where each execution of the instruction counts the same.
    template <typename Add>
    void count_site(const assay::Trace& trace, const Tables& tables, std::size_t at,
                    const Add& add) const {
        const trace_site_t& site = tables.sites[at];
        const trace_instr_t& instr = tables.instrs[site.instr];
        if (site.kind == TRACE_SITE_COUNT) {
            // Cachegrind counts each iteration as an instruction, and so the check that finds rcx
            // 0, which is the one that Ir has already.
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
        const bool data = site.kind == TRACE_SITE_READ || site.kind == TRACE_SITE_WRITE ||
                          site.kind == TRACE_SITE_MODIFY;
        if (!data) return;  // what another profiler of the run captures
        const bool write = site.kind == TRACE_SITE_WRITE;
        const uint64_t times = site.kind == TRACE_SITE_MODIFY && is_locked(instr) ? 2 : 1;
        if (instr.flags & TRACE_INSTR_VARIABLE)
            counted_references(tables.sites, at, [&](uint64_t context, uint64_t references) {
                add(instr.pc, write ? kDw : kDr, references * times, context);
            });
        else
            add(instr.pc, write ? kDw : kDr, trace.count(site.instr) * times);
        add_misses(write ? kD1mw : kD1mr, write ? kDLmw : kDLmr);
    }

    Settings settings_;
    std::unique_ptr<Simulator> simulator_;        // none with --cache-sim=no
    std::size_t next_block_ = 0, next_site_ = 0;  // of finish_more()
};

}  // namespace
}  // namespace cache

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch =
    assay::dispatch<cache::CacheProfiler>();
