// The references that have followed each block's record in the order of the site table, without
// exception: a chain. Where the next records are as predicted, a block's chain is among them, and
// nobody has to predict and learn, record by record, which site is the next.
#pragma once

#include "assay/trace_types.h"

#include <cstdint>
#include <span>
#include <vector>

namespace assay::recording {

class SiteChains {
  public:
    // `table`: all sites of an image, which must stay there.
    explicit SiteChains(std::span<const trace_site_t> table);
    // As at the beginning of a chunk.
    void reset();

    // Whether there are sites of values.
    bool has_values() const { return has_values_; }
    bool is_block(std::uint32_t site) const { return chains_[site].kind == TRACE_SITE_BLOCK; }
    // How many references the chain of a block has: of the sites behind its own. 0 while one of
    // them was followed by another record, and for sites of other kinds.
    unsigned references(std::uint32_t site) const {
        const Chain chain = chains_[site];
        return chain.departures == 0 ? chain.references : 0;
    }
    // A site's trace_site_state_t::next changes.
    void change_next(std::uint32_t site, std::uint32_t before, std::uint32_t after);

  private:
    // So small that those of a whole program's hot code stay in the processor's cache.
    struct Chain {
        std::uint8_t kind;  // of the site
        std::uint8_t references;
        std::uint8_t departures;  // how many are followed by other records
    };

    const std::span<const trace_site_t> table_;
    std::vector<Chain> chains_;
    bool has_values_ = false;
};

}  // namespace assay::recording
