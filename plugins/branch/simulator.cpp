#include "plugins/branch/simulator.h"

#include <utility>

namespace branch {

void Simulator::learn(const trace_site_t* sites, std::size_t count, const trace_instr_t* instrs) {
    for (std::size_t i = branches_.size(); i < count; ++i) {
        const trace_instr_t& instr = instrs[sites[i].instr];
        Branch branch{instr.pc,
                      sites[i].instr,
                      0,
                      instr.length,
                      sites[i].kind == TRACE_SITE_PREDICTIONS,
                      sites[i].kind == TRACE_SITE_CALL || sites[i].kind == TRACE_SITE_SIGNAL};
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

Tally Simulator::tally(std::size_t site) const {
    Tally sum;
    each_context(site, [&](std::uint64_t, const Tally& tally) {
        sum.branches += tally.branches;
        sum.mispredicted += tally.mispredicted;
    });
    return sum;
}

// The records that tell of an instruction's call or return stand before that of the branch.
void Simulator::process(std::uint32_t thread, std::span<const trace_record_t> records,
                        std::span<const std::uint32_t> contexts) {
    Predictors& predictors = predictors_of(thread);
    if (contexts.empty()) {
        for (const trace_record_t& record : records)
            if (branches_[record.site].counts()) count(predictors, record, tallies_[record.site]);
        return;
    }
    for (std::size_t i = 0; i < records.size(); ++i) {
        const Branch& branch = branches_[records[i].site];
        if (branch.instr != predictors.instr) predictors.context = predictors.context_behind;
        if (std::exchange(predictors.begins, false) && !branch.enters)
            predictors.context = contexts[i];
        predictors.instr = branch.counts() ? kNoInstr : branch.instr;
        predictors.context_behind = contexts[i];
        if (!branch.counts()) continue;
        const std::uint32_t row = rows_.of(predictors.context, records[i].site);
        if (row == by_row_.size()) by_row_.emplace_back();
        count(predictors, records[i], by_row_[row]);
    }
}

void Simulator::count(Predictors& predictors, const trace_record_t& record, Tally& tally) const {
    const Branch& branch = branches_[record.site];
    if (branch.sums) {
        tally.branches += record.value;
        tally.mispredicted += record.aux;
    } else {
        ++tally.branches;
        tally.mispredicted += mispredicts(predictors, branch, record);
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
