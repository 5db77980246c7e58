// A trace that no program has made: real instructions, and records of every kind, ordinary or as
// strange as a program may make them. For check-plugin.
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

    // Adds a function of all its instructions at `pc`: two blocks that have one of them in common.
    void add_code(std::uint64_t pc);

    // References are left out from now on.
    void leave_out() override { with_runs_ = true; }

    // `count` records of one thread that go through the code again and again.
    Buffer ordinary(std::uint32_t thread, std::size_t count);
    // Extreme addresses and counts, each kind of site in any order, and one that is not known yet.
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
