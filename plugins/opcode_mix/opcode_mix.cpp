// The instruction mix: executed instructions by kind, vector width, bytes moved and floating-point
// operations.
//
// All facts about an instruction are known when it is translated (trace_parser_instr_facts), so
// only its executions are counted. Repeated string instructions also record their iterations, for
// the bytes.
#include "plugins/opcode_mix/classify.h"
#include "plugins/opcode_mix/events.h"

#include <assay/context_rows.hpp>
#include <assay/profiler.hpp>
#include <assay/text.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace opcode_mix {
namespace {

constexpr std::array<vp_option_t, 2> kOptionTable{{
    {"details", nullptr, "no",
     "Adds columns for parts of the groups, vector widths, instruction sets, and flops by "
     "precision "
     "and width.",
     VP_OPTION_YES_NO, 0},
    {"top", "N", "20", "How many of the most frequent opcodes are listed.", VP_OPTION_UNSIGNED, 0},
}};

// The amounts that one execution adds to columns.
class Additions {
  public:
    void add(Event event, std::uint64_t amount = 1) {
        if (amount != 0) all_[count_++] = {event, amount};
    }
    template <typename Add>
    void each(const Add& add_to) const {
        for (std::size_t i = 0; i < count_; ++i) add_to(all_[i].event, all_[i].amount);
    }

  private:
    struct Addition {
        Event event;
        std::uint64_t amount;
    };
    std::array<Addition, 13> all_{};
    std::size_t count_ = 0;
};

bool is_repeated(const trace_instr_t& instr) {
    return (instr.flags & TRACE_INSTR_REPEATED) != 0;
}

// The references of a gather or scatter whose mask selects all elements.
std::uint64_t references_at_most(const trace_instr_t& instr, const trace_instr_facts_t& facts) {
    return instr.flags & TRACE_INSTR_VARIABLE ? facts.elements : 1;
}

Additions additions_of(const trace_instr_t& instr, const trace_instr_facts_t& facts) {
    Additions all;
    const Event part = part_of(facts, instr.flags);
    all.add(kIr);
    all.add(group_of(part));
    if (part >= kFirstPart) all.add(part);
    if (const auto width = width_of(facts)) all.add(*width);
    if (const auto set = set_of(facts)) all.add(*set);
    if (instr.flags & TRACE_INSTR_LOAD) all.add(kLd);
    if (instr.flags & TRACE_INSTR_STORE) all.add(kSt);
    if (!is_repeated(instr)) {
        all.add(kLdB, facts.loaded_bytes * references_at_most(instr, facts));
        all.add(kStB, facts.stored_bytes * references_at_most(instr, facts));
    }
    const Flops flops = flops_of(facts);
    all.add(kFlops, flops.count);
    all.add(flops.part, flops.count);
    if (facts.flags & TRACE_FACT_MASKED) all.add(kFlM, flops.count);
    return all;
}

class OpcodeMix final : public assay::Profiler {
  public:
    static constexpr const char* kName = "opcode_mix";
    static constexpr const char* kDescription =
        "counts executed instructions by kind, vector width, bytes moved and floating-point "
        "operations";
    static constexpr const auto& kEvents = kEventTable;
    static constexpr const auto& kDerived = kDerivedTable;
    static constexpr const auto& kOptions = kOptionTable;

    void option(std::string_view name, const std::string& value) override {
        if (name == "details")
            details_ = value == "yes";
        else
            top_ = assay::number(name, value, 0, UINT32_MAX);
    }

    void capture(assay::Captures& wanted) override {
        wanted.block_counts();
        wanted.repeats();
        wanted.facts();
        if (details_) return;
        for (std::uint32_t event = kFirstDetail; event < opcode_mix::kEvents; ++event)
            leave_out(event);
    }

    void process(assay::Trace& trace, assay::Samples&) override {
        const auto records = trace.records();
        const auto contexts = trace.contexts();
        const auto sites = trace.sites();
        const auto instrs = trace.instrs();
        for (std::size_t i = 0; i < records.size(); ++i) {
            const trace_site_t& site = sites[records[i].site];
            if (site.kind != TRACE_SITE_COUNT || !is_repeated(instrs[site.instr])) continue;
            iterations_[rows_.of(contexts.empty() ? 0 : contexts[i], site.instr)] +=
                records[i].value;
        }
    }

