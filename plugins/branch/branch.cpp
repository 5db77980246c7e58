// The branch profiler: connects Cachegrind's branch predictors and others to assay's profiler
// interface.
//
// Cachegrind's predictors run in the program (trace_capture_predictions). The other predictors
// receive each branch.
#include "plugins/branch/simulator.h"

#include <assay/profiler.hpp>

#include <array>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

namespace branch {
namespace {

constexpr std::array<vp_event_t, kEvents> kEventTable{{
    {"Bc", "conditional branches executed", "branches"},
    {"Bcm", "conditional branches mispredicted", "mispredictions"},
    {"Bi", "indirect jumps and calls executed", "branches"},
    {"Bim", "indirect jumps and calls mispredicted", "mispredictions"},
    {"Br", "returns executed, with --return-stack", "branches"},
    {"Brm", "returns mispredicted, with --return-stack", "mispredictions"},
}};

// A run has either the first figure, with --return-stack, or the last one.
constexpr std::array<vp_derived_t, 6> kDerivedTable{{
    {"Cy", "15 * (Bcm + Bim + Brm)", "cycles"},
    {"Mispred rate", "(Bcm + Bim) / (Bc + Bi)", "%"},
    {"Conditional mispred rate", "Bcm / Bc", "%"},
    {"Indirect mispred rate", "Bim / Bi", "%"},
    {"Return mispred rate", "Brm / Br", "%"},
    {"Cy", "15 * (Bcm + Bim)", "cycles"},
}};

uint32_t captured_branches(const Settings& settings) {
    uint32_t kinds = 0;
    if (settings.needs_outcomes()) kinds |= TRACE_CONDITIONAL_BRANCHES;
    if (!settings.predicts_targets_inside()) kinds |= TRACE_INDIRECT_BRANCHES;
    if (settings.return_stack != 0)
        kinds |= TRACE_INDIRECT_BRANCHES | TRACE_DIRECT_CALLS | TRACE_RETURNS;
    return kinds;
}

class BranchProfiler final : public assay::Profiler {
  public:
    static constexpr const char* kName = "branch";
    static constexpr const char* kDescription =
        "simulates branch predictors and counts each instruction's branches and mispredictions";
    static constexpr const auto& kEvents = kEventTable;
    static constexpr const auto& kDerived = kDerivedTable;
    static constexpr const auto& kOptions = kOptionTable;

    std::span<const vp_derived_t> derived() const {
        const std::span<const vp_derived_t> all(kDerivedTable);
        return settings_.return_stack != 0 ? all.first(5) : all.last(5);
    }

    void option(std::string_view name, const std::string& value) override {
        apply(settings_, name, value);
    }
    void check_options() override { check(settings_); }

    void capture(assay::Captures& wanted) override {
        simulator_ = std::make_unique<Simulator>(settings_);
        describe_predictors();
        wanted.block_counts();
        if (settings_.predicts_conditional_inside()) wanted.predictions();
        if (const uint32_t kinds = captured_branches(settings_)) wanted.branches(kinds);
        if (settings_.return_stack == 0)
            for (const uint32_t event : {kBr, kBrm}) leave_out(event);
    }

    void process(assay::Trace& trace, assay::Samples&) override {
        const auto records = trace.records();
        const uint32_t thread = trace.thread();
        try {
            learn(trace);
            simulator_->process(thread, records, trace.contexts());
        } catch (const std::bad_alloc&) {
            throw std::runtime_error(
                "no memory for the predictors of thread " + std::to_string(thread + 1) +
                "; make them smaller with --predictor-bits or --indirect-bits");
        }
        if (trace.thread_end()) simulator_->end(thread);
    }

    // The sums of what finish_more() would return.
    void totals(assay::Trace& trace, std::span<uint64_t> by_event) {
        const auto sum = [by_event](uint64_t, uint32_t event, uint64_t weight, uint64_t = 0) {
            by_event[event] += weight;
        };
        learn(trace);
        for (uint32_t i = 0; i < trace.instrs().size(); ++i) count_instr(trace, i, sum);
        for (uint32_t i = 0; i < trace.sites().size(); ++i) count_site(trace, i, sum);
    }

