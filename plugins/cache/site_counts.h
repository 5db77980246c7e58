// Counts that follow from the executions of instructions without simulation: Ir, Dr and Dw.
#pragma once

#include <assay/profiler.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cache {

// A trace's tables, looked up once for many sites.
struct Code {
    explicit Code(const assay::Trace& trace)
        : sites(trace.sites()), instrs(trace.instrs()), blocks(trace.blocks()) {}

    const trace_instr_t& instr_of(const trace_site_t& site) const { return instrs[site.instr]; }

    std::span<const trace_site_t> sites;
    std::span<const trace_instr_t> instrs;
    std::span<const trace_block_t> blocks;
};

// Valgrind splits a locked instruction into a load and a compare-and-swap, two references. The
// compare-and-exchange instructions need no load.
// Intel SDM volume 2: LOCK; XCHG with a memory operand locks by itself.
inline bool is_locked(const trace_instr_t& instr) {
    const bool exchanges = instr.opcode == TRACE_OPCODE(1, 0xb0) ||
                           instr.opcode == TRACE_OPCODE(1, 0xb1) ||
                           instr.opcode == TRACE_OPCODE(1, 0xc7);
    if (exchanges) return false;
    if (instr.opcode == TRACE_OPCODE(0, 0x86) || instr.opcode == TRACE_OPCODE(0, 0x87)) return true;
    const auto* end = instr.bytes + std::min<unsigned>(instr.length, 4);
    for (const uint8_t* byte = instr.bytes; byte != end; ++byte) {
        if (*byte == 0xf0) return true;
        const bool is_segment = *byte == 0x26 || *byte == 0x2e || *byte == 0x36 || *byte == 0x3e ||
                                *byte == 0x64 || *byte == 0x65;
        const bool is_prefix =
            is_segment || *byte == 0x66 || *byte == 0x67 || *byte == 0xf2 || *byte == 0xf3;
        if (!is_prefix) return false;
    }
    return false;
}

// The number of references that Cachegrind counts for one reference of the site.
inline std::uint64_t references_each(const trace_site_t& site, const trace_instr_t& instr) {
    return site.kind == TRACE_SITE_MODIFY && is_locked(instr) ? 2 : 1;
}

// Visits instructions and their sites block by block, because the host is fast with neighbouring
// instructions.
class BlockWalk {
  public:
    // Visits some blocks: calls add(pc, weight) for each instruction and `count_site(index)` for
    // each of the first `sites` sites. Stops when `is_full` is true. Returns true if blocks are
    // left.
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