    // The sums of what finish_more() would return.
    void totals(assay::Trace& trace, std::span<std::uint64_t> by_event) {
        const auto sum = [by_event](std::uint64_t, Event event, std::uint64_t weight,
                                    std::uint64_t = 0) { by_event[event] += weight; };
        for (std::uint32_t i = 0; i < trace.instrs().size(); ++i) count(trace, i, sum);
    }

    bool finish_more(assay::Trace& trace, assay::Samples& samples) override {
        constexpr std::size_t kPortion = 8192;
        const std::size_t instrs = trace.instrs().size();
        const auto add = [this, &samples](std::uint64_t pc, Event event, std::uint64_t weight,
                                          std::uint64_t context = 0) {
            if (details_ || event < kFirstDetail) samples.count(pc, event, weight, context);
        };
        for (; next_instr_ < instrs && samples.size() < kPortion; ++next_instr_) {
            const char* const mnemonic = count(trace, next_instr_, add);
            if (mnemonic != nullptr) executions_[mnemonic] += trace.count(next_instr_);
        }
        if (next_instr_ < instrs) return true;
        find_top_opcodes(trace.scale());
        return false;
    }

    std::string summary(std::span<const std::uint64_t> totals) override {
        return summarise(totals, top_opcodes_);
    }

  private:
    // Calls `add_to` with the amounts that the instruction adds to columns. Returns its mnemonic;
    // null if it was not executed.
    template <typename Add>
    const char* count(const assay::Trace& trace, std::uint32_t index, const Add& add_to) {
        const trace_instr_t& instr = trace.instrs()[index];
        const std::uint64_t executions = trace.count(index);
        if (executions == 0) return nullptr;
        const trace_instr_facts_t* const facts = trace.facts(index);
        if (facts == nullptr) {
            // It was executed, so it is an instruction even if the decoder does not know it.
            for (const Event event : {kIr, kOth, kMisc}) add_to(instr.pc, event, executions);
            return "unknown";
        }
        additions_of(instr, *facts).each([&](Event event, std::uint64_t amount) {
            add_to(instr.pc, event, amount * executions);
        });
        if (is_repeated(instr))
            rows_.each(index, [&](std::uint32_t row) {
                const std::uint64_t context =
                    trace.has_context() ? rows_.context_of_samples(row) : 0;
                add_to(instr.pc, kLdB, iterations_[row] * facts->loaded_bytes, context);
                add_to(instr.pc, kStB, iterations_[row] * facts->stored_bytes, context);
            });
        return facts->mnemonic;
    }

    void find_top_opcodes(double scale) {
        std::uint64_t all = 0;
        for (const auto& [mnemonic, executions] : executions_) {
            top_opcodes_.push_back({mnemonic, assay::scaled(executions, scale)});
            all += top_opcodes_.back().executions;
        }
        std::sort(top_opcodes_.begin(), top_opcodes_.end(), [](const auto& a, const auto& b) {
            return std::pair(b.executions, a.mnemonic) < std::pair(a.executions, b.mnemonic);
        });
        top_opcodes_.resize(std::min<std::size_t>(top_opcodes_.size(), top_));
        if (!top_opcodes_.empty()) describe("Opcodes", in_one_line(top_opcodes_, all));
    }

    bool details_ = false;
    std::uint64_t top_ = 20;
    assay::ContextRows rows_;                   // of contexts and instructions
    assay::Indexed<std::uint64_t> iterations_;  // by row
    std::unordered_map<std::string_view, std::uint64_t> executions_;  // by mnemonic
    std::vector<Opcode> top_opcodes_;
    std::uint32_t next_instr_ = 0;  // position of finish_more()
};

}  // namespace
}  // namespace opcode_mix

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch =
    assay::dispatch<opcode_mix::OpcodeMix>();
