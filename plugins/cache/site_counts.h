// What the executions of instructions tell, whatever is simulated: Ir, Dr and Dw.
#pragma once

#include <assay/profiler.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace cache {

// Looked up once for many sites.
struct Code {
    explicit Code(const assay::Trace& trace)
        : sites(trace.sites()), instrs(trace.instrs()), blocks(trace.blocks()) {}

    const trace_instr_t& instr_of(const trace_site_t& site) const { return instrs[site.instr]; }

    std::span<const trace_site_t> sites;
    std::span<const trace_instr_t> instrs;
    std::span<const trace_block_t> blocks;
};

// As how many references Cachegrind counts one of the site's.
std::uint64_t references_each(const trace_site_t& site, const trace_instr_t& instr);

// Block by block, instructions and their sites: the host is quick at what lies close together.
class BlockWalk {
  public:
    // Goes through some blocks: add(pc, weight) for each instruction, `count_site(index)` for each
    // of the first `sites` sites. Returns whether there are more; `is_full` ends a portion.
    template <typename Add, typename CountSite, typename IsFull>
    bool step(const assay::Trace& trace, const Code& code, std::size_t sites, const Add& add,
              const CountSite& count_site, const IsFull& is_full) {
        const auto blocks = trace.blocks();
        while (next_block_ < blocks.size() && !is_full()) {
            const trace_block_t& block = blocks[next_block_++];
            const std::uint32_t end = block.first_instr + block.instr_count;
            for (std::uint32_t i = block.first_instr; i < end; ++i)
                add(code.instrs[i].pc, trace.count(i));
            for (; next_site_ < sites && code.sites[next_site_].instr < end; ++next_site_)
                count_site(next_site_);
        }
        return next_block_ < blocks.size();
    }

  private:
    std::size_t next_block_ = 0, next_site_ = 0;
};

}  // namespace cache
