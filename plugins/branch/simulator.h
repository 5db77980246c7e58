// Predicts the branches of a trace and counts mispredictions by site.
#pragma once

#include "plugins/branch/conditional.h"
#include "plugins/branch/indirect.h"
#include "plugins/branch/settings.h"

#include "assay/trace_types.h"

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

namespace branch {

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
    // own. May throw std::bad_alloc.
    void process(std::uint32_t thread, const trace_record_t* records, std::size_t count);

    // No records of the thread follow: its predictors are not needed any more.
    void end(std::uint32_t thread) { predictors_.erase(thread); }
    std::size_t thread_count() const { return predictors_.size(); }

    const Tally& tally(std::size_t site) const { return tallies_[site]; }

  private:
    // What is known of a branch, or of another site: then only `flags` is.
    struct Branch {
        std::uint64_t pc = 0;
        std::uint8_t flags = 0;  // TRACE_INSTR_*; 0: no branch
        std::uint8_t length = 0;
        bool sums = false;  // a TRACE_SITE_PREDICTIONS, which has them already
    };
    struct Predictors {
        std::unique_ptr<ConditionalPredictor> conditional;  // null: in the program
        std::unique_ptr<TargetPredictor> target;            // likewise
        std::unique_ptr<ReturnStack> returns;               // null: returns are not predicted
    };

    Predictors& predictors_of(std::uint32_t thread);
    static bool mispredicts(Predictors& predictors, const Branch& branch,
                            const trace_record_t& record);

    const Settings settings_;
    std::vector<Branch> branches_;  // by site, as are the tallies
    std::vector<Tally> tallies_;
    std::map<std::uint32_t, Predictors> predictors_;  // by thread
};

}  // namespace branch
