// Predicts the branches of a trace and counts mispredictions by site: options, simulation, and the
// summary at the end of a run.
#pragma once

#include "plugins/branch/predictors.h"

#include "assay/trace_types.h"
#include "assay/vprofiler.h"

#include <assay/context_rows.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace branch {

struct Settings {
    std::string predictor = "cachegrind";
    unsigned table_bits = 0;  // 0: the predictor's usual size
    std::string target_predictor = "last";
    unsigned target_bits = 0;
    unsigned return_stack = 0;  // entries; 0: returns are not predicted

    // True for Cachegrind's predictors, which run in the program.
    bool predicts_conditional_inside() const { return predictor == "cachegrind"; }
    bool predicts_targets_inside() const {
        constexpr unsigned kCachegrinds = 9;
        return predicts_conditional_inside() && target_predictor == "last" &&
               (target_bits == 0 || target_bits == kCachegrinds);
    }
    // ITTAGE's history contains the outcomes of conditional branches.
    bool needs_outcomes() const {
        return !predicts_conditional_inside() || target_predictor == "ittage";
    }
};

inline constexpr std::array<vp_option_t, 5> kOptionTable{{
    {"predictor", "cachegrind|bimodal|gshare|tournament|tage", "cachegrind",
     "Predictor of conditional branches; cachegrind is by far the fastest.", VP_OPTION_TEXT, 0},
    {"predictor-bits", "N", nullptr,
     "Its tables have 2^N entries; N is 5 to 24; default: 14 (bimodal, gshare), 12 (tournament), "
     "10 (tage).",
     VP_OPTION_UNSIGNED, 0},
    {"indirect-predictor", "last|target-cache|ittage", "last",
     "Predictor of indirect jumps and calls.", VP_OPTION_TEXT, 0},
    {"indirect-bits", "N", "9", "Its tables have 2^N entries; N is 5 to 24.", VP_OPTION_UNSIGNED,
     0},
    {"return-stack", "DEPTH", "0",
     "Predicts returns with a stack of DEPTH entries and counts them as Br and Brm; 0: does not.",
     VP_OPTION_UNSIGNED, 0},
}};

// Applies one option. Throws std::invalid_argument with the reason if its value is unusable.
void apply(Settings& settings, std::string_view name, std::string_view value);
// Throws std::invalid_argument if options contradict each other.
void check(const Settings& settings);

struct Tally {
    std::uint64_t branches = 0, mispredicted = 0;
};

class Simulator {
  public:
    explicit Simulator(const Settings& settings) : settings_(settings) {}

    // All sites known so far, and the instructions that they refer to. Call it before process()
    // with records of these sites.
    void learn(const trace_site_t* sites, std::size_t count, const trace_instr_t* instrs);
    // Takes the next records of a thread. Each thread has its own predictors, as if it had its own
    // processor. `contexts` are the contexts after each record, or empty. A branch counts in the
    // context in which it was executed. May throw std::bad_alloc.
    void process(std::uint32_t thread, std::span<const trace_record_t> records,
                 std::span<const std::uint32_t> contexts = {});

    // The thread has ended: frees its predictors.
    void end(std::uint32_t thread) { predictors_.erase(thread); }
    std::size_t thread_count() const { return predictors_.size(); }

    Tally tally(std::size_t site) const;
    // Calls `visit(context, tally)` for each context in which the site occurred, with contexts as
    // in samples. Without contexts, calls it once with context 0.
    template <typename Visit>
    void each_context(std::size_t site, const Visit& visit) const {
        if (by_row_.empty()) return visit(std::uint64_t{0}, tallies_[site]);
        rows_.each(static_cast<std::uint32_t>(site),
                   [&](std::uint32_t row) { visit(rows_.context_of_samples(row), by_row_[row]); });
    }

  private:
    static constexpr std::uint32_t kNoInstr = UINT32_MAX;

    // Facts about a branch. For any other site, only `flags` is set.
    struct Branch {
        std::uint64_t pc = 0;
        std::uint32_t instr = 0;
        std::uint8_t flags = 0;  // TRACE_INSTR_*; 0: not a branch
        std::uint8_t length = 0;
        bool sums = false;    // a TRACE_SITE_PREDICTIONS, whose records are sums
        bool enters = false;  // enters a function or a handler: its context is the one after it

        bool counts() const { return flags != 0 || sums; }
    };
    struct Predictors {
        std::unique_ptr<ConditionalPredictor> conditional;  // null: runs in the program
        std::unique_ptr<TargetPredictor> target;            // null: runs in the program
        std::unique_ptr<ReturnStack> returns;               // null: returns are not predicted
        // The last record: its instruction, the context in which that began, and the context after
        // it.
        std::uint32_t instr = kNoInstr, context = 0, context_behind = 0;
        bool begins = true;  // no record so far
    };

    void count(Predictors& predictors, const trace_record_t& record, Tally& tally) const;
    Predictors& predictors_of(std::uint32_t thread);
    static bool mispredicts(Predictors& predictors, const Branch& branch,
                            const trace_record_t& record);

    const Settings settings_;
    std::vector<Branch> branches_;  // by site, like the tallies
    std::vector<Tally> tallies_;
    assay::ContextRows rows_;
    std::vector<Tally> by_row_;                       // by row of `rows_`
    std::map<std::uint32_t, Predictors> predictors_;  // by thread
};

// The summary at the end of a run, in Cachegrind's layout.

enum Event { kBc, kBcm, kBi, kBim, kBr, kBrm, kEvents };

// `totals` has one element per event. `returns` adds the lines about returns.
std::string summarise(const std::uint64_t* totals, bool returns);

}  // namespace branch
