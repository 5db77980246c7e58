// The cache profiler: Cachegrind's I1, D1 and LL behind assay's profiler interface.
#include "plugins/cache/settings.h"
#include "plugins/cache/simulator.h"
#include "plugins/cache/summary.h"
#include "plugins/common/profiler.h"

#include "assay/vprofiler.h"

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <string>

namespace cache {
namespace {

struct Profiler {
    plugins::TraceSpec spec;
    const vp_host_t* host = nullptr;
    Settings settings;
    std::unique_ptr<Simulator> simulator;
    std::size_t next_block = 0;  // of vp_finish
    std::size_t next_site = 0;
    plugins::Samples samples;
    std::string summary;
};
Profiler profiler;

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

const char* name() {
    return "cache";
}
const char* description() {
    return "simulates I1, D1 and LL caches and counts each instruction's references and misses";
}

int initialise(const vp_host_t* host) {
    profiler = Profiler{};
    profiler.host = host;
    return 0;
}

void release() {
    profiler = Profiler{};
}

int fail(const std::string& why) {
    return plugins::fail(profiler.host, why);
}

int receive_options(const vp_setting_t* settings, uint32_t count) {
    if (plugins::receive(profiler.host, {settings, count}, profiler.settings, apply) < 0) return -1;
    // Iterations arrive with the references, which are captured for the simulation only.
    if (profiler.settings.count_iterations && !profiler.settings.simulate)
        return fail(
            "--rep=iterations cannot be combined with --cache-sim=no; leave one of them out");
    return 0;
}

// A filter with fewer sets than the cache leaves out less.
uint32_t filter_sets(const Geometry& shape) {
    constexpr uint64_t kMost = uint64_t{1} << 31;  // a power of two, as are the sets
    return static_cast<uint32_t>(std::min(shape.sets(), kMost));
}

// References are cut to the smallest line. Where D1's is larger, a filter by D1's lines would
// take the second line of a reference for touched that the simulation, having cut it, never saw.
uint32_t data_filter_sets(const Geometries& shapes) {
    const bool cut = std::min(shapes.i1.line, shapes.ll.line) < shapes.d1.line;
    return cut ? 0 : filter_sets(shapes.d1);
}

bool samples() {
    return plugins::samples_bursts(profiler.host);
}

// What bursts can tell: of caches that are warm soon enough. Nearly all lines that a burst finds
// missing in the last level would have been there, had it seen what came before.
void sample(const Geometries& shapes, trace_vlist_table_t* spec) {
    constexpr uint64_t kInstructionsPerLine = 20;  // enough for bzip2
    const uint64_t lines = shapes.i1.size / shapes.i1.line + shapes.d1.size / shapes.d1.line;
    trace_capture_warm_up(spec, kInstructionsPerLine * lines);
    for (const uint32_t event : {kILmr, kDLmr, kDLmw})
        profiler.host->leave_out(profiler.host, event);
}

trace_vlist_table_t* begin() {
    profiler.spec.reset(trace_vlist_table_alloc());
    trace_vlist_table_t* const spec = profiler.spec.get();
    trace_vlist_table_init(spec);
    trace_capture_block_counts(spec);
    if (!profiler.settings.simulate) {
        for (uint32_t event = kIr + 1; event < kEvents; ++event)
            profiler.host->leave_out(profiler.host, event);
        return spec;
    }
    std::string warning;
    const Geometries shapes = geometries(profiler.settings, warning);
    if (!warning.empty()) profiler.host->warning(profiler.host, warning.c_str());
    profiler.host->describe(profiler.host, "I1 cache", describe(shapes.i1).c_str());
    profiler.host->describe(profiler.host, "D1 cache", describe(shapes.d1).c_str());
    profiler.host->describe(profiler.host, "LL cache", describe(shapes.ll).c_str());
    try {
        profiler.simulator = std::make_unique<Simulator>(shapes);
    } catch (const std::bad_alloc&) {
        fail(
            "no memory for the tables of the simulated caches; make them smaller with --I1, --D1 "
            "or --LL");
        return nullptr;
    }
    trace_capture_references(spec, shapes.d1.line, data_filter_sets(shapes));
    trace_capture_fetches(spec, shapes.i1.line, filter_sets(shapes.i1));
    if (samples()) sample(shapes, spec);
    return spec;
}

void end() {
    profiler.simulator.reset();
    profiler.spec.reset();
}

int process(uint32_t /*pid*/, trace_parser_t* parser, const vsample_t** samples) {
    *samples = nullptr;
    if (!profiler.simulator) return 0;
    const auto sites = plugins::rows(trace_parser_sites, parser);
    const auto records = plugins::rows(trace_parser_records, parser);
    const uint32_t thread = trace_parser_get_thread(parser);
    profiler.simulator->learn(sites.data(), sites.size());
    try {
        if (trace_parser_is_warm_up(parser))
            profiler.simulator->warm_up(thread, records.data(), records.size());
        else
            profiler.simulator->process(thread, records.data(), records.size());
    } catch (const std::bad_alloc&) {
        return fail("no memory for the simulated caches of thread " + std::to_string(thread) +
                    "; make them smaller with --I1 or --D1");
    }
    if (plugins::thread_end(parser)) profiler.simulator->end(thread);
    return 0;
}

void add(uint64_t pc, uint32_t event, uint64_t weight) {
    profiler.samples.add(pc, event, weight);
}

// How often the operands of an instruction were referenced, if it says so itself.
uint64_t counted_references(const trace_site_t* sites, std::size_t count, std::size_t at) {
    const uint32_t instr = sites[at].instr;
    for (; at < count && sites[at].instr == instr; ++at)
        if (sites[at].kind == TRACE_SITE_COUNT) return profiler.simulator->counts(at).references;
    return 0;
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

// Passes on what has been counted at a site: add(pc, event, count).
template <typename Add>
void count_site(const trace_parser_t* parser, const trace_site_t* sites, std::size_t count,
                const trace_instr_t* instrs, std::size_t at, const Add& add) {
    const trace_site_t& site = sites[at];
    const trace_instr_t& instr = instrs[site.instr];
    const SiteCounts counts = profiler.simulator->counts(at);
    if (site.kind == TRACE_SITE_COUNT) {
        // Cachegrind counts each iteration as an instruction, and so the check that finds rcx 0,
        // which is the one that Ir has already.
        if (profiler.settings.count_iterations && instr.flags & TRACE_INSTR_REPEATED)
            add(instr.pc, kIr, counts.references - counts.ended_early);
        return;
    }
    if (site.kind == TRACE_SITE_FETCH) {
        add(instr.pc, kI1mr, counts.l1_misses);
        add(instr.pc, kILmr, counts.ll_misses);
        return;
    }
    const bool data = site.kind == TRACE_SITE_READ || site.kind == TRACE_SITE_WRITE ||
                      site.kind == TRACE_SITE_MODIFY;
    if (!data) return;  // what another profiler of the run captures
    uint64_t references = instr.flags & TRACE_INSTR_VARIABLE
                              ? counted_references(sites, count, at)
                              : trace_parser_count(parser, site.instr);
    if (site.kind == TRACE_SITE_MODIFY && is_locked(instr)) references *= 2;
    const bool write = site.kind == TRACE_SITE_WRITE;
    add(instr.pc, write ? kDw : kDr, references);
    add(instr.pc, write ? kD1mw : kD1mr, counts.l1_misses);
    add(instr.pc, write ? kDLmw : kDLmr, counts.ll_misses);
}

// What finish() would add up to.
int totals_so_far(uint32_t /*pid*/, trace_parser_t* parser, uint64_t* totals, uint32_t count) {
    std::size_t site_count = 0, instr_count = 0;
    const trace_site_t* sites = trace_parser_sites(parser, &site_count);
    const trace_instr_t* instrs = trace_parser_instrs(parser, &instr_count);
    std::fill_n(totals, count, 0);
    const auto sum = [totals](uint64_t, uint32_t event, uint64_t weight) {
        totals[event] += weight;
    };
    for (uint32_t instr = 0; instr < instr_count; ++instr)
        sum(0, kIr, trace_parser_count(parser, instr));
    if (!profiler.simulator) return 0;
    profiler.simulator->learn(sites, site_count);
    for (std::size_t site = 0; site < site_count; ++site)
        count_site(parser, sites, site_count, instrs, site, sum);
    return 0;
}

// Block by block, instructions and their sites: the host is quick at what lies close together.
int finish(uint32_t /*pid*/, trace_parser_t* parser, const vsample_t** samples) {
    constexpr std::size_t kChunk = 8192;
    profiler.samples.clear();
    std::size_t block_count = 0, site_count = 0, instr_count = 0;
    const trace_block_t* blocks = trace_parser_blocks(parser, &block_count);
    const trace_site_t* sites = trace_parser_sites(parser, &site_count);
    const trace_instr_t* instrs = trace_parser_instrs(parser, &instr_count);
    if (profiler.simulator)
        profiler.simulator->learn(sites, site_count);
    else
        site_count = 0;
    while (profiler.next_block < block_count && profiler.samples.size() < kChunk) {
        const trace_block_t& block = blocks[profiler.next_block++];
        const uint32_t end = block.first_instr + block.instr_count;
        for (uint32_t instr = block.first_instr; instr < end; ++instr)
            add(instrs[instr].pc, kIr, trace_parser_count(parser, instr));
        std::size_t& site = profiler.next_site;
        for (; site < site_count && sites[site].instr < end; ++site)
            count_site(parser, sites, site_count, instrs, site, add);
    }
    return profiler.samples.give(samples);
}

const char* summary(const uint64_t* totals, uint32_t count) {
    if (count != kEvents) return nullptr;
    profiler.summary = summarise(totals, profiler.settings.simulate, !samples());
    return profiler.summary.c_str();
}

}  // namespace
}  // namespace cache

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch;
const vp_dispatch_t assay_vp_dispatch = {
    .size = sizeof(vp_dispatch_t),
    .abi_version = VP_ABI_VERSION,
    .vp_name = cache::name,
    .vp_description = cache::description,
    .vp_init = cache::initialise,
    .vp_release = cache::release,
    .vp_events = plugins::table<cache::kEventTable>,
    .vp_derived = plugins::table<cache::kDerivedTable>,
    .vp_option_table = plugins::table<cache::kOptionTable>,
    .vp_options = cache::receive_options,
    .vp_prof_init = cache::begin,
    .vp_prof_release = cache::end,
    .vp_prof_process = cache::process,
    .vp_finish = cache::finish,
    .vp_summary = cache::summary,
    .vp_preface = nullptr,
    .vp_format = nullptr,
    .vp_value_lists = nullptr,
    .vp_list_preface = nullptr,
    .vp_totals = cache::totals_so_far,
};
