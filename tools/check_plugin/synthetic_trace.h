// A made-up trace for check-plugin, with real instructions and records of every kind. Records are
// either ordinary or as extreme as programs can cause.
#pragma once

#include "tools/check_plugin/trial_trace.h"

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace assay::check {

class SyntheticTrace final : public TrialTrace {
  public:
    SyntheticTrace();

    // Adds at `pc` a function with all test instructions. Its two blocks share one instruction.
    void add_code(std::uint64_t pc);

    // From now on, records stand for runs of references, some of them left out.
    void leave_out() override { with_runs_ = true; }

    // Returns `count` records of one thread that runs the code in a loop.
    Buffer ordinary(std::uint32_t thread, std::size_t count);
    // Returns extreme addresses and counts, with each kind of site in any order, and one unknown
    // site.
    Buffer strange(std::uint32_t thread, std::size_t count);

    std::vector<trace_block_t> blocks() const override { return blocks_; }
    std::vector<trace_instr_t> instrs() const override { return instrs_; }
    std::vector<trace_site_t> sites() const override { return sites_; }
    std::vector<trace_context_t> contexts() const override { return contexts_; }
    const collector::AddressMap& addresses() const override { return addresses_; }
    std::vector<std::uint64_t> counts(std::uint64_t times) const override;

  private:
    void add_instr(std::span<const std::uint8_t> bytes, std::uint64_t& pc, std::uint32_t block);
    void add_site(std::uint8_t kind, std::uint16_t bytes, std::uint8_t operand);
    bool is_data(std::uint32_t site) const;
    std::uint64_t random();

    std::vector<trace_block_t> blocks_;
    std::vector<trace_instr_t> instrs_;
    std::vector<trace_site_t> sites_;
    std::vector<trace_context_t> contexts_;
    std::vector<trace_marker_t> markers_;
    collector::AddressMap addresses_;
    std::uint64_t state_ = 1;
    bool with_runs_ = false;
};

}  // namespace assay::check