    bool finish_more(assay::Trace& trace, assay::Samples& samples) override {
        constexpr std::size_t kPortion = 8192;
        const std::size_t instrs = trace.instrs().size(), sites = trace.sites().size();
        const auto add = [&samples](uint64_t pc, uint32_t event, uint64_t weight,
                                    uint64_t context = 0) {
            samples.count(pc, event, weight, context);
        };
        learn(trace);
        for (; next_instr_ < instrs && samples.size() < kPortion; ++next_instr_)
            count_instr(trace, next_instr_, add);
        for (; next_site_ < sites && samples.size() < kPortion; ++next_site_)
            count_site(trace, next_site_, add);
        return next_instr_ < instrs || next_site_ < sites;
    }

    std::string summary(std::span<const uint64_t> totals) override {
        return summarise(totals.data(), settings_.return_stack != 0);
    }

  private:
    void describe_predictors() const {
        describe("Branch predictor",
                 conditional_predictor(settings_.predictor, settings_.table_bits)->describe());
        describe("Indirect predictor",
                 target_predictor(settings_.target_predictor, settings_.target_bits)->describe());
        if (settings_.return_stack != 0)
            describe("Return stack", std::to_string(settings_.return_stack) + " entries");
    }

    void learn(const assay::Trace& trace) {
        const auto sites = trace.sites();
        simulator_->learn(sites.data(), sites.size(), trace.instrs().data());
    }

    // Block counts give the executions of a branch. For predictors that run in the program, its
    // mispredictions are known as well.
    template <typename Add>
    void count_instr(const assay::Trace& trace, uint32_t index, const Add& add_to) const {
        const trace_instr_t& instr = trace.instrs()[index];
        const uint64_t mispredicted = trace.mispredictions(index);
        if (instr.flags & TRACE_INSTR_INDIRECT) {
            add_to(instr.pc, kBi, trace.count(index));
            if (settings_.predicts_targets_inside()) add_to(instr.pc, kBim, mispredicted);
        } else if (instr.flags & TRACE_INSTR_RETURN) {
            if (settings_.return_stack != 0) add_to(instr.pc, kBr, trace.count(index));
        } else if (instr.flags & TRACE_INSTR_CONDITIONAL) {
            add_to(instr.pc, kBc, trace.count(index));
            if (settings_.predicts_conditional_inside()) add_to(instr.pc, kBcm, mispredicted);
        }
    }

    template <typename Add>
    void count_site(const assay::Trace& trace, uint32_t index, const Add& add_to) const {
        const trace_site_t& site = trace.sites()[index];
        const trace_instr_t& instr = trace.instrs()[site.instr];
        if (site.kind == TRACE_SITE_PREDICTIONS) {
            if (!settings_.predicts_conditional_inside()) return;
            if (!(instr.flags & TRACE_INSTR_REPEATED)) {
                add_to(instr.pc, kBc, trace.count(site.instr));
                add_to(instr.pc, kBcm, trace.mispredictions(site.instr));
                return;
            }
            simulator_->each_context(index, [&](uint64_t context, const Tally& tally) {
                add_to(instr.pc, kBc, tally.branches, context);
                add_to(instr.pc, kBcm, tally.mispredicted, context);
            });
        } else if (site.kind == TRACE_SITE_BRANCH) {
            const Event event = instr.flags & TRACE_INSTR_CONDITIONAL ? kBcm
                                : instr.flags & TRACE_INSTR_RETURN    ? kBrm
                                                                      : kBim;
            simulator_->each_context(index, [&](uint64_t context, const Tally& tally) {
                add_to(instr.pc, event, tally.mispredicted, context);
            });
        }
    }

    Settings settings_;
    std::unique_ptr<Simulator> simulator_;
    uint32_t next_instr_ = 0, next_site_ = 0;  // position of finish_more()
};

}  // namespace
}  // namespace branch

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch =
    assay::dispatch<branch::BranchProfiler>();
