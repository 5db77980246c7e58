// Predicts the branches of a trace and counts mispredictions by site: the options, the simulation
// and the summary at the end of a run.
#pragma once

#include "assay/trace_types.h"
#include "assay/vprofiler.h"
#include "plugins/branch/conditional.h"
#include "plugins/branch/indirect.h"

#include <array>
#include <assay/context_rows.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace branch {

// The profiler's options.

struct Settings {
    std::string predictor = "cachegrind";
    unsigned table_bits = 0;  // 0: the predictor's usual size
    std::string target_predictor = "last";
    unsigned target_bits = 0;
    unsigned return_stack = 0;  // entries; 0: returns are not looked at

    // Cachegrind's predictors, which run in the program.
    bool predicts_conditional_inside() const { return predictor == "cachegrind"; }
    bool predicts_targets_inside() const {
        constexpr unsigned kCachegrinds = 9;
        return predicts_conditional_inside() && target_predictor == "last" &&
               (target_bits == 0 || target_bits == kCachegrinds);
    }
    // ITTAGE's history has the outcomes of conditional branches.
    bool needs_outcomes() const {
        return !predicts_conditional_inside() || target_predictor == "ittage";
    }
};

inline constexpr std::array<vp_option_t, 5> kOptionTable{{
    {"predictor", "cachegrind|bimodal|gshare|tournament|tage", "cachegrind",
     "Predictor of conditional branches; cachegrind is by far the fastest.", VP_OPTION_TEXT, 0},
    {"predictor-bits", "N", nullptr,
     "Tables of 2^N entries, 5 to 24; default: 14 (bimodal, gshare), 12 (tournament), 10 (tage).",
     VP_OPTION_UNSIGNED, 0},
    {"indirect-predictor", "last|target-cache|ittage", "last",
     "Predictor of indirect jumps and calls.", VP_OPTION_TEXT, 0},
    {"indirect-bits", "N", "9", "Its tables have 2^N entries, 5 to 24.", VP_OPTION_UNSIGNED, 0},
    {"return-stack", "DEPTH", "0",
     "Predicts returns with a stack of so many entries and counts them as Br and Brm; 0: does not.",
     VP_OPTION_UNSIGNED, 0},
}};

// Takes one option over. Throws std::invalid_argument with the reason if its value is unusable.
void apply(Settings& settings, std::string_view name, std::string_view value);
// Throws the same for options that do not go together.
void check(const Settings& settings);

struct Tally {
    std::uint64_t branches = 0, mispredicted = 0;
};

class Simulator {
  public:
    explicit Simulator(const Settings& settings) : settings_(settings) {}

    // The sites, and the instructions that they refer to, as far as they are known now. Before
    // records of them.
    void learn(const trace_site_t* sites, std::size_t count, const trace_instr_t* instrs);
    // The next records of a thread. Each thread has predictors of its own, as on a processor of its
    // own. `contexts`: those behind each record; empty if they have none. Each branch counts in the
    // one that it was executed in. May throw std::bad_alloc.
    void process(std::uint32_t thread, std::span<const trace_record_t> records,
                 std::span<const std::uint32_t> contexts = {});

    // No records of the thread follow: its predictors are not needed any more.
    void end(std::uint32_t thread) { predictors_.erase(thread); }
    std::size_t thread_count() const { return predictors_.size(); }

    Tally tally(std::size_t site) const;
    // Calls `visit(context, tally)` for each context that the site was in, with a context as
    // samples have it. Where no record had any, once, with 0.
    template <typename Visit>
    void each_context(std::size_t site, const Visit& visit) const {
        if (by_row_.empty()) return visit(std::uint64_t{0}, tallies_[site]);
        rows_.each(static_cast<std::uint32_t>(site),
                   [&](std::uint32_t row) { visit(rows_.context_of_samples(row), by_row_[row]); });
    }

  private:
    static constexpr std::uint32_t kNoInstr = UINT32_MAX;

    // What is known of a branch, or of another site: then only `flags` is.
    struct Branch {
        std::uint64_t pc = 0;
        std::uint32_t instr = 0;
        std::uint8_t flags = 0;  // TRACE_INSTR_*; 0: no branch
        std::uint8_t length = 0;
        bool sums = false;    // a TRACE_SITE_PREDICTIONS, which has them already
        bool enters = false;  // a function or a handler, whose context is the one behind it

        bool counts() const { return flags != 0 || sums; }
    };
    struct Predictors {
        std::unique_ptr<ConditionalPredictor> conditional;  // null: in the program
        std::unique_ptr<TargetPredictor> target;            // likewise
        std::unique_ptr<ReturnStack> returns;               // null: returns are not predicted
        // Of the last record: its instruction, and the contexts where that began and where control
        // went on.
        std::uint32_t instr = kNoInstr, context = 0, context_behind = 0;
        bool begins = true;  // no record yet
    };

    void count(Predictors& predictors, const trace_record_t& record, Tally& tally) const;
    Predictors& predictors_of(std::uint32_t thread);
    static bool mispredicts(Predictors& predictors, const Branch& branch,
                            const trace_record_t& record);

    const Settings settings_;
    std::vector<Branch> branches_;  // by site, as are the tallies
    std::vector<Tally> tallies_;
    assay::ContextRows rows_;
    std::vector<Tally> by_row_;                       // of those
    std::map<std::uint32_t, Predictors> predictors_;  // by thread
};

// The end-of-run summary, laid out as Cachegrind's.

enum Event { kBc, kBcm, kBi, kBim, kBr, kBrm, kEvents };

// `totals` has one element per event. With `returns` those follow.
std::string summarise(const std::uint64_t* totals, bool returns);

}  // namespace branch
