#include "plugins/branch/simulator.h"

#include "plugins/branch/predictors.h"

#include <assay/profiler.hpp>
#include <assay/text.hpp>

#include <utility>

namespace branch {
namespace {

constexpr unsigned kFewestBits = 5;
constexpr unsigned kDeepestStack = 1U << 20;

unsigned number(std::string_view name, std::string_view value, unsigned from, unsigned to) {
    return static_cast<unsigned>(assay::number(name, value, from, to));
}

}  // namespace

void apply(Settings& settings, std::string_view name, std::string_view value) {
    if (name == "predictor") {
        settings.predictor = value;
        if (!conditional_predictor(value, kFewestBits))
            throw assay::BadOption(name, value,
                                   "use cachegrind, bimodal, gshare, tournament or tage");
    } else if (name == "predictor-bits") {
        settings.table_bits = number(name, value, kFewestBits, kMostTableBits);
    } else if (name == "indirect-predictor") {
        settings.target_predictor = value;
        if (!target_predictor(value, kFewestBits))
            throw assay::BadOption(name, value, "use last, target-cache or ittage");
    } else if (name == "indirect-bits") {
        settings.target_bits = number(name, value, kFewestBits, kMostTableBits);
    } else {
        settings.return_stack = number(name, value, 0, kDeepestStack);
    }
}

void check(const Settings& settings) {
    if (settings.table_bits != 0 && settings.predicts_conditional_inside())
        throw std::invalid_argument(
            "--predictor-bits: Cachegrind's predictor has one size; choose another with "
            "--predictor");
}

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

// The records of an instruction's call or return come before the record of its branch.
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

// Branches that are predicted in the program only update histories here.
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

namespace {

using assay::right;
using assay::with_commas;

std::string percent(std::uint64_t part, std::uint64_t whole) {
    return assay::percent(part, whole, 1);
}

struct Widths {
    std::size_t all, conditional, indirect;
};

std::string counts(const char* label, std::uint64_t conditional, std::uint64_t indirect,
                   const Widths& widths) {
    return label + right(with_commas(conditional + indirect), widths.all) + "  (" +
           right(with_commas(conditional), widths.conditional) + " cond + " +
           right(with_commas(indirect), widths.indirect) + " ind)\n";
}

}  // namespace

std::string summarise(const std::uint64_t* t, bool returns) {
    const Widths widths{with_commas(t[kBc] + t[kBi]).size(), with_commas(t[kBc]).size(),
                        with_commas(t[kBi]).size()};
    std::string out = counts("Branches:     ", t[kBc], t[kBi], widths);
    out += counts("Mispredicts:  ", t[kBcm], t[kBim], widths);
    // The numbers end in one column, before the per cent signs.
    out += "Mispred rate: " + right(percent(t[kBcm] + t[kBim], t[kBc] + t[kBi]), widths.all + 1) +
           " (" + right(percent(t[kBcm], t[kBc]), widths.conditional + 1) + "     + " +
           right(percent(t[kBim], t[kBi]), widths.indirect + 1) + "   )\n";
    if (!returns) return out;
    const std::size_t width = with_commas(t[kBr]).size();
    out += "\nReturns:      " + right(with_commas(t[kBr]), width) + "\n";
    out += "Mispredicts:  " + right(with_commas(t[kBrm]), width) + "\n";
    out += "Mispred rate: " + right(percent(t[kBrm], t[kBr]), width + 1) + "\n";
    return out;
}

}  // namespace branch
