// The branch profiler: Cachegrind's branch predictors, and others, behind assay's profiler
// interface.
//
// Cachegrind's run in the program (trace_capture_predictions). What others predict arrives branch
// by branch.
#include "plugins/branch/settings.h"
#include "plugins/branch/simulator.h"
#include "plugins/branch/summary.h"
#include "plugins/common/profiler.h"

#include "assay/vprofiler.h"

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <string>

namespace branch {
namespace {

struct Profiler {
    plugins::TraceSpec spec;
    const vp_host_t* host = nullptr;
    Settings settings;
    std::unique_ptr<Simulator> simulator;
    std::size_t next_instr = 0, next_site = 0;  // of vp_finish
    plugins::Samples samples;
    std::string summary;
};
Profiler profiler;

constexpr std::array<vp_event_t, kEvents> kEventTable{{
    {"Bc", "conditional branches executed", "branches"},
    {"Bcm", "conditional branches mispredicted", "mispredictions"},
    {"Bi", "indirect jumps and calls executed", "branches"},
    {"Bim", "indirect jumps and calls mispredicted", "mispredictions"},
    {"Br", "returns executed, with --return-stack", "branches"},
    {"Brm", "returns mispredicted, with --return-stack", "mispredictions"},
}};

constexpr std::array<vp_derived_t, 4> kDerivedTable{{
    {"Mispred rate", "(Bcm + Bim) / (Bc + Bi)", "%"},
    {"Conditional mispred rate", "Bcm / Bc", "%"},
    {"Indirect mispred rate", "Bim / Bi", "%"},
    {"Return mispred rate", "Brm / Br", "%"},
}};

const char* name() {
    return "branch";
}
const char* description() {
    return "simulates branch predictors and counts each instruction's branches and mispredictions";
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
    std::string why;
    return check(profiler.settings, why) ? 0 : fail(why);
}

uint32_t captured_branches(const Settings& settings) {
    uint32_t kinds = 0;
    if (settings.needs_outcomes()) kinds |= TRACE_CONDITIONAL_BRANCHES;
    if (!settings.predicts_targets_inside()) kinds |= TRACE_INDIRECT_BRANCHES;
    if (settings.return_stack != 0)
        kinds |= TRACE_INDIRECT_BRANCHES | TRACE_DIRECT_CALLS | TRACE_RETURNS;
    return kinds;
}

void describe(const Settings& settings) {
    const vp_host_t* const host = profiler.host;
    host->describe(
        host, "Branch predictor",
        conditional_predictor(settings.predictor, settings.table_bits)->describe().c_str());
    host->describe(
        host, "Indirect predictor",
        target_predictor(settings.target_predictor, settings.target_bits)->describe().c_str());
    if (settings.return_stack != 0)
        host->describe(host, "Return stack",
                       (std::to_string(settings.return_stack) + " entries").c_str());
}

trace_vlist_table_t* begin() {
    constexpr uint32_t kHistoryBits = 7, kAddressBits = 7, kTargetBits = 9;  // Cachegrind's
    const Settings& settings = profiler.settings;
    profiler.spec.reset(trace_vlist_table_alloc());
    trace_vlist_table_t* const spec = profiler.spec.get();
    profiler.simulator = std::make_unique<Simulator>(settings);
    describe(settings);
    trace_capture_block_counts(spec);
    if (settings.predicts_conditional_inside())
        trace_capture_predictions(spec, kHistoryBits, kAddressBits, kTargetBits);
    if (const uint32_t kinds = captured_branches(settings)) trace_capture_branches(spec, kinds);
    if (settings.return_stack == 0) {
        profiler.host->leave_out(profiler.host, kBr);
        profiler.host->leave_out(profiler.host, kBrm);
    }
    return spec;
}

void end() {
    profiler.simulator.reset();
    profiler.spec.reset();
}

void learn(const trace_parser_t* parser) {
    const auto sites = plugins::rows(trace_parser_sites, parser);
    profiler.simulator->learn(sites.data(), sites.size(),
                              plugins::rows(trace_parser_instrs, parser).data());
}

int process(uint32_t /*pid*/, trace_parser_t* parser, const vsample_t** samples) {
    *samples = nullptr;
    const auto records = plugins::rows(trace_parser_records, parser);
    const uint32_t thread = trace_parser_get_thread(parser);
    try {
        learn(parser);
        profiler.simulator->process(thread, records.data(), records.size());
    } catch (const std::bad_alloc&) {
        return fail("no memory for the predictors of thread " + std::to_string(thread) +
                    "; make them smaller with --predictor-bits or --indirect-bits");
    }
    if (plugins::thread_end(parser)) profiler.simulator->end(thread);
    return 0;
}

void add(uint64_t pc, uint32_t event, uint64_t weight) {
    profiler.samples.add(pc, event, weight);
}

// How often branches were executed is known from block counts; how often they were mispredicted
// in the program, too.
template <typename Add>
void count_instr(const trace_parser_t* parser, const trace_instr_t& instr, uint32_t index,
                 const Add& add_to) {
    const Settings& settings = profiler.settings;
    const uint64_t mispredicted = trace_parser_mispredictions(parser, index);
    if (instr.flags & TRACE_INSTR_INDIRECT) {
        add_to(instr.pc, kBi, trace_parser_count(parser, index));
        if (settings.predicts_targets_inside()) add_to(instr.pc, kBim, mispredicted);
    } else if (instr.flags & TRACE_INSTR_RETURN) {
        if (settings.return_stack != 0) add_to(instr.pc, kBr, trace_parser_count(parser, index));
    } else if (instr.flags & TRACE_INSTR_CONDITIONAL) {
        add_to(instr.pc, kBc, trace_parser_count(parser, index));
        if (settings.predicts_conditional_inside()) add_to(instr.pc, kBcm, mispredicted);
    }
}

template <typename Add>
void count_site(const trace_parser_t* parser, const trace_site_t& site, const trace_instr_t& instr,
                const Tally& tally, const Add& add_to) {
    if (site.kind == TRACE_SITE_PREDICTIONS) {
        if (!profiler.settings.predicts_conditional_inside()) return;
        const bool repeated = instr.flags & TRACE_INSTR_REPEATED;
        add_to(instr.pc, kBc, repeated ? tally.branches : trace_parser_count(parser, site.instr));
        add_to(instr.pc, kBcm,
               repeated ? tally.mispredicted : trace_parser_mispredictions(parser, site.instr));
    } else if (site.kind == TRACE_SITE_BRANCH) {
        add_to(instr.pc,
               instr.flags & TRACE_INSTR_CONDITIONAL ? kBcm
               : instr.flags & TRACE_INSTR_RETURN    ? kBrm
                                                     : kBim,
               tally.mispredicted);
    }
}

// What finish() would add up to.
int totals_so_far(uint32_t /*pid*/, trace_parser_t* parser, uint64_t* totals, uint32_t count) {
    const auto instrs = plugins::rows(trace_parser_instrs, parser);
    const auto sites = plugins::rows(trace_parser_sites, parser);
    std::fill_n(totals, count, 0);
    const auto sum = [totals](uint64_t, uint32_t event, uint64_t weight) {
        totals[event] += weight;
    };
    learn(parser);
    for (std::size_t i = 0; i < instrs.size(); ++i)
        count_instr(parser, instrs[i], static_cast<uint32_t>(i), sum);
    for (std::size_t i = 0; i < sites.size(); ++i)
        count_site(parser, sites[i], instrs[sites[i].instr], profiler.simulator->tally(i), sum);
    return 0;
}

int finish(uint32_t /*pid*/, trace_parser_t* parser, const vsample_t** samples) {
    constexpr std::size_t kChunk = 8192;
    const auto instrs = plugins::rows(trace_parser_instrs, parser);
    const auto sites = plugins::rows(trace_parser_sites, parser);
    profiler.samples.clear();
    learn(parser);
    for (std::size_t& i = profiler.next_instr;
         i < instrs.size() && profiler.samples.size() < kChunk; ++i)
        count_instr(parser, instrs[i], static_cast<uint32_t>(i), add);
    for (std::size_t& i = profiler.next_site; i < sites.size() && profiler.samples.size() < kChunk;
         ++i)
        count_site(parser, sites[i], instrs[sites[i].instr], profiler.simulator->tally(i), add);
    return profiler.samples.give(samples);
}

const char* summary(const uint64_t* totals, uint32_t count) {
    if (count != kEvents) return nullptr;
    profiler.summary = summarise(totals, profiler.settings.return_stack != 0);
    return profiler.summary.c_str();
}

}  // namespace
}  // namespace branch

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch;
const vp_dispatch_t assay_vp_dispatch = {
    .size = sizeof(vp_dispatch_t),
    .abi_version = VP_ABI_VERSION,
    .vp_name = branch::name,
    .vp_description = branch::description,
    .vp_init = branch::initialise,
    .vp_release = branch::release,
    .vp_events = plugins::table<branch::kEventTable>,
    .vp_derived = plugins::table<branch::kDerivedTable>,
    .vp_option_table = plugins::table<branch::kOptionTable>,
    .vp_options = branch::receive_options,
    .vp_prof_init = branch::begin,
    .vp_prof_release = branch::end,
    .vp_prof_process = branch::process,
    .vp_finish = branch::finish,
    .vp_summary = branch::summary,
    .vp_preface = nullptr,
    .vp_format = nullptr,
    .vp_value_lists = nullptr,
    .vp_list_preface = nullptr,
    .vp_totals = branch::totals_so_far,
};
