#include "plugins/branch/simulator.h"

namespace branch {

void Simulator::learn(const trace_site_t* sites, std::size_t count, const trace_instr_t* instrs) {
    for (std::size_t i = branches_.size(); i < count; ++i) {
        const trace_instr_t& instr = instrs[sites[i].instr];
        Branch branch{instr.pc, 0, instr.length, sites[i].kind == TRACE_SITE_PREDICTIONS};
        if (sites[i].kind == TRACE_SITE_BRANCH) branch.flags = instr.flags;
        branches_.push_back(branch);
    }
    tallies_.resize(branches_.size());
}

Simulator::Predictors& Simulator::predictors_of(std::uint32_t thread) {
    const auto [found, is_new] = predictors_.try_emplace(thread);
    Predictors& predictors = found->second;
    if (!is_new) return predictors;
    if (!settings_.predicts_conditional_inside())
        predictors.conditional = conditional_predictor(settings_.predictor, settings_.table_bits);
    if (!settings_.predicts_targets_inside())
        predictors.target = target_predictor(settings_.target_predictor, settings_.target_bits);
    if (settings_.return_stack != 0)
        predictors.returns = std::make_unique<ReturnStack>(settings_.return_stack);
    return predictors;
}

void Simulator::process(std::uint32_t thread, const trace_record_t* records, std::size_t count) {
    Predictors& predictors = predictors_of(thread);
    for (std::size_t i = 0; i < count; ++i) {
        const Branch& branch = branches_[records[i].site];
        Tally& tally = tallies_[records[i].site];
        if (branch.flags != 0) {
            ++tally.branches;
            tally.mispredicted += mispredicts(predictors, branch, records[i]);
        } else if (branch.sums) {
            tally.branches += records[i].value;
            tally.mispredicted += records[i].aux;
        }
    }
}

// Kinds that are predicted in the program are here for the histories only.
bool Simulator::mispredicts(Predictors& predictors, const Branch& branch,
                            const trace_record_t& record) {
    if (branch.flags & TRACE_INSTR_CONDITIONAL) {
        const bool taken = record.aux != 0;
        if (predictors.target) predictors.target->note_outcome(taken);
        return predictors.conditional && predictors.conditional->predict(branch.pc, taken) != taken;
    }
    if (branch.flags & TRACE_INSTR_RETURN)
        return predictors.returns && predictors.returns->predict_return() != record.value;
    if (predictors.returns && branch.flags & TRACE_INSTR_CALL)
        predictors.returns->call(branch.pc + branch.length);
    return predictors.target && branch.flags & TRACE_INSTR_INDIRECT &&
           predictors.target->predict(branch.pc, record.value) != record.value;
}

}  // namespace branch
